"""Writing nd7's own state files: private, whole, never through a link; and the file for what was refused.

Rule: directories are 0700 and files 0600, whatever the umask allows; `refused.ndjson` is only ever appended to.
"""

from __future__ import annotations

import errno
import os

from nd7tui.engine import paths
from nd7tui.engine.log import bodies, layout
from nd7tui.engine.log.frame import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nd7tui.engine.log.frame import Body

NEW = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
PRIVATE = 0o600


def write_all(fd: int, data: bytes) -> None:
    """Writes `data`, in one call unless the kernel takes less (a full disk, a signal).

    Raises:
        OSError: Not all of it could be written; what was stays.
    """
    written = os.write(fd, data)
    while written < len(data):
        more = os.write(fd, data[written:])
        if not more:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        written += more


def make_private(directory: str) -> None:
    """Creates a directory 0700, and those of its parents that are missing.

    Raises:
        OSError: It cannot be made.
    """
    try:
        os.mkdir(directory, 0o700)
    except FileExistsError:
        return
    except FileNotFoundError:
        parent = os.path.dirname(directory)
        if parent in {"", directory}:
            raise
        make_private(parent)
        make_private(directory)


def keep_refused(directory: str, entry: Body) -> bool:
    """Appends one line to the directory's `refused.ndjson`; returns whether that worked.

    Args:
        directory: A session's directory, or the state directory when there is no session to name.
        entry: What was refused, with the reason.
    """
    try:
        make_private(directory)
        fd = os.open(os.path.join(directory, layout.REFUSED), NEW | os.O_APPEND, PRIVATE)
        try:
            write_all(fd, encode(entry) + b"\n")
        finally:
            os.close(fd)
    except OSError:
        return False
    return True


def refuse_payload(payload: bytes, reason: str, source: str, ts: int) -> bool:
    """Keeps a hook's payload that belongs to no session, in the state directory; returns whether that worked."""
    return keep_refused(paths.state_dir(), {"ts": ts, "reason": reason, "source": source} | bodies.as_text(payload))
