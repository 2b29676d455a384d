"""What a session screen knows of its session: its logs and its rule file, polled.

Rule: reads only, and never blocks for long; what is not there yet is looked for again. The run is found by the pid of
the child in the pane, its log by the session's id; neither is taken from what the program prints.

Owns: the tails, the last good record, the state of the chain as far as it was read.
A chain that is sound here was not compared with the session's `head` file; `nd7 verify` does that.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from nd7tui.engine import paths
from nd7tui.engine.log.layout import SessionIdError, events_path
from nd7tui.engine.log.tail import Damaged, Tail
from nd7tui.engine.policy.rules import Policy
from nd7tui.engine.run import directory
from nd7tui.screens.rulebook import floor_of

if TYPE_CHECKING:
    from nd7tui.engine.log.frame import Frame
    from nd7tui.engine.policy.document import RunRecord

# About 10 ms of reading and checking: a key waits no longer than that.
BUDGET = 256 << 10
MOST_LINKS = 16
ERROR_SHOWN = 10_000_000_000


@dataclass(slots=True)
class Chain:
    """The run's own chain as read so far.

    Attributes:
        frames: Sound frames.
        head: Hash of the last one.
        damaged: What is wrong first, or "".
    """

    frames: int = 0
    head: str = ""
    damaged: str = ""


@dataclass(slots=True)
class News:
    """What one poll found.

    Attributes:
        items: New frames, and damaged places, of all the session's logs.
        record: The rule file changed.
        more: There is more to read right away.
    """

    items: list[Frame | Damaged] = field(default_factory=list)
    record: bool = False
    more: bool = False


class Feed:
    """One session.

    Args:
        session_id: The run's own session id.
        pid: The supervisor's pid, once known.
        root: The directory of sessions; by default the state directory's.
        runs: The directory of runs; by default `~/.nd7/sessions`.
    """

    def __init__(
        self, session_id: str, pid: int | None = None, *, root: str | None = None, runs: str | None = None
    ) -> None:
        self.session_id = session_id
        self.pid = pid
        self.record: RunRecord | None = None
        self.record_fault = ""
        self.run_exists = False
        self.chain = Chain()
        self.policy = self._floor = Policy()
        self.started = time.time_ns()
        self.ended: dict[str, object] | None = None
        self.rules_error = ""
        self.linked: list[str] = []
        self._rules_error_at = 0
        self._root = root
        # Asked for once: the home directory is the password database's, which is a file to read.
        self._runs = runs or paths.runs_dir()
        self._tails = [Tail(events_path(session_id, root))]
        self._signature: tuple[int, ...] = ()

    @property
    def run_dir(self) -> str:
        """The run's directory."""
        return os.path.join(self._runs, str(self.pid))

    @property
    def run(self) -> directory.Run | None:
        """The live run, whose rule file can be changed; None when there is none."""
        if self.pid is None or not self.run_exists:
            return None
        return directory.Run(self.pid, self.run_dir, self.record, self.record_fault)

    @property
    def events(self) -> str:
        """The path of the run's own log."""
        return self._tails[0].path

    def poll(self) -> News:
        """Reads what is new."""
        news = News(record=self._poll_record())
        for tail in list(self._tails):
            try:
                found = tail.poll(BUDGET)
            except OSError as error:
                self.chain.damaged = self.chain.damaged or f"the log cannot be read: {error.strerror}"
                continue
            news.more = news.more or sum(len(item.raw) for item in found) >= BUDGET
            for item in found:
                self._note(item, own=tail is self._tails[0])
            news.items += found
        if len(self._tails) > 1:
            news.items.sort(key=_when)
        return news

    def close(self) -> None:
        """Lets go of the files."""
        for tail in self._tails:
            tail.close()

    @property
    def error(self) -> str:
        """What is wrong with the rule file now, or "": the supervisor's word, then our own reading of it."""
        if self.record_fault and self.run_exists:
            return self.record_fault
        repaired = self.record is not None and time.time_ns() - self._rules_error_at > ERROR_SHOWN
        return "" if repaired else self.rules_error

    def _note(self, item: Frame | Damaged, *, own: bool) -> None:
        if isinstance(item, Damaged):
            self.chain.damaged = self.chain.damaged or str(item.fault)
            return
        if own:
            self.chain.frames, self.chain.head = item.seq + 1, item.hash
        if item.kind == "run_link" and own:
            self._link(item.body.get("session_id"))
        elif item.kind == "rules_changed":
            self.rules_error = str(item.body.get("error") or "")
            self._rules_error_at = item.ts
        elif item.kind == "run_start":
            self.ended = None
        elif item.kind == "run_end":
            self.ended = item.body

    def _link(self, session_id: object) -> None:
        """Follows another session's log that the run writes: an agent may choose its own id."""
        if not isinstance(session_id, str) or session_id in self.linked or len(self.linked) >= MOST_LINKS:
            return
        try:
            tail = Tail(events_path(session_id, self._root), from_end=False)
        except SessionIdError:
            return
        self.linked.append(session_id)
        self._tails.append(tail)

    def _poll_record(self) -> bool:
        if self.pid is None:
            return False
        signature: tuple[int, ...]
        try:
            status = os.stat(os.path.join(self.run_dir, directory.RECORD))
            signature = (status.st_mtime_ns, status.st_ino, status.st_size)
        except OSError:
            # Before the run has begun, and after it has ended, there is no directory.
            signature = (0,) if os.path.isdir(self.run_dir) else ()
        if signature == self._signature:
            return False
        self._signature = signature
        self.run_exists = bool(signature)
        if signature:
            self._load()
        return True

    def _load(self) -> None:
        run = directory.load(self.run_dir, self.pid or 0)
        self.record_fault = run.fault
        if run.record is not None:
            self.record = run.record
            # Only what is live can change; the floor is computed once.
            if not self._floor.default:
                self._floor = floor_of(run.record, self.run_dir)
            self.policy = replace(self._floor, live=self._floor.live + run.record.rules)


def _when(item: Frame | Damaged) -> int:
    frame = item.frame if isinstance(item, Damaged) else item
    return 0 if frame is None else frame.ts
