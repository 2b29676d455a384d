"""The system calls that change modes, owners, times and extended attributes.

Rule: Landlock has no right for any of these, so none is ever continued: they are decided about and done here, on the
object that was decided about. They count as writing.
Source: landlock(7), "Landlock cannot yet restrict"; chmod(2), chown(2), utimensat(2), setxattr(2).
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct

from nd7tui.engine.policy.rules import Access, Effect
from nd7tui.engine.sandbox import abi
from nd7tui.engine.sandbox.outcome import Errno, Value
from nd7tui.engine.sandbox.resolve import Place, fail
from nd7tui.engine.sandbox.terminals import Terminals, is_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from nd7tui.engine.sandbox.call import Call
    from nd7tui.engine.sandbox.ground import Ground
    from nd7tui.engine.sandbox.outcome import Outcome

_NAME_MAX, _VALUE_MAX = 256, 65536
_NO_OWNER = 0xFFFFFFFF


class Metadata:
    """Answers the calls about metadata of one run."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._terminals = Terminals(ground.tree)

    def by_path(
        self, call: Call, dirfd: int, addr: int, action: Callable[[Place], None], *, follow: bool, empty: bool = False
    ) -> Outcome:
        """Acts on what a path names; with `empty`, an empty path names `dirfd` itself (AT_EMPTY_PATH)."""
        path = call.cstring(addr)
        if empty and not path:
            return self.by_descriptor(call, dirfd, action)
        place = self._ground.resolver.object(call, dirfd, path, follow=follow)
        return self._act(call, place, action)

    def by_descriptor(self, call: Call, fd: int, action: Callable[[Place], None]) -> Outcome:
        """Acts on what the caller's descriptor holds."""
        held = self._ground.resolver.descriptor(call, fd)
        return self._act(call, Place(held, os.readlink(b"/proc/self/fd/%d" % held)), action)

    def _act(self, call: Call, place: Place, action: Callable[[Place], None]) -> Outcome:
        try:
            # What has no name left can be reached by nobody who does not hold it already.
            info = os.fstat(place.fd)
            if place.path.startswith(b"/") and info.st_nlink > 0 and not self._own_terminal(info):
                verdict = self._ground.policy.decide_path(Access.WRITE, place.path)
                if verdict.effect is not Effect.ALLOW:
                    return call.refuse(Access.WRITE, "path", place.path, verdict)
            if not call.still_waiting():
                return Errno(errno.EINTR)
            with call.as_caller():
                action(place)
            return Value(0)
        finally:
            place.close()

    def _own_terminal(self, info: os.stat_result) -> bool:
        return stat.S_ISCHR(info.st_mode) and is_terminal(info.st_rdev) and self._terminals.belongs(info.st_rdev)


def chmod(mode: int) -> Callable[[Place], None]:
    """Returns the action that sets the permission bits."""

    def act(place: Place) -> None:
        if stat.S_ISLNK(os.fstat(place.fd).st_mode):
            raise fail(errno.EOPNOTSUPP)
        os.chmod(place.magic, mode & 0o7777)

    return act


def chown(uid: int, gid: int) -> Callable[[Place], None]:
    """Returns the action that sets owner and group; 0xFFFFFFFF leaves one as it is."""
    owner, group = (-1 if number & _NO_OWNER == _NO_OWNER else number & _NO_OWNER for number in (uid, gid))
    return lambda place: _at_empty("fchownat", place, owner, group, abi.AT_EMPTY_PATH)


def times(pair: bytes | None) -> Callable[[Place], None]:
    """Returns the action that sets access and modification time.

    Args:
        pair: Two `struct timespec`, 32 bytes; None for now.
    """

    def act(place: Place) -> None:
        buffer = ctypes.create_string_buffer(pair, 32) if pair is not None else None
        addr = ctypes.addressof(buffer) if buffer is not None else 0
        _at_empty("utimensat", place, addr, abi.AT_EMPTY_PATH)

    return act


def set_attribute(name: bytes, value: bytes, flags: int) -> Callable[[Place], None]:
    """Returns the action that sets an extended attribute."""
    return lambda place: os.setxattr(place.magic, name, value, flags)


def remove_attribute(name: bytes) -> Callable[[Place], None]:
    """Returns the action that removes an extended attribute."""
    return lambda place: os.removexattr(place.magic, name)


def attribute(call: Call, name: int, value: int, size: int) -> tuple[bytes, bytes]:
    """Reads the name and value arguments of setxattr; raises OSError as the call would."""
    text = call.cstring(name, _NAME_MAX)
    if size > _VALUE_MAX:
        raise fail(errno.E2BIG)
    return text, call.read(value, size)


def timespecs(call: Call, addr: int) -> bytes | None:
    """Reads utimensat's times."""
    return call.read(addr, 32) if addr else None


def timevals(call: Call, addr: int) -> bytes | None:
    """Reads the times of utimes and futimesat (microseconds) as timespecs."""
    if not addr:
        return None
    a, b, c, d = struct.unpack("=qqqq", call.read(addr, 32))
    if not (0 <= b < 1_000_000 and 0 <= d < 1_000_000):
        raise fail(errno.EINVAL)
    return struct.pack("=qqqq", a, b * 1000, c, d * 1000)


def utimbuf(call: Call, addr: int) -> bytes | None:
    """Reads utime's times (seconds) as timespecs."""
    if not addr:
        return None
    a, b = struct.unpack("=qq", call.read(addr, 16))
    return struct.pack("=qqqq", a, 0, b, 0)


def _at_empty(name: str, place: Place, *args: int) -> None:
    empty = ctypes.create_string_buffer(b"", 1)
    abi.syscall(abi.NR[name], place.fd, ctypes.addressof(empty), *args)
