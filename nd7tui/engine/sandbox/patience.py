"""Waiting in a worker for what may take long, as the caller would wait itself.

Rule: a worker looks up at least every 100 ms: it stops when the caller is gone, and ends the call when a signal wants
to interrupt it, because a caller whose notification was received can otherwise only be killed
(Source: seccomp_unotify(2), SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV).
Does not prove: that the work ended. A connect that blocks goes on in its own thread until the kernel gives up (about
two minutes for TCP); its result is then dropped. No connect can be called off without also breaking the socket for
others who share it.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import threading

from nd7tui.engine.sandbox.outcome import Errno, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack

    from nd7tui.engine.sandbox.call import Call
    from nd7tui.engine.sandbox.outcome import Outcome
    from nd7tui.engine.sandbox.peer import Peer

_LOOK_UP = 0.1
MOST_WORKERS = 256
ERESTARTSYS = 512  # inside the kernel only: it becomes EINTR, or the call is made again, as the handler wishes


class Slots:
    """Bounds how many calls wait at once: each holds descriptors and threads that this process needs for itself.

    Args:
        most: How many may.
    """

    def __init__(self, most: int = MOST_WORKERS) -> None:
        self._free = threading.BoundedSemaphore(most)

    def take(self, kept: ExitStack) -> bool:
        """Takes a slot until `kept` ends; tells whether there was one."""
        if not self._free.acquire(blocking=False):
            return False
        kept.callback(self._free.release)
        return True


def interrupted(call: Call) -> bool:
    """Tells whether a signal that the caller handles waits for its thread.

    A signal sent to the whole process counts for its first thread only: the kernel prefers that one, and the others
    must not be told ERESTARTSYS without having a signal to handle.

    Source: proc_pid_status(5); signal(7), "Interruption of system calls".
    """
    status = call.status()
    try:
        masks = {name: int(status[name], 16) for name in (b"SigPnd", b"ShdPnd", b"SigBlk", b"SigCgt")}
    except (KeyError, ValueError):
        return False
    pending = masks[b"SigPnd"]
    if int(status.get(b"Tgid", b"0")) == call.tid:
        pending |= masks[b"ShdPnd"]
    return bool(pending & ~masks[b"SigBlk"] & masks[b"SigCgt"])


def interruption(peer: Peer) -> Errno:
    """Returns what an interrupted call on this socket gives (Source: Linux include/net/sock.h, sock_intr_errno)."""
    return Errno(ERESTARTSYS if peer.send_timeout is None else errno.EINTR)


def wait_writable(peer: Peer, seconds: float = _LOOK_UP) -> bool:
    """Waits until the socket takes more, and tells whether it does."""
    poll = select.poll()
    poll.register(peer.fd, select.POLLOUT)
    return bool(poll.poll(seconds * 1000))


def in_thread(action: Callable[[], None], call: Call, peer: Peer, waiting: Callable[[], bool]) -> Outcome:
    """Runs `action`, which may block, in a thread of its own and waits for it as long as the caller does.

    Args:
        action: What to run; raises OSError for the errno that the caller gets. It must release what it uses itself,
            since it may end long after this function.
        call: The caller.
        peer: The socket it is about.
        waiting: Whether the caller still waits.

    Raises:
        OSError: EAGAIN, there was no thread to be had and `action` was not run.
    """
    done = threading.Event()
    result: list[Outcome] = []

    def run() -> None:
        # Signals are for the main thread; here they would only cut the action short.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            action()
            result.append(Value(0))
        except OSError as error:
            result.append(Errno(error.errno or errno.EIO))
        finally:
            done.set()

    interrupt = interruption(peer)  # asked now: the socket may be closed by the time it is needed
    try:
        threading.Thread(target=run, daemon=True).start()
    except RuntimeError as error:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error
    while not done.wait(_LOOK_UP):
        if not waiting():
            return Errno(errno.EINTR)
        if interrupted(call):
            return interrupt
    return result[0]
