"""A log read for review: a row per frame, and where the frame is in the file; never the bodies.

Rule: reads in pieces, so that a reader shows the first while the rest is read; what cannot be read is a row that says
so. The review does not verify (the verify screen does).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nd7tui.engine.log.faults import FrameError
from nd7tui.engine.log.frame import parse
from nd7tui.engine.log.summary import Summary, Tone
from nd7tui.widgets.frame_list import FrameRow, row_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nd7tui.engine.log.frame import Frame

PIECE = 500
DECISIONS = frozenset({"denial", "denial_end", "grant", "revoke", "rules_changed"})


@dataclass(frozen=True, slots=True)
class Loaded:
    """A piece of the log.

    Attributes:
        rows: Its frames.
        done: Bytes read so far.
        size: Bytes there were at the start.
        last: Nothing follows.
    """

    rows: list[FrameRow]
    done: int
    size: int
    last: bool = False


def load(events: str) -> Iterator[Loaded]:
    """Reads a log in pieces.

    Raises:
        OSError: It cannot be read.
    """
    with open(events, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        rows: list[FrameRow] = []
        offset = 0
        for line in file:
            rows.append(_row(line, offset))
            offset += len(line)
            if len(rows) >= PIECE:
                yield Loaded(rows, offset, size)
                rows = []
        yield Loaded(rows, offset, size, last=True)


def _row(line: bytes, offset: int) -> FrameRow:
    try:
        return row_of(parse(line), offset)
    except FrameError as error:
        seen = Summary("!", "damaged", f"{error}: {line[:200]!r}", Tone.ERROR)
        return FrameRow(-1, 0, "damaged", seen, offset, len(line), str(error))


def read_at(events: str, row: FrameRow) -> Frame | None:
    """Returns a row's frame; None when it cannot be read."""
    try:
        with open(events, "rb") as file:
            file.seek(row.offset)
            return parse(file.read(row.length))
    except (OSError, FrameError):
        return None


@dataclass(frozen=True, slots=True)
class Filter:
    """Which frames are shown.

    Attributes:
        text: Words that must all be there; `kind:x` names a kind.
        denials: Only denials and decisions.
        kind: Only this kind, "" for all.
    """

    text: str = ""
    denials: bool = False
    kind: str = ""

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return self == Filter()

    def wanted(self, rows: Sequence[FrameRow]) -> list[FrameRow]:
        """Returns the rows that pass."""
        words = self.text.lower().split()
        kinds = [word[5:] for word in words if word.startswith("kind:")]
        words = [word for word in words if not word.startswith("kind:")]
        return [row for row in rows if self._passes(row, kinds, words)]

    def _passes(self, row: FrameRow, kinds: list[str], words: list[str]) -> bool:
        if self.kind and row.kind != self.kind:
            return False
        if self.denials and not (row.seen.is_denial or row.kind in DECISIONS):
            return False
        if kinds and not any(kind in row.kind for kind in kinds):
            return False
        if not words:
            return True
        text = f"{row.seen.label} {row.seen.text}".lower()
        return all(word in text for word in words)
