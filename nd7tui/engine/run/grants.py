"""A person's words made into live rules: `nd7 allow …`, `nd7 deny …`, and the same from the UI.

Rule: what is granted is an existing path in its canonical form, and the person is told that form. A grant that could
change nothing (the never-list, a standing deny) is refused rather than written, and so is one that the words did not
plainly ask for: a whole home directory, or a link laid where a run can write that leads out of there.
Owns: the words and the sentences. The rule file is `directory.py`'s.
Does not prove: that the running supervisor's policy is the one computed here. This one is made from the run's record
and this machine as it is now; it decides what to say, the supervisor decides what holds.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from nd7tui.engine.policy import address
from nd7tui.engine.policy.defaults import AGENT_STATE, join
from nd7tui.engine.policy.members import to_text
from nd7tui.engine.policy.rules import (
    Access,
    Effect,
    HostTarget,
    PathTarget,
    Policy,
    Rule,
    Scope,
    SocketTarget,
    Target,
    Verdict,
    is_beneath,
    reason_of,
    strictest,
)
from nd7tui.engine.records import dataclass, replace
from nd7tui.engine.run import directory
from nd7tui.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nd7tui.engine.policy.document import RunRecord
    from nd7tui.engine.run.directory import Run

    Resolver = Callable[[str], tuple[str, ...]]

NEVER_HINT = "nothing opens it, whatever is granted"


@dataclass(frozen=True, slots=True)
class Wish:
    """One target, what is wanted of it, and the word it came from if that was a host's name."""

    access: Access
    target: Target
    name: str = ""

    @property
    def words(self) -> str:
        """The wish as it is shown: `write /srv/data`, `connect 192.0.2.1:22/tcp (github.com)`."""
        return f"{self.access} {show(self.target)}" + (f" ({self.name})" if self.name else "")


def show(target: Target) -> str:
    """Returns a target as people read it, and as `nd7 allow` takes it; bytes that no terminal shows are escaped."""
    if isinstance(target, HostTarget):
        host = f"[{target.host}]" if ":" in target.host else target.host
        port = "*" if target.port is None else str(target.port)
        return f"{host}:{port}" + (f"/{target.proto}" if target.proto else "")
    prefix = "unix:" if isinstance(target, SocketTarget) else ""
    text = to_text(target.path)
    return prefix + "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


# ---- Words to wishes


def path_wish(word: str, access: Access, *, must_exist: bool) -> Wish:
    """Reads a path.

    Args:
        word: As typed, relative to the working directory.
        access: Read or write.
        must_exist: Refuse what is not there (a grant does).

    Raises:
        UsageError: It is not there, or cannot be looked at.
    """
    return Wish(access, PathTarget(_canonical(word, must_exist=must_exist)))


def _canonical(word: str, *, must_exist: bool) -> bytes:
    if not word or "\0" in word:
        raise UsageError("an empty path")
    try:
        return os.fsencode(os.path.realpath(word, strict=must_exist))
    except FileNotFoundError as error:
        hint = "a grant needs an existing path: name the directory it will be made in"
        raise UsageError(f"{word}: no such file or directory", hint) from error
    except OSError as error:
        raise UsageError(f"{word}: {(error.strerror or str(error)).lower()}") from error


def connect_wishes(
    word: str, *, must_exist: bool, proto: str | None = None, resolve: Resolver | None = None
) -> list[Wish]:
    """Reads `HOST:PORT[/tcp|/udp]`, `[ADDRESS]:PORT`, or `unix:PATH`; host and port may be `*`.

    A name becomes one wish for each of its addresses now: what the kernel sees later are addresses.

    Args:
        word: As typed.
        must_exist: Refuse a unix socket that is not there (a grant does).
        proto: The protocol meant when the word names none; None: both.
        resolve: Looks a name's addresses up.

    Raises:
        UsageError: It is none of these, or the name has no address.
    """
    if word.startswith("unix:"):
        path = word.removeprefix("unix:")
        if path.startswith("@"):
            return [Wish(Access.CONNECT, SocketTarget(os.fsencode(path)))]
        return [Wish(Access.CONNECT, SocketTarget(_canonical(path, must_exist=must_exist)))]
    host, port, named = _host_and_port(word)
    proto = named or proto
    try:
        return [Wish(Access.CONNECT, HostTarget(_one_form(host), port, proto))]
    except ValueError:
        addresses = (resolve or resolve_name)(host)
        return [Wish(Access.CONNECT, HostTarget(ip, port, proto), host) for ip in addresses]


