"""What can be wrong with a chain, one class per fault.

Rule: the order of the classes is the order in which a verifier finds them, from "the bytes changed" to "the
bookkeeping disagrees". Each keeps the raw evidence in typed fields, so that a screen need not parse the message.
"""

from __future__ import annotations

from nd7tui.errors import Nd7Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar


class LogError(Nd7Error):
    """The root of what can go wrong with a session log."""


class FrameError(LogError):
    """A line is not a frame that can be read (says nothing about its hash)."""


class ChainError(LogError):
    """The chain is broken; verification stops at the first of these.

    Attributes:
        code: The fault's stable name, for `--json`.
        frame: Position of the frame the fault is at, or None when it is the head file's.
    """

    code: ClassVar[str] = "chain"

    def __init__(self, message: str, frame: int | None = None) -> None:
        super().__init__(message if frame is None else f"frame {frame}: {message}")
        self.frame = frame


class NotSealedError(ChainError):
    """The line does not end in a hash, or is not a frame at all."""

    code = "not_sealed"

    def __init__(self, frame: int) -> None:
        super().__init__("not sealed", frame)


class HashMismatchError(ChainError):
    """The frame's bytes were changed after it was sealed."""

    code = "hash_mismatch"

    def __init__(self, frame: int, stated: str, computed: str) -> None:
        super().__init__("hash does not match its bytes", frame)
        self.stated = stated
        self.computed = computed


class WrongSeqError(ChainError):
    """A frame is missing, repeated or out of place."""

    code = "wrong_seq"

    def __init__(self, expected: int, found: int) -> None:
        super().__init__(f"expected seq {expected}, found {found}", expected)
        self.expected = expected
        self.found = found


class WrongPrevError(ChainError):
    """The frame does not follow the one before it (or, the first, this session's genesis)."""

    code = "wrong_prev"

    def __init__(self, frame: int, expected: str, found: str) -> None:
        super().__init__("prev is not the hash of the frame before", frame)
        self.expected = expected
        self.found = found


class TornError(ChainError):
    """The last line has no end: a write was cut short."""

    code = "torn"

    def __init__(self, frame: int) -> None:
        super().__init__("the file ends mid-frame", frame)
        self.hint = "the next append moves the torn line to a file of its own and says so in the log"


class HeadMissingError(ChainError):
    """There are frames but no `head`."""

    code = "head_missing"

    def __init__(self) -> None:
        super().__init__("the head file is missing")


class HeadUnreadableError(ChainError):
    """`head` is not `<seq> <hash>`."""

    code = "head_unreadable"

    def __init__(self, content: bytes) -> None:
        super().__init__("the head file is unreadable")
        self.content = content


class HeadBehindError(ChainError):
    """The log has frames that `head` does not know."""

    code = "head_behind"

    def __init__(self, head_seq: int, last_seq: int) -> None:
        super().__init__(f"the head is behind: it says frame {head_seq}, the log ends with frame {last_seq}")
        self.head_seq = head_seq
        self.last_seq = last_seq


class TruncatedError(ChainError):
    """`head` knows frames that the log does not have.

    Attributes:
        last_seq: The last frame there is, or -1 when there is none.
    """

    code = "truncated"

    def __init__(self, head_seq: int, last_seq: int) -> None:
        there = f"the log ends with frame {last_seq}" if last_seq >= 0 else "the log is empty"
        super().__init__(f"the log is truncated: the head says frame {head_seq}, {there}")
        self.head_seq = head_seq
        self.last_seq = last_seq


class HeadDiffersError(ChainError):
    """`head` and the last frame have the same seq and different hashes."""

    code = "head_differs"

    def __init__(self, seq: int, head_hash: str, last_hash: str) -> None:
        super().__init__(f"the head's hash is not that of the last frame, {seq}")
        self.seq = seq
        self.head_hash = head_hash
        self.last_hash = last_hash
