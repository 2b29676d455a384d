"""What the denial list says, derived from frames and rules alone.

Rule: a row's state is computed from the log's frames and the rules in force, never remembered from a key press; a
second UI that reads the same log and the same record shows the same. What only this screen knows is what has been read
and since when a row is visible.

Owns: rows, their merging, their state, and which row a key means that names none. Pure: frames, policies and times
(Unix nanoseconds) come in.
A row that says "allowed" does not prove that the program tried again.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

from nd7tui.engine.policy.document import rule_from_json
from nd7tui.engine.policy.members import RuleFileError
from nd7tui.engine.policy.rules import Access, Effect, Policy, Rule, Scope, Verdict

if TYPE_CHECKING:
    from nd7tui.engine.log.frame import Body, Frame

SECOND = 1_000_000_000
ARM_AFTER = SECOND // 2
HISTORY = 50
MOST_ROWS = 5000
# What an editor writes beside the file that is meant: swap, backup, lock, probe and history files.
_ASIDE = re.compile(rb"\.sw[a-z]$|~$|^4913$|^\.viminf|^\.#|^#.*#$|\.tmp$|^\.goutputstream-")
LIVE = frozenset({Scope.ONCE, Scope.RUN, Scope.PROJECT})

Key = tuple[str, bytes]


class State(Enum):
    """What became of a denial: a mark, a word, a role (never the colour alone)."""

    REFUSED = ("✗", "refused", "bad")
    ASK = ("?", "ASK", "warn")
    ALLOWED = ("✓", "allowed", "ok")
    ONCE = ("✓", "allowed once", "ok")
    DENIED = ("⊘", "denied", "bad")
    TAKEN_BACK = ("↶", "taken back", "warn")
    GONE = ("✗", "gone", "dim")

    @property
    def mark(self) -> str:
        """One cell."""
        return self.value[0]

    @property
    def word(self) -> str:
        """What it is called."""
        return self.value[1]

    @property
    def role(self) -> str:
        """How it is painted."""
        return self.value[2]


@dataclass(slots=True)
class DenialRow:
    """Everything refused about one target for one access.

    Attributes:
        access: `read`, `write` or `connect`.
        target: The path or address, to show.
        raw: The same, exact.
        first_ts: When it was first refused, Unix ns.
        last_ts: When it was last refused, Unix ns.
        count: How often.
        frames: The newest frames about it, newest last.
        noise: Only known noise so far.
        unread: Nobody has looked at the newest refusal.
        since: When this row (or its newest refusal after an answer) appeared here, Unix ns.
        ask_id: Id of the open question, while a caller is held.
        deadline: When that question expires, Unix ns.
        outcome: How the last question ended.
        outcome_ts: When.
    """

    access: Access
    target: str
    raw: bytes
    first_ts: int
    last_ts: int
    count: int = 0
    frames: list[Frame] = field(default_factory=list)
    noise: bool = True
    unread: bool = True
    since: int = 0
    ask_id: str | None = None
    deadline: int = 0
    outcome: str = ""
    outcome_ts: int = 0

    @property
    def key(self) -> Key:
        """What tells it from the others."""
        return (self.access.value, self.raw)

    @property
    def aside(self) -> bool:
        """Whether this is a file that editors make beside the one that is meant."""
        return self.access is Access.WRITE and _ASIDE.search(os.path.basename(self.raw)) is not None

    @property
    def body(self) -> Body:
        """The body of the newest frame."""
        return self.frames[-1].body

    @property
    def comm(self) -> str:
        """The program that was refused last."""
        return str(self.body.get("comm", ""))


def decide(policy: Policy, access: Access, target: bytes) -> Verdict:
    """Returns what `policy` says about a denial's target, whatever kind it is."""
    if access is not Access.CONNECT:
        return policy.decide_path(access, target)
    if target.startswith((b"/", b"@")):
        return policy.decide_socket(target)
    return policy.decide_host(*split_address(target.decode("utf-8", "replace")))


def split_address(text: str) -> tuple[str, int, str]:
    """Splits `1.2.3.4:22/tcp` or `[::1]:53/udp`; what is missing becomes port 0 and tcp."""
    address, _, proto = text.partition("/")
    host, _, port = address.rpartition(":")
    return host.strip("[]") or address, int(port) if port.isdigit() else 0, proto or "tcp"


def rule_of(value: object) -> Rule | None:
    """Reads the rule of a `grant` or `revoke` frame; None when it makes no sense."""
    try:
        # A project's standing rule has the same form; the rule file's reader knows a run's own scopes only.
        if isinstance(value, dict) and value.get("scope") == Scope.PROJECT.value:
            return replace(rule_from_json(value | {"scope": Scope.RUN.value}, "rule"), scope=Scope.PROJECT)
        return rule_from_json(value, "rule")
    except RuleFileError:
        return None