def _host_and_port(word: str) -> tuple[str, int | None, str | None]:
    text, proto = word, None
    for name in ("tcp", "udp"):
        if word.endswith(f"/{name}"):
            text, proto = word[: -len(name) - 1], name
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not host or (":" in host and not bracketed):
        raise UsageError(f"{word}: not HOST:PORT", "as in github.com:22, 192.0.2.1:5432/tcp, [2001:db8::1]:22, *:22")
    if port != "*" and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise UsageError(f"{word}: not a port: {port!r}", "a number from 1 to 65535, or * for all")
    return host[1:-1] if bracketed else host, None if port == "*" else int(port), proto


def _one_form(host: str) -> str:
    """Returns an address in the one form rules use, anything else as it is."""
    return host if host in {"*", "loopback"} or "/" in host else address.canonical(host)


def resolve_name(name: str) -> tuple[str, ...]:
    """Returns a host name's addresses, in the resolver's order.

    Raises:
        UsageError: It has none.
    """
    import socket

    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"{name}: no address found", "an address can be given instead of a name") from error
    return tuple(dict.fromkeys(address.canonical(str(info[4][0])) for info in found))


def rule_for(effect: Effect, wish: Wish, scope: Scope, by: str) -> Rule:
    """Returns a new live rule, made now."""
    return Rule(effect, wish.access, wish.target, scope, by, time.time_ns(), os.urandom(6).hex(), wish.name)


# ---- Allow


def check_words(word: str, wish: Wish, record: RunRecord, *, sure: bool) -> None:
    """Refuses a grant whose words do not plainly say what it opens.

    Raises:
        UsageError: A link out of where the run writes, or (unless `sure`) everything at once.
    """
    target = wish.target
    if isinstance(target, HostTarget):
        if target.host == "*" and target.port is None and not sure:
            raise UsageError("that opens the whole network", "name a host or a port, or add --yes")
        return
    if isinstance(target, SocketTarget):
        word = word.removeprefix("unix:")
    if target.path.startswith(b"@"):
        return
    # A run can lay a link `build -> ~/.ssh` in its project and ask for `build` to be opened.
    typed = os.fsencode(os.path.abspath(word))
    for top in _writable(record):
        if is_beneath(typed, top) and not is_beneath(target.path, top):
            hint = f"name {show(target)} itself if that is meant"
            raise UsageError(f"{word}: leads out of {to_text(top)}, to {show(target)}", hint)
    if wish.access is Access.WRITE and is_beneath(record.home, target.path) and not sure:
        what = "your whole home directory" if target.path == record.home else "more than your whole home directory"
        raise UsageError(f"{show(target)} is {what}", "name a directory in it, or add --yes")


def _writable(record: RunRecord) -> list[bytes]:
    """Returns where the run may have laid links."""
    granted = [r.target.path for r in record.rules if r.access is Access.WRITE and isinstance(r.target, PathTarget)]
    state = [join(record.home, name) for name in AGENT_STATE]
    return [record.project, *record.tmp, *state, *granted]


def floor_of(run: Run, record: RunRecord) -> Policy:
    """Returns the floor of a run as its record tells it, without live rules."""
    from nd7tui.engine.policy import surroundings

    layout = surroundings.layout_of(to_text(record.project), run.dir, tmp=record.tmp)
    return surroundings.floor_of(replace(layout, home=record.home))


def standing_rules(record: RunRecord) -> tuple[Rule, ...]:
    """Returns the rules that the user's configuration has for the run's project."""
    from nd7tui.engine.policy import config

    return config.load().rules_for(record.project)


def decide(policy: Policy, wish: Wish) -> Verdict:
    """Returns the policy's answer to a wish; for a network, or every port, that of its rules alone."""
    target = wish.target
    if isinstance(target, PathTarget):
        return policy.decide_path(wish.access, target.path)
    if isinstance(target, SocketTarget):
        return policy.decide_socket(target.path)
    if target.host == "*" or "/" in target.host or target.port is None or target.proto is None:
        rules = [rule for rule in policy.live if rule.target == target]
        rule = strictest(rules)
        if rule is None:
            return Verdict(Effect.DENY, None, "no rule says exactly this")
        return Verdict(rule.effect, rule, reason_of(rule))
    return policy.decide_host("127.0.0.1" if target.host == "loopback" else target.host, target.port, target.proto)


def allow(run: Run, wishes: Sequence[Wish], scope: Scope, by: str) -> list[str]:
    """Adds a grant for each wish that is not granted yet; a live deny of exactly the same is taken back first.

    Returns:
        One line for each wish, in words.

    Raises:
        UsageError: One of them would stay refused all the same; nothing was changed then.
        RuleFileError: As `directory.update`.
    """
    lines: list[str] = []

    def change(record: RunRecord) -> RunRecord:
        lines.clear()
        floor, standing = floor_of(run, record), standing_rules(record)
        for wish in wishes:
            rule = rule_for(Effect.ALLOW, wish, scope, by)
            record, line = _allow_one(run, record, wish, rule, floor=floor, standing=standing)
            lines.append(line)
        return record

    directory.update(run, change)
    return lines


