"""Past sessions, and the ones running now.

Rule: the lists come from the disk each time they are shown. Names in them are the agents' words: shown as text, never
as markup. A log that cannot be read is missing here and told of by `nd7 verify`.
"""

from __future__ import annotations

import os
import time
from functools import partial
from typing import TYPE_CHECKING

from textual import on, work
from textual.widgets import Input

from nd7tui.actions import Action, Context, Facts
from nd7tui.engine import paths
from nd7tui.engine.log.sessions import SessionSummary, list_sessions
from nd7tui.engine.run import directory
from nd7tui.errors import UsageError
from nd7tui.screens.base import Nd7Screen
from nd7tui.screens.status import program_name
from nd7tui.widgets.bars import Bar, Piece
from nd7tui.widgets.cells import Row, clean, cut, cut_middle, date, fit, tilde
from nd7tui.widgets.row_view import RowView

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.app import ComposeResult

    from nd7tui.engine.run.directory import Run
    from nd7tui.screens.session import SessionScreen

SORTS: tuple[tuple[str, Callable[[SessionSummary], object], bool], ...] = (
    ("newest", lambda session: session.last_ts, True),
    ("project", lambda session: session.project, False),
    ("frames", lambda session: session.frames, True),
    ("denials", lambda session: session.denials or 0, True),
)


