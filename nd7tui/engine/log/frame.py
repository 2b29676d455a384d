r"""One frame of the log: how it is written, sealed and read.

Rule: the hash covers the frame's bytes exactly as they stand in the file, so nothing that reads a log ever has to
write JSON the way we do. Pure: bytes in, bytes out. A frame that parses proves nothing about its hash; `chain` does.

Text that is not Unicode (a lone surrogate, from a path that is not UTF-8 or a `\ud800` escape) cannot be written as
UTF-8. It becomes the visible text `\udc80`, backslash and all, since strict readers refuse the JSON escape.
"""

from __future__ import annotations

import codecs
import json
import os

from blake3 import blake3

from nd7tui.engine.log.faults import FrameError
from nd7tui.engine.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Body = dict[str, Any]

# `,"hash":"` + 64 hex + `"}`, then the newline.
TAIL = 75
_STATED = slice(-67, -3)


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame as read; `raw` is its line, newline included, and the other fields are views of it.

    Attributes:
        ts: Wall clock, Unix nanoseconds.
        prev: Hash of the frame before, 64 hex digits.
        hash: Hash of this one, 64 hex digits, as stated (not checked here).
    """

    v: int
    session_id: str
    seq: int
    ts: int
    host: str
    source: str
    kind: str
    prev: str
    body: Body
    hash: str
    raw: bytes


def _visible(error: UnicodeError) -> tuple[str, int]:
    r"""Writes what UTF-8 cannot hold as `\udc80`, its backslash escaped for the JSON string it stands in."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    bad = error.object[error.start : error.end]
    return "".join(f"\\\\u{ord(char):04x}" for char in bad), error.end


codecs.register_error("nd7-visible", _visible)


def _plain(value: object) -> object:
    """Turns what JSON does not know into what it does: paths are bytes inside the engine."""
    if isinstance(value, bytes):
        return os.fsdecode(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"a frame's body cannot hold {type(value).__name__}")


_to_json = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False, default=_plain
).encode


def encode(value: object) -> bytes:
    """Returns compact JSON, UTF-8, members in the order they are in.

    Raises:
        ValueError: A float that is not a number, or infinite.
        TypeError: A value JSON cannot hold.
        RecursionError: Nested too deep.
    """
    return _to_json(value).encode("utf-8", "nd7-visible")


def digest(data: bytes) -> str:
    """Returns the BLAKE3 of `data`, 64 hex digits."""
    return blake3(data).hexdigest()


def seal(session_id: str, seq: int, ts: int, *, host: str, source: str, kind: str, prev: str, body: Body) -> bytes:
    """Returns the frame's line: canonical members, its hash, a newline.

    Args:
        session_id: The session's id, verbatim.
        seq: Position in the chain, from 0.
        ts: Unix nanoseconds.
        host: Host name.
        source: `<class>:<producer>`.
        kind: What the body is.
        prev: Hash of the frame before, or the session's genesis.
        body: Members in the order they shall be written.
    """
    envelope = {"v": 0, "session_id": session_id, "seq": seq, "ts": ts, "host": host, "source": source}
    unsealed = encode(envelope | {"kind": kind, "prev": prev, "body": body})
    return b'%b,"hash":"%b"}\n' % (unsealed[:-1], digest(unsealed).encode())


def stated_hash(line: bytes) -> str:
    """Returns the hash a sealed line states."""
    return line[_STATED].decode()


_STRINGS = ("session_id", "host", "source", "kind", "prev", "hash")


def parse(line: bytes) -> Frame:
    """Reads one line, with or without its newline; unknown kinds, sources and members are fine.

    Raises:
        FrameError: It is not a JSON object with a frame's members.
    """
    try:
        members = json.loads(line)
        numbers = [members[name] for name in ("v", "seq", "ts")]
        strings = [members[name] for name in _STRINGS]
        body = members["body"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise FrameError("the line is not a frame") from error
    if not (
        all(type(number) is int for number in numbers)
        and all(type(text) is str for text in strings)
        and isinstance(body, dict)
    ):
        raise FrameError("the line is not a frame")
    session_id, host, source, kind, prev, stated = strings
    version, seq, ts = numbers
    return Frame(version, session_id, seq, ts, host, source, kind, prev, body, stated, line)
