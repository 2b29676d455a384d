"""Rules and the one function that decides by them.

Rule: the floor of a run (`default`) is beaten by the live rules, and nothing beats the never-list. Paths are
canonical bytes compared component by component, so `/a/b` says nothing about `/a/bc`.
Owns: the rule types, their order, and what "covers" means. Pure: no file, socket, clock or environment.
Does not prove: that a path handed in is canonical on disk. Whoever resolves it (the sandbox) owns that; a path that
is not even in canonical form is refused here.
"""

from __future__ import annotations

import fnmatch
from enum import StrEnum
from functools import cached_property

from nd7tui.engine.policy import address
from nd7tui.engine.records import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable


class Access(StrEnum):
    """What is wanted of a target."""

    READ = "read"
    WRITE = "write"
    CONNECT = "connect"


class Effect(StrEnum):
    """What a rule, or the whole policy, answers."""

    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"


class Scope(StrEnum):
    """How long a rule lives, and which layer it belongs to."""

    ONCE = "once"
    RUN = "run"
    PROJECT = "project"
    DEFAULT = "default"
    NEVER = "never"


# At the same depth the stricter answer wins.
STRICTNESS = {Effect.ALLOW: 0, Effect.ASK: 1, Effect.DENY: 2}


def is_canonical(path: bytes) -> bool:
    """Tells whether `path` is absolute with no empty, `.` or `..` component and no NUL."""
    if path == b"/":
        return True
    closed = path + b"/"
    if path[:1] != b"/" or b"//" in closed or b"\0" in path:
        return False
    return b"/." not in path or not (b"/./" in closed or b"/../" in closed)


def depth_of(path: bytes) -> int:
    """Returns the number of components of a canonical path; `/` has none."""
    return 0 if path == b"/" else path.count(b"/")


def is_beneath(path: bytes, top: bytes) -> bool:
    """Tells whether the canonical `path` is `top` or lies beneath it."""
    return top in {path, b"/"} or path.startswith(top + b"/")


def split(path: bytes) -> tuple[bytes, bytes]:
    """Returns the parent directory and the last component of a canonical path other than `/`."""
    parent, _, name = path.rpartition(b"/")
    return parent or b"/", name


@dataclass(frozen=True, slots=True)
class PathTarget:
    """A path and everything beneath it.

    Attributes:
        path: Canonical absolute path.
        glob: The last component is a shell pattern (`*`, `?`, `[…]`); it stands for every entry of the directory
            that matches, and everything beneath such an entry. A leading dot is not special.

    Raises:
        ValueError: `path` is not in canonical form, or a glob of `/`. Such a rule could never match, and a deny
            that is silently void is worse than an error.
    """

    path: bytes
    glob: bool = False

    def __post_init__(self) -> None:
        if not is_canonical(self.path) or (self.glob and self.path == b"/"):
            raise ValueError(f"not a canonical absolute path: {self.path!r}")

    @property
    def depth(self) -> int:
        """The number of components; the deeper of two covering rules is the more specific."""
        return depth_of(self.path)

    def covers(self, path: bytes) -> bool:
        """Tells whether the canonical `path` is this target or beneath it."""
        if not self.glob:
            return is_beneath(path, self.path)
        parent, pattern = split(self.path)
        if path in {parent, b"/"} or not is_beneath(path, parent):
            return False
        name = path[len(parent.rstrip(b"/")) + 1 :].split(b"/", 1)[0]
        return fnmatch.fnmatchcase(name, pattern)


