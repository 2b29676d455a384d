"""Text made safe for a terminal, and cut to a number of cells.

Rule: nothing that came from the agent reaches the screen without `clean`: control characters, direction overrides and
undecodable bytes are shown, not sent. Rows are lists of `(text, role)`; a role is a meaning ("warn"), never a colour,
so that every meaning is also a word.

Owns: cleaning, measuring and cutting. Pure.
"""

from __future__ import annotations

import re
import time
from functools import lru_cache
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

if TYPE_CHECKING:
    from collections.abc import Iterable

Part = tuple[str, str]
Row = list[Part]

ROLES = ("dim", "strong", "accent", "ok", "warn", "bad")

# C0, DEL, C1; line and paragraph separators; direction marks and overrides; zero-width characters and the BOM.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
_NAMED = {"\n": "⏎", "\t": " ", "\r": "␍"}


def _show(match: re.Match[str]) -> str:
    char = match[0]
    code = ord(char)
    if char in _NAMED:
        return _NAMED[char]
    if code < 0x20:
        return chr(0x2400 + code)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{code:04x}" if code > 0xFF else f"\\x{code:02x}"


def clean(text: str) -> str:
    """Returns `text` on one line with everything that could steer a terminal or hide made visible."""
    return _UNSAFE.sub(_show, text)


@lru_cache(maxsize=4096)
def width(text: str) -> int:
    """Returns the number of cells `text` takes."""
    return cell_len(text)


def cut(text: str, cells: int) -> str:
    """Returns `text` in at most `cells` cells, the end given up for an ellipsis."""
    if width(text) <= cells:
        return text
    return set_cell_size(text, cells - 1).rstrip() + "…" if cells > 0 else ""


def cut_middle(text: str, cells: int) -> str:
    """Returns `text` in at most `cells` cells, the middle given up: both ends of a path tell it apart."""
    if width(text) <= cells:
        return text
    if cells < 8:
        return cut(text, cells)
    tail = (cells - 1) * 2 // 3
    head = cells - 1 - tail
    end = text[-tail:]
    while width(end) > tail:
        end = end[1:]
    return set_cell_size(text, head) + "…" + end


def fit(parts: Iterable[Part], cells: int) -> Row:
    """Returns a row cut, or filled up with blanks, to exactly `cells` cells."""
    row: Row = []
    left = cells
    for text, role in parts:
        if left <= 0:
            break
        piece = cut(text, left)
        row.append((piece, role))
        left -= width(piece)
    if left > 0:
        row.append((" " * left, ""))
    return row


def plain(parts: Iterable[Part]) -> str:
    """Returns the text of a row."""
    return "".join(text for text, _ in parts)


def clock(ts: int) -> str:
    """Returns the local time of day of Unix nanoseconds as `HH:MM:SS`."""
    return time.strftime("%H:%M:%S", time.localtime(ts / 1e9))


def date(ts: int) -> str:
    """Returns local date and time of Unix nanoseconds as `YYYY-MM-DD HH:MM`."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(ts / 1e9))


def tilde(path: str, home: str) -> str:
    """Returns `path` with the home directory written `~`."""
    if path == home:
        return "~"
    return "~" + path[len(home) :] if home and path.startswith(home + "/") else path
