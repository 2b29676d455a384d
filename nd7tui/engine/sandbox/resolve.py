"""Turns what a caller named into an object we hold.

Rule: a path is resolved once, here, into descriptors (O_PATH); the decision is about the canonical path of what the
descriptor holds, and the action is done on the descriptor. What the caller changes meanwhile cannot matter.
`/proc/self`, `/dev/stdout` and the like mean the caller's, never ours.
Source: openat2(2), path_resolution(7), proc_pid_fd(5).
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct

from nd7tui.engine.records import dataclass
from nd7tui.engine.sandbox import abi

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nd7tui.engine.sandbox.call import Call
    from nd7tui.engine.sandbox.tree import Tree

_HANDLE = abi.O_PATH | os.O_CLOEXEC
_MOST_LINKS = 40


@dataclass(slots=True)
class Place:
    """An existing object: an O_PATH descriptor and its canonical path.

    `path` does not begin with `/` for what has no name in the file system (`pipe:[123]`, `socket:[4]`).
    """

    fd: int
    path: bytes

    def close(self) -> None:
        """Closes the descriptor."""
        os.close(self.fd)

    @property
    def magic(self) -> str:
        """A path of ours that leads to exactly this object (its last step is a magic link)."""
        return f"/proc/self/fd/{self.fd}"


@dataclass(slots=True)
class Entry:
    """A name in a directory we hold; the name may not exist."""

    parent: Place
    name: bytes

    @property
    def path(self) -> bytes:
        """The canonical path of the entry."""
        return self.parent.path.rstrip(b"/") + b"/" + self.name

    def info(self) -> os.stat_result | None:
        """Returns the entry's own status (a symbolic link's, not its target's), None when it does not exist."""
        try:
            return os.stat(self.name, dir_fd=self.parent.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def close(self) -> None:
        """Closes the directory's descriptor."""
        self.parent.close()


def fail(number: int) -> OSError:
    """Returns the OSError of an errno."""
    return OSError(number, os.strerror(number))


def openat2(base: int, path: bytes, flags: int, resolve: int) -> int:
    """Returns a descriptor of `path`, opened below `base`; raises OSError.

    Source: the manual page of openat2.
    """
    how = ctypes.create_string_buffer(struct.pack("=QQQ", flags, 0, resolve), 24)
    name = ctypes.create_string_buffer(path)
    return abi.syscall(abi.NR["openat2"], base, ctypes.addressof(name), ctypes.addressof(how), 24)


def name_of(fd: int) -> bytes:
    """Returns the canonical path of what a descriptor of ours holds."""
    return os.readlink(b"/proc/self/fd/%d" % fd)


class Resolver:
    """Resolves the paths of one run's callers."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._own_proc = b"/proc/%d" % os.getpid()

    def base(self, call: Call, dirfd: int, path: bytes) -> int:
        """Returns an O_PATH descriptor of where `path` starts.

        Args:
            call: The caller.
            dirfd: Its directory descriptor argument (`AT_FDCWD` for the working directory).
            path: The path it named.

        Raises:
            OSError: EBADF, or what opening it gives.
        """
        if path.startswith(b"/"):
            return os.open("/", _HANDLE)
        dirfd = abi.signed32(dirfd)
        if dirfd == abi.AT_FDCWD:
            return call.cwd_fd()
        return self.descriptor(call, dirfd)

    def descriptor(self, call: Call, fd: int) -> int:
        """Returns an O_PATH descriptor of what the caller's descriptor `fd` holds; raises OSError EBADF."""
        try:
            return os.open(f"/proc/{call.tid}/fd/{abi.signed32(fd)}", _HANDLE)
        except FileNotFoundError:
            raise fail(errno.EBADF) from None

    def object(self, call: Call, dirfd: int, path: bytes, *, follow: bool = True) -> Place:
        """Returns the existing object that the caller names.

        Raises:
            OSError: ENOENT and the rest, as the caller would get them.
        """
        if not path:
            raise fail(errno.ENOENT)
        base = self.base(call, dirfd, path)
        try:
            with call.as_caller():
                return self._object(call, base, path, follow=follow)
        finally:
            os.close(base)

    def entry(self, call: Call, dirfd: int, path: bytes) -> Entry:
        """Returns the directory entry that the caller names, its last component not followed.

        Raises:
            OSError: ENOENT when the directory does not exist; EBUSY or EINVAL for `/`, `.` and `..`.
        """
        if not path:
            raise fail(errno.ENOENT)
        stem, _, name = path.rstrip(b"/").rpartition(b"/")
        if name in {b"", b".", b".."}:
            raise fail(errno.EBUSY if name == b"" else errno.EINVAL)
        directory = stem + b"/" if path.startswith(b"/") else stem or b"."
        parent = self.object(call, dirfd, directory)
        if not stat.S_ISDIR(os.fstat(parent.fd).st_mode):
            parent.close()
            raise fail(errno.ENOTDIR)
        return Entry(parent, name)

    def _object(self, call: Call, base: int, path: bytes, *, follow: bool) -> Place:
        flags = _HANDLE | (0 if follow else os.O_NOFOLLOW)
        try:
            fd = openat2(base, path, flags, abi.RESOLVE_NO_MAGICLINKS)
        except OSError as error:
            # ELOOP: by a magic link. ENOENT: perhaps by a name that the caller has in /proc/self and we have not.
            if error.errno not in {errno.ELOOP, errno.ENOENT}:
                raise
            return self.walk(call, base, path, follow=follow)
        name = name_of(fd)
        if name == self._own_proc or name.startswith(self._own_proc + b"/"):
            os.close(fd)
            return self.walk(call, base, path, follow=follow)
        return Place(fd, name)

    def walk(self, call: Call, base: int, path: bytes, *, follow: bool) -> Place:
        """Resolves step by step, giving `self` in /proc its meaning for the caller.

        Raises:
            OSError: As for `object`; EACCES for magic links of processes outside the run.
        """
        here = os.dup(base)
        todo = _parts(path)
        links = 0
        try:
            while todo:
                part = todo.pop(0)
                last = not todo
                step, text = self._step(call, here, part, follow=follow or not last)
                if step >= 0:
                    os.close(here)
                    here = step
                    continue
                links = _one_more(links)
                if text.startswith(b"/"):
                    os.close(here)
                    here = os.open("/", _HANDLE)
                todo = _parts(text) + todo
            return Place(here, name_of(here))
        except BaseException:
            os.close(here)
            raise

    def _step(self, call: Call, here: int, part: bytes, *, follow: bool) -> tuple[int, bytes]:
        """Returns the next descriptor, or -1 and the text of a symbolic link to follow."""
        fd = openat2(here, part, _HANDLE | os.O_NOFOLLOW, 0)
        try:
            if not stat.S_ISLNK(os.fstat(fd).st_mode) or not follow:
                return os.dup(fd), b""
            where = name_of(here)
            if where == b"/proc" and part == b"self":
                return -1, b"%d" % call.tgid
            if where == b"/proc" and part == b"thread-self":
                return -1, b"%d/task/%d" % (call.tgid, call.tid)
            if _is_magic(here, part):
                return self._magic(where, here, part), b""
            return -1, os.readlink(part, dir_fd=here)
        finally:
            os.close(fd)

    def _magic(self, where: bytes, here: int, part: bytes) -> int:
        owner = where.split(b"/")[2] if where.startswith(b"/proc/") else b""
        if not owner.isdigit() or not self._tree.contains(int(owner)):
            raise fail(errno.EACCES)
        return os.open(part, _HANDLE, dir_fd=here)


def _parts(path: bytes) -> list[bytes]:
    parts = [part for part in path.split(b"/") if part not in {b"", b"."}]
    return [*parts, b"."] if path.endswith((b"/", b"/.")) and parts else parts


def _one_more(links: int) -> int:
    if links >= _MOST_LINKS:
        raise fail(errno.ELOOP)
    return links + 1


def _is_magic(here: int, part: bytes) -> bool:
    try:
        os.close(openat2(here, part, _HANDLE, abi.RESOLVE_NO_MAGICLINKS))
    except OSError as error:
        if error.errno != errno.ELOOP:
            return False
        # ELOOP also tells of a loop of ordinary links; those are not in procfs.
        return name_of(here).startswith(b"/proc/")
    return False
