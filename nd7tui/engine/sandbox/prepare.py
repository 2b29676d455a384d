"""What this kernel can enforce.

Rule: what is not enforced is said, word for word, before anything is started.
Source: landlock(7) (ABI history), seccomp(2).
"""

from __future__ import annotations

import ctypes

from nd7tui.engine.records import dataclass
from nd7tui.engine.sandbox import abi, landlock

_LACKS = (
    (1, "no Landlock: no file system floor (Linux 5.13 with Landlock in the boot-time lsm= list is needed)"),
    (2, "renaming and linking between directories is judged by the supervisor only (Landlock ABI 2, Linux 5.19)"),
    (3, "truncating is judged by the supervisor only (Landlock ABI 3, Linux 6.2)"),
    (4, "tcp connections are judged by the supervisor only (Landlock ABI 4, Linux 6.7)"),
    (5, "ioctl on devices is not restricted (Landlock ABI 5, Linux 6.10)"),
    (6, "signals to processes outside are not restricted (Landlock ABI 6, Linux 6.12)"),
)
# What a supervisor that continues nothing of the kind makes up for.
_MADE_UP_FOR = frozenset({4})


@dataclass(frozen=True, slots=True)
class Enforcement:
    """What is enforced here.

    Attributes:
        landlock_abi: 0 when there is no Landlock.
        listener: Whether seccomp user notification is there.
        partial: What is not enforced, one sentence each; empty when everything is.
    """

    landlock_abi: int
    listener: bool
    partial: tuple[str, ...]

    @property
    def hot_loop(self) -> str:
        """`c` or `python`."""
        return hot_loop()


def probe() -> Enforcement:
    """Asks the kernel; changes nothing."""
    level = landlock.version()
    listener = _has_listener()
    partial = [text for needed, text in _LACKS if level < needed and needed not in _MADE_UP_FOR]
    if not listener:
        partial.append("no seccomp user notification: no live rules and no denials (Linux 5.13 is needed)")
    if not abi.AUDIT_ARCH:
        partial.append(f"no system call table for {abi.MACHINE}")
    return Enforcement(level, listener, tuple(partial))


def hot_loop() -> str:
    """Returns which loop serves the listener: `c` when the extension was built, else `python`."""
    import importlib.util

    return "c" if importlib.util.find_spec("nd7tui.engine.sandbox._hotloop") else "python"


def _has_listener() -> bool:
    sizes = (ctypes.c_uint16 * 3)()
    try:
        abi.syscall(abi.NR["seccomp"], abi.SECCOMP_GET_NOTIF_SIZES, 0, ctypes.addressof(sizes))
    except OSError:
        return False
    return list(sizes) == [80, 24, 64]
