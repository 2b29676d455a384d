"""Reviewing a recorded session: every frame in a line, a filter, and the frame's payload beside it.

Rule: a big log never stops the screen: it is read by a worker, filtered as it comes, painted only where it is seen.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from textual import on, work
from textual.containers import Horizontal
from textual.widgets import Input

from nd7tui.actions import Action, Context, Facts
from nd7tui.engine import paths
from nd7tui.screens.base import Nd7Screen
from nd7tui.screens.details import FrameDetails, frame_rows
from nd7tui.screens.frame_index import Filter, Loaded, load, read_at
from nd7tui.widgets.bars import Bar, Piece
from nd7tui.widgets.frame_list import FrameList, FrameRow
from nd7tui.widgets.row_view import RowView, TextView

if TYPE_CHECKING:
    from textual.app import ComposeResult

BESIDE_WIDTH = 100
PAUSE = 0.005  # seconds, between two pieces: long enough for a key and a paint


class ReviewScreen(Nd7Screen):
    """One session's log."""

    DEFAULT_CSS = """
    ReviewScreen #head { background: $panel; }
    ReviewScreen Input { height: 1; border: none; display: none; background: $surface; }
    ReviewScreen.-filtering Input { display: block; }
    ReviewScreen #frames { width: 3fr; }
    ReviewScreen #detail { width: 2fr; border-top: solid $primary; border-left: solid $primary; padding: 0 1; }
    ReviewScreen #detail:focus { border-top: heavy $accent; }
    ReviewScreen.-narrow #detail { display: none; }
    """

    def __init__(self, directory: str) -> None:
        super().__init__()
        self.directory = directory
        self.events = os.path.join(directory, "events.ndjson")
        self.rows: list[FrameRow] = []
        self.shown: list[FrameRow] = []
        self.wanted = Filter()
        self.frames = FrameList(home=paths.home(), id="frames")
        self.detail = TextView(id="detail")
        self.head = Bar(id="head")
        self.reading = (0, 1, False)
        self.fault = ""

    def body(self) -> ComposeResult:
        """Composes list and details."""
        yield self.head
        yield Input(placeholder="words, or kind:denial; enter keeps it, escape clears it", id="filter")
        with Horizontal():
            yield self.frames
            yield self.detail

    def on_mount(self) -> None:
        """Starts reading."""
        self.query_one(Input).cursor_blink = False
        self.frames.border_title = "frames"
        self.detail.border_title = "frame"
        self.frames.focus()
        self._read()

    @work(exclusive=True)
    async def _read(self) -> None:
        """Reads in a thread, piece by piece; it waits while the screen takes the last one in and serves its keys."""
        pieces = load(self.events)
        try:
            while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
                self._take_in(piece)
                await asyncio.sleep(PAUSE)
        except OSError as error:
            self.fault = f"the log cannot be read: {error.strerror}"
            self._take_in(Loaded([], 0, 1, last=True))

    def _take_in(self, piece: Loaded) -> None:
        first = not self.shown
        self.rows += piece.rows
        self.shown += self.wanted.wanted(piece.rows)
        self.reading = (piece.done, piece.size, not piece.last)
        self.frames.show(self.shown) if first else self.frames.rows_changed()
        if first:
            self._show_detail()
        self._show_head()

    def _show_head(self) -> None:
        done, size, reading = self.reading
        pieces = [
            Piece(f" {os.path.basename(self.directory)[:13]} ", "strong"),
            Piece(f" {len(self.shown)} of {len(self.rows)} frames", ""),
        ]
        if reading:
            pieces.append(Piece(f"  reading {100 * done // max(1, size)}%", "warn"))
        if self.wanted.denials:
            pieces.append(Piece("  only denials and decisions", "accent", "only-denials"))
        if self.wanted.kind:
            pieces.append(Piece(f"  only {self.wanted.kind}", "accent", "next-kind"))
        if self.wanted.text:
            pieces.append(Piece(f"  filter: {self.wanted.text}", "accent", "filter-frames"))
        if self.fault:
            pieces.append(Piece(f"  {self.fault}", "bad"))
        self.head.show(pieces)

    def resized(self) -> None:
        """Shows the payload beside the list when there is room."""
        self.set_class(self.size.width < BESIDE_WIDTH, "-narrow")
        self.call_after_refresh(self._show_detail)

    @on(RowView.Moved)
    def _moved(self) -> None:
        self._show_detail()

    @on(RowView.Chosen)
    def _chosen(self) -> None:
        self.do_frame_details()

    def _show_detail(self) -> None:
        row = self.frames.current
        if row is None or not self.detail.display:
            self.detail.show([])
            return
        frame = read_at(self.events, row)
        width = max(20, self.detail.scrollable_content_region.width)
        self.detail.show([[(row.seen.text, "bad")]] if frame is None else frame_rows(frame, width))

    # --- keys

    def contexts(self) -> list[Context]:
        """Returns where keys are looked up."""
        return [Context.REVIEW, Context.BACK]

    def facts(self, action: Action) -> Facts:
        """Returns what decides whether `action` can run."""
        del action
        return Facts(session=True, row=self.frames.current is not None)

    def _apply(self, wanted: Filter) -> None:
        self.wanted = wanted
        self.shown = self.rows[:] if wanted.is_all else wanted.wanted(self.rows)
        self.frames.show(self.shown)
        self._show_head()
        self._show_detail()

    def do_filter_frames(self) -> None:
        """Opens the filter box."""
        self.add_class("-filtering")
        self.query_one(Input).focus()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._apply(Filter(event.value, self.wanted.denials, self.wanted.kind))

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.frames.focus()

    def do_only_denials(self) -> None:
        """Denials and decisions only, and back."""
        self._apply(Filter(self.wanted.text, not self.wanted.denials, ""))

    def do_next_kind(self) -> None:
        """One kind after the other, then all."""
        kinds = ["", *sorted({row.kind for row in self.rows})]
        after = kinds[(kinds.index(self.wanted.kind) + 1) % len(kinds)]
        self._apply(Filter(self.wanted.text, denials=False, kind=after))

    def do_frame_details(self) -> None:
        """The whole payload."""
        row = self.frames.current
        frame = None if row is None else read_at(self.events, row)
        if frame is None:
            self.say("this frame cannot be read" if row else "no frame here", "warn")
        else:
            self.app.push_screen(FrameDetails(frame))

    def do_copy_frame(self) -> None:
        """Copies the frame's line."""
        row = self.frames.current
        frame = None if row is None else read_at(self.events, row)
        if frame is not None:
            self.app.copy_to_clipboard(frame.raw.decode("utf-8", "replace").rstrip("\n"))
            self.say(f"copied frame {frame.seq}")

    def do_review_verify(self) -> None:
        """Checks the chain."""
        from nd7tui.screens.verify import VerifyScreen

        self.app.push_screen(VerifyScreen([self.directory]))

    def do_back(self) -> None:
        """Closes the filter box first, then the screen."""
        box = self.query_one(Input)
        if self.has_class("-filtering"):
            self.remove_class("-filtering")
            box.value = ""
            self.frames.focus()
        else:
            self.app.pop_screen()
