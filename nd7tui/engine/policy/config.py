"""The user's configuration, `~/.config/nd7/config.toml`: standing rules, and defaults of a run.

Rule: what cannot be understood is an error that names the member; a standing deny is never dropped in silence. What
nd7 writes into the file leaves the person's own lines and comments as they are.
Owns: the file's format, and where its rules go: rules of `[[project]]` and `[defaults]` are live rules of scope
PROJECT (they are what a person granted or denied, only for longer, so a grant of a directory does not open the
secrets in it); `read_deny` adds to the floor (so that `nd7 allow` can open one for a run).
Does not prove: that an allowed path stays what it was. So an allowed path must be canonical as it is written: one
that has become a symbolic link is an error, because a run that may write a directory can put a link there.

    [defaults]
    hold_seconds = 60
    mode = "fast"
    read_deny = ["~/.config/Slack"]
    rules = [                                  # for every project: the caches of package managers
        { effect = "allow", access = "write", path = "~/.npm" },
        { effect = "allow", access = "write", path = "~/.cache/pip" },
        { effect = "allow", access = "write", path = "~/.cargo/registry" },
    ]

    [[project]]
    path = "~/src/app"
    rules = [
        { effect = "allow", access = "read", path = "~/.npmrc" },
        { effect = "allow", access = "connect", host = "192.0.2.10", port = 5432, proto = "tcp" },
        { effect = "allow", access = "connect", socket = "/run/docker.sock" },
    ]
"""

from __future__ import annotations

import contextlib
import os

from nd7tui.engine import locks, paths
from nd7tui.engine.policy.members import Members, RuleFileError, path_of, to_bytes, to_text
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
    is_beneath,
)
from nd7tui.engine.records import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tomlkit import TOMLDocument

FILE = "config.toml"
BY = "config"
MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Project:
    """A project's standing rules; they hold for runs in it and beneath it."""

    path: bytes
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Config:
    """What the user configured; all defaults when there is no file.

    Attributes:
        hold_seconds: How long a refused caller waits for an answer; None: not said.
        mode: `default` or `fast`; None: not said.
        read_deny: Paths refused for reading beyond the tables'.
        rules: Standing rules of every project.
        projects: Standing rules of some.
    """

    hold_seconds: float | None = None
    mode: str | None = None
    read_deny: tuple[bytes, ...] = ()
    rules: tuple[Rule, ...] = ()
    projects: tuple[Project, ...] = ()

    def rules_for(self, project: bytes) -> tuple[Rule, ...]:
        """Returns the standing rules of a run in `project` (canonical)."""
        own = [rule for other in self.projects if is_beneath(project, other.path) for rule in other.rules]
        return (*self.rules, *own)

    def apply(self, policy: Policy, project: bytes) -> Policy:
        """Returns `policy` with what the user configured for a run in `project` (canonical)."""
        deny = tuple(
            Rule(Effect.DENY, Access.READ, PathTarget(path), Scope.DEFAULT, BY, 0, f"config-read{n}", WHY)
            for n, path in enumerate(self.read_deny)
        )
        return replace(policy, default=policy.default + deny, live=policy.live + self.rules_for(project))


WHY = "refused by your configuration"


# ---- In


def load(path: str | None = None) -> Config:
    """Reads the configuration.

    Args:
        path: The file; by default the user's.

    Raises:
        RuleFileError: It cannot be read or understood; `file` is `config.toml`.
    """
    path = path or paths.config_file()
    content = _read(path)
    return Config() if content is None else parse(content, paths.home())


