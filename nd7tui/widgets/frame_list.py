"""Frames, a line each: the log tail of a session, and the long list of the review screen.

Rule: a line is `engine.log.summary`'s, cleaned once more; a frame that is damaged says so in its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nd7tui.engine.log.summary import Summary, Tone, summary
from nd7tui.widgets.cells import Row, clean, clock
from nd7tui.widgets.row_view import RowView

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nd7tui.engine.log.frame import Frame
    from nd7tui.engine.log.tail import Damaged

MOST_TAIL_ROWS = 5000

TONES = {
    Tone.MARK: "accent",
    Tone.PROMPT: "strong",
    Tone.TOOL: "",
    Tone.ANSWER: "",
    Tone.QUIET: "dim",
    Tone.DENIAL: "bad",
    Tone.GRANT: "ok",
    Tone.ERROR: "bad",
}


@dataclass(frozen=True, slots=True)
class FrameRow:
    """A frame as the lists keep it: not its body, only where it is.

    Attributes:
        seq: Its position, -1 when it could not be read.
        ts: Unix ns.
        kind: Its kind.
        seen: Its summary.
        offset: Where its line begins in the log, bytes; -1 when unknown.
        length: Length of the line, bytes.
        fault: What is wrong with it, or "".
    """

    seq: int
    ts: int
    kind: str
    seen: Summary
    offset: int = -1
    length: int = 0
    fault: str = ""


def row_of(frame: Frame, offset: int = -1) -> FrameRow:
    """Returns the row of a sound frame."""
    return FrameRow(frame.seq, frame.ts, frame.kind, summary(frame), offset, len(frame.raw))


def damaged_row(damaged: Damaged) -> FrameRow:
    """Returns the row of a damaged place."""
    frame, fault = damaged.frame, str(damaged.fault)
    text = f"DAMAGED: {fault}" + (f"  ({summary(frame).text})" if frame else "")
    seen = Summary("!", "damaged", clean(text), Tone.ERROR)
    seq, ts, kind = (frame.seq, frame.ts, frame.kind) if frame else (-1, 0, "damaged")
    return FrameRow(seq, ts, kind, seen, damaged.offset, len(damaged.raw), fault)


def frame_parts(row: FrameRow, width: int, home: str = "") -> Row:
    """Returns the line of a frame for `width` cells; paths beneath `home` are written with `~`."""
    role = TONES[row.seen.tone]
    parts: Row = [(f"{row.seq if row.seq >= 0 else '?':>6} ", "dim")] if width >= 72 else []
    parts.append((f"{clock(row.ts) if row.ts else '--:--:--'} ", "dim"))
    label = f"{row.seen.icon} {clean(row.seen.label):<8} " if width >= 40 else f"{row.seen.icon} "
    text = clean(row.seen.text)
    text = text.replace(f"{home}/", "~/") if home else text
    return [*parts, (label, role), (text, role if role in {"bad", "dim", "strong"} else "")]


class FrameList(RowView):
    """A list of frames; with `follow`, the newest stays on view."""

    DEFAULT_CSS = "FrameList { border-top: solid $primary; &:focus { border-top: heavy $accent; } }"
    follow_allowed = True

    def __init__(
        self,
        *,
        follow: bool = False,
        most: int | None = None,
        home: str = "",
        id: str | None = None,  # noqa: A002
    ) -> None:
        super().__init__(follow=follow, id=id)
        self._home = home
        self._all: list[FrameRow] = []
        self._rows: Sequence[FrameRow] = self._all
        self._most = most
        self.follow_allowed = follow

    def row_count(self) -> int:
        """Returns how many frames are shown."""
        return len(self._rows)

    def row_parts(self, index: int, width: int) -> list[Row]:
        """Paints one frame."""
        return [frame_parts(self._rows[index], width, self._home)]

    @property
    def current(self) -> FrameRow | None:
        """The frame under the cursor."""
        return self._rows[self.cursor] if self.cursor < len(self._rows) else None

    def add(self, rows: Iterable[FrameRow]) -> None:
        """Appends frames; a tail keeps only the newest."""
        self._all.extend(rows)
        if self._most is not None and len(self._all) > self._most:
            gone = len(self._all) - self._most
            del self._all[:gone]
            self.set_reactive(RowView.cursor, max(0, self.cursor - gone))
        self.rows_changed()

    def show(self, rows: Sequence[FrameRow]) -> None:
        """Shows these frames; the cursor stays on its frame when it is among them."""
        before = self.current
        self._rows = rows
        index = rows.index(before) if before is not None and before in rows else 0
        self.rows_changed()
        self.move(index)
