"""The compiled loop of the listener, where it was built.

Rule: it answers by itself what policy allows and what needs no thought, without the interpreter lock, and hands on the
rest; `listener.Listener` is its twin that hands on everything. Both decide alike, which tests compare.
Does not prove: that it is there; `prepare.hot_loop` tells, and `nd7 doctor` says so.
"""

from __future__ import annotations

from nd7tui.engine.policy import table
from nd7tui.engine.policy.rules import Access, Effect
from nd7tui.engine.sandbox import abi
from nd7tui.engine.sandbox.call import Call
from nd7tui.engine.sandbox.listener import Listener

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nd7tui.engine.policy.rules import Policy
    from nd7tui.engine.sandbox._hotloop import Loop
    from nd7tui.engine.sandbox.floor import Coverage

LOOP: type[Loop] | None
try:
    from nd7tui.engine.sandbox import _hotloop
except ImportError:  # not built: no compiler, or another platform
    LOOP = None
else:
    LOOP = _hotloop.Loop

# Path, (read, write) allowed or None, 1 for reading and 2 for writing refused somewhere beneath, the roots that the
# floor grants for reading and for writing as (device, inode, top_level) or None, patterns that children may match.
Root = tuple[int, int, bool]
Entry = tuple[bytes, tuple[bool, bool] | None, int, Root | None, Root | None, tuple[bytes, ...]]


def open_listener(fd: int, rules_path: str | None) -> Listener:
    """Returns the fastest listener there is.

    Args:
        fd: The listener's descriptor.
        rules_path: A file whose change hands the next call on, whatever it is; None for none.
    """
    return Listener(fd) if LOOP is None else CompiledListener(fd, LOOP(fd, rules_path))


class CompiledListener(Listener):
    """A listener that decides by `use`'s table before it hands a call on.

    Args:
        fd: The listener's descriptor; closed by `close`.
        loop: The loop that serves it.
    """

    def __init__(self, fd: int, loop: Loop) -> None:
        super().__init__(fd)
        self._loop = loop

    def use(self, policy: Policy, coverage: Coverage, *, strict: bool) -> None:
        """Decides by these from now on."""
        self._loop.use(entries(policy, coverage), strict)

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


def entries(policy: Policy, coverage: Coverage) -> list[Entry]:
    """Returns what the loop is to know of paths, one entry a path, in no order."""
    nodes = {node.path: node for node in table.compile(policy)}
    stricter: dict[bytes, int] = {}
    for access, path in policy.stricter_beneath():
        if access is not Access.CONNECT:
            stricter[path] = stricter.get(path, 0) | (1 if access is Access.READ else 2)
    reading, writing = _roots(coverage, Access.READ), _roots(coverage, Access.WRITE)
    found: list[Entry] = []
    for path in nodes.keys() | stricter.keys() | reading.keys() | writing.keys():
        node = nodes.get(path)
        verdict = None if node is None else (node.read is Effect.ALLOW, node.write is Effect.ALLOW)
        patterns = () if node is None else node.patterns
        found.append((path, verdict, stricter.get(path, 0), reading.get(path), writing.get(path), patterns))
    return found


def _roots(coverage: Coverage, access: Access) -> dict[bytes, Root]:
    return {path: (root.device, root.inode, root.top_level) for path, root in coverage.roots[access].items()}
