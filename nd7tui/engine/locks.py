"""Taking a file's lock, never waiting for ever: who can open a file can hold its lock as long as it likes.

Source: flock(2).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time

from nd7tui.errors import Nd7Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE = 5.0
_LOOK_AGAIN = 0.0005


class LockHeldError(Nd7Error):
    """Another process did not let go of a lock in time."""


def take(fd: int, operation: int, patience: float) -> None:
    """Takes a `flock`.

    Args:
        fd: The lock file.
        operation: `fcntl.LOCK_EX` or `fcntl.LOCK_SH`.
        patience: How long to wait at most, seconds.

    Raises:
        LockHeldError: Another process did not let go of it.
    """
    deadline = None
    while True:
        try:
            fcntl.flock(fd, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            now = time.monotonic()
            deadline = now + patience if deadline is None else deadline
            if now >= deadline:
                raise LockHeldError(f"another process held the lock for {patience:g} s") from None
            time.sleep(_LOOK_AGAIN)
        else:
            return


@contextlib.contextmanager
def locked(path: str, what: str) -> Iterator[None]:
    """Holds the lock `path`, a file of its own that is made if need be.

    Args:
        path: The lock file.
        what: What is locked, for the error.

    Raises:
        OSError: The lock file cannot be opened.
        LockHeldError: Another process keeps it for longer than `PATIENCE`.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            take(fd, fcntl.LOCK_EX, PATIENCE)
        except LockHeldError as error:
            raise LockHeldError(f"{what}: {error}", "nothing was changed; try again") from error
        yield
    finally:
        os.close(fd)
