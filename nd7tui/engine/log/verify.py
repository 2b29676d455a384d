"""Checking a whole session against its bookkeeping.

Rule: reads only, creates nothing, in constant memory (one line at a time), and holds the shared lock just long enough
to read `head` and the log's size together; frames appended afterwards are not part of the result. What a clean result
proves, and what not, is `chain.CAVEAT`.
"""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

from nd7tui.engine import locks
from nd7tui.engine.log import layout
from nd7tui.engine.log.chain import Head, check_head, verify_segment
from nd7tui.engine.log.headfile import read_head
from nd7tui.engine.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    Progress = Callable[[int, int], None]

_PATIENCE = 5.0
_STEP = 4 << 20


@dataclass(frozen=True, slots=True)
class Verified:
    """A clean result.

    Attributes:
        session_id: The session.
        frames: How many frames there were.
        head: The last one, or None when there were none.
        size: Bytes checked.
    """

    session_id: str
    frames: int
    head: Head | None
    size: int


def verify(session_dir: str, progress: Progress | None = None) -> Verified:
    """Checks every frame of a session, then the end against `head`.

    Args:
        session_dir: The session's directory; its name is the session id.
        progress: Called with the bytes done and the bytes there are.

    Raises:
        ChainError: The first fault found.
        LockHeldError: The log could not be looked at, because another process kept its lock.
        OSError: The directory or the log cannot be read.
    """
    session_id = os.path.basename(os.path.normpath(session_dir))
    content, log, size = _snapshot(session_dir)
    if log is None:
        check_head(content, None)
        return Verified(session_id, 0, None, 0)
    with log:
        last = verify_segment(session_id, None, _lines(log, size, progress))
    check_head(content, last)
    return Verified(session_id, 0 if last is None else last.seq + 1, last, size)


def _snapshot(session_dir: str) -> tuple[bytes | None, BinaryIO | None, int]:
    """Returns the content of `head`, the log open for reading, and its size, all of the same moment."""
    directory = os.open(session_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    lock = -1
    try:
        lock = _open(layout.LOCK, directory)
        if lock >= 0:
            locks.take(lock, fcntl.LOCK_SH, _PATIENCE)
        content = read_head(directory)
        log = _open(layout.EVENTS, directory)
        return (content, None, 0) if log < 0 else (content, os.fdopen(log, "rb", 1 << 20), os.fstat(log).st_size)
    finally:
        os.close(directory)
        if lock >= 0:
            os.close(lock)


def _open(name: str, directory: int) -> int:
    """Opens a file of the session for reading; -1 when it is missing."""
    try:
        return os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
    except FileNotFoundError:
        return -1


def _lines(log: BinaryIO, size: int, progress: Progress | None) -> Iterator[bytes]:
    """Yields the lines of the first `size` bytes; the last has no newline when the file ends mid-frame."""
    done = told = 0
    for line in log:
        if done + len(line) > size:
            if done < size:
                yield line[: size - done]
            break
        done += len(line)
        yield line
        if progress is not None and done - told >= _STEP:
            told = done
            progress(done, size)
    if progress is not None:
        progress(size, size)
