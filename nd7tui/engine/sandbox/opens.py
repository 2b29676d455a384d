"""The system calls that open files.

Rule: what the floor covers is continued and the kernel judges again; everything else is opened here, through the
descriptor that was decided about, and injected. Never continued: what policy allows but the floor does not cover.
Source: open(2), openat2(2), seccomp_unotify(2) (SECCOMP_IOCTL_NOTIF_ADDFD).
"""

from __future__ import annotations

import errno
import functools
import os
import stat
import struct
import time
from contextlib import ExitStack

from nd7tui.engine.policy.rules import Access, Effect
from nd7tui.engine.records import dataclass
from nd7tui.engine.sandbox import abi, patience
from nd7tui.engine.sandbox.outcome import CONTINUE, Errno, Inject, Pending
from nd7tui.engine.sandbox.procfs import asks_who_traces
from nd7tui.engine.sandbox.resolve import Entry, Place, fail
from nd7tui.engine.sandbox.terminals import Terminals, is_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from nd7tui.engine.sandbox.call import Call
    from nd7tui.engine.sandbox.ground import Ground
    from nd7tui.engine.sandbox.outcome import Outcome

_RESOLVE_KNOWN = 0x3F
_TMPFILE = abi.O_TMPFILE & ~os.O_DIRECTORY
_TTY = os.makedev(5, 0)
_DELETED = b" (deleted)"
_MOST_WAITING = 128


@dataclass(frozen=True, slots=True)
class Wanted:
    """The arguments of an open, whichever call they came by."""

    dirfd: int
    path: bytes
    flags: int
    mode: int
    resolve: int = 0
    in_memory: bool = False

    @property
    def accesses(self) -> tuple[Access, ...]:
        """What is wanted of an existing file."""
        kind = self.flags & os.O_ACCMODE
        wanted = []
        if kind != os.O_RDONLY or self.flags & (os.O_TRUNC | _TMPFILE):
            wanted.append(Access.WRITE)
        if kind != os.O_WRONLY:
            wanted.append(Access.READ)
        return tuple(wanted)

    @property
    def follow(self) -> bool:
        """Whether a symbolic link as the last component is followed."""
        exclusive = self.flags & os.O_CREAT and self.flags & os.O_EXCL
        return not (self.flags & os.O_NOFOLLOW or exclusive)


def wanted_of(call: Call) -> Wanted:
    """Reads the arguments of open, creat, openat or openat2; raises OSError as the call would."""
    a = call.args
    if call.name == "open":
        return Wanted(abi.AT_FDCWD, call.cstring(a[0]), a[1] & 0xFFFFFFFF, a[2] & 0o7777)
    if call.name == "creat":
        flags = os.O_CREAT | os.O_WRONLY | os.O_TRUNC
        return Wanted(abi.AT_FDCWD, call.cstring(a[0]), flags, a[1] & 0o7777)
    if call.name == "openat":
        return Wanted(a[0], call.cstring(a[1]), a[2] & 0xFFFFFFFF, a[3] & 0o7777)
    if a[3] < 24:
        raise fail(errno.EINVAL)
    flags, mode, resolve = struct.unpack("=QQQ", call.read(a[2], 24))
    if a[3] > abi_page() or (a[3] > 24 and any(call.read(a[2] + 24, a[3] - 24))):
        raise fail(errno.E2BIG)
    if resolve & ~_RESOLVE_KNOWN or flags >> 32:
        raise fail(errno.EINVAL)
    return Wanted(a[0], call.cstring(a[1]), flags, mode & 0o7777, resolve, in_memory=True)


def abi_page() -> int:
    """Returns the size in bytes of a page, the most that openat2 takes as its structure."""
    return os.sysconf("SC_PAGESIZE")


