"""The compiled loop of the listener, where it was built.

Rule: it answers by itself what policy allows and what needs no thought, without the interpreter lock, and hands on the
rest; `listener.Listener` is its twin that hands on everything. Both decide alike, which tests compare.
Does not prove: that it is there; `prepare.hot_loop` tells, and `nd7 doctor` says so.
"""

from __future__ import annotations

from nd7tui.engine.sandbox import abi
from nd7tui.engine.sandbox.call import Call
from nd7tui.engine.sandbox.entries import entries
from nd7tui.engine.sandbox.listener import Listener

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nd7tui.engine.policy.rules import Policy
    from nd7tui.engine.sandbox._hotloop import Loop
    from nd7tui.engine.sandbox.coverage import Coverage
    from nd7tui.engine.sandbox.entries import Entry

LOOP: type[Loop] | None
try:
    from nd7tui.engine.sandbox import _hotloop
except ImportError:  # not built: no compiler, or another platform
    LOOP = None
else:
    LOOP = _hotloop.Loop


def open_listener(fd: int, rules_path: str | None, at_first: tuple[Policy, list[Entry]]) -> Listener:
    """Returns the fastest listener there is.

    Args:
        fd: The listener's descriptor.
        rules_path: A file whose change hands the next call on, whatever it is; None for none.
        at_first: The policy that holds at the start, and its entries.
    """
    return Listener(fd) if LOOP is None else CompiledListener(fd, LOOP(fd, rules_path), at_first)


class CompiledListener(Listener):
    """A listener that decides by `use`'s table before it hands a call on.

    Args:
        fd: The listener's descriptor; closed by `close`.
        loop: The loop that serves it.
        at_first: A policy and its entries, which are not made again for it.
    """

    def __init__(self, fd: int, loop: Loop, at_first: tuple[Policy, list[Entry]]) -> None:
        super().__init__(fd)
        self._loop = loop
        self._at_first = at_first

    def use(self, policy: Policy, coverage: Coverage, *, strict: bool) -> None:
        """Decides by these from now on."""
        known, made = self._at_first
        if policy is not known:
            made = entries(policy, coverage)
        self._loop.use(made, strict)

    def next(self, timeout_ms: int, wake_fd: int) -> Call | None:
        """Returns the next call to be decided; None when the time is up or `wake_fd` is readable.

        Raises:
            OSError: The listener is broken.
        """
        told = self._loop.next(timeout_ms, wake_fd)
        if told is None:
            self.hung_up = self._loop.stats()[2]
            return None
        number, tid, nr, args = told
        return Call(self.fd, number, tid, abi.NAMES.get(nr, str(nr)), args)

    def served(self) -> tuple[int, int]:
        """Returns how many calls were continued and answered here, never handed on."""
        continued, answered, _ = self._loop.stats()
        return continued, answered
