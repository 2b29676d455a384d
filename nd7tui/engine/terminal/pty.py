"""A program on a pseudo terminal.

Rule: nothing here blocks. Reading stops at EAGAIN or when its time is up; writing queues what the program does not
take; the exit status is polled. The program leads its own session with the pty as its controlling terminal, so job
control and Ctrl-C work inside as they do in any terminal.

Owns the master side and the child's pid. Proves nothing about the program's descendants: those that detach outlive it.
"""

from __future__ import annotations

import contextlib
import enum
import errno
import fcntl
import os
import signal
import struct
import termios
import time
import tty
from typing import TYPE_CHECKING, NamedTuple

from nd7tui.engine.terminal.errors import SpawnError
from nd7tui.engine.terminal.protocol import CELL_PIXELS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

READ_BUDGET = 0.006
"""Seconds one `pump()` may take, reading and feeding together."""

CHUNK = 1 << 16
"""Bytes read at once; a Linux pty holds at most 64 KiB."""

QUEUE_LIMIT = 8 << 20
"""Bytes kept for a program that does not read its input. More are refused, not blocked on."""

_DEFAULT_SIGNALS = (signal.SIGPIPE, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD,
                    signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGWINCH, signal.SIGXFSZ)  # fmt: skip
_SHELL_START = 'cd -- "$0" && exec "$@"'


class Pumped(enum.Enum):
    """Why a `pump()` ended."""

    EMPTY = "empty"
    BUDGET = "budget"
    END = "end"


class Exit(NamedTuple):
    """How the program ended.

    Attributes:
        code: Its exit status, or 128 + signal as a shell says it.
        signal: The signal that killed it, or None.
    """

    code: int
    signal: int | None


