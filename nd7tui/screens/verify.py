"""Checking chains: one session or all, with progress; the first failure named, the caveat always shown.

Rule: the checking is `engine.log.verify`, in a worker; the screen only says what came out. A clean result is never
shown without what it does not prove.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from textual import on, work
from textual.content import Content
from textual.widgets import Static
from textual.worker import get_current_worker

from nd7tui.actions import Action, Context, Facts
from nd7tui.engine.log.chain import CAVEAT
from nd7tui.engine.log.verify import verify
from nd7tui.errors import Nd7Error
from nd7tui.messages import VerifyDone, VerifyProgress
from nd7tui.screens.base import Nd7Screen
from nd7tui.widgets.bars import Bar, Piece
from nd7tui.widgets.cells import Row, clean, fit
from nd7tui.widgets.row_view import RowView

if TYPE_CHECKING:
    from textual.app import ComposeResult

BAR_CELLS = 20


class _Cancelled(Exception):  # noqa: N818  # not a fault
    """The screen was left."""


class Results(RowView):
    """A line for each session."""

    DEFAULT_CSS = "Results { border-top: solid $primary; &:focus { border-top: heavy $accent; } }"

    def __init__(self, names: list[str]) -> None:
        super().__init__(id="results")
        self.names = names
        self.done: dict[str, VerifyDone] = {}
        self.progress: dict[str, VerifyProgress] = {}

    def row_count(self) -> int:
        """Returns the number of sessions."""
        return len(self.names)

    def row_parts(self, index: int, width: int) -> list[Row]:
        """Paints one session's result."""
        name = self.names[index]
        start: Row = [(f" {clean(name)[:36]:<36} ", "") if width >= 90 else (f" {clean(name)[:8]} ", "")]
        result = self.done.get(name)
        if result is not None:
            return [fit([*start, *_result(result)], width)]
        return [[*start, *_progress(self.progress.get(name))]]


def _result(result: VerifyDone) -> Row:
    if result.fault:
        return [("✗ BROKEN ", "bad"), (clean(result.fault), "bad")]
    head = f", head {result.head[:16]}" if result.head else ""
    return [("✓ clean ", "ok"), (f"{result.frames} frames{head}", "")]


def _progress(progress: VerifyProgress | None) -> Row:
    if progress is None:
        return [("waiting", "dim")]
    share = progress.done / progress.size if progress.size else 0.0
    full = round(share * BAR_CELLS)
    return [("█" * full + "░" * (BAR_CELLS - full), "accent"), (f" {share:4.0%}", "")]


class VerifyScreen(Nd7Screen):
    """Checks the chains of these session directories, one after the other."""

    DEFAULT_CSS = """
    VerifyScreen #head { background: $panel; }
    VerifyScreen #caveat { padding: 0 1; color: $text-warning; height: auto; }
    """

    def __init__(self, directories: list[str]) -> None:
        super().__init__()
        self.directories = directories
        self.results = Results([os.path.basename(path) for path in directories])
        self.head = Bar(id="head")

    def body(self) -> ComposeResult:
        """Composes results and caveat."""
        yield self.head
        yield self.results
        yield Static(Content(f"Note: {CAVEAT}."), id="caveat")

    def on_mount(self) -> None:
        """Starts."""
        self.results.border_title = "chains"
        self.results.focus()
        self._start()

    def _start(self) -> None:
        self.results.names = [os.path.basename(path) for path in self.directories]
        self.results.done.clear()
        self.results.progress.clear()
        self.results.rows_changed()
        self._show_head()
        self._check()

    @work(thread=True, exclusive=True)
    def _check(self) -> None:
        worker = get_current_worker()
        for directory in self.directories:
            name = os.path.basename(directory)

            def progress(done: int, size: int, name: str = name) -> None:
                if worker.is_cancelled:
                    raise _Cancelled
                self.post_message(VerifyProgress(name, done, size))

            try:
                found = verify(directory, progress)
                head = found.head.hash if found.head else ""
                self.post_message(VerifyDone(name, found.frames, head))
            except Nd7Error as error:
                self.post_message(VerifyDone(name, 0, "", str(error)))
            except OSError as error:
                self.post_message(VerifyDone(name, 0, "", f"cannot be read: {error.strerror or error}"))
            except _Cancelled:
                return

    @on(VerifyProgress)
    def _progress(self, message: VerifyProgress) -> None:
        self.results.progress[message.session_id] = message
        self.results.refresh()

    @on(VerifyDone)
    def _done(self, message: VerifyDone) -> None:
        self.results.done[message.session_id] = message
        self.results.refresh()
        self._show_head()

    def _show_head(self) -> None:
        done = self.results.done.values()
        broken = [result for result in done if result.fault]
        total = len(self.directories)
        pieces = [Piece(f" verify: {len(done)} of {total} checked", "strong")]
        if not total:
            pieces.append(Piece("  there are no sessions", "dim"))
        if broken:
            first = broken[0]
            pieces.append(Piece(f"  {len(broken)} BROKEN, first {first.session_id[:8]}: {first.fault}", "bad"))
        elif total and len(done) == total:
            pieces.append(Piece("  ✓ all clean", "ok"))
        self.head.show(pieces)

    def contexts(self) -> list[Context]:
        """Returns where keys are looked up."""
        return [Context.VERIFY, Context.BACK]

    def facts(self, action: Action) -> Facts:
        """Nothing here depends on anything."""
        del action
        return Facts(session=True)

    def do_verify_all(self) -> None:
        """Every recorded session."""
        from nd7tui.engine.log.sessions import list_sessions

        self.directories = [session.path for session in list_sessions()]
        self._start()

    def do_verify_again(self) -> None:
        """The same once more."""
        self._start()
