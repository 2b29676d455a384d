"""The run's log as the supervisor writes it: never stopping the run, never losing an entry in silence.

Rule: a frame that cannot be appended now stays in memory, in order, and is tried again at every tick; the person is
told once. When the memory is full too, `full` is true and the supervisor allows nothing that it is asked about, so
that nothing happens that could not be told; how many frames that cost is a frame of its own, `log_gap`, once the log
takes frames again. A frame that the log keeps beside itself (`refused.ndjson`) is not lost and not tried again.
Owns: the queue. Does not prove: that a queued frame survives the supervisor's end.
"""

from __future__ import annotations

import time
from collections import deque

from nd7tui.engine.records import dataclass
from nd7tui.engine.run.frames import SUPERVISOR
from nd7tui.errors import Nd7Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from nd7tui.engine.run.frames import Body

    class Log(Protocol):
        """What is needed of a session's log."""

        def append(self, source: str, kind: str, body: Body, ts: int | None = None) -> object:
            """Appends one frame."""

        def record_hook(
            self, payload: bytes, source: str | None = None, ts: int | None = None, hook_ppid: int | None = None
        ) -> object:
            """Appends a hook's payload."""

        def close(self) -> None:
            """Closes the files."""


MOST_QUEUED = 10_000
MOST_QUEUED_BYTES = 64 << 20
# Between tries while the log is not to be had; a try can cost a wait for its lock.
RETRY = 1_000_000_000


@dataclass(frozen=True, slots=True)
class _Entry:
    """A frame that waits; `size` is what it weighs in memory, about, in bytes."""

    write: Callable[[Log], object]
    size: int


class LiveLog:
    """A session's log with a queue before it.

    Args:
        open_log: Opens the log; tried again after it fails.
        tell: Says one line to the person.
        clock: Monotonic nanoseconds.
    """

    def __init__(
        self, open_log: Callable[[], Log], tell: Callable[[str], None], clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._open_log = open_log
        self._tell = tell
        self._clock = clock
        self._log: Log | None = None
        self._queue: deque[_Entry] = deque()
        self._queued_bytes = 0
        self._lost = 0
        self._next_try = 0
        self._told_down = False
        self._told_refused = False

    @property
    def full(self) -> bool:
        """Whether no more frames can be kept."""
        return len(self._queue) >= MOST_QUEUED or self._queued_bytes >= MOST_QUEUED_BYTES

    @property
    def waiting(self) -> int:
        """How many frames wait to be appended."""
        return len(self._queue)

    def open(self) -> None:
        """Opens the log now, so that a run that could not be told of does not begin.

        Raises:
            LogError: The id is not one.
            OSError: It cannot be opened.
        """
        if self._log is None:
            self._log = self._open_log()

    def append(self, source: str, kind: str, body: Body, ts: int | None = None) -> None:
        """Appends a frame, now or later."""
        stamp = time.time_ns() if ts is None else ts
        self._add(_Entry(lambda log: log.append(source, kind, body, stamp), 256 + _weight(body)))

    def record_hook(self, payload: bytes, source: str | None, ts: int, hook_ppid: int | None) -> None:
        """Appends a hook's payload, now or later."""
        self._add(_Entry(lambda log: log.record_hook(payload, source, ts, hook_ppid), 256 + len(payload)))

    def tick(self) -> None:
        """Tries what waits."""
        if self._queue and self._clock() >= self._next_try:
            self._drain()

    def close(self) -> int:
        """Tries a last time, closes, and returns how many frames could not be written."""
        self._next_try = 0
        if self._queue:
            self._drain()
        if self._log is not None:
            self._log.close()
        left = len(self._queue) + self._lost
        if left:
            self._tell(f"{left} frames of the log could not be written and are lost")
        return left

    def _add(self, entry: _Entry) -> None:
        if not self._queue and self._write(entry):
            return
        if self.full:
            self._lost += 1
            return
        self._queue.append(entry)
        self._queued_bytes += entry.size

    def _drain(self) -> None:
        while self._queue:
            if not self._write(self._queue[0]):
                return
            self._queued_bytes -= self._queue.popleft().size
        lost, self._lost = self._lost, 0
        if lost:
            self.append(SUPERVISOR, "log_gap", {"lost": lost})
        if self._told_down:
            self._told_down = False
            self._tell("the log takes frames again, none of those kept was lost" if not lost else f"{lost} frames lost")

    def _write(self, entry: _Entry) -> bool:
        """Returns whether the frame needs no further care."""
        try:
            if self._log is None:
                self._log = self._open_log()
            entry.write(self._log)
        except (Nd7Error, OSError) as error:
            # Kept in refused.ndjson: safe, and appending it twice would be a lie.
            if getattr(error, "kept", False):
                self._say_refused(error)
                return True
            self._say_down(error)
            return False
        return True

    def _say_refused(self, error: Exception) -> None:
        if not self._told_refused:
            self._told_refused = True
            self._tell(str(error))

    def _say_down(self, error: Exception) -> None:
        self._next_try = self._clock() + RETRY
        if not self._told_down:
            self._told_down = True
            self._tell(f"the log cannot be written, frames are kept in memory: {error}")


def _weight(value: Any) -> int:
    """Returns about how many bytes a body holds."""
    if isinstance(value, (str, bytes)):
        return 64 + len(value)
    if isinstance(value, dict):
        return 64 + sum(_weight(member) for member in value.values())
    if isinstance(value, (list, tuple)):
        return 64 + sum(_weight(member) for member in value)
    return 32
