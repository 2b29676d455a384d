"""Which listening sockets belong to the session.

Rule: a socket belongs when a process of the tree holds a descriptor of it, now, as `/proc/<pid>/fd` shows. Nothing that
a process says, and no path, counts. A holder that is not dumpable (ssh-agent) shows nothing to a supervisor without
privileges, and its sockets count as foreign.
Does not prove: that no process outside holds the same socket.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Protocol

    class Members(Protocol):
        """What is asked of the process tree."""

        def contains(self, pid: int) -> bool:
            """Tells whether `pid` belongs to the run."""

        def pids(self) -> list[int]:
            """Returns every process of the run."""


class Holders:
    """Answers whether sockets are held inside the run.

    Args:
        tree: The run's processes.
    """

    def __init__(self, tree: Members) -> None:
        self._tree = tree
        self._last: dict[int, tuple[int, int]] = {}

    def all_held(self, numbers: Iterable[int]) -> bool:
        """Tells whether every one of the sockets `socket:[number]` is held by a process of the run."""
        return all(self._held(number) for number in numbers)

    def _held(self, number: int) -> bool:
        wanted = f"socket:[{number}]"
        # A server is connected to more than once: look first where it was last time.
        if number in self._last and self._still(wanted, *self._last[number]):
            return True
        self._last.pop(number, None)
        for pid in self._tree.pids():
            for fd in _descriptors(pid):
                if self._still(wanted, pid, fd):
                    self._last[number] = (pid, fd)
                    return True
        return False

    def _still(self, wanted: str, pid: int, fd: int) -> bool:
        # Membership is asked after the look, so that a pid taken over by a stranger meanwhile is noticed.
        try:
            return os.readlink(f"/proc/{pid}/fd/{fd}") == wanted and self._tree.contains(pid)
        except OSError:
            return False


def _descriptors(pid: int) -> Iterator[int]:
    try:
        yield from map(int, os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return