def _exact(body: Body) -> bytes:
    """Returns the target's bytes: text cannot say every path, then it is there in hex too."""
    try:
        return bytes.fromhex(_text(body.get("target_hex"))) or os.fsencode(_text(body.get("target")))
    except ValueError:
        return _text(body.get("target")).encode("utf-8", "replace")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object, otherwise: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise


class DenialBook:
    """All denials of one session.

    Attributes:
        policy: The policy in force, with its live rules.
        changed: Grows with every change, so that a list knows when to paint.
    """

    def __init__(self) -> None:
        self.policy = Policy()
        self.changed = 0
        self._rows: dict[Key, DenialRow] = {}
        self._by_id: dict[str, DenialRow] = {}
        self._gone: list[tuple[Rule, int]] = []
        self._spent: set[str] = set()

    def set_policy(self, policy: Policy) -> None:
        """Takes in the policy in force; grants for one use that have been used are no longer."""
        self.policy = policy.without(self._spent)
        self.changed += 1

    def rows(self, *, noise: bool = False) -> list[DenialRow]:
        """Returns the rows, the newest refusal first."""
        return [row for row in reversed(self._rows.values()) if noise or not row.noise]

    def row(self, key: Key | None) -> DenialRow | None:
        """Returns one row."""
        return None if key is None else self._rows.get(key)

    @property
    def hidden(self) -> int:
        """How many rows are noise."""
        return sum(row.noise for row in self._rows.values())

    @property
    def unread(self) -> int:
        """How many rows nobody has looked at."""
        return sum(row.unread and not row.noise for row in self._rows.values())

    @property
    def total(self) -> int:
        """How many calls were refused, noise left out."""
        return sum(row.count for row in self._rows.values() if not row.noise)

    def take(self, frame: Frame, now: int, *, seen: bool = False) -> None:
        """Takes in one frame of any kind.

        Args:
            frame: The frame.
            now: When it is shown, Unix ns.
            seen: It is old news (a log that was there before the screen): not unread.
        """
        if frame.kind == "denial":
            self._denial(frame, now, seen=seen)
        elif frame.kind == "denial_end":
            self._ended(frame)
        elif frame.kind == "revoke":
            self._revoked(frame)
        elif frame.kind in {"run_start", "run_end"}:
            self._close_questions(frame.ts)
        else:
            return
        self.changed += 1

    def read_all(self) -> None:
        """Marks every row as looked at, save those with an open question: somebody waits for an answer."""
        for row in self._rows.values():
            row.unread = row.unread and row.ask_id is not None

    def newest(self) -> DenialRow | None:
        """Returns the newest row that nobody has looked at and that is not noise.

        A refused `:w` is followed by vim's swap, probe and backup files: they are taken only when there is no other.
        """
        unread = [row for row in self.rows() if row.unread]
        return next((row for row in unread if not row.aside), unread[0] if unread else None)

    def to_allow(self, now: int) -> DenialRow | None:
        """Returns what a key that allows means: the newest unread row, else what the last decision shut."""
        return self.newest() or self.last_closed(now)

    def to_deny(self, now: int) -> DenialRow | None:
        """Returns what a key that denies means: the newest unread row, or the last grant if that is newer.

        An open question goes first, since somebody waits for it; an editor's side file never goes before a grant.
        """
        newest, granted = self.newest(), self.last_granted(now)
        if newest is None or granted is None or self.state(newest, now) is State.ASK:
            return newest or granted
        rule = self.verdict(granted).rule
        return granted if newest.aside or (rule is not None and rule.at > newest.last_ts) else newest

    def last_closed(self, now: int) -> DenialRow | None:
        """Returns the row that the last decision of all shut (taken back, denied), so that it can be undone.

        None when something was allowed after that: pressing allow twice must not open what was shut before.
        """
        closed = {rule.id: rule.at for rule in self.policy.live if rule.effect is Effect.DENY}
        when = max((rule.at for rule in self.policy.live if rule.effect is Effect.ALLOW), default=0)
        found = None
        for row in self.rows(noise=True):
            state, rule = self.state(row, now), self.verdict(row).rule
            at = 0
            if state is State.DENIED and rule is not None:
                at = closed.get(rule.id, 0)
            elif state is State.TAKEN_BACK:
                at = self._gone[-1][1] if self._gone_rule(row) is self._gone[-1][0] else 0
            if at > when:
                found, when = row, at
        return found

    def last_granted(self, now: int) -> DenialRow | None:
        """Returns the row whose grant is in force and was given last."""
        live = {rule.id: rule.at for rule in self.policy.live}
        granted = [
            (live.get(verdict.rule.id, 0), row)
            for row in self.rows(noise=True)
            if self.state(row, now) in {State.ALLOWED, State.ONCE} and (verdict := self.verdict(row)).rule is not None
        ]
        return max(granted, key=lambda pair: pair[0], default=(0, None))[1]

    def verdict(self, row: DenialRow) -> Verdict:
        """Returns what the policy says now about a row's target."""
        return decide(self.policy, row.access, row.raw)

    def state(self, row: DenialRow, now: int) -> State:
        """Returns what became of a row."""
        verdict = self.verdict(row)
        live = verdict.rule is not None and verdict.rule.scope in LIVE
        if verdict.effect is Effect.ALLOW and verdict.rule is not None and live:
            return State.ONCE if verdict.rule.scope is Scope.ONCE else State.ALLOWED
        if row.ask_id is not None and now < row.deadline:
            return State.ASK
        if live and verdict.effect is Effect.DENY:
            return State.DENIED
        gone = self._gone_rule(row)
        if gone is not None:
            return State.ONCE if gone.scope is Scope.ONCE else State.TAKEN_BACK
        if row.outcome and row.outcome_ts >= row.last_ts:
            return {"allowed": State.ONCE, "denied": State.DENIED, "gone": State.GONE}.get(row.outcome, State.REFUSED)
        return State.REFUSED

    def armed(self, row: DenialRow, now: int) -> bool:
        """Tells whether a row has been on the screen long enough to be decided."""
        return now - row.since >= ARM_AFTER

    def _gone_rule(self, row: DenialRow) -> Rule | None:
        """Returns the grant that covered a row and is no longer in force, if it went after the last refusal."""
        for rule, at in reversed(self._gone):
            if at < row.last_ts:
                return None
            if rule.effect is Effect.ALLOW and decide(Policy(live=(rule,)), row.access, row.raw).rule is rule:
                return rule
        return None

    def _denial(self, frame: Frame, now: int, *, seen: bool) -> None:
        body = frame.body
        if _text(body.get("access")) not in set(Access):
            return
        access, raw = Access(body["access"]), _exact(body)
        key = (access.value, raw)
        row = self._rows.pop(key, None)
        fresh = row is None or self._answered(row)
        if row is None:
            row = DenialRow(access, _text(body.get("target")), raw, frame.ts, frame.ts, since=now)
        self._rows[key] = row
        row.count += max(1, _number(body.get("count"), 1))
        row.last_ts = frame.ts
        row.frames = [*row.frames[-HISTORY:], frame]
        row.noise = row.noise and body.get("noise") is True
        row.since = now if fresh else row.since
        row.unread = not seen and (row.unread or fresh)
        self._question(row, frame)
        self._trim()

    def _answered(self, row: DenialRow) -> bool:
        """Tells whether something happened since the last refusal, so that another one is news."""
        return not row.unread and (row.outcome_ts >= row.last_ts or self._gone_rule(row) is not None)

    def _question(self, row: DenialRow, frame: Frame) -> None:
        name = _text(frame.body.get("id"))
        self._by_id[name] = row
        if frame.body.get("held") and "repeat_of" not in frame.body:
            row.ask_id = name
            row.deadline = _number(frame.body.get("deadline"), frame.ts + 20 * SECOND)
            row.unread = True
            row.outcome = ""

    def _ended(self, frame: Frame) -> None:
        row = self._by_id.get(_text(frame.body.get("id")))
        if row is not None:
            row.ask_id = None
            row.outcome, row.outcome_ts = _text(frame.body.get("outcome")), frame.ts

    def _close_questions(self, ts: int) -> None:
        """Nobody waits any more: the run is over, or another has begun (ids are unique within one only)."""
        self._by_id.clear()
        for row in self._rows.values():
            if row.ask_id is not None:
                row.ask_id, row.outcome, row.outcome_ts = None, "gone", ts

    def _revoked(self, frame: Frame) -> None:
        rule = rule_of(frame.body.get("rule"))
        if rule is None:
            return
        self._gone.append((rule, frame.ts))
        if frame.body.get("spent") is True:
            self._spent.add(rule.id)
            self.policy = self.policy.without(self._spent)

    def _trim(self) -> None:
        while len(self._rows) > MOST_ROWS:
            del self._rows[next(iter(self._rows))]


def widened(target: bytes, level: int) -> bytes:
    """Returns the path a grant covers: the target itself, or its `level`-th parent directory (never `/`)."""
    for _ in range(level):
        parent = os.path.dirname(target)
        if parent in {b"", b"/"}:
            break
        target = parent
    return target


def can_widen(row: DenialRow, level: int) -> bool:
    """Tells whether a grant for a row can cover one more directory."""
    return row.access is not Access.CONNECT and widened(row.raw, level + 1) != widened(row.raw, level)
