"""The seccomp filter of a run, assembled as classic BPF.

Rule: a call is decided here only by its number and registers, which the caller cannot change afterwards. What
depends on memory (paths, addresses) goes to the listener. Pure: returns bytes, installs nothing.
Does not prove: anything about calls it lets through; the Landlock floor answers for those.
Source: seccomp(2), Documentation/networking/filter.rst (classic BPF), linux/filter.h.
"""

from __future__ import annotations

import errno
import os
import struct

from nd7tui.engine.records import dataclass, field
from nd7tui.engine.sandbox import abi

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_LD_W_ABS = 0x20
_JEQ_K = 0x15
_JGE_K = 0x35
_JSET_K = 0x45
_AND_K = 0x54
_RET_K = 0x06

_OFFSET_NR, _OFFSET_ARCH, _OFFSET_ARGS = 0, 4, 16

_ALLOW = abi.SECCOMP_RET_ALLOW
_NOTIFY = abi.SECCOMP_RET_USER_NOTIF

# Creating, truncating or writing: what the fast mode still asks about.
WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | (abi.O_TMPFILE & ~os.O_DIRECTORY)

NOTIFIED = (
    "openat", "open", "creat", "openat2",
    "unlink", "unlinkat", "mkdir", "mkdirat", "rmdir", "rename", "renameat", "renameat2", "link", "linkat",
    "symlink", "symlinkat", "mknod", "mknodat", "truncate",
    "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchown", "fchownat",
    "utime", "utimes", "futimesat", "utimensat",
    "setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr",
    "connect", "sendto", "sendmsg", "sendmmsg",
)  # fmt: skip

# ENOSYS where programs have a way to go on without the call, EPERM where there is none to offer.
REFUSED: dict[str, int] = {
    "clone3": errno.ENOSYS,  # its flags are in memory; libc falls back to clone
    "io_uring_setup": errno.ENOSYS,
    "io_uring_enter": errno.ENOSYS,
    "io_uring_register": errno.ENOSYS,
    "setxattrat": errno.ENOSYS,
    "removexattrat": errno.ENOSYS,
    "file_setattr": errno.ENOSYS,
    "add_key": errno.ENOSYS,
    "request_key": errno.ENOSYS,
    "keyctl": errno.ENOSYS,
    "userfaultfd": errno.ENOSYS,
    "uselib": errno.ENOSYS,
} | dict.fromkeys(
    (
        "mount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount",
        "fspick", "mount_setattr", "open_tree_attr", "setns", "bpf", "perf_event_open", "open_by_handle_at",
        "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "swapon", "swapoff",
        "acct", "quotactl", "quotactl_fd", "fanotify_init",
    ),
    errno.EPERM,
)  # fmt: skip

_CLONE_NEW = 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000 | 0x00020000
_CLONE_NEWTIME = 0x80  # for unshare only: clone reads a signal number there
_MSG_FASTOPEN = 0x20000000
_REFUSED_IOCTLS = (
    0x5412,  # TIOCSTI: types into the terminal
    0x541C,  # TIOCLINUX: pastes into a virtual console
    0x40086602,  # FS_IOC_SETFLAGS: works on read-only descriptors
    0x401C5820,  # FS_IOC_FSSETXATTR
    0x40806685,  # FS_IOC_ENABLE_VERITY: freezes a file for good
    # More that works on read-only descriptors and that Landlock does not ask about.
    0x40087602,  # FS_IOC_SETVERSION
    0x800C6613,  # FS_IOC_SET_ENCRYPTION_POLICY, on empty directories
    0x40047211,  # FAT_IOCTL_SET_ATTRIBUTES
    # btrfs, bcachefs: a snapshot of a subvolume of one's own (a home) shows what is in it under new names.
    0x50009401,  # BTRFS_IOC_SNAP_CREATE
    0x50009417,  # BTRFS_IOC_SNAP_CREATE_V2
    0x5000940E,  # BTRFS_IOC_SUBVOL_CREATE
    0x50009418,  # BTRFS_IOC_SUBVOL_CREATE_V2
    0x5000940F,  # BTRFS_IOC_SNAP_DESTROY
    0x5000943F,  # BTRFS_IOC_SNAP_DESTROY_V2
    0x4008941A,  # BTRFS_IOC_SUBVOL_SETFLAGS
    0xC0C89425,  # BTRFS_IOC_SET_RECEIVED_SUBVOL
    0x4020BC10,  # BCH_IOCTL_SUBVOLUME_CREATE
    0x4020BC11,  # BCH_IOCTL_SUBVOLUME_DESTROY
)
# A source route sends traffic for an allowed address by way of another host: (level, option).
# IP_OPTIONS; IPV6_RTHDR, IPV6_2292RTHDR, IPV6_2292PKTOPTIONS
_REFUSED_OPTIONS = ((0, 4), (41, 57), (41, 5), (41, 6))
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_SOCK_STREAM, _SOCK_DGRAM, _SOCK_SEQPACKET = 1, 2, 5
_IPPROTO_TCP, _IPPROTO_UDP = 6, 17


