"""The run's rule file, `record.json`: its bytes and what they mean.

Rule: every member is checked; what is missing, unknown in value, or of the wrong type is an error that names the
member, never skipped. A rule that was left out in silence would be a deny that does not hold. Unknown *members* of
the document are kept out too: a misspelt `effect` must not become a default.
Owns: the format, version 1. Pure.
Does not prove: who wrote the file (its owner and mode are `directory.py`'s).
"""

from __future__ import annotations

from nd7tui.engine.policy.members import Members, RuleFileError, to_text
from nd7tui.engine.policy.rules import (
    Access,
    Effect,
    HostTarget,
    PathTarget,
    Rule,
    Scope,
    SocketTarget,
    Target,
)
from nd7tui.engine.records import dataclass, field, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSION = 1
# A rule file is written by people and by keys pressed one at a time; more than this is not one.
MAX_BYTES = 4 << 20

LIVE_EFFECTS = (Effect.ALLOW, Effect.DENY)
LIVE_SCOPES = (Scope.ONCE, Scope.RUN)


@dataclass(frozen=True, slots=True)
class Enforced:
    """What the kernel really enforces for the run.

    Attributes:
        landlock_abi: Landlock's version, 0 when there is none.
        listener: The seccomp listener is in place.
        partial: What is not enforced as designed, in words.
        mode: `default` (every open notifies) or `fast` (only those that write).
    """

    landlock_abi: int
    listener: bool
    partial: tuple[str, ...] = ()
    mode: str = "default"


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run, as it stands.

    Attributes:
        session_id: The session whose log the run writes.
        pid: The supervisor's.
        started: The supervisor's start time, nanoseconds since the epoch.
        argv: The program and its arguments.
        project: Canonical directory the run was started in.
        home: Canonical home directory.
        tmp: Canonical temporary directories.
        log: Path of the session's log.
        exit: Its status once it has ended.
        enforced: What the kernel enforces; None until that is known.
        rules: The live rules.
        hold_seconds: How long a refused caller waits for an answer; 0: not at all.
    """

    session_id: str
    pid: int
    started: int
    argv: tuple[str, ...]
    project: bytes
    home: bytes
    tmp: tuple[bytes, ...]
    log: str
    exit: int | None = None
    enforced: Enforced | None = None
    rules: tuple[Rule, ...] = field(default=())
    hold_seconds: float = 0.0

    def with_rules(self, rules: tuple[Rule, ...]) -> RunRecord:
        """Returns the record with these live rules in place of its own."""
        return replace(self, rules=rules)


# ---- Out


def render(record: RunRecord) -> bytes:
    """Returns the file's bytes: one member a line, so that people can read and edit it."""
    enforced = record.enforced
    document = {
        "v": VERSION,
        "session_id": record.session_id,
        "pid": record.pid,
        "started": record.started,
        "argv": list(record.argv),
        "project": to_text(record.project),
        "home": to_text(record.home),
        "tmp": [to_text(path) for path in record.tmp],
        "exit": record.exit,
        "log": record.log,
        "enforced": enforced
        and {
            "landlock_abi": enforced.landlock_abi,
            "listener": enforced.listener,
            "partial": list(enforced.partial),
            "mode": enforced.mode,
        },
        "hold_seconds": record.hold_seconds,
        "rules": [rule_to_json(rule) for rule in record.rules],
    }
    # ASCII escapes carry lone surrogates (bytes that are not UTF-8) safely through any editor.
    # Not at the top: a start imports it when it no longer waits for it.
    import json

    return json.dumps(document, indent=1, allow_nan=False).encode("ascii") + b"\n"


def rule_to_json(rule: Rule) -> dict[str, Any]:
    """Returns a live rule as the file and the log's `grant` frames hold it; `why` is left out when empty."""
    body: dict[str, Any] = {
        "id": rule.id,
        "effect": rule.effect.value,
        "access": rule.access.value,
        "target": target_to_json(rule.target),
        "scope": rule.scope.value,
        "by": rule.by,
        "at": rule.at,
    }
    if rule.why:
        body["why"] = rule.why
    return body


def target_to_json(target: Target) -> dict[str, Any]:
    """Returns a rule's target as JSON."""
    if isinstance(target, HostTarget):
        return {"host": target.host, "port": target.port, "proto": target.proto}
    if isinstance(target, SocketTarget):
        return {"socket": to_text(target.path)}
    return {"path": to_text(target.path)} | ({"glob": True} if target.glob else {})


