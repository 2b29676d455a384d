"""The end of a log, read backwards.

Rule: the cost depends on the last line's length, never on the log's. Reads through a descriptor it is given; opens,
moves and changes nothing.
"""

from __future__ import annotations

import os

from nd7tui.engine.records import dataclass

_FIRST = 4096
_MOST = 1 << 20


@dataclass(frozen=True, slots=True)
class Ending:
    """What a log ends with.

    Attributes:
        line: The last whole line, newline included; empty when there is none.
        complete: Bytes up to and including the last newline; what follows, up to the file's size, is torn.
    """

    line: bytes
    complete: int


def behind_newline(fd: int, end: int) -> int:
    """Returns the offset behind the last newline before `end`, or 0."""
    size = _FIRST
    while end > 0:
        start = max(0, end - size)
        found = os.pread(fd, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end, size = start, min(size * 4, _MOST)
    return 0


def read_exactly(fd: int, start: int, end: int) -> bytes:
    """Returns the bytes from `start` to `end`, fewer when the file ends before."""
    parts = []
    while start < end and (part := os.pread(fd, end - start, start)):
        parts.append(part)
        start += len(part)
    return b"".join(parts)


def read_ending(fd: int, size: int) -> Ending:
    """Returns how the first `size` bytes of the file end."""
    complete = behind_newline(fd, size)
    return Ending(read_exactly(fd, behind_newline(fd, complete - 1), complete) if complete else b"", complete)
