"""One notified system call: reading the caller, and acting with no more rights than it has.

Rule: everything read from the caller is untrusted and may change while it is looked at. A caller is known by its
notification id; `still_waiting` must be true after reading and before acting on what was read
(Source: seccomp_unotify(2), SECCOMP_IOCTL_NOTIF_ID_VALID).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import struct

from nd7tui.engine.records import dataclass
from nd7tui.engine.sandbox import abi
from nd7tui.engine.sandbox.outcome import Refused, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from nd7tui.engine.policy.rules import Access, Verdict

PAGE = 4096


def read_memory(tid: int, addr: int, size: int) -> bytes:
    """Returns up to `size` bytes of the memory of `tid` at `addr`; fewer where it ends.

    Raises:
        OSError: EFAULT for an unmapped address, EPERM for a caller that is not dumpable, ESRCH when it is gone.

    Source: process_vm_readv(2).
    """
    buffer = ctypes.create_string_buffer(size)
    local = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), size)
    remote = (ctypes.c_size_t * 2)(addr, size)
    got = abi.syscall(abi.NR["process_vm_readv"], tid, ctypes.addressof(local), 1, ctypes.addressof(remote), 1, 0)
    return buffer.raw[:got]


def write_memory(tid: int, addr: int, data: bytes) -> None:
    """Writes `data` into the memory of `tid` at `addr`.

    Raises:
        OSError: As for `read_memory`; EFAULT also when only a part could be written.
    """
    buffer = ctypes.create_string_buffer(data, len(data))
    local = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), len(data))
    remote = (ctypes.c_size_t * 2)(addr, len(data))
    args = (tid, ctypes.addressof(local), 1, ctypes.addressof(remote), 1, 0)
    if abi.syscall(abi.NR["process_vm_writev"], *args) != len(data):
        raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))


@dataclass(slots=True)
class Call:
    """One notified system call of one thread.

    Attributes:
        listener: The seccomp listener that told of it.
        id: The notification's id.
        tid: The calling thread, in our pid namespace.
        name: The system call's name.
        args: Its six registers, unsigned 64-bit.
    """

    listener: int
    id: int
    tid: int
    name: str
    args: tuple[int, ...]

    @property
    def tgid(self) -> int:
        """The caller's process (thread group); the thread itself when it is gone."""
        return int(self.status().get(b"Tgid", b"0").split()[0] or 0) or self.tid

    def status(self) -> dict[bytes, bytes]:
        """Returns `/proc/<tid>/status` as names and values; empty when the caller is gone."""
        try:
            with open(f"/proc/{self.tid}/status", "rb") as file:
                lines = file.read().splitlines()
        except OSError:
            return {}
        return {name: value.strip() for name, _, value in (line.partition(b":") for line in lines)}

    def still_waiting(self) -> bool:
        """Tells whether the caller still waits for this notification, so that its pid is still its own."""
        try:
            fcntl.ioctl(self.listener, abi.SECCOMP_IOCTL_NOTIF_ID_VALID, struct.pack("=Q", self.id))
        except OSError:
            return False
        return True

    def read(self, addr: int, size: int) -> bytes:
        """Returns exactly `size` bytes of the caller's memory.

        Raises:
            OSError: EFAULT when they are not all there.
        """
        data = read_memory(self.tid, addr, size) if size else b""
        if len(data) != size:
            raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))
        return data

    def cstring(self, addr: int, limit: int = PAGE) -> bytes:
        """Returns the NUL-terminated string at `addr`.

        Raises:
            OSError: EFAULT when unreadable, ENAMETOOLONG without a NUL within `limit` bytes.
        """
        text = b""
        while len(text) < limit:
            # Never across a page boundary in one read: the next page may be unmapped.
            step = min(PAGE - (addr + len(text)) % PAGE, limit - len(text))
            part, end, _ = read_memory(self.tid, addr + len(text), step).partition(b"\0")
            text += part
            if end:
                return text
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))

    def write(self, addr: int, data: bytes) -> None:
        """Writes `data` into the caller's memory; raises OSError EFAULT."""
        write_memory(self.tid, addr, data)

    def dup_fd(self, fd: int) -> int:
        """Returns a copy, in this process, of the caller's descriptor `fd`.

        Raises:
            OSError: EBADF when it has none such, EPERM when the caller may not be looked into.

        Source: pidfd_getfd(2); PIDFD_THREAD (Linux 6.9) names a thread with a descriptor table of its own.
        """
        try:
            pidfd = abi.syscall(abi.NR["pidfd_open"], self.tid, abi.PIDFD_THREAD)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            pidfd = abi.syscall(abi.NR["pidfd_open"], self.tgid, 0)
        try:
            return abi.syscall(abi.NR["pidfd_getfd"], pidfd, abi.signed32(fd), 0)
        finally:
            os.close(pidfd)

    def cwd_fd(self) -> int:
        """Returns an O_PATH descriptor of the caller's working directory; raises OSError when it is gone."""
        return os.open(f"/proc/{self.tid}/cwd", abi.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def umask(self) -> int:
        """Returns the caller's file mode creation mask (Source: proc_pid_status(5), Umask)."""
        return int(self.status().get(b"Umask", b"0022"), 8)

    def comm(self) -> str:
        """Returns the calling thread's name, or an empty string."""
        try:
            with open(f"/proc/{self.tid}/comm", "rb") as file:
                return file.read().rstrip(b"\n").decode(errors="backslashreplace")
        except OSError:
            return ""

    def exe(self) -> str:
        """Returns the program that the caller runs, or an empty string."""
        try:
            return os.readlink(f"/proc/{self.tid}/exe")
        except OSError:
            return ""

    def refuse(
        self,
        access: Access,
        kind: str,
        target: bytes,
        verdict: Verdict,
        errno: int = errno.EACCES,
        second: bytes | None = None,
    ) -> Refused:
        """Returns the outcome of a call that policy refuses or asks about."""
        request = Request(
            self.id,
            self.tid,
            self.tgid,
            self.name,
            access,
            kind,
            target,
            verdict,
            errno,
            self.comm(),
            self.exe(),
            second,
            self,
        )
        return Refused(request)

    @contextlib.contextmanager
    def as_caller(self) -> Iterator[None]:
        """Acts in this thread with the caller's file-system ids, groups and capabilities.

        Only a supervisor that runs as root needs it: without privileges every process of the tree has its ids, because
        no_new_privs stops set-user-ID programs. Raises OSError when the caller's rights cannot be told or taken.

        Source: credentials(7), capabilities(7), setfsuid(2); the raw calls concern this thread only.
        """
        if os.geteuid() != 0:
            yield
            return
        wanted = _Rights.of(self.status())
        if wanted == _own_rights():
            yield
            return
        wanted.take()
        try:
            yield
        finally:
            _own_rights().take()


@dataclass(frozen=True, slots=True)
class _Rights:
    fsuid: int
    fsgid: int
    groups: tuple[int, ...]
    effective: int

    @classmethod
    def of(cls, status: dict[bytes, bytes]) -> _Rights:
        try:
            return cls(
                int(status[b"Uid"].split()[3]),
                int(status[b"Gid"].split()[3]),
                tuple(map(int, status[b"Groups"].split())),
                int(status[b"CapEff"], 16),
            )
        except (KeyError, IndexError, ValueError) as error:
            raise OSError(errno.ESRCH, os.strerror(errno.ESRCH)) from error

    def take(self) -> None:
        # Effective capabilities last on the way down and first on the way up: setgroups needs CAP_SETGID.
        own = _own_rights()
        _set_effective(own.effective)
        groups = (ctypes.c_uint32 * max(len(self.groups), 1))(*self.groups)
        abi.syscall(abi.NR["setgroups"], len(self.groups), ctypes.addressof(groups))
        abi.syscall(abi.NR["setfsgid"], self.fsgid)
        abi.syscall(abi.NR["setfsuid"], self.fsuid)
        _set_effective(own.effective & self.effective)


_CAP_HEADER = struct.pack("=Ii", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this thread
_own: list[_Rights] = []


def _own_rights() -> _Rights:
    if not _own:
        with open("/proc/thread-self/status", "rb") as file:
            lines = file.read().splitlines()
        _own.append(_Rights.of({name: value.strip() for name, _, value in (line.partition(b":") for line in lines)}))
    return _own[0]


def _set_effective(effective: int) -> None:
    header = ctypes.create_string_buffer(_CAP_HEADER, 8)
    data = ctypes.create_string_buffer(24)
    abi.syscall(abi.NR["capget"], ctypes.addressof(header), ctypes.addressof(data))
    words = list(struct.unpack("=6I", data.raw))
    words[0], words[3] = effective & 0xFFFFFFFF, effective >> 32
    data = ctypes.create_string_buffer(struct.pack("=6I", *words), 24)
    abi.syscall(abi.NR["capset"], ctypes.addressof(header), ctypes.addressof(data))
