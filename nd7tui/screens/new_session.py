"""Choosing what to start, and where.

Rule: only what can be started is offered as startable, and what cannot says why. The command is split as a shell splits
words and is not given to a shell.
"""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from textual import on
from textual.widgets import Input, Label

from nd7tui.actions import Context
from nd7tui.engine.agents.registry import AGENTS, DEMO, find_program
from nd7tui.screens.base import Nd7Screen
from nd7tui.screens.launch import Launch
from nd7tui.screens.sessions import Table
from nd7tui.widgets.bars import Piece
from nd7tui.widgets.row_view import RowView

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult

    from nd7tui.widgets.cells import Row


class Choice:
    """One program that can be started."""

    def __init__(self, label: str, words: list[str], note: str, why_not: str = "") -> None:
        self.label = label
        self.words = words
        self.note = note
        self.why_not = why_not

    def row(self, width: int) -> Row:
        """Paints it."""
        del width
        role = "dim" if self.why_not else "strong"
        return [(f"  {self.label:<10} ", role), (self.why_not or self.note, "dim" if self.why_not else "")]


def choices() -> list[Choice]:
    """Returns what there is."""
    found = []
    for name in AGENTS:
        path = find_program(name)
        found.append(Choice(name, [name], path or "", "" if path else "not found in PATH"))
    shell = os.environ.get("SHELL") or "/bin/sh"
    found.append(Choice("demo", [DEMO], "the bundled demo agent: shows everything, needs no account"))
    found.append(Choice("shell", [shell], shell))
    found.append(Choice("command", [], "the command below"))
    return found


class NewSessionScreen(Nd7Screen):
    """A small form: program, command, project."""

    DEFAULT_CSS = """
    NewSessionScreen Table { height: 8; }
    NewSessionScreen Label { padding: 1 1 0 1; color: $text-muted; }
    NewSessionScreen Input { height: 1; border: none; background: $surface; margin: 0 1; }
    NewSessionScreen Input:focus { background: $primary 30%; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.choices = choices()
        self.table = Table("", id="programs")

    def body(self) -> ComposeResult:
        """Composes the form."""
        yield self.table
        yield Label("command (for the last choice)", markup=False)
        yield Input(placeholder="program and arguments", id="command")
        yield Label("project: the directory the program may write", markup=False)
        yield Input(os.getcwd(), id="project")

    def on_mount(self) -> None:
        """Starts at the first program that is there."""
        for box in self.query(Input):
            box.cursor_blink = False
        self.table.border_title = "start a program confined: which?"
        self.table.show([choice.row for choice in self.choices])
        self.table.move(next(i for i, choice in enumerate(self.choices) if not choice.why_not))
        self.table.focus()

    def contexts(self) -> list[Context]:
        """Returns where keys are looked up."""
        return [Context.BACK]

    def hint_pieces(self) -> list[Piece]:
        """Says what enter and tab do here."""
        return [
            Piece(" enter ", "key"),
            Piece("start  "),
            Piece("tab ", "key"),
            Piece("next field "),
            *self.key_pieces(self.contexts()),
        ]

    def on_key(self, event: events.Key) -> None:
        """Moves between the fields; starts."""
        if event.key in {"tab", "shift+tab"}:
            event.stop()
            (self.focus_next if event.key == "tab" else self.focus_previous)()
        elif event.key == "enter" and self.focused is self.table:
            event.stop()
            self.start()

    @on(RowView.Chosen)
    def _chosen(self) -> None:
        self.start()

    @on(Input.Submitted, "#command")
    def _command(self) -> None:
        self.table.move(len(self.choices) - 1)
        self.start()

    @on(Input.Submitted, "#project")
    def _project(self) -> None:
        self.start()

    def start(self) -> None:
        """Starts what was chosen, or says what is missing."""
        choice = self.choices[self.table.cursor]
        project = os.path.expanduser(self.query_one("#project", Input).value.strip() or ".")
        try:
            words = choice.words or shlex.split(self.query_one("#command", Input).value)
        except ValueError as error:
            self.say(f"command: {str(error).lower()}", "warn")
            return
        if choice.why_not:
            self.say(f"{choice.label}: {choice.why_not}", "warn")
        elif not words:
            self.say("no command yet: tab leads to the field", "warn")
        elif not os.path.isdir(project):
            self.say(f"project: {project!r} is not a directory", "warn")
        else:
            launch = Launch(tuple(words), cwd=os.path.realpath(project))
            self.app.call_later(self.app.start_session, launch)  # type: ignore[attr-defined]
