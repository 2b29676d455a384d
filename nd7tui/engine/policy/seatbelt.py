"""The policy as text for macOS's Seatbelt (`sandbox-exec -f`), from the same object as everything else.

Rule: what Seatbelt cannot say is said more strictly, never more loosely. There is nobody to ask, so *ask* is a refusal;
a host other than this machine cannot be named, so an allow for one is left out and a deny for one closes its port
for all.
Owns: the rendering. Pure. In Seatbelt the last matching rule wins, so directories come before what is inside them.
Does not prove: anything on macOS. The text is compared with a golden copy; nd7 does not run it.
Source: the system's profiles in /System/Library/Sandbox/Profiles, and those of Chromium and Codex, which use the same
operations; Apple documents none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nd7tui.engine.policy import table
from nd7tui.engine.policy.rules import Access, Effect, HostTarget, PathTarget, Policy, Rule, SocketTarget, split
from nd7tui.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

HEADER = """\
(version 1)
(deny default)
(allow process-exec process-fork)
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow mach-lookup)
(allow ipc-posix-shm ipc-posix-sem)
(allow pseudo-tty)
(allow file-ioctl (regex #"^/dev/(tty|pty|ptmx)"))
(allow file-read-metadata)
(allow network-bind (local ip "localhost:*"))
(allow network-inbound (local ip "localhost:*"))
"""

_OPERATION = {Access.READ: "file-read*", Access.WRITE: "file-write*"}


def render(policy: Policy) -> str:
    """Returns the profile's text.

    Raises:
        RefusedError: A path or pattern cannot be written in a profile.
    """
    lines = [*_paths(policy), *_moves(policy), *_network(policy)]
    return HEADER + "".join(f"{line}\n" for line in lines)


def _verb(effect: Effect) -> str:
    return "allow" if effect is Effect.ALLOW else "deny"


def _quoted(path: bytes) -> str:
    try:
        text = path.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RefusedError(f"{path!r}: not UTF-8, cannot be written in a seatbelt profile") from error
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# ---- Paths


def _paths(policy: Policy) -> Iterator[str]:
    """Yields rules for the table's nodes, ancestors first; a directory's patterns come right after it."""
    for node in table.compile(policy):
        for access, effect in ((Access.READ, node.read), (Access.WRITE, node.write)):
            yield f"({_verb(effect)} {_OPERATION[access]} (subpath {_quoted(node.path)}))"
        if node.patterns:
            yield from _patterns(policy, node.path)


def _patterns(policy: Policy, parent: bytes) -> Iterator[str]:
    found: dict[tuple[bool, Access, bytes], None] = {}
    for rule in policy.default + policy.live + policy.never:
        target = rule.target
        if isinstance(target, PathTarget) and target.glob and split(target.path)[0] == parent:
            effect = policy.decide_path(rule.access, target.path).effect if target.covers(target.path) else rule.effect
            found[effect is not Effect.ALLOW, rule.access, target.path] = None
    # Refusals last: of two patterns that match one entry the stricter counts.
    for refused, access, path in sorted(found):
        yield f'({"deny" if refused else "allow"} {_OPERATION[access]} (regex #"{_regex(path)}"))'


def _regex(path: bytes) -> str:
    parent, pattern = split(path)
    text = _quoted(pattern)[1:-1]
    if '"' in text or "\\" in text:
        raise RefusedError(f"{path!r}: pattern cannot be written in a seatbelt profile")
    prefix = "".join(_escaped(char) for char in _quoted(parent.rstrip(b"/"))[1:-1])
    return f"^{prefix}/{_translated(text)}(/|$)"


def _escaped(char: str) -> str:
    return f"\\{char}" if char in ".^$*+?()[]{}|" else char


def _translated(pattern: str) -> str:
    """Turns a shell pattern into a regular expression for one component."""
    out, at = [], 0
    while at < len(pattern):
        char = pattern[at]
        end = pattern.find("]", at + 2) if char == "[" else -1
        if end > 0:
            body = pattern[at + 1 : end]
            out.append(f"[^{body[1:]}]" if body[0] == "!" else f"[{body}]")
            at = end
        else:
            out.append({"*": "[^/]*", "?": "[^/]"}.get(char, _escaped(char)))
        at += 1
    return "".join(out)


def _moves(policy: Policy) -> Iterator[str]:
    """Yields rules that keep a writable directory in place when something inside it is refused.

    Moving `.git` away, changing its hooks and moving it back would go around the rule on the hooks.
    """
    above = set[bytes]()
    for node in table.compile(policy):
        path = node.path
        while path != b"/":
            path = split(path)[0]
            above.add(path)
    for path in sorted(above):
        held = policy.decide_tree(Access.WRITE, path).effect is not Effect.ALLOW
        if held and policy.decide_path(Access.WRITE, path).effect is Effect.ALLOW:
            yield f"(deny file-write-unlink (literal {_quoted(path)}))"


# ---- Network


def _network(policy: Policy) -> Iterator[str]:
    """Yields rules for hosts and sockets: the floor's, then live ones, then the never-list's; broad before narrow."""
    for layer in (policy.default, policy.live, policy.never):
        yield from _hosts(layer)
        yield from _sockets(layer)


def _hosts(layer: Iterable[Rule]) -> Iterator[str]:
    rules = [(rule.target, rule.effect) for rule in layer if isinstance(rule.target, HostTarget)]
    for target, effect in sorted(rules, key=lambda pair: (pair[0].depth, pair[1] is not Effect.ALLOW)):
        host = "localhost" if target.host == "loopback" else "*"
        if host == "*" and target.host != "*" and effect is Effect.ALLOW:
            continue
        port = "*" if target.port is None else target.port
        yield f'({_verb(effect)} network-outbound (remote {target.proto or "ip"} "{host}:{port}"))'


def _sockets(layer: Iterable[Rule]) -> Iterator[str]:
    rules = [(rule.target, rule.effect) for rule in layer if isinstance(rule.target, SocketTarget)]
    for target, effect in sorted(rules, key=lambda pair: (pair[0].depth, pair[1] is not Effect.ALLOW)):
        # Abstract sockets are Linux's own.
        if not target.path.startswith(b"@"):
            yield f"({_verb(effect)} network-outbound (subpath {_quoted(target.path)}))"
