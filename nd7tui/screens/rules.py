"""The rules in force: what people granted and denied first, then what every run starts with.

Rule: live rules are read from the rule file each second, and taken back through it; the rules of the start are shown as
they are computed here for the run's project, for reading, and cannot be changed.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from nd7tui.actions import Action, Context, Facts
from nd7tui.engine import paths
from nd7tui.engine.policy import surroundings
from nd7tui.engine.policy.rules import Effect, Policy, Rule, Scope
from nd7tui.engine.run import directory
from nd7tui.screens import rulebook
from nd7tui.screens.base import Nd7Screen
from nd7tui.screens.sessions import Table
from nd7tui.widgets.bars import Bar, Piece
from nd7tui.widgets.cells import Row, clean, clock, cut_middle, fit, tilde

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from nd7tui.engine.run.directory import Run

ROLES = {Effect.ALLOW: "ok", Effect.DENY: "bad", Effect.ASK: "warn"}
MARKS = {Effect.ALLOW: "✓", Effect.DENY: "✗", Effect.ASK: "?"}


def policy_here() -> Policy:
    """Returns what a run started in this directory would begin with."""
    home = paths.home()
    project = os.path.realpath(os.getcwd())
    run_dir = os.path.join(paths.runs_dir(), "PID")
    layout = surroundings.layout_of(project, run_dir, tmp=surroundings.tmp_directories(os.environ, home))
    return rulebook.standing(surroundings.floor_of(layout), os.fsencode(project))


def rule_row(rule: Rule, access: str, width: int, home: str) -> Row:
    """Returns a rule's line; `access` is what it is about, in words."""
    scope = {Scope.DEFAULT: "from the start", Scope.NEVER: "always", Scope.PROJECT: "this project"}.get(
        rule.scope, f"{rule.scope.value} {clock(rule.at)}"
    )
    parts: Row = [
        (f" {MARKS[rule.effect]} {rule.effect.value:<6} ", ROLES[rule.effect]),
        (f"{access:<10} ", ""),
        (f"{scope:<14} ", "dim"),
    ]
    why = clean(rule.why or f"by {rule.by}")
    room = width - sum(len(text) for text, _ in parts)
    where = tilde(clean(rulebook.target_words(rule.target, short=True)), home)
    reason = f"  {why}" if room > 40 else ""
    return fit([*parts, (cut_middle(where, max(10, room - len(reason))), "strong"), (reason, "dim")], width)


def merged(rules: tuple[Rule, ...]) -> list[tuple[Rule, str]]:
    """Returns the rules with what they are about in words, the same for reading and writing as one."""
    found: dict[tuple[object, ...], tuple[Rule, list[str]]] = {}
    for rule in rules:
        key = (rule.effect, rule.target, rule.scope, rule.why)
        found.setdefault(key, (rule, []))[1].append(rule.access.value)
    return [(rule, "+".join(accesses)) for rule, accesses in found.values()]


class RulesScreen(Nd7Screen):
    """The rules of a run; without one, those a run started here would begin with.

    Args:
        run: The run.
        policy: Its policy, when it is known already.
    """

    DEFAULT_CSS = "RulesScreen #head { background: $panel; }"

    def __init__(self, run: Run | None = None, policy: Policy | None = None) -> None:
        super().__init__()
        self.run_shown = run
        record = run.record if run else None
        self.ended = run is None and policy is not None
        if policy is None:
            policy = rulebook.floor_of(record, run.dir) if run and record else policy_here()
        self.policy = policy
        self.rules: list[Rule] = []
        self.table = Table("no rules", id="rules")
        self.head = Bar(id="head")
        self.home = paths.home()

    def body(self) -> ComposeResult:
        """Composes the table."""
        yield self.head
        yield self.table

    def on_mount(self) -> None:
        """Reads, and keeps reading."""
        self.table.border_title = "rules"
        self.table.focus()
        self._read()
        self.set_interval(1.0, self._read)

    def _read(self) -> None:
        live = [rule for rule in self.policy.live if rule.scope not in {Scope.ONCE, Scope.RUN}]
        fault = ""
        if self.run_shown is not None:
            found = directory.load(self.run_shown.dir, self.run_shown.pid)
            fault = found.fault
            live = [*(found.record.rules if found.record else ()), *live]
            title = f" rules of {directory.describe(found)} (run {found.pid})" if not fault else " rules"
        elif self.ended:
            title = " the rules of a run that is over"
        else:
            title = f" what a run in {tilde(os.path.realpath(os.getcwd()), self.home)} would start with"
        pairs = [*((rule, rule.access.value) for rule in live), *merged((*self.policy.never, *self.policy.default))]
        self.rules = [rule for rule, _ in pairs]
        self.table.show([partial(rule_row, rule, access, home=self.home) for rule, access in pairs])
        pieces = [Piece(clean(title), "strong"), Piece(f"  {len(live)} live of {len(self.rules)}", "dim")]
        self.head.show([*pieces, Piece(f"  {fault}", "bad")] if fault else pieces)

    @property
    def current(self) -> Rule | None:
        """The rule under the cursor."""
        return self.rules[self.table.cursor] if self.table.cursor < len(self.rules) else None

    def contexts(self) -> list[Context]:
        """Returns where keys are looked up."""
        return [Context.RULES, Context.BACK]

    def facts(self, action: Action) -> Facts:
        """Returns what decides whether `action` can run."""
        del action
        rule = self.current
        live = rule is not None and rule.scope in {Scope.ONCE, Scope.RUN}
        return Facts(writable=self.run_shown is not None, rule=live)

    def do_take_back(self) -> None:
        """Takes the rule under the cursor back."""
        rule = self.current
        if rule is None or self.run_shown is None:
            return
        there = directory.remove_rule(self.run_shown, rule.id)
        where = tilde(clean(rulebook.target_words(rule.target)), self.home)
        verb = "took back" if there else "was gone already:"
        self.say(f"{verb} {rule.effect.value} {rule.access.value} {where}")
        self._read()