# ---- In


def parse(data: bytes) -> RunRecord:
    """Reads the file's bytes.

    Raises:
        RuleFileError: They are not a record of version 1 in every member.
    """
    top = Members(_load(data), "")
    version = top.integer("v")
    if version != VERSION:
        raise RuleFileError(f"version {version} is not {VERSION}", "v", "it was written by another nd7")
    record = RunRecord(
        session_id=top.text("session_id"),
        pid=top.integer("pid", least=1),
        started=top.integer("started", least=0),
        argv=top.texts("argv"),
        project=top.path("project"),
        home=top.path("home"),
        tmp=top.paths("tmp"),
        exit=top.integer_or_null("exit"),
        log=top.text("log"),
        enforced=_enforced(top),
        hold_seconds=top.seconds("hold_seconds"),
        rules=tuple(rule_from_json(value, f"rules[{n}]") for n, value in enumerate(top.items("rules"))),
    )
    top.done()
    _check_ids(record.rules)
    return record


def _load(data: bytes) -> Any:
    if len(data) > MAX_BYTES:
        raise RuleFileError(f"more than {MAX_BYTES} bytes", "")
    import json

    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_no_repeats, parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise RuleFileError(f"not UTF-8 at byte {error.start}", "") from error
    except json.JSONDecodeError as error:
        raise RuleFileError(f"not JSON: {error.msg.lower()}", f"line {error.lineno} column {error.colno}") from error
    except (RecursionError, ValueError) as error:
        # ValueError also for an integer of more digits than Python converts.
        raise RuleFileError("not JSON that nd7 reads: nested too deep or a number too long", "") from error


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) != len(pairs):
        # Readers differ in which of two members counts; a file that two readers read differently is no rule file.
        raise RuleFileError("a member is there twice", "")
    return names


def _no_constant(name: str) -> Any:
    raise RuleFileError(f"{name} is not JSON", "")


def _enforced(top: Members) -> Enforced | None:
    value = top.take("enforced")
    if value is None:
        return None
    members = Members(value, "enforced")
    enforced = Enforced(
        landlock_abi=members.integer("landlock_abi", least=0),
        listener=members.boolean("listener"),
        partial=members.texts("partial"),
        mode=members.one_of("mode", ("default", "fast")),
    )
    members.done()
    return enforced


def _check_ids(rules: tuple[Rule, ...]) -> None:
    seen: set[str] = set()
    for number, rule in enumerate(rules):
        if rule.id in seen:
            raise RuleFileError(f"the id {rule.id!r} is there twice", f"rules[{number}].id")
        seen.add(rule.id)


def rule_from_json(value: Any, where: str) -> Rule:
    """Reads one live rule.

    Args:
        value: Decoded JSON.
        where: The member's name, for errors.

    Raises:
        RuleFileError: Anything in it is missing, unknown or makes no sense together.
    """
    members = Members(value, where)
    access = Access(members.one_of("access", tuple(Access)))
    try:
        rule = Rule(
            effect=Effect(members.one_of("effect", LIVE_EFFECTS)),
            access=access,
            target=target_from_json(members.take("target"), f"{where}.target"),
            scope=Scope(members.one_of("scope", LIVE_SCOPES)),
            by=members.text("by"),
            at=members.integer("at", least=0),
            id=members.text("id", least=1),
            why=members.text("why") if members.has("why") else "",
        )
    except ValueError as error:
        raise RuleFileError(
            str(error), where, "connect goes with a host or a socket, read and write with a path"
        ) from (error)
    members.done()
    return rule


def target_from_json(value: Any, where: str) -> Target:
    """Reads a rule's target.

    Raises:
        RuleFileError: It is not one of the three kinds, or not canonical.
    """
    members = Members(value, where)
    target: Target
    try:
        if members.has("host"):
            proto = (
                members.one_of("proto", ("tcp", "udp")) if members.get("proto") is not None else members.take("proto")
            )
            target = HostTarget(members.text("host"), members.integer_or_null("port"), proto)
        elif members.has("socket"):
            target = SocketTarget(members.path("socket", abstract=True))
        else:
            path = members.path("path")
            target = PathTarget(path, members.boolean("glob") if members.has("glob") else False)
    except ValueError as error:
        raise RuleFileError(str(error), where, "hosts are *, loopback, an address or a network") from error
    members.done()
    return target
