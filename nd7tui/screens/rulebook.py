"""From a key on a denial to a rule in the run's file.

Rule: every answer is a rule file written by `engine.run.directory`; nothing is sent to the supervisor and nothing is
remembered here. A grant is exactly about what was refused (or the directory the person widened it to), never more.

Owns: which rule an answer is. Raises what `directory.update` raises.
That a rule was written does not prove that it holds; the supervisor's `grant` frame says so.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from nd7tui.engine.policy import config, surroundings
from nd7tui.engine.policy.members import RuleFileError
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
)
from nd7tui.engine.run import directory
from nd7tui.errors import UsageError
from nd7tui.widgets.denials import decide, split_address, widened

if TYPE_CHECKING:
    from nd7tui.engine.policy.document import RunRecord
    from nd7tui.engine.run.directory import Run
    from nd7tui.widgets.denials import DenialRow

BY = "tui"


def target_of(row: DenialRow, level: int = 0) -> Target:
    """Returns what a rule about a denial covers.

    Raises:
        ValueError: The frame names no target a rule could have.
    """
    if row.access is not Access.CONNECT:
        return PathTarget(widened(row.raw, level))
    if row.raw.startswith((b"/", b"@")):
        return SocketTarget(row.raw)
    host, port, proto = split_address(row.target)
    return HostTarget(host, port, proto)


def target_words(target: Target, *, short: bool = False) -> str:
    """Returns a rule's target for people; `short` leaves out what a directory means."""
    if isinstance(target, HostTarget):
        port = "" if target.port is None else f":{target.port}"
        return f"{target.host}{port}" + (f"/{target.proto}" if target.proto else "")
    path = os.fsdecode(target.path)
    if isinstance(target, PathTarget) and not target.glob and os.path.isdir(target.path):
        return f"{path.rstrip('/')}/" + ("" if short else " and everything beneath it")
    return path


def new_rule(effect: Effect, access: Access, target: Target, scope: Scope) -> Rule:
    """Returns a rule made now, by this UI."""
    return Rule(effect, access, target, scope, BY, time.time_ns(), f"tui-{os.urandom(5).hex()}")


def floor_of(record: RunRecord, run_dir: str) -> Policy:
    """Returns the policy the run started with, as far as its record tells: for showing, never for enforcing."""
    layout = surroundings.layout_of(os.fsdecode(record.project), run_dir, tmp=record.tmp)
    return standing(surroundings.floor_of(layout), record.project)


def standing(floor: Policy, project: bytes) -> Policy:
    """Returns the floor with the user's standing rules; a configuration that is broken adds none."""
    try:
        return config.load().apply(floor, project)
    except RuleFileError:
        return floor


def allow(run: Run, row: DenialRow, policy: Policy, scope: Scope, level: int = 0) -> Rule:
    """Allows what a denial was about, in place of any live rule for exactly that.

    Raises:
        UsageError: Nothing can allow it, or the run has ended.
        RuleFileError: The rule file is broken.
    """
    rule = new_rule(Effect.ALLOW, row.access, _checked(row, level), scope)
    raw = widened(row.raw, level) if isinstance(rule.target, PathTarget) else row.raw
    if reason := never_reason(policy, row.access, raw):
        raise UsageError(f"nothing can allow this: {reason}")
    directory.update(run, lambda record: record.with_rules((*_others(record, rule), rule)))
    return rule


def allow_always(run: Run | None, record: RunRecord | None, row: DenialRow, policy: Policy, level: int) -> Rule:
    """Allows it in every run of the project, and in this one from now on.

    Raises:
        UsageError: Nothing can allow it, or no project is known.
        RuleFileError: The configuration, or the rule file, is broken.
    """
    if record is None:
        raise UsageError("the run's project is not known yet")
    rule = new_rule(Effect.ALLOW, row.access, _checked(row, level), Scope.PROJECT)
    # First the run: what nothing can allow is refused there, before anything is written for good.
    if run is not None:
        allow(run, row, policy, Scope.RUN, level)
    config.remember(rule, record.project)
    return rule


def never_reason(policy: Policy, access: Access, raw: bytes) -> str:
    """Returns why nothing can allow a target, or ""."""
    verdict = decide(policy, access, raw)
    never = verdict.rule is not None and verdict.rule.scope is Scope.NEVER
    return verdict.reason if never and verdict.effect is Effect.DENY else ""


def take_back_or_deny(run: Run, row: DenialRow, policy: Policy) -> Rule:
    """Takes the live grant back that covers a denial; denies the target itself when there is none.

    Returns:
        The rule removed (its effect is ALLOW) or added (DENY).

    Raises:
        UsageError: The run has ended.
        RuleFileError: The rule file is broken.
    """
    granted = decide(policy, row.access, row.raw).rule
    if granted is not None and granted.effect is Effect.ALLOW and granted.scope in {Scope.ONCE, Scope.RUN}:
        directory.remove_rule(run, granted.id)
        return granted
    rule = new_rule(Effect.DENY, row.access, _checked(row, 0), Scope.RUN)
    directory.update(run, lambda record: record.with_rules((*_others(record, rule), rule)))
    return rule


def _checked(row: DenialRow, level: int) -> Target:
    try:
        return target_of(row, level)
    except ValueError as error:
        raise UsageError(f"no rule can be about this: {error}") from error


def _others(record: RunRecord, rule: Rule) -> tuple[Rule, ...]:
    return tuple(old for old in record.rules if (old.access, old.target) != (rule.access, rule.target))
