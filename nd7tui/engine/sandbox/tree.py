"""Which processes belong to a run.

Rule: a process belongs when its chain of parents reaches the run's first process or the supervisor that reaps its
orphans; nothing a process says of itself counts. The answer is about the moment it is asked: pids are reused, so
callers that act on it hold something that keeps the process alive (a notification, a connected socket).
Source: proc(5), `/proc/pid/stat`; PR_SET_CHILD_SUBREAPER(2const).
"""

from __future__ import annotations

import os

_MOST_ANCESTORS = 256


def parent(pid: int) -> int:
    """Returns the parent of `pid` (0 when there is none or the process is gone)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return 0
    # The name is in parentheses and may hold anything; the fields go on behind the last one.
    return int(text[text.rindex(b")") + 2 :].split()[1])


class Tree:
    """The processes below the supervisor.

    Args:
        supervisor: The pid whose descendants (it is their subreaper) are the run.
        root: The run's first process; reported chains of ancestors end there.
    """

    def __init__(self, supervisor: int, root: int = 0) -> None:
        self.supervisor = supervisor
        self.root = root

    def ancestors(self, pid: int) -> list[int]:
        """Returns the pids from the parent of `pid` up to the run's first process, nearest first."""
        chain: list[int] = []
        while pid not in (self.root, 0, 1) and len(chain) < _MOST_ANCESTORS:
            pid = parent(pid)
            if pid in (self.supervisor, 0):
                break
            chain.append(pid)
        return chain

    def contains(self, pid: int) -> bool:
        """Tells whether `pid` is a descendant of the supervisor now."""
        for _ in range(_MOST_ANCESTORS):
            if pid <= 1:
                return False
            pid = parent(pid)
            if pid == self.supervisor:
                return True
        return False

    def pids(self) -> list[int]:
        """Returns every process of the run that is alive now, in no order."""
        parents = {int(name): parent(int(name)) for name in os.listdir("/proc") if name.isdigit()}
        inside: dict[int, bool] = {self.supervisor: True, 0: False, 1: False}

        def belongs(pid: int) -> bool:
            chain = []
            while pid not in inside:
                chain.append(pid)
                inside[pid] = False  # A reused pid cannot send this walk in circles.
                pid = parents.get(pid, 0)
            for link in chain:
                inside[link] = inside[pid]
            return inside[pid]

        return [pid for pid in parents if pid != self.supervisor and belongs(pid)]