@dataclass(frozen=True, slots=True)
class HostTarget:
    """Internet addresses.

    Attributes:
        host: `*` (every address), `loopback`, an address, or a network such as `10.0.0.0/8`. Never a name: a
            decision sees addresses only, so names are resolved where the rule is made.
        port: The port, or None for every port.
        proto: `tcp`, `udp`, or None for both.

    Raises:
        ValueError: A member is none of these.
    """

    host: str
    port: int | None
    proto: str | None = None

    def __post_init__(self) -> None:
        if self.host not in {"*", "loopback"}:
            address.parse_network(self.host)
        if self.port is not None and not 0 <= self.port <= 0xFFFF:
            raise ValueError(f"not a port: {self.port}")
        if self.proto not in {"tcp", "udp", None}:
            raise ValueError(f"not a protocol: {self.proto!r}")

    @property
    def depth(self) -> int:
        """How specific the target is: the network's size first, then a port, then a protocol."""
        if self.host == "*":
            size = 0
        elif self.host == "loopback":
            size = 1 + 104  # as 127.0.0.0/8, seen as IPv6
        else:
            size = 1 + address.parse_network(self.host).bits
        return size * 4 + 2 * (self.port is not None) + (self.proto is not None)

    def covers(self, ip: address.Address, port: int, proto: str) -> bool:
        """Tells whether a connection or datagram to `ip` is meant."""
        if self.port not in {None, port} or self.proto not in {None, proto}:
            return False
        if self.host == "*":
            return True
        if self.host == "loopback":
            return ip.is_loopback
        return address.parse_network(self.host).contains(ip)


@dataclass(frozen=True, slots=True)
class SocketTarget:
    """A unix socket by canonical path (or every one beneath a directory), or `@name` for an abstract one.

    Raises:
        ValueError: `path` is neither.
    """

    path: bytes

    def __post_init__(self) -> None:
        if not self.path.startswith(b"@") and not is_canonical(self.path):
            raise ValueError(f"not a canonical absolute path: {self.path!r}")

    @property
    def depth(self) -> int:
        """The number of components."""
        return depth_of(self.path)

    def covers(self, path: bytes) -> bool:
        """Tells whether the socket at `path` is meant."""
        if self.path.startswith(b"@") or path.startswith(b"@"):
            return path == self.path
        return is_beneath(path, self.path)


Target = PathTarget | HostTarget | SocketTarget


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        effect: The answer.
        access: What it is about; `connect` goes with host and socket targets, the others with paths.
        target: What it covers.
        scope: Its layer and life.
        by: Who made it (`nd7`, `tui`, `nd7 allow`, `config`).
        at: When, nanoseconds since the epoch; 0 for defaults.
        id: Unique within a run.
        why: The reason shown to people, lower case, such as `secret: ssh keys`.

    Raises:
        ValueError: Access and target do not go together.
    """

    effect: Effect
    access: Access
    target: Target
    scope: Scope
    by: str
    at: int
    id: str
    why: str = ""

    def __post_init__(self) -> None:
        if (self.access is Access.CONNECT) == isinstance(self.target, PathTarget):
            raise ValueError(f"{self.access} does not go with {type(self.target).__name__}")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the policy answers, by which rule (None: no rule covers the target), and the reason in words."""

    effect: Effect
    rule: Rule | None
    reason: str


NO_RULE = {
    Access.READ: "not among what may be read",
    Access.WRITE: "outside the project",
    Access.CONNECT: "only tcp 443, dns and loopback are open",
}
NO_SOCKET_RULE = "a unix socket outside the session"


def reason_of(rule: Rule) -> str:
    """Returns what a person is told about `rule`."""
    return rule.why or f"rule of {rule.by or rule.scope}"


def strictest(rules: Iterable[Rule]) -> Rule | None:
    """Returns the first of the strictest rules, None if there is none."""
    return max(rules, key=lambda rule: STRICTNESS[rule.effect], default=None)


