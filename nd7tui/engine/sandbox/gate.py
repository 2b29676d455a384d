"""The gate between a run's processes and the kernel: every notified call is decided here.

Rule: a call that cannot be decided is refused, never continued. Calls that policy refuses are handed to the caller of
`wait`, unanswered, so that they are told of before the program hears of it.
Does not prove: that a continued call was granted; the floor decides that in the kernel.
"""

from __future__ import annotations

import collections
import errno
import os
from functools import partial

from nd7tui.engine.sandbox.files import handlers
from nd7tui.engine.sandbox.network import Network
from nd7tui.engine.sandbox.outcome import CONTINUE, Errno, Fault, Pending, Refused, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from nd7tui.engine.policy.rules import Policy
    from nd7tui.engine.sandbox.call import Call
    from nd7tui.engine.sandbox.ground import Ground
    from nd7tui.engine.sandbox.listener import Listener
    from nd7tui.engine.sandbox.outcome import Outcome

_MOST_AT_ONCE = 64
_UNREADABLE = frozenset({errno.EPERM, errno.EACCES})
_FLOOR_COVERS = frozenset(
    {
        "open", "creat", "openat", "openat2", "mkdir", "mkdirat", "rmdir", "unlink", "unlinkat", "rename", "renameat",
        "renameat2", "link", "linkat", "symlink", "symlinkat", "mknod", "mknodat", "truncate",
    }
)  # fmt: skip


class Gate:
    """Decides the notified calls of one run.

    Args:
        listener: The run's listener.
        ground: Policy, coverage and processes.
        rules_path: A file whose change ends `wait` before another call is decided; None for none.
    """

    def __init__(self, listener: Listener, ground: Ground, rules_path: str | None = None) -> None:
        self._listener = listener
        self._ground = ground
        self._handlers = handlers(ground)
        network = Network(ground.tree, lambda: ground.policy)
        self._handlers |= dict.fromkeys(("connect", "sendto", "sendmsg", "sendmmsg"), network.handle)
        self._rules_path = rules_path
        self._rules_seen = self._look_at_rules()
        self._waiting: collections.deque[Call] = collections.deque()
        self._faults: collections.deque[Fault] = collections.deque()
        self._tell_listener()

    @property
    def hung_up(self) -> bool:
        """Whether no process of the tree is left."""
        return self._listener.hung_up

    def wait(self, timeout_ms: int, wake_fd: int) -> list[Request]:
        """Answers what policy allows until something else is to be done.

        Args:
            timeout_ms: The longest wait, in milliseconds.
            wake_fd: A descriptor that ends the wait when it is readable.

        Returns:
            The calls that policy refuses or asks about, still unanswered. Empty when the time is up, `wake_fd` is
            readable, or the rule file has changed.
        """
        for _ in range(_MOST_AT_ONCE):
            call = self._waiting.popleft() if self._waiting else self._listener.next(timeout_ms, wake_fd)
            if call is None:
                return []
            seen = self._look_at_rules()
            if seen != self._rules_seen:
                self._rules_seen = seen
                self._waiting.append(call)
                return []
            outcome = self._decide(call)
            if isinstance(outcome, Refused):
                return [outcome.request]
            self._answer(call, outcome)
        return []

    def _look_at_rules(self) -> tuple[int, int, int] | None:
        if self._rules_path is None:
            return None
        try:
            info = os.stat(self._rules_path)
        except OSError:
            return None
        return info.st_mtime_ns, info.st_ino, info.st_size

    def _decide(self, call: Call) -> Outcome:
        handler = self._handlers.get(call.name)
        if handler is None:
            return Errno(errno.ENOSYS)
        try:
            return handler(call)
        except OSError as error:
            if error.errno in _UNREADABLE and not self._readable(call):
                # A caller that may not be looked into: the kernel decides alone, where it can.
                return CONTINUE if call.name in _FLOOR_COVERS and not self._ground.strict else Errno(errno.EPERM)
            return Errno(error.errno or errno.EACCES)
        except Exception as error:  # noqa: BLE001 - the boundary to what the program sent: refused and told
            self._note(call, error)
            return Errno(errno.EACCES)

    def _work(self, call: Call, work: Callable[[Callable[[], bool]], Outcome], waiting: Callable[[], bool]) -> Outcome:
        """Does in a worker what a handler left to it."""
        try:
            return work(waiting)
        except OSError:
            raise
        except Exception as error:  # noqa: BLE001 - the boundary of the worker: its caller must not wait for ever
            self._note(call, error)
            return Errno(errno.EIO)

    def _note(self, call: Call, error: Exception) -> None:
        self._faults.append(Fault(call.tgid, call.name, f"{type(error).__name__}: {error}", call.comm()))

    def take_faults(self) -> list[Fault]:
        """Returns the faults since the last time, oldest first."""
        return [self._faults.popleft() for _ in range(len(self._faults))]

    def _readable(self, call: Call) -> bool:
        try:
            os.readlink(f"/proc/{call.tid}/cwd")
        except OSError:
            return False
        return True

    def _answer(self, call: Call, outcome: Outcome) -> None:
        if isinstance(outcome, Pending):
            outcome = Pending(partial(self._work, call, outcome.work))
        self._listener.answer(call, outcome)

    def refuse(self, request: Request) -> None:
        """Answers with the request's errno."""
        self._listener.answer(self._call(request), Errno(request.errno))

    def retry(self, request: Request) -> bool:
        """Decides again by the policy that holds now.

        Returns:
            True when the call is answered or its caller is gone.
        """
        call = self._call(request)
        if not call.still_waiting():
            return True
        outcome = self._decide(call)
        if isinstance(outcome, Refused):
            return False
        self._answer(call, outcome)
        return True

    def alive(self, request: Request) -> bool:
        """Tells whether the caller still waits."""
        return self._call(request).still_waiting()

    def _call(self, request: Request) -> Call:
        if request.call is None:
            raise ValueError("a request without its call")
        return request.call

    def set_policy(self, policy: Policy, strict: bool = False) -> None:
        """Decides by `policy` from now on; `strict` keeps everything from being continued."""
        self._ground.set_policy(policy, sticky=strict)
        self._tell_listener()

    def _tell_listener(self) -> None:
        self._listener.use(self._ground.policy, self._ground.coverage, strict=self._ground.strict)

    def close(self) -> None:
        """Closes the listener: what is left of the tree can open nothing any more."""
        self._listener.close()
