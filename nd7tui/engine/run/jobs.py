"""The supervisor as a job of the shell: it stops, goes on and ends as the program does.

Rule: the program runs in the supervisor's process group, so the terminal and the shell reach it without us; the
supervisor blocks what they send and only hands on what was sent to it alone. When the program stops, the supervisor
stops by the same signal; when it ends, the supervisor ends with the same status, or by the same signal.
Owns: the signal mask, the reaping of every orphan of the tree.
Does not prove: whom a signal was meant for. A signal that a process (not the terminal) sends to the whole group reaches
the program twice, once by the group and once handed on.
Source: setpgid(2), termios(3), signalfd(2), glibc manual "Implementing a Job Control Shell".
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import struct
import sys

from nd7tui.engine.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

SI_USER = 0
_SFD_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC
_INFO_SIZE = 128
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36

# From a process, as opposed to the terminal: handed on to the program.
_HANDED_ON = frozenset(
    {
        signal.SIGHUP,
        signal.SIGINT,
        signal.SIGQUIT,
        signal.SIGTERM,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGTSTP,
    }
)
_BLOCKED = _HANDED_ON | {signal.SIGCHLD, signal.SIGCONT, signal.SIGTTIN, signal.SIGTTOU}

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Ending:
    """How the program ended: one of the two is set."""

    code: int | None = None
    signal: int | None = None

    @property
    def status(self) -> int:
        """The status a shell shows."""
        return self.code if self.code is not None else 128 + (self.signal or 0)


@dataclass(frozen=True, slots=True)
class Sent:
    """A signal as it came: its number, where from (`si_code`), and the sender's pid."""

    number: int
    code: int
    pid: int


class Signals:
    """Takes the signals of a job out of the way and gives them as events.

    Made before the program starts, so that none is lost; a forked child gets back the mask that was there before.

    Attributes:
        fd: Readable when there is a signal.
    """

    def __init__(self) -> None:
        self._before = signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)
        os.register_at_fork(after_in_child=self._restore)
        self._active = True
        self.fd = _signalfd()

    def read(self) -> list[Sent]:
        """Returns the signals that came, at most one of each number."""
        try:
            data = os.read(self.fd, 64 * _INFO_SIZE)
        except BlockingIOError:
            return []
        # struct signalfd_siginfo: ssi_signo u32, ssi_errno i32, ssi_code i32, ssi_pid u32, …
        found = (struct.unpack_from("=IiiI", data, start) for start in range(0, len(data), _INFO_SIZE))
        return [Sent(number, code, pid) for number, _, code, pid in found]

    def close(self) -> None:
        """Gives the signals back to their old handlers."""
        self._active = False
        os.close(self.fd)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._before)

    def _restore(self) -> None:
        if not self._active:
            return
        # Python's own handler for Ctrl-C must not run in a child that is about to become the program.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        # Python ignores these for itself, and what is ignored stays ignored across exec.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._before)


class Job:
    """The program, as the supervisor's child.

    Attributes:
        ending: How it ended, None while it runs.
        reaped: Pids of children that ended, until they are taken.
        alone: No child is left. As orphans become our children, no process of the run is left then.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.ending: Ending | None = None
        self.reaped: list[int] = []
        self.alone = False

    def take(self, sent: Sent) -> None:
        """Does what one signal asks for."""
        if sent.number == signal.SIGCHLD:
            self.reap()
        elif sent.number == signal.SIGCONT:
            self._continue()
        elif self.ending is None and sent.number in _HANDED_ON and _was_for_us_alone(sent):
            # Not reaped, so the pid is still its own.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, sent.number)

    def reap(self) -> None:
        """Takes in every child that ended or stopped, orphans too."""
        options = os.WEXITED | os.WSTOPPED | os.WCONTINUED | os.WNOHANG
        while True:
            try:
                info = os.waitid(os.P_ALL, 0, options)
            except ChildProcessError:
                self.alone = True
                return
            if info is None:
                return
            if info.si_code == os.CLD_EXITED:
                self._ended(info.si_pid, Ending(code=info.si_status))
            elif info.si_code in {os.CLD_KILLED, os.CLD_DUMPED}:
                self._ended(info.si_pid, Ending(signal=info.si_status))
            elif info.si_code == os.CLD_STOPPED and info.si_pid == self.pid:
                self._stopped(info.si_status)

    def _ended(self, pid: int, ending: Ending) -> None:
        if pid == self.pid:
            self.ending = ending
        self.reaped.append(pid)

    def _stopped(self, number: int) -> None:
        """Stops as the program has stopped, so that the shell takes the terminal back."""
        # The leader of a session has no shell above it that could continue it: a terminal's only program.
        if os.getsid(0) == os.getpid() or not is_stopped(self.pid):
            return
        if number == signal.SIGSTOP:
            os.kill(os.getpid(), number)
            return
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        # Here we were stopped, and are no longer.
        signal.pthread_sigmask(signal.SIG_BLOCK, {number})

    def _continue(self) -> None:
        """Continues the program where the signal that continued us did not reach it."""
        if self.ending is None and is_stopped(self.pid):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(os.getpgid(self.pid), signal.SIGCONT)


def _was_for_us_alone(sent: Sent) -> bool:
    """Tells whether the program has not had the signal as well, as far as that can be told.

    The terminal signals the whole group, but its hang-up only the leader of the session.
    """
    if sent.code == SI_USER or sent.code < 0:
        return True
    return sent.number == signal.SIGHUP and os.getsid(0) == os.getpid()


def is_stopped(pid: int) -> bool:
    """Tells whether the process is stopped by job control now."""
    return state_of(pid) == "T"


def state_of(pid: int) -> str:
    """Returns the process's state letter (Source: proc_pid_stat(5)), empty when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return ""
    return text[text.rindex(b")") + 2 :][:1].decode("ascii", "replace")


def become_subreaper() -> None:
    """Makes orphans of the tree children of this process; raises OSError."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_like(ending: Ending) -> NoReturn:
    """Ends this process as the program ended: with its status, or by the signal it died of.

    At once: all that a run opened is closed by now, and to take the interpreter apart costs some milliseconds.
    """
    if ending.signal is not None:
        die_of(ending.signal)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(ending.code or 0)


def die_of(number: int) -> NoReturn:
    """Ends this process by a signal, without a core dump of its own."""
    with contextlib.suppress(OSError):
        _prctl(_PR_SET_DUMPABLE, 0)
    # SIGKILL cannot be given a handler, nor needs one taken away.
    with contextlib.suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    with contextlib.suppress(OSError, ValueError):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os._exit(128 + number)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(ctypes.c_int(option), *(ctypes.c_ulong(part) for part in (value, 0, 0, 0))):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _signalfd() -> int:
    mask = bytearray(128)  # sigset_t of glibc and musl
    for blocked in _BLOCKED:
        mask[(blocked - 1) // 8] |= 1 << (blocked - 1) % 8
    fd = int(_libc.signalfd(-1, (ctypes.c_char * 128).from_buffer(mask), _SFD_FLAGS))
    if fd < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return fd
