"""The menu: what can be done, what runs, what was recorded last."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual import on, work
from textual.containers import Horizontal

from nd7tui.actions import BY_ID, REGISTRY, Action, Context
from nd7tui.engine import paths
from nd7tui.engine.log.sessions import list_sessions
from nd7tui.screens.base import Nd7Screen
from nd7tui.screens.sessions import Table, session_row
from nd7tui.screens.status import program_name
from nd7tui.widgets.bars import Bar, Piece
from nd7tui.widgets.cells import Row, clean
from nd7tui.widgets.row_view import RowView

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult

    from nd7tui.screens.session import SessionScreen

RECENT = 30


class HomeScreen(Nd7Screen):
    """The bottom of the stack."""

    DEFAULT_CSS = """
    HomeScreen #head { background: $panel; }
    HomeScreen #menu { width: 42; }
    HomeScreen #recent { width: 1fr; border-left: solid $primary; }
    HomeScreen.-narrow #recent { display: none; }
    HomeScreen.-narrow #menu { width: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[Action | SessionScreen] = []
        self.menu = Table("", id="menu")
        self.recent = Table("no sessions recorded yet", id="recent")
        self.recent.has_cursor = False
        self.recent.can_focus = False
        self.head = Bar(id="head")
        self.home = paths.home()

    def body(self) -> ComposeResult:
        """Composes the menu."""
        yield self.head
        with Horizontal():
            yield self.menu
            yield self.recent

    def on_mount(self) -> None:
        """Fills it."""
        about = "  programs confined by the kernel, every step on record"
        self.head.show([Piece(" nd7 ", "strong"), Piece(about, "dim")])
        self.menu.border_title = "menu"
        self.recent.border_title = "recent sessions"
        self.menu.focus()
        self._fill()
        self.set_interval(1.0, self._fill)

    def on_screen_resume(self) -> None:
        """Looks again what runs and what was recorded."""
        self._fill()
        self._read()

    def resized(self) -> None:
        """Shows recent sessions beside the menu when there is room."""
        self.set_class(self.size.width < 100, "-narrow")

    @work(thread=True, exclusive=True)
    def _read(self) -> None:
        rows = [partial(session_row, session, home=self.home) for session in list_sessions()[:RECENT]]
        self.app.call_from_thread(self.recent.show, rows)

    def _fill(self) -> None:
        if self.app.screen is not self:
            return  # beneath a session a refresh would still paint the whole screen, for nobody
        own: list[SessionScreen] = list(getattr(self.app, "own_sessions", list)())
        actions = [action for action in REGISTRY if action.context is Context.HOME]
        self.entries = [*own, *actions]
        self.menu.show([partial(self._row, entry) for entry in self.entries])

    def _row(self, entry: Action | SessionScreen, width: int) -> Row:
        del width
        if isinstance(entry, Action):
            return [(f"  {self.keymap.shown(entry.id):<3} ", "accent"), (entry.label, "strong")]
        state = "ended" if entry.ended else "running"
        unread = f", {entry.book.unread} unread" if entry.book.unread else ""
        name = clean(program_name(entry.program))
        role = "warn" if unread else "dim"
        return [("  ↵   ", "accent"), (f"back to {name} ", "strong"), (f"({state}{unread})", role)]

    def contexts(self) -> list[Context]:
        """Returns where keys are looked up."""
        return [Context.HOME]

    def on_key(self, event: events.Key) -> None:
        """Enter does what the cursor is on."""
        if event.key == "enter":
            event.stop()
            self._choose()

    @on(RowView.Chosen)
    def _choose(self) -> None:
        entry = self.entries[self.menu.cursor]
        if isinstance(entry, Action):
            self.perform(BY_ID[entry.id])
        else:
            self.app.call_later(self.app.go_to, entry)  # type: ignore[attr-defined]

    # --- actions

    def do_new_session(self) -> None:
        """Starts a program."""
        from nd7tui.screens.new_session import NewSessionScreen

        self.app.push_screen(NewSessionScreen())

    def do_running(self) -> None:
        """What runs."""
        from nd7tui.screens.sessions import RunningScreen

        self.app.push_screen(RunningScreen())

    def do_sessions(self) -> None:
        """What was recorded."""
        from nd7tui.screens.sessions import SessionsScreen

        self.app.push_screen(SessionsScreen())

    def do_verify(self) -> None:
        """Checks all chains; one alone is checked from the lists."""
        from nd7tui.screens.verify import VerifyScreen

        self.app.push_screen(VerifyScreen([session.path for session in list_sessions()]))

    def do_rules(self) -> None:
        """The rules of the one run, or of a run that would start here."""
        from nd7tui.engine.run import directory
        from nd7tui.screens.rules import RulesScreen

        runs = directory.list_runs()
        if len(runs) > 1:
            self.do_running()
        else:
            self.app.push_screen(RulesScreen(runs[0] if runs else None))
