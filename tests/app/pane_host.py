"""A tiny app around one pane: `python pane_host.py [--engine NAME] PROGRAM ARGS…`. ctrl+] leaves."""

from __future__ import annotations

import sys

from textual import events
from textual.app import App, ComposeResult

from nd7tui.widgets.agent_pane import AgentPane


class Host(App[int]):
    CSS = "AgentPane { width: 1fr; height: 1fr; }"
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, argv: list[str], engine: str | None = None, env: dict[str, str] | None = None) -> None:
        super().__init__()
        self.argv, self.engine, self.env = argv, engine, env
        self.seen: list[object] = []

    def compose(self) -> ComposeResult:
        yield AgentPane(self.argv, self.env, engine=self.engine, id="agent")

    @property
    def pane(self) -> AgentPane:
        return self.query_one(AgentPane)

    def on_mount(self) -> None:
        self.pane.focus()

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key):
            if event.key == "ctrl+right_square_bracket":
                self.exit(0)
                return
            if self.pane.has_focus and self.pane.send_key(event):
                return
        await super().on_event(event)

    def on_agent_pane_exited(self, message: AgentPane.Exited) -> None:
        self.seen.append(message)

    def on_agent_pane_ready(self, message: AgentPane.Ready) -> None:
        self.seen.append(message)

    def on_agent_pane_title_changed(self, message: AgentPane.TitleChanged) -> None:
        self.seen.append(message)

    def on_agent_pane_bell(self, message: AgentPane.Bell) -> None:
        self.seen.append(message)

    def on_agent_pane_clipboard_asked(self, message: AgentPane.ClipboardAsked) -> None:
        self.seen.append(message)

    def on_agent_pane_notification(self, message: AgentPane.Notification) -> None:
        self.seen.append(message)


if __name__ == "__main__":
    words = sys.argv[1:]
    chosen = words[1] if words[:1] == ["--engine"] else None
    Host(words[2:] if chosen else words, chosen).run()
