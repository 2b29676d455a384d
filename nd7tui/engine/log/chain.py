"""The chain: each frame names the hash of the one before.

Rule: verification needs the bytes and the order of the lines, never a JSON writer. Pure. A clean result proves that
the log is unchanged since its last frame was written by this machine; whoever can write the directory could rewrite
the whole chain. A copy elsewhere is what defends against that.
"""

from __future__ import annotations

import functools
import json
import re

from blake3 import blake3

from nd7tui.engine.log import faults
from nd7tui.engine.log.frame import TAIL, digest, stated_hash
from nd7tui.engine.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

CAVEAT = (
    "this proves the log is unchanged since its last frame was written by this machine; whoever can write its "
    "directory could rewrite the whole chain, and only a copy elsewhere defends against that"
)

_SEAL = re.compile(rb',"hash":"[0-9a-f]{64}"\}\n\Z')
_HEAD = re.compile(rb"(0|[1-9][0-9]{0,18}) ([0-9a-f]{64})\n?\Z")


@dataclass(frozen=True, slots=True)
class Head:
    """The last frame's position and hash."""

    seq: int
    hash: str

    def line(self) -> bytes:
        """Returns the content of the `head` file."""
        return b"%d %b\n" % (self.seq, self.hash.encode())


def parse_head(content: bytes) -> Head:
    """Reads the content of a `head` file.

    Raises:
        HeadUnreadableError: It is anything but a seq and a hash.
    """
    match = _HEAD.match(content)
    if match is None:
        raise faults.HeadUnreadableError(content)
    return Head(int(match[1]), match[2].decode())


def genesis(session_id: str) -> str:
    """Returns what the first frame has for `prev`: the BLAKE3 of the session id."""
    return digest(session_id.encode("utf-8", "nd7-visible"))


@functools.cache
def _envelope() -> re.Pattern[bytes]:
    """Returns the pattern of a frame up to its body; compiled when first needed.

    The members have one order, so `seq` and `prev` are read at the speed of the hash, however large the body.
    """
    text = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
    return re.compile(
        rb'\{"v":\d+,"session_id":%b,"seq":(0|[1-9]\d{0,19}),"ts":-?\d+,"host":%b,"source":%b,"kind":%b,'
        rb'"prev":"([0-9a-f]{64})","body":\{' % (text, text, text, text)
    )


def _position(line: bytes, frame: int) -> tuple[int, str]:
    """Returns the `seq` and `prev` of a sealed line."""
    match = _envelope().match(line)
    if match is not None:
        return int(match[1]), match[2].decode()
    try:
        members = json.loads(line)
        seq, prev = members["seq"], members["prev"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise faults.NotSealedError(frame) from error
    if type(seq) is not int or not isinstance(prev, str):
        raise faults.NotSealedError(frame)
    return seq, prev


def check_frame(line: bytes, seq: int, prev: str | None) -> Head:
    """Checks that `line` is sealed, unchanged, at position `seq`, and follows the frame whose hash is `prev`.

    Args:
        line: The frame's line, newline included.
        seq: Its position.
        prev: The hash before it; None leaves that unchecked.

    Raises:
        ChainError: The first thing that is wrong with it.
    """
    if not line.endswith(b"\n"):
        raise faults.TornError(seq)
    if _SEAL.match(line, max(len(line) - TAIL - 1, 0)) is None:
        raise faults.NotSealedError(seq)
    hasher = blake3(memoryview(line)[: -TAIL - 1])
    computed, stated = hasher.update(b"}").hexdigest(), stated_hash(line)
    if computed != stated:
        raise faults.HashMismatchError(seq, stated, computed)
    found_seq, found_prev = _position(line, seq)
    if found_seq != seq:
        raise faults.WrongSeqError(seq, found_seq)
    if prev is not None and found_prev != prev:
        raise faults.WrongPrevError(seq, prev, found_prev)
    return Head(seq, stated)


def verify_segment(session_id: str, after: Head | None, lines: Iterable[bytes]) -> Head | None:
    """Checks one contiguous run of frames that follows `after` (None: from the first frame on).

    Returns:
        The last frame's head; `after` itself when there are no lines.

    Raises:
        ChainError: The first fault found.
    """
    head = after
    seq, prev = (0, genesis(session_id)) if after is None else (after.seq + 1, after.hash)
    for line in lines:
        head = check_frame(line, seq, prev)
        seq, prev = seq + 1, head.hash
    return head


def check_head(content: bytes | None, last: Head | None) -> None:
    """Checks the content of the `head` file (None: there is none) against the log's last frame (None: empty).

    Raises:
        ChainError: They disagree.
    """
    if content is None:
        if last is not None:
            raise faults.HeadMissingError
        return
    head = parse_head(content)
    last_seq = -1 if last is None else last.seq
    if last is None or head.seq > last_seq:
        raise faults.TruncatedError(head.seq, last_seq)
    if head.seq < last_seq:
        raise faults.HeadBehindError(head.seq, last_seq)
    if head.hash != last.hash:
        raise faults.HeadDiffersError(last_seq, head.hash, last.hash)
