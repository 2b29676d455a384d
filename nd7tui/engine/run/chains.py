"""The chains a run writes: its own, and one for each session its agents name.

Rule: a hook's payload goes to the chain of the session it names, so that the log is the agent's own; each of the two
chains names the other in a `run_link` frame, the first time. What an agent says is untrusted: an id that cannot be one,
and ids beyond a bound, go to the run's own chain.
Does not prove: that a session is the agent's. A confined program may name any session; the link says which run it was.
"""

from __future__ import annotations

from nd7tui.engine.log.layout import SessionIdError, check_session_id
from nd7tui.engine.run.frames import SUPERVISOR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from nd7tui.engine.run.livelog import LiveLog

MOST_SESSIONS = 64


class Chains:
    """The run's chain and those it is linked with.

    Args:
        session_id: The run's own.
        own: Its log.
        open_other: Returns the log of another session.
        pid: The supervisor's pid, for the links.
    """

    def __init__(self, session_id: str, own: LiveLog, open_other: Callable[[str], LiveLog], pid: int) -> None:
        self._session_id = session_id
        self.own = own
        self._open_other = open_other
        self._pid = pid
        self._others: dict[str, LiveLog] = {}

    @property
    def full(self) -> bool:
        """Whether one of the logs can keep no more frames."""
        return self.own.full or any(log.full for log in self._others.values())

    def record_hook(self, payload: bytes, named: object, source: str | None, ts: int, hook_ppid: int | None) -> None:
        """Appends a hook's payload to the chain of the session `named` in it."""
        self._chain_of(named).record_hook(payload, source, ts, hook_ppid)

    def tick(self) -> None:
        """Tries the frames that wait."""
        for log in (self.own, *self._others.values()):
            log.tick()

    def close(self) -> None:
        """Closes every log, the run's own last."""
        for log in (*self._others.values(), self.own):
            log.close()

    def _chain_of(self, named: object) -> LiveLog:
        if named is None or named == self._session_id:
            return self.own
        try:
            other = check_session_id(named)
        except SessionIdError:
            return self.own
        if other not in self._others:
            if len(self._others) >= MOST_SESSIONS:
                return self.own
            self._link(other)
        return self._others[other]

    def _link(self, other: str) -> None:
        log = self._others[other] = self._open_other(other)
        for chain, session_id in ((self.own, other), (log, self._session_id)):
            chain.append(SUPERVISOR, "run_link", {"pid": self._pid, "session_id": session_id})
