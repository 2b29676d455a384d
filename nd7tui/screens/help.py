"""All keys, from the registry, and what the marks mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nd7tui.actions import PREFIX_ID, REGISTRY, Context, Keymap
from nd7tui.screens.base import Nd7Screen
from nd7tui.widgets.denial_rows import ACCESS_MARKS
from nd7tui.widgets.denials import State
from nd7tui.widgets.row_view import TextView

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from nd7tui.widgets.cells import Row


def help_rows(keymap: Keymap) -> list[Row]:
    """Returns the help text."""
    prefix = keymap.shown(PREFIX_ID)
    rows: list[Row] = [
        [(" Every key goes to the program in the pane, except ", ""), (prefix, "strong"), (".", "")],
        [
            (" Pressed twice, it goes through itself. ", ""),
            ("!", "warn"),
            (" widens what the program may do, or ends something.", ""),
        ],
        [(" Copying with the mouse: hold shift, or ", ""), (keymap.chord("mouse"), "strong"), (".", "")],
    ]
    for context in Context:
        rows += [[], [(f" {context.value}", "accent")]]
        for action in REGISTRY:
            if action.context is context:
                mark = ("! ", "warn") if action.danger else ("  ", "")
                rows.append([(f"   {keymap.shown(action.id):<10} ", "strong"), mark, (action.help, "")])
    rows += [[], [(" Marks", "accent")]]
    rows += [[(f"   {state.mark} {state.word}", state.role)] for state in State]
    rows.append([("   " + "   ".join(f"{mark} {name}" for name, mark in ACCESS_MARKS.items()), "")])
    rows.append([("   ● nobody has looked at it yet", "warn")])
    problems: list[Row] = [[(f"   {problem}", "bad")] for problem in keymap.problems]
    return [*rows, [], [(" In your config.toml", "accent")], *problems] if problems else rows


class HelpScreen(Nd7Screen):
    """The help screen."""

    DEFAULT_CSS = "HelpScreen TextView { border-top: heavy $accent; }"

    def body(self) -> ComposeResult:
        """Composes the text."""
        yield TextView(id="help")

    def on_mount(self) -> None:
        """Fills it."""
        view = self.query_one(TextView)
        view.border_title = "keys"
        view.show(help_rows(self.keymap))
        view.focus()

    def contexts(self) -> list[Context]:
        """Returns where keys are looked up."""
        return [Context.BACK]