class Opens:
    """Answers the opens of one run."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._terminals = Terminals(ground.tree)
        self._slots = patience.Slots(_MOST_WAITING)

    def handle(self, call: Call) -> Outcome:
        """Returns the outcome of an open; raises OSError for the errno that the caller gets."""
        wanted = wanted_of(call)
        if wanted.flags & abi.O_PATH and not self._ground.strict:
            return CONTINUE
        if wanted.resolve & ~abi.RESOLVE_CACHED:
            return self._restricted()
        if wanted.flags & os.O_CREAT and wanted.path.endswith(b"/"):
            raise self._no_file(call, wanted)
        try:
            place = self._ground.resolver.object(call, wanted.dirfd, wanted.path, follow=wanted.follow)
        except FileNotFoundError:
            if not wanted.flags & os.O_CREAT:
                raise
            return self._create(call, wanted)
        try:
            return self._existing(call, wanted, place)
        finally:
            place.close()

    def _restricted(self) -> Outcome:
        """Answers openat2 with RESOLVE_ flags: they bind the walk, so the kernel does it or nobody."""
        if self._ground.strict:
            raise fail(errno.ENOSYS)  # callers fall back to openat
        return CONTINUE

    def _no_file(self, call: Call, wanted: Wanted) -> OSError:
        """Returns what becomes of making a file whose name ends with a slash, when its directory is there."""
        try:
            self._ground.resolver.entry(call, wanted.dirfd, wanted.path).close()
        except OSError as error:
            if error.errno not in {errno.EBUSY, errno.EINVAL}:  # "/", "./", "../"
                return error
            return fail(errno.EEXIST if wanted.flags & os.O_EXCL else errno.EISDIR)
        return fail(errno.EISDIR)

    def _existing(self, call: Call, wanted: Wanted, place: Place) -> Outcome:
        info = os.fstat(place.fd)
        kind = stat.S_IFMT(info.st_mode)
        if wanted.flags & os.O_CREAT and wanted.flags & os.O_EXCL:
            raise fail(errno.EEXIST)
        if kind == stat.S_IFLNK and not wanted.flags & abi.O_PATH:
            raise fail(errno.ELOOP)
        if _is_nameless(place, info):
            return self._inject(call, wanted, place)
        accesses = wanted.accesses
        if kind == stat.S_IFDIR and Access.WRITE not in accesses:
            return CONTINUE if not self._ground.strict else self._inject(call, wanted, place)
        if kind == stat.S_IFDIR and not wanted.flags & _TMPFILE:
            raise fail(errno.EISDIR)
        if self._own_process_file(place.path) or self._own_terminal(info):
            return self._inject(call, wanted, place)
        path = _where_it_was(place, info)
        for access in accesses:
            verdict = self._ground.policy.decide_path(access, path)
            if verdict.effect is not Effect.ALLOW:
                return call.refuse(access, "path", path, verdict)
        if path is place.path and self._ground.may_continue(accesses, path, in_memory=wanted.in_memory):
            return CONTINUE
        if wanted.flags & os.O_DIRECTORY and kind != stat.S_IFDIR:
            raise fail(errno.ENOTDIR)
        return self._open_other(call, wanted, place, info)

    def _own_process_file(self, path: bytes) -> bool:
        parts = path.split(b"/")
        harmless = {b"comm", b"oom_score_adj", b"oom_adj", b"coredump_filter", b"timerslack_ns", b"clear_refs", b"mem"}
        if len(parts) < 4 or parts[1] != b"proc" or not parts[2].isdigit() or parts[-1] not in harmless:
            return False
        return self._ground.tree.contains(int(parts[2]))

    def _own_terminal(self, info: os.stat_result) -> bool:
        return stat.S_ISCHR(info.st_mode) and is_terminal(info.st_rdev) and self._terminals.belongs(info.st_rdev)

    def _open_other(self, call: Call, wanted: Wanted, place: Place, info: os.stat_result) -> Outcome:
        kind = stat.S_IFMT(info.st_mode)
        if asks_who_traces(place, info, self._ground.tree.contains):
            raise fail(errno.EACCES)
        if kind == stat.S_IFSOCK:
            raise fail(errno.ENXIO)
        if kind == stat.S_IFIFO and not wanted.flags & os.O_NONBLOCK:
            return self._fifo(wanted, place)
        if kind == stat.S_IFCHR and info.st_rdev == _TTY:
            return self._terminal(call, wanted)
        return self._inject(call, wanted, place)

    def _inject(self, call: Call, wanted: Wanted, place: Place) -> Outcome:
        keep = wanted.flags & ~(os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC) | os.O_NOCTTY
        try:
            return self._injected(call, wanted, lambda flags: os.open(place.magic, keep | flags, wanted.mode))
        except BlockingIOError:
            if wanted.flags & os.O_NONBLOCK:
                raise
        return self._leased(call, wanted, place, keep)

    def _leased(self, call: Call, wanted: Wanted, place: Place, keep: int) -> Outcome:
        """Opens what somebody holds a lease of (fcntl F_SETLEASE), which may take until the kernel breaks it."""
        with ExitStack() as kept:
            name = self._kept(place, kept)

            def once() -> Outcome | None:
                try:
                    with call.as_caller():
                        fd = os.open(name, keep | os.O_NONBLOCK, wanted.mode)
                except BlockingIOError:
                    return None
                os.set_blocking(fd, True)
                return Inject(fd, cloexec=bool(wanted.flags & os.O_CLOEXEC))

            return _patient(once, kept.pop_all())

    def _kept(self, place: Place, kept: ExitStack) -> str:
        """Returns a name of the object that stays until `kept` ends; raises OSError EMFILE for too many."""
        if not self._slots.take(kept):
            raise fail(errno.EMFILE)
        held = os.dup(place.fd)
        kept.callback(os.close, held)
        return f"/proc/self/fd/{held}"

    def _injected(self, call: Call, wanted: Wanted, opener: Callable[[int], int]) -> Outcome:
        """Hands over what `opener` opens with the flags it is given: here nothing may wait."""
        mask = call.umask() if wanted.flags & (os.O_CREAT | _TMPFILE) else None
        if not call.still_waiting():
            return Errno(errno.EINTR)
        before = os.umask(mask) if mask is not None else None
        try:
            with call.as_caller():
                fd = opener(os.O_NONBLOCK)
        finally:
            if before is not None:
                os.umask(before)
        if not wanted.flags & (os.O_NONBLOCK | abi.O_PATH):
            os.set_blocking(fd, True)
        return Inject(fd, cloexec=bool(wanted.flags & os.O_CLOEXEC))

    def _create(self, call: Call, wanted: Wanted) -> Outcome:
        entry = self._ground.new_entry(call, wanted.dirfd, wanted.path, follow=wanted.follow)
        try:
            accesses: list[Access] = [Access.WRITE]
            if wanted.flags & os.O_ACCMODE != os.O_WRONLY:
                accesses.append(Access.READ)
            for access in accesses:
                # A file in the place of a directory may stand for all of it: `.git` can name another directory.
                decide = self._ground.policy.decide_tree if access is Access.WRITE else self._ground.policy.decide_path
                verdict = decide(access, entry.path)
                if verdict.effect is not Effect.ALLOW:
                    return call.refuse(access, "path", entry.path, verdict)
            if self._ground.may_continue(accesses, entry.parent.path, in_memory=wanted.in_memory):
                return CONTINUE
            return self._injected(call, wanted, lambda flags: _make(entry, wanted, flags))
        finally:
            entry.close()

    def _fifo(self, wanted: Wanted, place: Place) -> Outcome:
        """Opens a fifo without stalling anyone: the other side may come late or never."""
        with ExitStack() as kept:
            name = self._kept(place, kept)
            flags = (wanted.flags & (os.O_ACCMODE | os.O_APPEND)) | os.O_CLOEXEC
            cloexec = bool(wanted.flags & os.O_CLOEXEC)
            held = kept.pop_all()

        def work(waiting: Callable[[], bool]) -> Outcome:
            with held:
                return _open_fifo(name, flags, waiting, cloexec=cloexec)

        return Pending(work)

    def _terminal(self, call: Call, wanted: Wanted) -> Outcome:
        """Opens /dev/tty: the controlling terminal is the caller's, so it is opened by its own name."""
        try:
            with open(f"/proc/{call.tgid}/stat", "rb") as file:
                text = file.read()
        except OSError as error:
            raise fail(errno.ENXIO) from error
        number = int(text[text.rindex(b")") + 2 :].split()[4])
        major, minor = os.major(number), os.minor(number)
        if not 136 <= major <= 143:  # Unix98 pseudo-terminals (Documentation/admin-guide/devices.txt)
            raise fail(errno.ENXIO)
        name = f"/dev/pts/{(major - 136) * (1 << 20) + minor}"
        keep = wanted.flags & (os.O_ACCMODE | os.O_NONBLOCK)
        return self._injected(call, wanted, lambda flags: os.open(name, keep | flags | os.O_NOCTTY))