class Table(RowView):
    """Rows of columns, with a heading as its border's title.

    Args:
        nothing: What to say when there are no rows.
    """

    DEFAULT_CSS = "Table { border-top: solid $primary; &:focus { border-top: heavy $accent; } }"

    def __init__(self, nothing: str, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.nothing = nothing
        self.rows: Sequence[Callable[[int], Row]] = []

    def show(self, rows: Sequence[Callable[[int], Row]]) -> None:
        """Shows these rows; each is a function of the width."""
        self.rows = rows
        self.rows_changed()

    def row_count(self) -> int:
        """Returns the number of rows; one when there are none, to say so."""
        return max(1, len(self.rows))

    def row_parts(self, index: int, width: int) -> list[Row]:
        """Paints one row."""
        return [self.rows[index](width)] if self.rows else [[(f"  {self.nothing}", "dim")]]


def session_row(session: SessionSummary, width: int, home: str) -> Row:
    """Returns a session's line: when, what, how long, what was refused, where."""
    denials = f"{session.denials} denied" if session.denials else "none denied"
    role = {"running": "ok", "ended": "dim"}.get(session.state, "warn")
    parts: Row = [
        (f" {date(session.last_ts) if session.last_ts else '?':<16} ", ""),
        (f"{session.state:<7} ", role),
        (f"{cut(clean(session.agent or '?'), 10):<10} ", "accent"),
    ]
    if width >= 72:
        parts.append((f"{session.frames:>6} frames  ", ""))
    if width >= 72 and session.denials is not None:
        parts.append((f"{denials:<11} ", "bad" if session.denials else "dim"))
    if width >= 110:
        parts.append((f"{session.session_id[:8]}  ", "dim"))
    taken = sum(len(text) for text, _ in parts)
    return fit([*parts, (cut_middle(tilde(clean(session.project), home), max(8, width - taken)), "")], width)


class SessionsScreen(Nd7Screen):
    """The recorded sessions."""

    DEFAULT_CSS = """
    SessionsScreen #head { background: $panel; }
    SessionsScreen Input { height: 1; border: none; display: none; background: $surface; }
    SessionsScreen.-filtering Input { display: block; }
    """

    def __init__(self, root: str | None = None) -> None:
        super().__init__()
        self.root = root
        self.all: list[SessionSummary] = []
        self.shown: list[SessionSummary] = []
        self.sort = 0
        self.words = ""
        self.table = Table("no sessions recorded yet", id="sessions")
        self.head = Bar(id="head")
        self.home = paths.home()

    def body(self) -> ComposeResult:
        """Composes the table."""
        yield self.head
        yield Input(placeholder="project, agent or id", id="filter")
        yield self.table

    def on_mount(self) -> None:
        """Reads the directory."""
        self.query_one(Input).cursor_blink = False
        self.table.border_title = "past sessions"
        self.table.focus()
        self._read()

    def on_screen_resume(self) -> None:
        """Reads it again when coming back."""
        if self.is_mounted:
            self._read()

    @work(thread=True, exclusive=True)
    def _read(self) -> None:
        quick = list_sessions(self.root)
        self.app.call_from_thread(self._show, quick)
        # Counting reads every log whole; the list is there meanwhile.
        self.app.call_from_thread(self._show, list_sessions(self.root, count_denials=True))

    def _show(self, found: list[SessionSummary]) -> None:
        self.all = found
        self._arrange()

    def _arrange(self) -> None:
        name, key, down = SORTS[self.sort]
        words = self.words.lower().split()
        chosen = [s for s in self.all if all(w in f"{s.project} {s.agent} {s.session_id}".lower() for w in words)]
        self.shown = sorted(chosen, key=key, reverse=down)  # type: ignore[arg-type]
        self.table.show([partial(session_row, session, home=self.home) for session in self.shown])
        pieces = [
            Piece(f" {len(self.shown)} of {len(self.all)} sessions", "strong"),
            Piece(f"  by {name}", "dim", "sort-sessions"),
        ]
        if self.words:
            pieces.append(Piece(f"  filter: {self.words}", "accent", "filter-sessions"))
        self.head.show(pieces)

    @property
    def current(self) -> SessionSummary | None:
        """The session under the cursor."""
        return self.shown[self.table.cursor] if self.table.cursor < len(self.shown) else None

    def contexts(self) -> list[Context]:
        """Returns where keys are looked up."""
        return [Context.SESSIONS, Context.BACK]

    def facts(self, action: Action) -> Facts:
        """Returns what decides whether `action` can run."""
        del action
        return Facts(session=self.current is not None)

    @on(RowView.Chosen)
    def _chosen(self) -> None:
        self.do_open_session()

    def do_open_session(self) -> None:
        """Reviews it."""
        from nd7tui.screens.review import ReviewScreen

        if self.current is not None:
            self.app.push_screen(ReviewScreen(self.current.path))

    def do_verify_one(self) -> None:
        """Checks its chain."""
        from nd7tui.screens.verify import VerifyScreen

        if self.current is not None:
            self.app.push_screen(VerifyScreen([self.current.path]))

    def do_sort_sessions(self) -> None:
        """The next order."""
        self.sort = (self.sort + 1) % len(SORTS)
        self._arrange()

    def do_filter_sessions(self) -> None:
        """Opens the filter box."""
        self.add_class("-filtering")
        self.query_one(Input).focus()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self.words = event.value
        self._arrange()

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.table.focus()

    def do_back(self) -> None:
        """Closes the filter box first, then the screen."""
        if self.has_class("-filtering"):
            self.remove_class("-filtering")
            self.query_one(Input).value = ""
            self.table.focus()
        else:
            self.app.pop_screen()


class RunningScreen(Nd7Screen):
    """The sessions running now, in this nd7 and elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Run | SessionScreen] = []
        self.table = Table("nothing is running", id="running")
        self.home = paths.home()

    def body(self) -> ComposeResult:
        """Composes the table."""
        yield self.table

    def on_mount(self) -> None:
        """Looks, and keeps looking."""
        self.table.border_title = "running sessions"
        self.table.focus()
        self._read()
        self.set_interval(1.0, self._read)

    def _read(self) -> None:
        own = list(getattr(self.app, "own_sessions", list)())
        pids = {screen.feed.pid for screen in own}
        try:
            others = [run for run in directory.list_runs() if run.pid not in pids]
        except (UsageError, OSError) as error:
            self.say_error(error)
            others = []
        self.runs = [*own, *others]
        self.table.show([partial(self._row, run) for run in self.runs])

    def _row(self, run: Run | SessionScreen, width: int) -> Row:
        if isinstance(run, directory.Run):
            record, where = run.record, "elsewhere"
            name = program_name(record.argv) if record else "?"
            project = os.fsdecode(record.project) if record else run.fault
            began = record.started if record else 0
            pid, unread = run.pid, ""
        else:
            record, where = run.feed.record, "ended" if run.ended else "here"
            name, pid = program_name(run.program), run.feed.pid or 0
            project = os.fsdecode(record.project) if record else os.getcwd()
            began = record.started if record else time.time_ns()
            unread = f"{run.book.unread} unread " if run.book.unread else ""
        parts: Row = [(f" {where:<9} ", "ok" if where == "here" else ""), (f"{cut(clean(name), 12):<12} ", "accent")]
        parts += [(f"run {pid:<8} ", "dim"), (f"since {date(began)[11:]}  ", ""), (unread, "warn")]
        return fit([*parts, (tilde(clean(project), self.home), "")], width)

    @property
    def current(self) -> Run | SessionScreen | None:
        """The session under the cursor."""
        return self.runs[self.table.cursor] if self.table.cursor < len(self.runs) else None

    def contexts(self) -> list[Context]:
        """Returns where keys are looked up."""
        return [Context.RUNNING, Context.BACK]

    def facts(self, action: Action) -> Facts:
        """Returns what decides whether `action` can run."""
        del action
        return Facts(session=self.current is not None)

    @on(RowView.Chosen)
    def _chosen(self) -> None:
        self.do_watch_run()

    def do_watch_run(self) -> None:
        """Goes to it."""
        found = self.current
        if isinstance(found, directory.Run) and found.record is None:
            self.say(f"its rule file cannot be read: {found.fault}", "bad")
        elif found is not None:
            self.app.call_later(self.app.go_to, found)  # type: ignore[attr-defined]

    def do_run_rules(self) -> None:
        """Its rules."""
        from nd7tui.screens.rules import RulesScreen

        found = self.current
        if isinstance(found, directory.Run):
            self.app.push_screen(RulesScreen(found))
        elif found is not None:
            self.app.push_screen(RulesScreen(found.feed.run, found.feed.policy))