def parse(content: bytes, home: str) -> Config:
    """Reads the configuration's bytes; looks at the file system to see where its paths lead.

    Raises:
        RuleFileError: They cannot be understood.
    """
    # 5 ms that only those pay who have a configuration.
    import tomllib

    try:
        document = tomllib.loads(content.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise _fault(f"not TOML: {_lower(error)}", "") from error
    top = Members(document, "", FILE)
    reader = _Reader(home)
    defaults = Members(top.take("defaults"), "defaults", FILE) if top.has("defaults") else Members({}, "", FILE)
    config = Config(
        hold_seconds=defaults.seconds("hold_seconds") if defaults.has("hold_seconds") else None,
        mode=defaults.one_of("mode", ("default", "fast")) if defaults.has("mode") else None,
        read_deny=reader.denied(defaults) if defaults.has("read_deny") else (),
        rules=reader.rules(defaults, "defaults") if defaults.has("rules") else (),
        projects=tuple(reader.project(value, f"project[{n}]") for n, value in enumerate(_tables(top))),
    )
    for name in ("keys", "ui"):  # the UI's own; it says itself what is wrong with them
        if top.has(name):
            top.take(name)
    defaults.done()
    top.done()
    return config


def _tables(top: Members) -> list[Any]:
    return top.items("project") if top.has("project") else []


def _fault(what: str, where: str, hint: str | None = None) -> RuleFileError:
    return RuleFileError(what, where, hint, FILE)


def _lower(error: Exception) -> str:
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    return text[:1].lower() + text[1:]


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _fault((error.strerror or str(error)).lower(), "") from error
    if len(content) > MAX_BYTES:
        raise _fault(f"more than {MAX_BYTES} bytes", "")
    return content


class _Reader:
    """Turns checked members into rules and numbers them."""

    def __init__(self, home: str) -> None:
        self._home = to_bytes(home)
        self._count = 0

    def denied(self, members: Members) -> tuple[bytes, ...]:
        texts = members.texts("read_deny")
        found = [self._path(text, f"defaults.read_deny[{n}]") for n, text in enumerate(texts)]
        # Refused as it is written and where it leads to.
        return tuple(dict.fromkeys([*found, *(os.path.realpath(path) for path in found)]))

    def project(self, value: Any, where: str) -> Project:
        members = Members(value, where, FILE)
        path = os.path.realpath(self._path(members.text("path"), f"{where}.path"))
        rules = self.rules(members, where) if members.has("rules") else ()
        members.done()
        return Project(path, rules)

    def rules(self, members: Members, where: str) -> tuple[Rule, ...]:
        values = members.items("rules")
        return tuple(rule for n, value in enumerate(values) for rule in self._rule(value, f"{where}.rules[{n}]"))

    def _rule(self, value: Any, where: str) -> list[Rule]:
        members = Members(value, where, FILE)
        effect = Effect(members.one_of("effect", tuple(Effect)))
        access = Access(members.one_of("access", tuple(Access)))
        why = members.text("why") if members.has("why") else ""
        try:
            targets = self._targets(members, effect, where)
            rules = [self._made(effect, access, target, why) for target in targets]
        except ValueError as error:
            hint = "hosts are *, loopback, an address or a network: a name's addresses change while nobody looks"
            raise _fault(str(error), where, hint) from error
        members.done()
        return rules

    def _made(self, effect: Effect, access: Access, target: Target, why: str) -> Rule:
        self._count += 1
        return Rule(effect, access, target, Scope.PROJECT, BY, 0, f"{BY}{self._count}", why)

    def _targets(self, members: Members, effect: Effect, where: str) -> list[Target]:
        if members.has("host"):
            port = members.integer("port") if members.has("port") else None
            proto = members.one_of("proto", ("tcp", "udp")) if members.has("proto") else None
            return [HostTarget(members.text("host"), port, proto)]
        kind = "socket" if members.has("socket") else "path"
        text = members.text(kind)
        if kind == "socket" and text.startswith("@"):
            return [SocketTarget(to_bytes(text))]
        glob = members.boolean("glob") if members.has("glob") else False
        found = self._leading(self._path(text, f"{where}.{kind}"), effect, f"{where}.{kind}", glob)
        return [SocketTarget(path) if kind == "socket" else PathTarget(path, glob) for path in found]

    def _leading(self, path: bytes, effect: Effect, where: str, glob: bool) -> list[bytes]:
        """Returns the path, and where it leads to; an allowed path must lead nowhere else."""
        if glob:
            parent, name = os.path.split(path)
            real = os.path.join(os.path.realpath(parent), name)
        else:
            real = os.path.realpath(path)
        if real == path:
            return [path]
        if effect is Effect.ALLOW:
            raise _fault(
                f"{to_text(path)} leads through a symbolic link", where, f"if it is meant, write {to_text(real)}"
            )
        return [path, real]

    def _path(self, text: str, where: str) -> bytes:
        if text == "~" or text.startswith("~/"):
            text = to_text(self._home.rstrip(b"/")) + text[1:]
        # A slash at the end is how people write directories.
        return path_of(text.rstrip("/") or text[:1], where, FILE)


# ---- Out


def remember(rule: Rule, project: bytes, path: str | None = None) -> None:
    """Adds a standing rule to the user's configuration; one that says the same is not added again.

    Args:
        rule: What to remember; its scope and id do not matter.
        project: Canonical path of the project.
        path: The file; by default the user's.

    Raises:
        RuleFileError: The file as it is cannot be understood (it is left alone), or the rule cannot be said in TOML.
    """
    path = path or paths.config_file()
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with locks.locked(f"{path}.lock", path):
        content = _read(path) or b""
        known = parse(content, paths.home())
        if any(_same(rule, other) for one in known.projects if one.path == project for other in one.rules):
            return
        changed = _with_rule(content.decode("utf-8"), rule, project).encode("utf-8")
        # Never put a file in place that the next run refuses.
        parse(changed, paths.home())
        _replace(os.path.realpath(path), changed)


def _same(rule: Rule, other: Rule) -> bool:
    return (rule.effect, rule.access, rule.target) == (other.effect, other.access, other.target)


def _with_rule(text: str, rule: Rule, project: bytes) -> str:
    import tomlkit
    from tomlkit.items import AoT

    document = tomlkit.parse(text)
    entry = tomlkit.inline_table()
    entry.update(_toml(rule))
    table = _project_table(document, project)
    rules = table.get("rules")
    if isinstance(rules, AoT):
        rules.append(tomlkit.item(_toml(rule)))
    elif rules is None:
        made = tomlkit.array()
        made.add_line(entry)
        table["rules"] = made.multiline(multiline=True)
    else:
        rules.append(entry)
    return tomlkit.dumps(document)


def _project_table(document: TOMLDocument, project: bytes) -> Any:
    """Returns the project's table, made if there is none."""
    import tomlkit

    home = to_bytes(paths.home())
    reader = _Reader(paths.home())
    tables: Any = document.get("project")
    for table in tables or ():
        if os.path.realpath(reader._path(str(table["path"]), "project.path")) == project:  # noqa: SLF001
            return table
    table = tomlkit.table()
    table["path"] = _text("~" + to_text(project[len(home) :]) if is_beneath(project, home) else to_text(project))
    if tables is None:
        tables = tomlkit.aot()
        document["project"] = tables
    tables.append(table)
    return document["project"][-1]


def _toml(rule: Rule) -> dict[str, Any]:
    target, entry = rule.target, {"effect": rule.effect.value, "access": rule.access.value}
    members: dict[str, Any]
    if isinstance(target, HostTarget):
        members = {"host": target.host, "port": target.port, "proto": target.proto}
    elif isinstance(target, SocketTarget):
        members = {"socket": _text(to_text(target.path))}
    else:
        members = {"path": _text(to_text(target.path))} | ({"glob": True} if target.glob else {})
    why = {"why": _text(rule.why)} if rule.why else {}
    return entry | {name: value for name, value in members.items() if value is not None} | why


def _text(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        hint = "allow it for the run, or a directory above it for the project"
        raise _fault(f"{text!a} is not UTF-8 and cannot be written in TOML", "", hint) from error
    return text


def _replace(path: str, content: bytes) -> None:
    """Puts the file in place as a whole, with the mode it had."""
    mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o600
    fresh = f"{path}.nd7-new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(fresh)
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    with open(fd, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(fd)
    os.rename(fresh, path)
