"""A stand-in for the person's keys during a demo that runs by itself.

Rule: it acts from outside, the only way a person could: it reads the session's log and writes the run's rule file, as
the UI's keys do, and its rules say `by: demo`. It answers only for a run of the demo agent, and only for the two paths
that it works out itself from the run's record; nothing that a confined program says can make it allow another.

What a demo driven by this does not prove: that a person saw anything. `nd7 tui demo --manual` leaves the keys to them.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nd7tui.engine.agents.demo import PROGRAM, outside_path
from nd7tui.engine.log.frame import Frame
from nd7tui.engine.policy.rules import Access, Effect, PathTarget, Rule, Scope

if TYPE_CHECKING:
    from collections.abc import Callable

    from nd7tui.engine.policy.document import RunRecord
    from nd7tui.engine.run.directory import Run

BY = "demo"
REACTION_SECONDS = 3.0
_FAST_SECONDS = 0.2
_LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Press:
    """A rule is due.

    Attributes:
        effect: Allow or deny.
        path: What for; always for writing.
        scope: This run, or this one question.
    """

    effect: Effect
    path: str
    scope: Scope


@dataclass(frozen=True, slots=True)
class TakeBack:
    """The rule made for this path is to go."""

    path: str


Key = Press | TakeBack


class Script:
    """Which key to press when; sans I/O, time in seconds comes in.

    Args:
        outside: The file outside the project that is allowed and taken back.
        hook: The git hook, whose question is answered with no.
        reaction: Seconds between what is seen and the key.
    """

    def __init__(self, outside: str, hook: str, reaction: float) -> None:
        self._outside = outside
        self._hook = hook
        self._reaction = reaction
        self._seen: set[str] = set()
        self._due: list[tuple[float, Key]] = []

    def see(self, frame: Frame, now: float) -> None:
        """Takes in one frame of the log."""
        key = self._answer(frame)
        if key is not None and repr(key) not in self._seen:
            self._seen.add(repr(key))
            self._due.append((now + self._reaction, key))

    def due(self, now: float) -> list[Key]:
        """Returns the keys to press now, each once."""
        ready = [key for at, key in self._due if at <= now]
        self._due = [(at, key) for at, key in self._due if at > now]
        return ready

    def _answer(self, frame: Frame) -> Key | None:
        body = frame.body
        if frame.kind == "denial" and body.get("access") == Access.WRITE.value:
            if body.get("target") == self._outside:
                return Press(Effect.ALLOW, self._outside, Scope.RUN)
            if body.get("target") == self._hook and body.get("held"):
                return Press(Effect.DENY, self._hook, Scope.ONCE)
        # The demo reports the write once it went through and the person was asked to take it back.
        wrote = frame.kind == "tool_result" and body.get("ok") is True and body.get("tool_input")
        if isinstance(wrote, dict) and wrote.get("file_path") == self._outside:
            return TakeBack(self._outside)
        return None


def drive_demo(session_id: str, stop: Callable[[], bool], *, reaction: float | None = None) -> bool:
    """Presses the demo's keys until its run ends or `stop` says so. Blocks: for a thread of its own.

    Args:
        session_id: The session of the run; the run need not have started yet.
        stop: Asked about ten times a second.
        reaction: Seconds from a denial to its key; by default 3, and 0.2 for a demo started with `--fast`.

    Returns:
        Whether that session is a demo's run; of any other run nothing was touched.
    """
    from nd7tui.engine.log.layout import events_path
    from nd7tui.engine.log.tail import Tail
    from nd7tui.engine.run import directory

    run = _find(session_id, stop)
    if run is None or run.record is None or not is_demo(run.record):
        return False
    script = _script(run.record, reaction)
    tail = Tail(events_path(session_id))
    made: dict[str, str] = {}
    ended = False
    while not (ended or stop()):
        for frame in tail.poll():
            if isinstance(frame, Frame):
                script.see(frame, time.monotonic())
                ended = ended or frame.kind == "run_end"
        for key in script.due(time.monotonic()):
            if isinstance(key, Press):
                rule = rule_for(key, f"{BY}-{len(made) + 1}")
                directory.add_rule(run, rule)
                made[key.path] = rule.id
            elif key.path in made:
                directory.remove_rule(run, made.pop(key.path))
        time.sleep(_LOOK_SECONDS)
    tail.close()
    return True


def is_demo(record: RunRecord) -> bool:
    """Tells whether a run is the demo agent's."""
    return record.argv[:1] == ("demo",) or PROGRAM in record.argv


def rule_for(key: Press, identity: str) -> Rule:
    """Returns the rule that a key makes."""
    target = PathTarget(os.fsencode(key.path))
    return Rule(key.effect, Access.WRITE, target, key.scope, BY, time.time_ns(), identity, "the demo's own answer")


def _script(record: RunRecord, reaction: float | None) -> Script:
    hook = os.path.join(os.fsdecode(record.project), ".git/hooks/post-commit")
    default = _FAST_SECONDS if "--fast" in record.argv else REACTION_SECONDS
    outside = outside_path(os.fsdecode(record.home), record.pid)
    return Script(outside, hook, default if reaction is None else reaction)


def _find(session_id: str, stop: Callable[[], bool]) -> Run | None:
    """Waits for the session's run to be there."""
    from nd7tui.engine.run import directory

    while not stop():
        for run in directory.list_runs():
            if run.record is not None and run.record.session_id == session_id:
                return run
        time.sleep(_LOOK_SECONDS)
    return None
