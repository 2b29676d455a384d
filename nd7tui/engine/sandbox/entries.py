"""What the compiled loop knows of paths: policy and floor, one entry a path.

Rule: an entry says what `Policy.decide_path` and `Coverage` say of its path and of everything beneath, down to deeper
entries (property-tested). Plain data, which `marshal` takes: the child that confines itself makes it while the
supervisor gets ready.
"""

from __future__ import annotations

from nd7tui.engine.policy import table
from nd7tui.engine.policy.rules import Access, Effect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nd7tui.engine.policy.rules import Policy
    from nd7tui.engine.sandbox.coverage import Coverage

# Path, (read, write) allowed or None, 1 for reading and 2 for writing refused somewhere beneath, the roots that the
# floor grants for reading and for writing as (device, inode, top_level) or None, patterns that children may match.
Root = tuple[int, int, bool]
Entry = tuple[bytes, tuple[bool, bool] | None, int, Root | None, Root | None, tuple[bytes, ...]]


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