class _Layer:
    """The rules of one layer, indexed so that a path is decided in time proportional to its depth."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.exact: dict[Access, dict[bytes, Rule]] = {access: {} for access in Access}
        self.globs: dict[Access, dict[bytes, list[tuple[bytes, Rule]]]] = {access: {} for access in Access}
        self.hosts: list[tuple[HostTarget, Rule]] = []
        self.sockets: list[tuple[SocketTarget, Rule]] = []
        for rule in rules:
            self._add(rule, rule.target)

    def _add(self, rule: Rule, target: Target) -> None:
        if isinstance(target, HostTarget):
            self.hosts.append((target, rule))
        elif isinstance(target, SocketTarget):
            self.sockets.append((target, rule))
        elif target.glob:
            parent, pattern = split(target.path)
            self.globs[rule.access].setdefault(parent, []).append((pattern, rule))
        else:
            exact = self.exact[rule.access]
            other = exact.get(target.path)
            if other is None or STRICTNESS[rule.effect] > STRICTNESS[other.effect]:
                exact[target.path] = rule

    def path(self, access: Access, chain: list[bytes]) -> Rule | None:
        """Returns the deepest, then strictest, rule covering the first path of `chain` (see `_chain`)."""
        exact, globs = self.exact[access], self.globs[access]
        if not exact and not globs:
            return None
        for level, path in enumerate(chain):
            rule = exact.get(path)
            if globs and path != b"/" and (patterns := globs.get(chain[level + 1])):
                name = split(path)[1]
                found = [rule] if rule else []
                found += [other for pattern, other in patterns if fnmatch.fnmatchcase(name, pattern)]
                rule = strictest(found)
            if rule is not None:
                return rule
        return None

    def host(self, ip: address.Address, port: int, proto: str) -> Rule | None:
        """Returns the most specific, then strictest, rule covering the address."""
        return _deepest((target.depth, rule) for target, rule in self.hosts if target.covers(ip, port, proto))

    def socket(self, path: bytes) -> Rule | None:
        """Returns the deepest, then strictest, rule covering the socket."""
        return _deepest((target.depth, rule) for target, rule in self.sockets if target.covers(path))


def _chain(path: bytes) -> list[bytes]:
    """Returns a canonical path and its ancestors, deepest first, `/` last."""
    chain = []
    while len(path) > 1:
        chain.append(path)
        path = path[: path.rindex(b"/")]
    return [*chain, b"/"]


def _deepest(found: Iterable[tuple[int, Rule]]) -> Rule | None:
    best = max(found, key=lambda item: (item[0], STRICTNESS[item[1].effect]), default=None)
    return best[1] if best else None


@dataclass(frozen=True)
class Policy:
    """The whole policy of a run at one moment; immutable.

    Attributes:
        default: The floor: what holds from the start.
        live: What people granted or denied since, and the project's standing rules.
        never: Denials that nothing beats. An ALLOW here only exempts what it covers from the never-list; the other
            layers then decide.
    """

    default: tuple[Rule, ...] = ()
    live: tuple[Rule, ...] = ()
    never: tuple[Rule, ...] = ()

    @cached_property
    def _layers(self) -> tuple[_Layer, _Layer, _Layer]:
        return _Layer(self.never), _Layer(self.live), _Layer(self.default)

    def decide_path(self, access: Access, path: bytes) -> Verdict:
        """Decides about one canonical path; a path not in canonical form is refused."""
        if not is_canonical(path):
            return Verdict(Effect.DENY, None, "not a canonical path")
        chain = _chain(path)
        never, live, default = (layer.path(access, chain) for layer in self._layers)
        return _decide(never, live, default, NO_RULE[access])

    def effects_at(self, path: bytes) -> tuple[Effect, Effect]:
        """Returns the effects of `decide_path` for reading and for writing one canonical path."""
        chain = _chain(path)

        def effect(access: Access) -> Effect:
            never, live, default = (layer.path(access, chain) for layer in self._layers)
            return _effect(never, _winner(never, live, default))

        return effect(Access.READ), effect(Access.WRITE)

    def decide_host(self, ip: str, port: int, proto: str) -> Verdict:
        """Decides about a connection or datagram to an address; what is not an address is refused.

        Args:
            ip: IPv4 or IPv6 text. IPv4-mapped IPv6 is its IPv4 address; the unspecified address is loopback, as it
                is for the kernel.
            port: Port number.
            proto: `tcp` or `udp`.
        """
        try:
            parsed = address.parse(ip)
        except ValueError:
            return Verdict(Effect.DENY, None, "not an internet address")
        never, live, default = (layer.host(parsed, port, proto) for layer in self._layers)
        return _decide(never, live, default, NO_RULE[Access.CONNECT])

    def decide_socket(self, path: bytes) -> Verdict:
        """Decides about a unix socket: a canonical path, or `@name`."""
        if not path.startswith(b"@") and not is_canonical(path):
            return Verdict(Effect.DENY, None, "not a canonical path")
        never, live, default = (layer.socket(path) for layer in self._layers)
        return _decide(never, live, default, NO_SOCKET_RULE)

    def decide_tree(self, access: Access, path: bytes) -> Verdict:
        """Decides about an entry together with everything that has or could have a rule of its own beneath it.

        This is the question for what replaces or carries away a whole tree at once: both sides of a rename, and
        making a symbolic link. Otherwise `mv .git x; write x/hooks/…; mv x .git` goes around a rule on `.git/hooks`.

        Returns:
            The strictest verdict found; that of `path` itself when nothing beneath is stricter.
        """
        own = self.decide_path(access, path)
        beneath = self._worst_beneath.get((access, path))
        return own if beneath is None or not is_canonical(path) else _stricter(own, beneath)

    def stricter_beneath(self) -> set[tuple[Access, bytes]]:
        """Returns where something beneath a path is not allowed: there `decide_tree` may differ from `decide_path`."""
        return set(self._worst_beneath)

    @cached_property
    def _worst_beneath(self) -> dict[tuple[Access, bytes], Verdict]:
        """For every path with rules strictly beneath it: the strictest of their verdicts, unless it is *allow*."""
        worst: dict[tuple[Access, bytes], Verdict] = {}
        for rule in self.never + self.live + self.default:
            if isinstance(rule.target, PathTarget) and rule.target.path != b"/":
                # What is known of one directory is known, at least as strict, of everything above.
                parent = split(rule.target.path)[0]
                known = worst.get((rule.access, parent))
                if known is not None and known.effect is Effect.DENY:
                    continue
                verdict = self._verdict_at(rule, rule.target)
                if verdict.effect is Effect.ALLOW:
                    continue
                for above in _chain(parent):
                    known = worst.get((rule.access, above))
                    if known is not None and _stricter(known, verdict) is known:
                        break
                    worst[rule.access, above] = verdict
        return worst

    def _verdict_at(self, rule: Rule, target: PathTarget) -> Verdict:
        # A pattern stands for the entries it matches; one that does not match itself is taken at its word.
        if target.covers(target.path):
            return self.decide_path(rule.access, target.path)
        return Verdict(rule.effect, rule, reason_of(rule))

    def without(self, ids: Collection[str]) -> Policy:
        """Returns the policy less the live rules with these ids (ONCE rules that have been used)."""
        return replace(self, live=tuple(rule for rule in self.live if rule.id not in ids))

    def with_live(self, live: Iterable[Rule]) -> Policy:
        """Returns the policy with these live rules in place of its own."""
        return replace(self, live=tuple(live))


def _stricter(one: Verdict, other: Verdict) -> Verdict:
    return other if STRICTNESS[other.effect] > STRICTNESS[one.effect] else one


def _decide(never: Rule | None, live: Rule | None, default: Rule | None, otherwise: str) -> Verdict:
    """Answers by the winners of the three layers."""
    winner = _winner(never, live, default)
    if winner is None:
        return Verdict(Effect.DENY, None, otherwise)
    return Verdict(_effect(never, winner), winner, reason_of(winner))


def _effect(never: Rule | None, winner: Rule | None) -> Effect:
    if winner is None or (winner is never and never.effect is not Effect.ALLOW):
        return Effect.DENY
    return winner.effect


def _winner(never: Rule | None, live: Rule | None, default: Rule | None) -> Rule | None:
    """Orders the winners of the three layers; see the contract in `Policy`."""
    if never is not None and never.effect is not Effect.ALLOW:
        return never
    if live is None:
        return default
    if live.effect is Effect.ALLOW and default is not None and default.effect is not Effect.ALLOW:
        # A grant of a directory does not open the secrets inside it; only a grant at least as deep does.
        return default if default.target.depth > live.target.depth else live
    return live
