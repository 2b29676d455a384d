"""One program, its pty and its emulator, driven by the event loop.

Rule: nothing here blocks the loop. Output is read in budgets, input is queued, the screen is read at most sixty times
a second and not while a synchronised update is open (unless it stays open too long). What the program says arrives at
the three callbacks; nothing is decided here except that replies go back to the program.

Owns the pump between `PtyProcess` and `Engine`. Knows no widget. Belongs to the thread of its loop.
"""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING

from nd7tui.engine.terminal.protocol import Event, Reply
from nd7tui.engine.terminal.pty import Exit, PtyProcess, Pumped

if TYPE_CHECKING:
    from collections.abc import Callable

    from nd7tui.engine.terminal.protocol import Engine

FRAME = 1 / 60
"""Shortest time between two frames, in seconds."""

SYNC_TIMEOUT = 0.2
"""Longest time a synchronised update (mode 2026) may hold a frame back, in seconds."""

FLOOD_PAUSE = 0.004
"""Seconds output waits after a full read budget, so that keys and painting get their turn."""

EXIT_POLL = 0.1
"""Seconds between looks whether the program ended, where the kernel cannot tell by itself (no pidfd)."""

GRACE = 5.0
"""Seconds from hang-up to SIGKILL in `terminate()`."""

_SYNC_END = b"\x1b[?2026l"
_LEFTOVER_READS = 64


