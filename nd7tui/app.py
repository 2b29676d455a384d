"""The text UI: wiring only.

Rule: keys reach the screen's registry dispatch before Textual's own bindings, and there is no command palette: while
the pane is in use, every key but the prefix is the program's. The app owns the sessions started here and nothing else;
killing it loses nothing, since logs and rules are other processes' files.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, ClassVar

from textual import events, work
from textual.app import App

from nd7tui.actions import BY_ID, Keymap, default_keymap
from nd7tui.engine.run import directory
from nd7tui.screens.base import Nd7Screen
from nd7tui.screens.dialogs import Confirm
from nd7tui.screens.home import HomeScreen
from nd7tui.screens.session import SessionScreen, make_pane
from nd7tui.screens.status import program_name

if TYPE_CHECKING:
    from nd7tui.engine.run.directory import Run
    from nd7tui.screens.launch import Launch
    from nd7tui.screens.session import PaneFactory

LEAVE_SECONDS = 6.0


class Nd7App(App[int], inherit_bindings=False):
    """The application; returns the exit status of the program that was ended last.

    Args:
        launch: What to start right away; None for the menu.
        keymap: The keys in force.
        theme: Name of a theme, None for the default.
        notes: What to say at the start (a broken configuration).
        pane_factory: Makes agent panes; tests give another.
    """

    CSS_PATH = "nd7.tcss"
    TITLE = "nd7"
    ENABLE_COMMAND_PALETTE = False
    ALLOW_IN_MAXIMIZED_VIEW = ""
    BINDINGS: ClassVar = []

    def __init__(
        self,
        launch: Launch | None = None,
        *,
        keymap: Keymap | None = None,
        theme: str | None = None,
        notes: tuple[str, ...] = (),
        pane_factory: PaneFactory = make_pane,
    ) -> None:
        super().__init__()
        self.keymap_in_force = keymap or default_keymap()
        self._launch = launch
        self._theme = theme
        self._notes = (*notes, *self.keymap_in_force.problems)
        self._pane_factory = pane_factory
        self._own: list[SessionScreen] = []
        self._mouse = True
        self._leaving = False
        self._all_ended = asyncio.Event()
        self.last_status: int | None = None

    async def on_mount(self) -> None:
        """Shows the menu, and the session over it."""
        if self._theme is not None:
            if self._theme in self.available_themes:
                self.theme = self._theme
            else:
                self._notes = (*self._notes, f"[ui] theme: there is no theme {self._theme!r}")
        await self.push_screen(HomeScreen())
        if self._launch is not None:
            await self.start_session(self._launch)
        if self._notes and isinstance(self.screen, Nd7Screen):
            self.screen.say(f"config.toml: {'; '.join(self._notes)}", "bad", 15.0)

    # --- keys

    async def on_event(self, event: events.Event) -> None:
        """Takes keys before any binding, and tells of pastes."""
        if isinstance(event, events.Key) and not event.is_forwarded:
            screen = self.screen
            if isinstance(screen, Nd7Screen) and screen.take_key(event):
                return
        elif isinstance(event, events.Paste) and not event.is_forwarded:
            screen = self.screen
            if isinstance(screen, SessionScreen):
                screen.note_paste()
                if screen.too_small:
                    return
        await super().on_event(event)

    def action_perform(self, action_id: str) -> None:
        """Performs an action by its id: what a click on a key in a bar does."""
        if isinstance(self.screen, Nd7Screen) and action_id in BY_ID:
            self.screen.perform_clicked(BY_ID[action_id])

    def action_mouse(self) -> None:
        """Mouse capture on or off."""
        driver = self._driver
        switch = getattr(driver, "_disable_mouse_support" if self._mouse else "_enable_mouse_support", None)
        screen = self.screen
        if switch is None:
            if isinstance(screen, Nd7Screen):
                screen.say("this terminal's mouse cannot be switched", "warn")
            return
        switch()
        self._mouse = not self._mouse
        if isinstance(screen, Nd7Screen):
            screen.say(f"mouse capture is {'on' if self._mouse else 'off: select text with the terminal'}")

    # --- sessions

    def own_sessions(self) -> list[SessionScreen]:
        """Returns the sessions started here."""
        return self._own

    async def start_session(self, launch: Launch) -> None:
        """Starts a program in a screen of its own, over the menu."""
        screen = SessionScreen(launch, pane_factory=self._pane_factory)
        screen.on_ended = self.session_ended
        self._own.append(screen)
        self._all_ended.clear()
        self.install_screen(screen, screen.feed.session_id)
        await self._over_home(screen)

    async def go_to(self, found: Run | SessionScreen) -> None:
        """Shows a session: one of ours, or another's to watch."""
        if isinstance(found, directory.Run):
            await self._over_home(SessionScreen(run=found))
        else:
            await self._over_home(found)

    async def _over_home(self, screen: SessionScreen) -> None:
        while len(self.screen_stack) > 2 or (
            len(self.screen_stack) > 1 and not isinstance(self.screen_stack[-1], HomeScreen)
        ):
            await self.pop_screen()
        self._forget_ended(keep=screen)
        await self.push_screen(screen)

    def _forget_ended(self, keep: SessionScreen) -> None:
        """Lets go of ended sessions when another is shown; their logs stay."""
        for screen in [own for own in self._own if own.ended and own is not keep]:
            self._own.remove(screen)
            self.uninstall_screen(screen)

    def session_ended(self, screen: SessionScreen) -> None:
        """Remembers how a program ended."""
        self.last_status = screen.exit_status
        if all(own.ended for own in self._own):
            self._all_ended.set()

    # --- leaving

    def action_leave(self) -> None:
        """Leaves; asks while a program still runs."""
        running = [screen for screen in self._own if not screen.ended]
        if not running:
            self.exit(self.last_status or 0)
            return
        names = ", ".join(program_name(screen.program) for screen in running)
        lines = [f"Still running: {names}.", "Leaving hangs up on it, and the run ends with everything in it."]
        self.push_screen(Confirm("Leave nd7?", lines, "End it and leave", danger=True), self._leave)

    def _leave(self, sure: bool | None) -> None:
        if sure and not self._leaving:
            self._leaving = True
            self._end_all()

    @work
    async def _end_all(self) -> None:
        """Hangs up on every program, and waits for the supervisors to write their last frames."""
        for screen in self._own:
            if screen.pane is not None and not screen.ended:
                screen.pane.terminate()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._all_ended.wait(), LEAVE_SECONDS)
        self.exit(self.last_status or 0)
