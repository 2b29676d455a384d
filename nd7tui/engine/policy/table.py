"""The policy flattened to a sorted table of paths, for the Landlock floor and the C loop.

Rule: a node's verdict holds for everything beneath it until a deeper node; the one exception is said by `globs`.
Looking a path up in the table gives what `Policy.decide_path` gives, for every path (property-tested).
Does not prove: that the paths exist, or that they are canonical on disk.
"""

from __future__ import annotations

from bisect import bisect_right

from nd7tui.engine.policy.rules import Access, Effect, PathTarget, split
from nd7tui.engine.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nd7tui.engine.policy.rules import Policy

_KEPT = "_table"  # beside the policy's own cached properties; no field of it


@dataclass(frozen=True, slots=True)
class Node:
    """One path with a verdict of its own.

    Attributes:
        path: Canonical path.
        read: The answer to reading it and everything beneath it, up to deeper nodes.
        write: The same for writing.
        patterns: Pattern rules speak about direct children of this path by these names, so a child that may match one
            and has no node of its own must be asked of the policy. The answer then holds for everything beneath that
            child, up to deeper nodes.
    """

    path: bytes
    read: Effect
    write: Effect
    patterns: tuple[bytes, ...] = ()


def compile(policy: Policy) -> tuple[Node, ...]:  # noqa: A001  (the contract's name; nobody star-imports this module)
    """Flattens `policy`; once for each, however often it is asked.

    Returns:
        Nodes in the order of their paths' components, so that everything beneath a node follows it at once. `/` is
        always the first.
    """
    known: tuple[Node, ...] | None = vars(policy).get(_KEPT)
    if known is None:
        known = vars(policy)[_KEPT] = _compiled(policy)
    return known


def _compiled(policy: Policy) -> tuple[Node, ...]:
    plain: set[bytes] = {b"/"}
    patterns: dict[bytes, tuple[bytes, ...]] = {}
    for rule in policy.never + policy.live + policy.default:
        if isinstance(rule.target, PathTarget):
            if rule.target.glob:
                parent, pattern = split(rule.target.path)
                patterns[parent] = (*patterns.get(parent, ()), pattern)
            else:
                plain.add(rule.target.path)
    paths = sorted(plain | patterns.keys(), key=components)
    return tuple(Node(path, *policy.effects_at(path), patterns.get(path, ())) for path in paths)


def components(path: bytes) -> tuple[bytes, ...]:
    """Returns the components of a canonical path: the key by which nodes are sorted."""
    return () if path == b"/" else tuple(path[1:].split(b"/"))


def find(nodes: tuple[Node, ...], path: bytes) -> Node:
    """Returns the deepest node that is `path` or an ancestor of it."""
    wanted = components(path)
    index = bisect_right(nodes, wanted, key=lambda node: components(node.path)) - 1
    # What sorts right before a path may be a sibling's offspring: climb to what they have in common.
    while components(nodes[index].path) != wanted[: len(components(nodes[index].path))]:
        index -= 1
    return nodes[index]


def lookup(nodes: tuple[Node, ...], policy: Policy, access: Access, path: bytes) -> Effect:
    """Decides about a canonical path by the table alone, save where a pattern may speak.

    This is the oracle for other readers of the table (the C loop does the same with its own copy).
    """
    node = find(nodes, path)
    if node.patterns and path != node.path:
        above = components(node.path)
        child = b"/" + b"/".join(components(path)[: len(above) + 1])
        return policy.decide_path(access, child).effect
    return node.read if access is Access.READ else node.write
