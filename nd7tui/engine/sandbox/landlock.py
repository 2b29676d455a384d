"""A Landlock ruleset: made, filled, applied to this process.

Rule: rights that the running kernel does not know are left out of what is handled; `prepare.probe` says so before
anything is started. What is handled and not granted is refused.
Source: landlock_create_ruleset(2), landlock_add_rule(2), landlock_restrict_self(2), include/uapi/linux/landlock.h;
Documentation/userspace-api/landlock.rst for the ABI that each right came with.
"""

from __future__ import annotations

import ctypes
import os
import struct

from nd7tui.engine.sandbox import abi

# LANDLOCK_ACCESS_FS_*
EXECUTE = 1 << 0
WRITE_FILE = 1 << 1
READ_FILE = 1 << 2
READ_DIR = 1 << 3
REMOVE_DIR = 1 << 4
REMOVE_FILE = 1 << 5
MAKE_CHAR = 1 << 6
MAKE_DIR = 1 << 7
MAKE_REG = 1 << 8
MAKE_SOCK = 1 << 9
MAKE_FIFO = 1 << 10
MAKE_BLOCK = 1 << 11
MAKE_SYM = 1 << 12
REFER = 1 << 13
TRUNCATE = 1 << 14
IOCTL_DEV = 1 << 15
# LANDLOCK_ACCESS_NET_*
CONNECT_TCP = 1 << 1
# LANDLOCK_SCOPE_*
SCOPE_ABSTRACT_UNIX_SOCKET = 1 << 0
SCOPE_SIGNAL = 1 << 1

_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1
_ATTR = struct.Struct("=QQQ")  # handled_access_fs, handled_access_net (ABI 4), scoped (ABI 6)
_PATH_BENEATH = struct.Struct("=Qi")  # allowed_access, parent_fd


def version() -> int:
    """Returns the kernel's Landlock ABI; 0 when it has none or Landlock is switched off."""
    try:
        return abi.syscall(abi.NR["landlock_create_ruleset"], 0, 0, _CREATE_RULESET_VERSION)
    except OSError:
        return 0


def known(level: int) -> tuple[int, int, int]:
    """Returns the rights to files, the rights to the network and the scopes that ABI `level` knows, of those above."""
    files = REFER - 1
    for since, right in ((2, REFER), (3, TRUNCATE), (5, IOCTL_DEV)):
        files |= right if level >= since else 0
    network = CONNECT_TCP if level >= 4 else 0
    scopes = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL if level >= 6 else 0
    return files, network, scopes


class Ruleset:
    """A ruleset; `fd` is the caller's to close.

    Args:
        files: Rights to files that are refused unless granted.
        network: The same for the network.
        scoped: What does not reach beyond the processes it is applied to.

    Raises:
        OSError: The kernel has no Landlock, or no descriptor is left.
    """

    def __init__(self, *, files: int, network: int, scoped: int) -> None:
        level = version()
        files_known, network_known, scopes_known = known(level)
        self._files = files & files_known
        attr = _ATTR.pack(self._files, network & network_known, scoped & scopes_known)
        # A kernel that does not know the later members takes them when they are zero, as they are there.
        self.fd = _with_pointer("landlock_create_ruleset", (), attr, (len(attr), 0))

    def allow(self, path: bytes, rights: int) -> None:
        """Grants `rights` on a file, or on a directory and everything beneath it.

        Raises:
            OSError: There is nothing there, or the kernel refused the rule.
        """
        rights &= self._files
        if not rights:
            return
        parent = os.open(path, abi.O_PATH | os.O_CLOEXEC)
        try:
            rule = _PATH_BENEATH.pack(rights, parent)
            _with_pointer("landlock_add_rule", (self.fd, _RULE_PATH_BENEATH), rule, (0,))
        finally:
            os.close(parent)

    def restrict(self) -> None:
        """Applies it to this thread and all that it starts, for good; needs PR_SET_NO_NEW_PRIVS or CAP_SYS_ADMIN.

        Raises:
            OSError: The kernel refused.
        """
        abi.syscall(abi.NR["landlock_restrict_self"], self.fd, 0)


def _with_pointer(name: str, before: tuple[int, ...], data: bytes, after: tuple[int, ...]) -> int:
    """Runs a system call that reads `data` by pointer."""
    buffer = ctypes.create_string_buffer(data, len(data))
    return abi.syscall(abi.NR[name], *before, ctypes.addressof(buffer), *after)
