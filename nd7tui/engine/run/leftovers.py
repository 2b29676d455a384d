"""What the program leaves behind is ended with it.

Rule: no process of a run outlives its supervisor by design: once the program has ended the others get SIGTERM, and
half a second later SIGKILL, until there are none.
Does not prove: that none is left. One that cannot be killed (it waits in the kernel) is given up after a few seconds;
without a supervisor it can open nothing.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

from nd7tui.engine.run.jobs import state_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from nd7tui.engine.run.jobs import Job

GRACE = 500_000_000
PATIENCE = 3_000_000_000
_ROUNDS = 100


class Leftovers:
    """Ends the rest of the tree, a step at a time.

    Args:
        pids: Returns the processes of the run that are there now.
        now: The time, ns.

    Attributes:
        ended: How many processes were told to end.
    """

    def __init__(self, pids: Callable[[], list[int]], now: int) -> None:
        self._pids = pids
        self._kill_at = now + GRACE
        self._give_up_at = now + PATIENCE
        self._told: set[int] = set()

    @property
    def ended(self) -> int:
        """How many processes were told to end."""
        return len(self._told)

    def step(self, now: int) -> bool:
        """Signals those who need it; returns whether there is nothing more to do."""
        alive = [pid for pid in self._pids() if state_of(pid) not in {"", "Z", "X"}]
        for pid in alive:
            if now >= self._kill_at:
                _send(pid, signal.SIGKILL)
            elif pid not in self._told:
                _send(pid, signal.SIGTERM)
                _send(pid, signal.SIGCONT)
        self._told.update(alive)
        return not alive or now >= self._give_up_at


def end_now(pids: Callable[[], list[int]], job: Job) -> None:
    """Kills what is left without a grace, when nobody will serve it any more; returns at once if nothing is."""
    for _ in range(_ROUNDS):
        job.reap()
        if job.alone:
            return
        for pid in pids():
            _send(pid, signal.SIGKILL)
        time.sleep(0.01)


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