@dataclass(slots=True)
class _Assembler:
    """A straight-line program with forward jumps to labels."""

    code: list[tuple[int, str | int, str | int, int]] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)

    def op(self, code: int, k: int, true: str | int = 0, false: str | int = 0) -> None:
        self.code.append((code, true, false, k & 0xFFFFFFFF))

    def label(self, name: str) -> None:
        self.labels[name] = len(self.code)

    def ret(self, action: int) -> None:
        self.op(_RET_K, action)

    def load_arg(self, index: int, *, high: bool = False) -> None:
        self.op(_LD_W_ABS, _OFFSET_ARGS + 8 * index + 4 * high)  # both machines are little-endian

    def bytes(self) -> bytes:
        out = b""
        for at, (code, true, false, k) in enumerate(self.code):
            jumps = [self.labels[t] - at - 1 if isinstance(t, str) else t for t in (true, false)]
            out += struct.pack("=HBBI", code, *jumps, k)
        return out


def _refuse(error: int) -> int:
    return abi.SECCOMP_RET_ERRNO | error


def _open(asm: _Assembler, flags_arg: int, *, fast: bool) -> None:
    # O_PATH gives a handle and no content; every use of it is checked on its own.
    asm.load_arg(flags_arg)
    asm.op(_JSET_K, abi.O_PATH, 0, 1)
    asm.ret(_ALLOW)
    if fast:
        asm.op(_JSET_K, WRITE_FLAGS, 1, 0)
        asm.ret(_ALLOW)
    asm.ret(_NOTIFY)


def _refuse_flag(asm: _Assembler, arg: int, flag: int, error: int) -> None:
    asm.load_arg(arg)
    asm.op(_JSET_K, flag, 0, 1)
    asm.ret(_refuse(error))


def _sendto(asm: _Assembler) -> None:
    _refuse_flag(asm, 3, _MSG_FASTOPEN, errno.EOPNOTSUPP)
    for high in (False, True):
        asm.load_arg(4, high=high)
        asm.op(_JEQ_K, 0, 1, 0)
        asm.ret(_NOTIFY)
    asm.ret(_ALLOW)  # no address: only where the socket is connected to already


def _send_message(asm: _Assembler, flags_arg: int) -> None:
    _refuse_flag(asm, flags_arg, _MSG_FASTOPEN, errno.EOPNOTSUPP)
    asm.ret(_NOTIFY)


def _ioctl(asm: _Assembler) -> None:
    asm.load_arg(1)  # the kernel looks at the low 32 bits only
    for command in _REFUSED_IOCTLS:
        asm.op(_JEQ_K, command, "ioctl refused", 0)
    asm.ret(_ALLOW)
    asm.label("ioctl refused")
    asm.ret(_refuse(errno.EPERM))


def _setsockopt(asm: _Assembler) -> None:
    for level, option in _REFUSED_OPTIONS:
        asm.load_arg(1)
        asm.op(_JEQ_K, level, 0, 3)
        asm.load_arg(2)
        asm.op(_JEQ_K, option, 0, 1)
        asm.ret(_refuse(errno.EPERM))
    asm.ret(_ALLOW)


def _prlimit(asm: _Assembler) -> None:
    # The limits of any process of the user, the supervisor among them, can be taken down to where it cannot work.
    asm.load_arg(0)
    asm.op(_JEQ_K, 0, "limits", 0)
    for high in (False, True):
        asm.load_arg(2, high=high)
        asm.op(_JEQ_K, 0, 1, 0)
        asm.ret(_refuse(errno.EPERM))
    asm.label("limits")
    asm.ret(_ALLOW)


