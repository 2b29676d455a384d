"""Which pseudo-terminals belong to the run.

Rule: a terminal belongs when a process of the tree is controlled by it, or holds a descriptor of it or of its master
that reads or writes (an O_PATH handle shows nothing). Every other one is somebody's at work outside: what reads it
takes away what is typed there, a password too.
Does not prove: anything about terminals of other devpts instances with the same number.
Source: proc_pid_fdinfo(5), `tty-index` (Linux 4.11); Documentation/admin-guide/devices.txt, majors 136 to 143.
"""

from __future__ import annotations

import os

from nd7tui.engine.sandbox import abi

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nd7tui.engine.sandbox.holders import Members

_SLAVES = range(136, 144)
_MASTER = os.makedev(5, 2)


def is_terminal(device: int) -> bool:
    """Tells whether the device number is a pseudo-terminal's."""
    return os.major(device) in _SLAVES


class Terminals:
    """Answers whether pseudo-terminals belong to the run.

    Args:
        tree: The run's processes.
    """

    def __init__(self, tree: Members) -> None:
        self._tree = tree

    def belongs(self, device: int) -> bool:
        """Tells whether the pseudo-terminal with this device number is the run's now."""
        return any(_controls(device, pid) or _holds(device, pid) for pid in self._tree.pids())


def _controls(device: int, pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return False
    number = int(text[text.rindex(b")") + 2 :].split()[4]) & 0xFFFFFFFF
    # Source: Linux include/linux/kdev_t.h, new_encode_dev().
    return os.makedev(number >> 8 & 0xFFF, number & 0xFF | number >> 12 & 0xFFF00) == device


def _holds(device: int, pid: int) -> bool:
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False
    return any(_is_of(device, pid, name) for name in names)


def _is_of(device: int, pid: int, name: str) -> bool:
    try:
        found = os.stat(f"/proc/{pid}/fd/{name}").st_rdev
        if found not in {device, _MASTER}:
            return False
        with open(f"/proc/{pid}/fdinfo/{name}", "rb") as file:
            info = dict(line.split(b":", 1) for line in file.read().splitlines() if b":" in line)
        if int(info[b"flags"], 8) & abi.O_PATH:
            return False
        return found == device or int(info[b"tty-index"]) == _index(device)
    except (OSError, KeyError, ValueError):
        return False


def _index(device: int) -> int:
    return (os.major(device) - _SLAVES.start) * (1 << 20) + os.minor(device)
