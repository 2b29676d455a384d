"""The policy flattened to a sorted table of paths, for the Landlock floor and the C loop.

Rule: a node's verdict holds for everything beneath it until a deeper node; the one exception is said by `globs`.
Looking a path up in the table gives what `Policy.decide_path` gives, for every path (property-tested).
Does not prove: that the paths exist, or that they are canonical on disk.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from nd7tui.engine.policy.rules import Access, Effect, PathTarget, split
from nd7tui.engine.records import dataclass

if TYPE_CHECKING:
    from nd7tui.engine.policy.rules import Policy


@dataclass(frozen=True, slots=True)
class Node:
    """One path with a verdict of its own.

    Attributes:
        path: Canonical path.
        read: The answer to reading it and everything beneath it, up to deeper nodes.
        write: The same for writing.
        globs: Pattern rules speak about direct children of this path, so a child without a node of its own must
            be asked of the policy by name. The answer then holds for everything beneath that child, up to deeper
            nodes.
    """

    path: bytes
    read: Effect
    write: Effect
    globs: bool


def compile(policy: Policy) -> tuple[Node, ...]:  # noqa: A001  (the contract's name; nobody star-imports this module)
    """Flattens `policy`.

    Returns:
        Nodes in the order of their paths' components, so that everything beneath a node follows it at once. `/` is
        always the first.
    """
    plain, globs = {b"/"}, set[bytes]()
    for rule in policy.never + policy.live + policy.default:
        if isinstance(rule.target, PathTarget):
            if rule.target.glob:
                globs.add(split(rule.target.path)[0])
            else:
                plain.add(rule.target.path)
    return tuple(_node(policy, path, path in globs) for path in sorted(plain | globs, key=components))


def components(path: bytes) -> tuple[bytes, ...]:
    """Returns the components of a canonical path: the key by which nodes are sorted."""
    return () if path == b"/" else tuple(path[1:].split(b"/"))


def _node(policy: Policy, path: bytes, globs: bool) -> Node:
    read = policy.decide_path(Access.READ, path).effect
    write = policy.decide_path(Access.WRITE, path).effect
    return Node(path, read, write, globs)


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
    if node.globs and path != node.path:
        above = components(node.path)
        child = b"/" + b"/".join(components(path)[: len(above) + 1])
        return policy.decide_path(access, child).effect
    return node.read if access is Access.READ else node.write