def _is_nameless(place: Place, info: os.stat_result) -> bool:
    """Tells whether the object never had a name: a pipe, a memfd. Whoever leads here holds it already."""
    return not place.path.startswith(b"/") or (info.st_nlink == 0 and info.st_dev == _memory_device())


@functools.cache
def _memory_device() -> int:
    """Returns the device of memfds, a file system that is mounted nowhere."""
    fd = os.memfd_create("nd7")
    try:
        return os.fstat(fd).st_dev
    finally:
        os.close(fd)


def _where_it_was(place: Place, info: os.stat_result) -> bytes:
    """Returns the path that decides: of a deleted file the one it had.

    An O_PATH handle is had for the asking, so holding one gives no right to what was in the file.
    """
    if info.st_nlink == 0 and place.path.endswith(_DELETED):
        return place.path[: -len(_DELETED)]
    return place.path


def _make(entry: Entry, wanted: Wanted, more: int) -> int:
    # Never through a link made meanwhile, and never taking a terminal.
    flags = wanted.flags & ~os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NOCTTY | more
    return os.open(entry.name, flags, wanted.mode, dir_fd=entry.parent.fd)


def _patient(once: Callable[[], Outcome | None], kept: ExitStack) -> Pending:
    """Returns the outcome that tries until something comes of it or the caller is gone."""

    def work(waiting: Callable[[], bool]) -> Outcome:
        with kept:
            while waiting():
                outcome = once()
                if outcome is not None:
                    return outcome
                time.sleep(0.02)
        return Errno(errno.EINTR)

    return Pending(work)


def _open_fifo(name: str, flags: int, waiting: Callable[[], bool], *, cloexec: bool) -> Outcome:
    import select

    while waiting():
        try:
            fd = os.open(name, flags | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                return Errno(error.errno or errno.EIO)
            time.sleep(0.01)  # no reader yet
            continue
        if flags & os.O_ACCMODE == os.O_RDONLY:
            # Opened without a writer, poll is silent until the first one has come.
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            while waiting() and not poll.poll(50):
                pass
        os.set_blocking(fd, True)
        return Inject(fd, cloexec=cloexec)
    return Errno(errno.EINTR)