def _socket(asm: _Assembler) -> None:
    asm.load_arg(0)
    asm.op(_JEQ_K, _AF_UNIX, "unix", 0)
    asm.op(_JEQ_K, _AF_INET, "inet", 0)
    asm.op(_JEQ_K, _AF_INET6, "inet", 0)
    asm.op(_JEQ_K, _AF_NETLINK, 0, 1)
    asm.ret(_ALLOW)
    asm.ret(_refuse(errno.EAFNOSUPPORT))
    asm.label("inet")
    asm.load_arg(1)
    asm.op(_AND_K, 0xF)
    asm.op(_JEQ_K, _SOCK_STREAM, 2, 0)
    asm.op(_JEQ_K, _SOCK_DGRAM, 1, 0)
    asm.ret(_refuse(errno.EPERM))
    asm.load_arg(2)
    for protocol in (0, _IPPROTO_TCP, _IPPROTO_UDP):
        asm.op(_JEQ_K, protocol, 0, 1)
        asm.ret(_ALLOW)
    asm.ret(_refuse(errno.EPROTONOSUPPORT))  # MPTCP, SCTP, ICMP, …: Landlock has no rule for them


def _unix_type(asm: _Assembler) -> None:
    # A datagram socket, even one of a pair, can be sent from to any socket outside.
    asm.label("unix")
    asm.load_arg(1)
    asm.op(_AND_K, 0xF)
    asm.op(_JEQ_K, _SOCK_STREAM, 1, 0)
    asm.op(_JEQ_K, _SOCK_SEQPACKET, 0, 1)
    asm.ret(_ALLOW)
    asm.ret(_refuse(errno.EACCES))


def assemble(*, fast: bool = False) -> bytes:
    """Returns the filter program.

    Args:
        fast: Opens that only read are not asked about (no read denials shown, no live read grants).

    Returns:
        `struct sock_filter` records, 8 bytes each.
    """
    asm = _Assembler()
    asm.op(_LD_W_ABS, _OFFSET_ARCH)
    asm.op(_JEQ_K, abi.AUDIT_ARCH, 1, 0)
    asm.ret(abi.SECCOMP_RET_KILL_PROCESS)
    asm.op(_LD_W_ABS, _OFFSET_NR)
    if abi.MACHINE == "x86_64":
        asm.op(_JGE_K, abi.X32_BIT, 0, 1)
        asm.ret(_refuse(errno.ENOSYS))
    checks: dict[str, Callable[[], None]] = {
        "openat": lambda: _open(asm, 2, fast=fast),
        "open": lambda: _open(asm, 1, fast=fast),
        "sendto": lambda: _sendto(asm),
        "sendmsg": lambda: _send_message(asm, 2),
        "sendmmsg": lambda: _send_message(asm, 3),
        "ioctl": lambda: _ioctl(asm),
        "setsockopt": lambda: _setsockopt(asm),
        "prlimit64": lambda: _prlimit(asm),
        "clone": lambda: _clone(asm, _CLONE_NEW),
        "unshare": lambda: _clone(asm, _CLONE_NEW | _CLONE_NEWTIME),
        "socket": lambda: _socket(asm),
        "socketpair": lambda: _unix_type(asm),
    }
    for name in checks:
        if name in abi.NR:
            asm.op(_JEQ_K, abi.NR[name], name, 0)
    for name in NOTIFIED:
        if name in abi.NR and name not in checks:
            asm.op(_JEQ_K, abi.NR[name], "notify", 0)
    for name, error in REFUSED.items():
        if name in abi.NR:
            asm.op(_JEQ_K, abi.NR[name], f"refuse {error}", 0)
    asm.ret(_ALLOW)
    # A jump reaches 255 instructions: what is shared comes before what is long.
    asm.label("notify")
    asm.ret(_NOTIFY)
    for error in sorted(set(REFUSED.values())):
        asm.label(f"refuse {error}")
        asm.ret(_refuse(error))
    for name, check in checks.items():
        if name in abi.NR:
            asm.label(name)
            check()
    return asm.bytes()


def _clone(asm: _Assembler, flags: int) -> None:
    _refuse_flag(asm, 0, flags, errno.EPERM)
    asm.ret(_ALLOW)
