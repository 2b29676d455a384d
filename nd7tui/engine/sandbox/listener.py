"""The seccomp listener: receiving notifications and answering them.

Rule: nothing is decided here. This is the Python twin of the compiled loop, with the same interface: the fallback
where there is no compiler, and the oracle of its tests.
Source: seccomp_unotify(2); struct seccomp_notif is 80 bytes, the response 24, addfd 24.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import struct
import threading

from nd7tui.engine.sandbox import abi
from nd7tui.engine.sandbox.call import Call
from nd7tui.engine.sandbox.outcome import Continue, Errno, Inject, Pending, Refused, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nd7tui.engine.policy.rules import Policy
    from nd7tui.engine.sandbox.floor import Coverage
    from nd7tui.engine.sandbox.outcome import Outcome

_NOTIFICATION = struct.Struct("=QIIiIQ6Q")
_RESPONSE = struct.Struct("=QqiI")
_ADDFD = struct.Struct("=QIIII")


class Listener:
    """One run's listener.

    Args:
        fd: The listener's descriptor; closed by `close`.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.hung_up = False
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)
        self._wake_fd = -1
        with contextlib.suppress(OSError):  # before Linux 6.6: slower, not weaker
            fcntl.ioctl(fd, abi.SECCOMP_IOCTL_NOTIF_SET_FLAGS, abi.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)

    def next(self, timeout_ms: int, wake_fd: int) -> Call | None:
        """Returns the next notified call; None when the time is up, `wake_fd` is readable or the tree has ended."""
        if wake_fd != self._wake_fd:
            self._poll.register(wake_fd, select.POLLIN)
            self._wake_fd = wake_fd
        for fd, events in self._poll.poll(timeout_ms):
            if fd != self.fd:
                continue
            if events & select.POLLIN:
                return self._receive()
            self.hung_up = True
            self._poll.unregister(self.fd)
        return None

    def _receive(self) -> Call | None:
        buffer = bytearray(_NOTIFICATION.size)
        try:
            fcntl.ioctl(self.fd, abi.SECCOMP_IOCTL_NOTIF_RECV, buffer)
        except OSError as error:
            if error.errno in {errno.ENOENT, errno.EINTR}:  # the caller was killed meanwhile
                return None
            raise
        number, tid, _, nr, _, _, *args = _NOTIFICATION.unpack(buffer)
        return Call(self.fd, number, tid, abi.NAMES.get(nr, str(nr)), tuple(args))

    def use(self, policy: Policy, coverage: Coverage, *, strict: bool) -> None:
        """Takes what the compiled loop decides by; this one decides nothing."""

    def served(self) -> tuple[int, int]:
        """Returns how many calls were continued and answered here, never handed on."""
        return 0, 0

    def answer(self, call: Call, outcome: Outcome) -> None:
        """Answers a call; one whose caller is gone is dropped. `Pending` is worked on by a thread of its own."""
        if isinstance(outcome, Continue):
            self._respond(call.id, 0, 0, abi.SECCOMP_USER_NOTIF_FLAG_CONTINUE)
        elif isinstance(outcome, Value):
            self._respond(call.id, outcome.value, 0, 0)
        elif isinstance(outcome, Errno):
            self._respond(call.id, 0, -outcome.errno, 0)
        elif isinstance(outcome, Inject):
            self._inject(call.id, outcome)
        elif isinstance(outcome, Pending):
            try:
                threading.Thread(target=self._work, args=(call, outcome), daemon=True).start()
            except RuntimeError:  # no more threads to be had
                self._respond(call.id, 0, -errno.EAGAIN, 0)
        else:
            self._respond(call.id, 0, -outcome.request.errno, 0)

    def _work(self, call: Call, pending: Pending) -> None:
        try:
            outcome = pending.work(call.still_waiting)
        except OSError as error:
            outcome = Errno(error.errno or errno.EIO)
        if isinstance(outcome, (Pending, Refused)):
            outcome = Errno(errno.EIO)  # a worker decides nothing
        self.answer(call, outcome)

    def _respond(self, number: int, value: int, error: int, flags: int) -> None:
        with contextlib.suppress(FileNotFoundError):
            fcntl.ioctl(self.fd, abi.SECCOMP_IOCTL_NOTIF_SEND, _RESPONSE.pack(number, value, error, flags))

    def _inject(self, number: int, inject: Inject) -> None:
        flags = os.O_CLOEXEC if inject.cloexec else 0
        record = _ADDFD.pack(number, abi.SECCOMP_ADDFD_FLAG_SEND, inject.fd, 0, flags)
        try:
            fcntl.ioctl(self.fd, abi.SECCOMP_IOCTL_NOTIF_ADDFD, record)
        except FileNotFoundError:
            pass
        except OSError as error:  # the caller has no room for another descriptor
            self._respond(number, 0, -(error.errno or errno.EMFILE), 0)
        finally:
            os.close(inject.fd)

    def close(self) -> None:
        """Closes the listener: from then on every notified call of the tree fails with ENOSYS."""
        os.close(self.fd)
