"""The system calls that make, remove and rename directory entries.

Rule: both sides of a rename are decided about with everything beneath them, since a directory carries its contents to
new names. A new name may be readable where the old one is not, so what may not be read stays where it is. What exists
already or does not exist fails as it would without nd7, before policy is asked.
Source: the manual pages of the calls; path_resolution(7).
"""

from __future__ import annotations

import errno
import os
import stat

from nd7tui.engine.policy.rules import Access, Effect
from nd7tui.engine.sandbox import abi
from nd7tui.engine.sandbox.outcome import CONTINUE, Errno, Value
from nd7tui.engine.sandbox.resolve import Entry, Place, fail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from nd7tui.engine.sandbox.call import Call
    from nd7tui.engine.sandbox.ground import Ground
    from nd7tui.engine.sandbox.outcome import Outcome, Refused

_RENAME_NOREPLACE, _RENAME_EXCHANGE = 1, 2


class Names:
    """Answers the calls about names of one run."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def mkdir(self, call: Call, dirfd: int, path: bytes, mode: int) -> Outcome:
        """Makes a directory."""
        return self._make(call, dirfd, path, lambda e: os.mkdir(e.name, mode & 0o7777, dir_fd=e.parent.fd))

    def mknod(self, call: Call, dirfd: int, path: bytes, mode: int, device: int) -> Outcome:
        """Makes a file, fifo or socket; device nodes are refused whatever policy says."""
        kind = stat.S_IFMT(mode & 0xFFFF)
        if kind not in {0, stat.S_IFREG, stat.S_IFIFO, stat.S_IFSOCK}:
            return Errno(errno.EPERM)
        # Unlike mkdir, a file in the place of a directory may stand for all of it (`.git`).
        act = lambda e: os.mknod(e.name, mode & 0xFFFF, device, dir_fd=e.parent.fd)  # noqa: E731
        return self._make(call, dirfd, path, act, tree=True)

    def symlink(self, call: Call, text: bytes, dirfd: int, path: bytes) -> Outcome:
        """Makes a symbolic link: it may stand for a whole tree of protected names."""
        return self._make(call, dirfd, path, lambda e: os.symlink(text, e.name, dir_fd=e.parent.fd), tree=True)

    def _make(
        self, call: Call, dirfd: int, path: bytes, action: Callable[[Entry], None], *, tree: bool = False
    ) -> Outcome:
        entry = self._entry_for_making(call, dirfd, path)
        try:
            if entry.info() is not None:
                return Errno(errno.EEXIST)
            return self._act(call, [entry], lambda: action(entry), tree=tree, mask=True)
        finally:
            entry.close()

    def _entry_for_making(self, call: Call, dirfd: int, path: bytes) -> Entry:
        try:
            return self._ground.resolver.entry(call, dirfd, path)
        except OSError as error:
            if error.errno in {errno.EBUSY, errno.EINVAL}:  # "/", ".", ".." are there already
                raise fail(errno.EEXIST) from None
            raise

    def unlink(self, call: Call, dirfd: int, path: bytes, flags: int) -> Outcome:
        """Removes a file, or a directory with AT_REMOVEDIR."""
        entry = self._ground.resolver.entry(call, dirfd, path)
        try:
            info = entry.info()
            if info is None:
                return Errno(errno.ENOENT)
            directory = bool(flags & abi.AT_REMOVEDIR)
            if directory and not stat.S_ISDIR(info.st_mode):
                return Errno(errno.ENOTDIR)
            if not directory and stat.S_ISDIR(info.st_mode):
                return Errno(errno.EISDIR)
            remove = os.rmdir if directory else os.unlink
            return self._act(call, [entry], lambda: remove(entry.name, dir_fd=entry.parent.fd))
        finally:
            entry.close()

    def rename(self, call: Call, old: tuple[int, bytes], new: tuple[int, bytes], flags: int) -> Outcome:
        """Renames or exchanges; RENAME_WHITEOUT makes a device node and is not available."""
        if flags & ~(_RENAME_NOREPLACE | _RENAME_EXCHANGE):
            return Errno(errno.EINVAL)
        source = self._ground.resolver.entry(call, *old)
        try:
            target = self._ground.resolver.entry(call, *new)
            try:
                if source.info() is None:
                    return Errno(errno.ENOENT)
                if flags & _RENAME_NOREPLACE and target.info() is not None:
                    return Errno(errno.EEXIST)
                carried = [source, target] if flags & _RENAME_EXCHANGE else [source]
                refused = self._unreadable(call, carried)
                if refused is not None:
                    return refused
                needed = (Access.READ, Access.WRITE)
                act = lambda: _rename(source, target, flags)  # noqa: E731
                return self._act(call, [source, target], act, tree=True, needed=needed)
            finally:
                target.close()
        finally:
            source.close()

    def _unreadable(self, call: Call, carried: list[Entry]) -> Refused | None:
        for entry in carried:
            verdict = self._ground.policy.decide_tree(Access.READ, entry.path)
            if verdict.effect is not Effect.ALLOW:
                return call.refuse(Access.READ, "path", entry.path, verdict)
        return None

    def link(self, call: Call, old: tuple[int, bytes], new: tuple[int, bytes], flags: int) -> Outcome:
        """Makes a hard link: another way to the same file, so both names must be allowed to read and write."""
        source = self._link_source(call, old, flags)
        try:
            entry = self._entry_for_making(call, *new)
            try:
                if entry.info() is not None:
                    return Errno(errno.EEXIST)
                if stat.S_ISDIR(os.fstat(source.fd).st_mode):
                    return Errno(errno.EPERM)
                return self._link(call, source, entry)
            finally:
                entry.close()
        finally:
            source.close()

    def _link_source(self, call: Call, old: tuple[int, bytes], flags: int) -> Place:
        if flags & abi.AT_EMPTY_PATH and not old[1]:
            fd = self._ground.resolver.descriptor(call, old[0])
            return Place(fd, os.readlink(b"/proc/self/fd/%d" % fd))
        return self._ground.resolver.object(call, *old, follow=bool(flags & abi.AT_SYMLINK_FOLLOW))

    def _link(self, call: Call, source: Place, entry: Entry) -> Outcome:
        nameless = os.fstat(source.fd).st_nlink == 0 or not source.path.startswith(b"/")
        if not nameless:  # an O_TMPFILE of the caller's own has no name to decide about
            for access in (Access.WRITE, Access.READ):
                verdict = self._ground.policy.decide_path(access, source.path)
                if verdict.effect is not Effect.ALLOW:
                    return call.refuse(access, "path", source.path, verdict, errno.EXDEV, entry.path)
        covered = not nameless and self._ground.may_continue([Access.READ, Access.WRITE], source.path)

        def act() -> None:
            os.link(source.magic, entry.name, dst_dir_fd=entry.parent.fd, follow_symlinks=True)

        return self._act(call, [entry], act, tree=True, may_continue=covered)

    def truncate(self, call: Call, path: bytes, length: int) -> Outcome:
        """Truncates a file by name."""
        place = self._ground.resolver.object(call, abi.AT_FDCWD, path)
        try:
            verdict = self._ground.policy.decide_path(Access.WRITE, place.path)
            if verdict.effect is not Effect.ALLOW:
                return call.refuse(Access.WRITE, "path", place.path, verdict)
            if self._ground.may_continue([Access.WRITE], place.path):
                return CONTINUE
            return self._do(call, lambda: _truncate(place, _signed(length)))
        finally:
            place.close()

    def _act(
        self,
        call: Call,
        entries: list[Entry],
        action: Callable[[], None],
        *,
        tree: bool = False,
        mask: bool = False,
        may_continue: bool = True,
        needed: tuple[Access, ...] = (Access.WRITE,),
    ) -> Outcome:
        policy = self._ground.policy
        decide = policy.decide_tree if tree else policy.decide_path
        for entry in entries:
            verdict = decide(Access.WRITE, entry.path)
            if verdict.effect is not Effect.ALLOW:
                other = next((e.path for e in entries if e is not entry), None)
                return call.refuse(Access.WRITE, "path", entry.path, verdict, errno.EACCES, other)
        if may_continue and all(self._ground.may_continue(needed, entry.parent.path) for entry in entries):
            return CONTINUE
        return self._do(call, action, mask=mask)

    def _do(self, call: Call, action: Callable[[], None], *, mask: bool = False) -> Outcome:
        umask = call.umask() if mask else None
        if not call.still_waiting():
            return Errno(errno.EINTR)
        before = os.umask(umask) if umask is not None else None
        try:
            with call.as_caller():
                action()
        finally:
            if before is not None:
                os.umask(before)
        return Value(0)


def _signed(length: int) -> int:
    return length - (1 << 64) if length >> 63 else length


def _truncate(place: Place, length: int) -> None:
    kind = stat.S_IFMT(os.fstat(place.fd).st_mode)
    if kind != stat.S_IFREG:
        raise fail(errno.EISDIR if kind == stat.S_IFDIR else errno.EINVAL)
    if length < 0:
        raise fail(errno.EINVAL)
    # By an open that does not wait: truncate(2) itself would, where somebody holds a lease.
    fd = os.open(place.magic, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.ftruncate(fd, length)
    finally:
        os.close(fd)


def _rename(source: Entry, target: Entry, flags: int) -> None:
    import ctypes

    old, new = ctypes.create_string_buffer(source.name), ctypes.create_string_buffer(target.name)
    args = (source.parent.fd, ctypes.addressof(old), target.parent.fd, ctypes.addressof(new), flags)
    abi.syscall(abi.NR["renameat2"], *args)