def _allow_one(
    run: Run, record: RunRecord, wish: Wish, rule: Rule, *, floor: Policy, standing: tuple[Rule, ...]
) -> tuple[RunRecord, str]:
    denies = [r for r in record.rules if r.effect is Effect.DENY and (r.access, r.target) == (wish.access, wish.target)]
    kept = tuple(r for r in record.rules if r not in denies)
    before = decide(floor.with_live(kept), wish)
    if before.effect is Effect.ALLOW:
        why = f"took back the deny; it is allowed: {wish.words}" if denies else f"allowed already: {wish.words}"
        return record.with_rules(kept), f"{why} ({before.reason})"
    live = (*kept, rule)
    after = decide(floor.with_live((*standing, *live)), wish)
    if after.effect is not Effect.ALLOW:
        raise UsageError(f"{wish.words} stays refused: {after.reason}", _why_not(after))
    once = " for one use" if rule.scope is Scope.ONCE else ""
    return record.with_rules(live), f"allowed{once}: {wish.words} (run {run.pid}{_but(floor.with_live(live), wish)})"


def _why_not(verdict: Verdict) -> str:
    rule = verdict.rule
    if rule is None or rule.scope is Scope.NEVER:
        return NEVER_HINT
    if rule.scope is Scope.PROJECT:
        return "your config.toml denies it for this project"
    return f"the rule {rule.id} denies it; take that back with nd7 allow {show(rule.target)}"


def _but(policy: Policy, wish: Wish) -> str:
    """Says what a grant of a directory leaves shut inside it."""
    if not isinstance(wish.target, PathTarget):
        return ""
    inside = policy.decide_tree(wish.access, wish.target.path)
    if inside.effect is Effect.ALLOW or inside.rule is None:
        return ""
    verb = "asks" if inside.effect is Effect.ASK else "stays refused"
    return f"; {show(inside.rule.target)} {verb}"


def wanted_access(run: Run, word: str) -> list[Access]:
    """Returns what `nd7 allow PATH` without flags means: writing, and reading where that is refused now.

    Raises:
        UsageError, RuleFileError: The path is not there, or the run's rules cannot be read.
    """
    record = directory.record_of(run)
    wish = path_wish(word, Access.READ, must_exist=True)
    readable = decide(floor_of(run, record).with_live(record.rules), wish).effect is Effect.ALLOW
    return [Access.WRITE] if readable else [Access.READ, Access.WRITE]


# ---- Deny


def deny(run: Run, wishes: Sequence[Wish], scope: Scope, by: str) -> list[str]:
    """Takes live grants back; where there is none for exactly this, adds a deny.

    Wishes for the same target (read and write of one path) count as one: a grant of either is what is meant. A grant
    made by a host's name is found by the name too, whatever its addresses are by now.

    Returns:
        One line for each thing done.

    Raises:
        UsageError, RuleFileError: As `directory.update`.
    """
    lines: list[str] = []

    def change(record: RunRecord) -> RunRecord:
        lines.clear()
        gone = [rule for rule in record.rules if any(_is_grant_of(rule, wish) for wish in wishes)]
        lines.extend(f"took back: {_rule_words(rule)} (run {run.pid})" for rule in gone)
        kept = tuple(rule for rule in record.rules if rule not in gone)
        left = [wish for wish in wishes if not any(_is_about(rule, wish) for rule in gone)]
        made: list[Rule] = []
        for wish in left:
            known = any((r.effect, r.access, r.target) == (Effect.DENY, wish.access, wish.target) for r in kept)
            lines.append(f"denied{' already' if known else ''}: {wish.words} (run {run.pid})")
            made += [] if known else [rule_for(Effect.DENY, wish, scope, by)]
        return record.with_rules((*kept, *made))

    directory.update(run, change)
    return lines


def _rule_words(rule: Rule) -> str:
    return f"{rule.access} {show(rule.target)}"


def _is_grant_of(rule: Rule, wish: Wish) -> bool:
    return rule.effect is Effect.ALLOW and rule.access is wish.access and _is_about(rule, wish)


def _is_about(rule: Rule, wish: Wish) -> bool:
    target, other = wish.target, rule.target
    if isinstance(target, HostTarget) and isinstance(other, HostTarget):
        same_host = target.host == other.host or (bool(wish.name) and wish.name == rule.why)
        # Without a protocol in the words, both are meant.
        return same_host and target.port == other.port and target.proto in {None, other.proto}
    return target == other
