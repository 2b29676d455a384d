"""The kernel's numbers, and raw system calls by number.

Rule: constants are defined here because the headers of supported distributions are older than the kernels
they run (Debian 12's stop at Landlock ABI 2). Numbers are the kernel's ABI and never change.
Source: linux/seccomp.h, linux/landlock.h, asm/unistd_64.h, asm-generic/unistd.h of Linux 6.18.
"""

from __future__ import annotations

import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long
_syscall.argtypes = [ctypes.c_long] * 7

MACHINE = os.uname().machine
_COLUMN = {"x86_64": 0, "aarch64": 1}.get(MACHINE, 0)
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}.get(MACHINE, 0)
X32_BIT = 0x40000000


def syscall(nr: int, *args: int) -> int:
    """Runs system call `nr` in this thread and returns its result.

    Args:
        nr: The number, for this machine.
        args: Up to six integers; pointers as addresses.

    Raises:
        OSError: The kernel's errno.
    """
    result: int = _syscall(nr, *args, *([0] * (6 - len(args))))
    if result == -1:
        errno = ctypes.get_errno()
        raise OSError(errno, os.strerror(errno))
    return result


# (x86-64, aarch64); -1 where the architecture has no such call.
_TABLE: dict[str, tuple[int, int]] = {
    # opens
    "open": (2, -1),
    "creat": (85, -1),
    "openat": (257, 56),
    "openat2": (437, 437),
    # names
    "mkdir": (83, -1),
    "mkdirat": (258, 34),
    "rmdir": (84, -1),
    "unlink": (87, -1),
    "unlinkat": (263, 35),
    "rename": (82, -1),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "link": (86, -1),
    "linkat": (265, 37),
    "symlink": (88, -1),
    "symlinkat": (266, 36),
    "mknod": (133, -1),
    "mknodat": (259, 33),
    "truncate": (76, 45),
    # metadata
    "chmod": (90, -1),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, -1),
    "lchown": (94, -1),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "utime": (132, -1),
    "utimes": (235, -1),
    "futimesat": (261, -1),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "setxattrat": (463, 463),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
    # network
    "connect": (42, 203),
    "sendto": (44, 206),
    "sendmsg": (46, 211),
    "sendmmsg": (307, 269),
    # refused by the filter
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "setns": (308, 268),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "unshare": (272, 97),
    "clone": (56, 220),
    "clone3": (435, 435),
    "ioctl": (16, 29),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "setsockopt": (54, 208),
    "prlimit64": (302, 261),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "uselib": (134, -1),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    # used by the supervisor itself
    "seccomp": (317, 277),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "setfsuid": (122, 151),
    "setfsgid": (123, 152),
    "setgroups": (116, 159),
    "capget": (125, 90),
    "capset": (126, 91),
    "prctl": (157, 167),
    "close_range": (436, 436),
    "tgkill": (234, 131),
    "landlock_create_ruleset": (444, 444),
    "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446),
    "fstatfs": (138, 44),
}

NR: dict[str, int] = {name: pair[_COLUMN] for name, pair in _TABLE.items() if pair[_COLUMN] >= 0}
NAMES: dict[int, str] = {number: name for name, number in NR.items()}

# seccomp(2), seccomp_unotify(2)
SECCOMP_SET_MODE_FILTER = 1
SECCOMP_GET_NOTIF_SIZES = 3
SECCOMP_FILTER_FLAG_NEW_LISTENER = 1 << 3
SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV = 1 << 5  # Linux 5.19
SECCOMP_RET_KILL_PROCESS = 0x80000000
SECCOMP_RET_ERRNO = 0x00050000
SECCOMP_RET_USER_NOTIF = 0x7FC00000
SECCOMP_RET_ALLOW = 0x7FFF0000
SECCOMP_IOCTL_NOTIF_RECV = 0xC0502100
SECCOMP_IOCTL_NOTIF_SEND = 0xC0182101
SECCOMP_IOCTL_NOTIF_ID_VALID = 0x40082102
SECCOMP_IOCTL_NOTIF_ADDFD = 0x40182103
SECCOMP_IOCTL_NOTIF_SET_FLAGS = 0x40082104
SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP = 1  # Linux 6.6; passed by value
SECCOMP_USER_NOTIF_FLAG_CONTINUE = 1
SECCOMP_ADDFD_FLAG_SEND = 2  # Linux 5.14

PR_SET_NO_NEW_PRIVS = 38
PR_CAPBSET_DROP = 24
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
LINUX_CAPABILITY_VERSION_3 = 0x20080522
PIDFD_THREAD = os.O_EXCL  # Linux 6.9

# openat2(2)
RESOLVE_NO_XDEV = 0x01
RESOLVE_NO_MAGICLINKS = 0x02
RESOLVE_NO_SYMLINKS = 0x04
RESOLVE_BENEATH = 0x08
RESOLVE_IN_ROOT = 0x10
RESOLVE_CACHED = 0x20

AT_FDCWD = -100
AT_SYMLINK_NOFOLLOW = 0x100
AT_REMOVEDIR = 0x200
AT_SYMLINK_FOLLOW = 0x400
AT_EMPTY_PATH = 0x1000
O_PATH = 0o10000000
O_TMPFILE = 0o20200000


def signed32(value: int) -> int:
    """Returns the low 32 bits of a register as the C `int` a system call reads (file descriptors, flags)."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value