class TerminalSession:
    """Keeps a program and its screen going.

    Attributes:
        engine: The emulator; its rows are those of the last frame.
        process: The program.
        ended: The program was reaped and its last output is in the engine.
    """

    def __init__(
        self,
        engine: Engine,
        process: PtyProcess,
        *,
        on_event: Callable[[Event], None],
        on_rows: Callable[[set[int]], None],
        on_exit: Callable[[Exit], None],
    ) -> None:
        """Starts pumping.

        Args:
            engine: An emulator of the size the pty has.
            process: A running program.
            on_event: Takes each event of the program but replies.
            on_rows: Takes the numbers of the rows that changed, once a frame; the cursor may have moved in none.
            on_exit: Told once, after the last output was fed.
        """
        self.engine = engine
        self.process = process
        self.ended = False
        self._on_event, self._on_rows, self._on_exit = on_event, on_rows, on_exit
        self._loop = asyncio.get_running_loop()
        self._dirty: set[int] = set()
        self._frame: asyncio.TimerHandle | None = None
        self._poll: asyncio.TimerHandle | None = None
        self._kill: asyncio.TimerHandle | None = None
        self._last_frame = self._sync_since = 0.0
        self._reading = self._writing = self._closed = self.paused = False
        self._read_on()
        # Something else may hold the pty when the program ends, so its end of file is no sign.
        self._exit_fd = _pidfd(process.pid)
        if self._exit_fd >= 0:
            self._loop.add_reader(self._exit_fd, self._look_for_exit)
        self._look_for_exit()

    # --- towards the program

    def write(self, data: bytes) -> None:
        """Sends bytes to the program, now or when it reads."""
        if self.process.fd < 0:
            return
        self.process.write(data)
        if self.process.wants_write and not self._writing:
            self._writing = True
            self._loop.add_writer(self.process.fd, self._writable)

    def resize(self, cols: int, rows: int) -> None:
        """Takes a new size in cells and tells the program."""
        if (cols, rows) != self.engine.size:
            self.engine.resize(cols, rows)
            if self.process.fd >= 0:
                self.process.resize(cols, rows)
            self.schedule()

    def terminate(self, grace: float = GRACE) -> None:
        """Hangs up on the program, and kills it if it still runs after `grace` seconds."""
        if not self.ended and self._kill is None:
            self.process.hang_up()
            self._kill = self._loop.call_later(grace, self.process.kill)

    def pause(self) -> None:
        """Stops reading; the program waits once the pty is full."""
        self.paused = True
        self._read_off()

    def resume(self) -> None:
        """Reads on after `pause()`."""
        self.paused = False
        self._read_on()

    def close(self) -> None:
        """Hangs up, closes the pty and frees the engine. Nothing is called back any more."""
        if self._closed:
            return
        self._closed = True
        self._stop()
        self._forget_exit_fd()
        for handle in (self._frame, self._poll, self._kill):
            if handle is not None:
                handle.cancel()
        if not self.ended:
            self.process.hang_up()
        self.process.close()
        self.process.poll()
        self.engine.close()

    # --- frames

    def schedule(self) -> None:
        """Sees to it that a frame is made, as soon as one is due."""
        if self._frame is None and not self._closed:
            delay = max(0.0, self._last_frame + FRAME - time.monotonic())
            self._frame = self._loop.call_later(delay, self._make_frame)

    def _make_frame(self) -> None:
        self._frame = None
        if not self._held_back():
            self._read_screen()
        elif not self._dirty:
            self._frame = self._loop.call_later(FRAME, self._make_frame)
            return
        self._last_frame = time.monotonic()
        changed, self._dirty = self._dirty, set()
        self._on_rows(changed)

    def _held_back(self) -> bool:
        """Whether a synchronised update is open and has not been so for too long."""
        if not self.engine.modes.sync or self.ended:
            self._sync_since = 0.0
            return False
        now = time.monotonic()
        self._sync_since = self._sync_since or now
        return now - self._sync_since < SYNC_TIMEOUT

    def _read_screen(self) -> None:
        self._dirty.update(self.engine.take_dirty())

    # --- from the program

    def _feed(self, data: bytes) -> None:
        """Feeds the engine; reads the screen where a synchronised update ends, when a frame is due.

        A program that always has an update open when we look would otherwise be seen half drawn, or not at all.
        """
        end = data.rfind(_SYNC_END)
        if end >= 0:
            self._sync_since = 0.0
            if time.monotonic() - self._last_frame >= FRAME:
                end += len(_SYNC_END)
                self.engine.feed(data[:end])
                self._read_screen()
                data = data[end:]
        if data:
            self.engine.feed(data)

    def _readable(self) -> None:
        pumped = self.process.pump(self._feed)
        self._deliver()
        self.schedule()
        if pumped is Pumped.EMPTY:
            return
        self._read_off()
        if pumped is Pumped.BUDGET:
            self._loop.call_later(FLOOD_PAUSE, self._read_on)
        else:
            self._look_for_exit()

    def _deliver(self) -> None:
        for event in self.engine.drain():
            if isinstance(event, Reply):
                self.write(event.data)
            else:
                self._on_event(event)

    def _writable(self) -> None:
        self.process.flush()
        if not self.process.wants_write:
            self._writing = False
            self._loop.remove_writer(self.process.fd)

    def _read_on(self) -> None:
        if not (self._reading or self._closed or self.ended or self.paused):
            self._reading = True
            self._loop.add_reader(self.process.fd, self._readable)

    def _read_off(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self.process.fd)

    def _stop(self) -> None:
        self._read_off()
        if self._writing:
            self._writing = False
            self._loop.remove_writer(self.process.fd)

    # --- the end

    def _look_for_exit(self) -> None:
        if self._poll is not None:
            self._poll.cancel()
        if self._closed or self.ended:
            return
        if self.process.poll() is not None:
            self._finish()
        elif self._exit_fd < 0:
            self._poll = self._loop.call_later(EXIT_POLL, self._look_for_exit)

    def _forget_exit_fd(self) -> None:
        if self._exit_fd >= 0:
            self._loop.remove_reader(self._exit_fd)
            os.close(self._exit_fd)
            self._exit_fd = -1

    def _finish(self) -> None:
        """Takes what the program left in the pty, then tells of its end."""
        self._stop()
        self._forget_exit_fd()
        for _ in range(_LEFTOVER_READS):  # descendants may hold the pty and print for ever
            if self.process.pump(self._feed) is not Pumped.BUDGET:
                break
        self.process.close()
        self.ended = True
        if self._kill is not None:
            self._kill.cancel()
        self._deliver()
        self.schedule()
        if self.process.exit is not None:
            self._on_exit(self.process.exit)


def _pidfd(pid: int) -> int:
    """Returns a descriptor that becomes readable when the process ends, -1 where there is none (macOS)."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1