class PtyProcess:
    """One program and the master side of its terminal.

    Attributes:
        pid: The program's process id, which is its session's and first process group's too.
        fd: The master side, non-blocking.
        exit: How it ended, or None while it runs.
        refused: Bytes of input dropped because the program did not read (`QUEUE_LIMIT`).
    """

    def __init__(self, pid: int, fd: int) -> None:
        self.pid = pid
        self.fd = fd
        self.exit: Exit | None = None
        self.refused = 0
        self._queue = bytearray()
        os.set_blocking(fd, False)

    @classmethod
    def spawn(
        cls,
        argv: Sequence[str],
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        cols: int = 80,
        rows: int = 24,
    ) -> PtyProcess:
        """Starts a program on a new pty of the given size.

        posix_spawn is used, not fork: this process has threads. The child opens the pty's slave after becoming a
        session leader, which makes it the controlling terminal.

        Source: https://man7.org/linux/man-pages/man4/tty_ioctl.4.html (TIOCSCTTY), setsid(2).

        Args:
            argv: The program, searched in PATH of `env`, and its arguments.
            env: Its whole environment; None for ours.
            cwd: Its working directory; None for ours.
            cols: Width in cells.
            rows: Height in cells.

        Raises:
            SpawnError: No pty, or the program cannot be started.
        """
        environment = dict(os.environ if env is None else env)
        try:
            master, slave = os.openpty()
        except OSError as error:
            raise SpawnError(list(argv), error) from error
        try:
            _prepare(slave, cols, rows)
            pid = _start(list(argv), environment, cwd, os.ttyname(slave))
        except OSError as error:
            os.close(master)
            raise SpawnError(list(argv), error) from error
        finally:
            os.close(slave)
        return cls(pid, master)

    # --- output

    def pump(self, sink: Callable[[bytes], None], budget: float = READ_BUDGET) -> Pumped:
        """Reads what is there and hands it on, for at most about `budget` seconds.

        Args:
            sink: Takes each chunk; its time counts.
            budget: Seconds.
        """
        deadline = time.monotonic() + budget
        while True:
            try:
                data = os.read(self.fd, CHUNK)
            except BlockingIOError:
                return Pumped.EMPTY
            except OSError as error:
                if error.errno in {errno.EIO, errno.EBADF}:  # Linux: the last slave side was closed
                    return Pumped.END
                raise
            if not data:
                return Pumped.END
            sink(data)
            if time.monotonic() >= deadline:
                return Pumped.BUDGET

    # --- input

    @property
    def wants_write(self) -> bool:
        """Whether input waits for the program to read."""
        return bool(self._queue)

    def write(self, data: bytes) -> None:
        """Queues input and writes what the program takes now."""
        if self.fd < 0 or len(self._queue) + len(data) > QUEUE_LIMIT:
            self.refused += len(data)
            return
        self._queue += data
        self.flush()

    def flush(self) -> None:
        """Writes waiting input as far as the program takes it."""
        while self._queue and self.fd >= 0:
            try:
                written = os.write(self.fd, memoryview(self._queue)[:CHUNK].tobytes())
            except BlockingIOError:
                return
            except OSError:  # the other side is gone: nobody will read it
                self._queue.clear()
                return
            del self._queue[:written]

    # --- size and life

    def resize(self, cols: int, rows: int) -> None:
        """Sets the window size; the kernel sends SIGWINCH when it changed."""
        if self.fd >= 0:
            with contextlib.suppress(OSError):
                _set_size(self.fd, cols, rows)

    def poll(self) -> Exit | None:
        """Returns how the program ended, reaping it, or None while it runs."""
        if self.exit is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                self.exit = Exit(255, None)  # reaped by someone else; the status is lost
            else:
                if pid:
                    code = os.waitstatus_to_exitcode(status)
                    self.exit = Exit(code, None) if code >= 0 else Exit(128 - code, -code)
        return self.exit

    def signal(self, number: int) -> None:
        """Sends a signal to the program's process group, if it still runs."""
        if self.poll() is None:
            try:
                os.killpg(self.pid, number)
            except (ProcessLookupError, PermissionError):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, number)

    def hang_up(self) -> None:
        """Tells the program its terminal is gone (SIGHUP, and SIGCONT so that a stopped one hears it)."""
        self.signal(signal.SIGHUP)
        self.signal(signal.SIGCONT)

    def kill(self) -> None:
        """Ends the program at once (SIGKILL)."""
        self.signal(signal.SIGKILL)

    def close(self) -> None:
        """Closes the master side; the kernel hangs up whatever is left on it."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
        self._queue.clear()


def _prepare(slave: int, cols: int, rows: int) -> None:
    """Sets size, UTF-8 line editing and the usual erase key."""
    _set_size(slave, cols, rows)
    attributes = termios.tcgetattr(slave)
    attributes[tty.IFLAG] |= getattr(termios, "IUTF8", 0x4000)
    attributes[tty.CC][termios.VERASE] = b"\x7f"
    termios.tcsetattr(slave, termios.TCSANOW, attributes)


def _set_size(fd: int, cols: int, rows: int) -> None:
    pixels = min(cols * CELL_PIXELS[0], 0xFFFF), min(rows * CELL_PIXELS[1], 0xFFFF)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", max(1, rows), max(1, cols), *pixels))


def _start(argv: list[str], env: dict[str, str], cwd: str | None, tty_name: str) -> int:
    """Starts the program; posix_spawn knows no working directory, so a shell changes it and becomes the program."""
    if not argv:
        raise FileNotFoundError(errno.ENOENT, "no program given")
    path = _find(argv[0], env, cwd)
    if cwd is not None and os.path.realpath(cwd) != os.getcwd():
        os.stat(os.path.join(cwd, "."))  # an error here is clearer than the shell's
        env["PWD"] = cwd
        path, argv = "/bin/sh", ["sh", "-c", _SHELL_START, cwd, path, *argv[1:]]
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, tty_name, os.O_RDWR, 0),
        (os.POSIX_SPAWN_DUP2, 0, 1),
        (os.POSIX_SPAWN_DUP2, 0, 2),
        *((os.POSIX_SPAWN_CLOSE, fd) for fd in _inheritable()),
    ]
    return os.posix_spawn(path, argv, env, file_actions=actions, setsid=True, setsigmask=[], setsigdef=_DEFAULT_SIGNALS)


def _inheritable() -> list[int]:
    """Returns descriptors above 2 that a program would inherit; Python's own never are, but ours may hold others'."""
    found = []
    for name in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError):
            if int(name) > 2 and os.get_inheritable(int(name)):
                found.append(int(name))
    return found


def _find(name: str, env: dict[str, str], cwd: str | None) -> str:
    if "/" in name:
        path = name if os.path.isabs(name) or cwd is None else os.path.join(cwd, name)
        if os.path.isfile(path):
            return path
    else:
        for folder in os.get_exec_path(env):
            path = os.path.join(folder, name)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return path
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
