from __future__ import annotations

import os

import pytest
from run_fakes import ASK_RULE, FakeGate, FakeLog, FakeTree, asking, request, rule

from nd7tui.engine.policy.rules import Effect, Policy, Scope
from nd7tui.engine.run import livelog
from nd7tui.engine.run.chains import Chains
from nd7tui.engine.run.denials import SECOND, Denials
from nd7tui.engine.run.jobs import Ending
from nd7tui.engine.run.livelog import LiveLog
from nd7tui.engine.run.liverules import LiveRules
from nd7tui.engine.run.options import Ask
from nd7tui.engine.run.rulewatch import Change
from nd7tui.engine.run.supervisor import Supervisor
from nd7tui.engine.run.toolcalls import ToolCalls
from nd7tui.engine.sandbox.outcome import Fault


class FakeWatch:
    def __init__(self):
        self.next = None
        self.rules = ()

    def put(self, *rules, error=None):
        added = tuple(one for one in rules if one not in self.rules)
        removed = tuple(one for one in self.rules if one not in rules)
        self.next, self.rules = Change(rules, added, removed, error, "d"), rules

    def poll(self):
        change, self.next = self.next, None
        return change


class FakeJob:
    pid = 50

    def __init__(self):
        self.ending, self.reaped, self.alone = None, [], False

    def reap(self):
        pass

    def end(self):
        self.ending, self.alone = Ending(code=0), True


class FakeSignals:
    def __init__(self):
        self.fd, self.other = os.pipe()

    def read(self):
        return []


class World:
    def __init__(self, *script, hold=20 * SECOND, ask=Ask.PROTECTED):
        floor = Policy(default=(ASK_RULE,))
        self.gate = FakeGate(floor)
        self.log, self.watch, self.job, self.now, self.said = FakeLog(), FakeWatch(), FakeJob(), 0, []
        self.tree, self.signals = FakeTree(), FakeSignals()
        self.live = LiveLog(lambda: self.log, self.said.append, lambda: self.now)
        self.supervisor = Supervisor(
            gate=self.gate,
            tree=self.tree,
            job=self.job,
            signals=self.signals,
            watch=self.watch,
            rules=LiveRules(floor, ()),
            denials=Denials(hold, ask, log_noise=False, is_noise=lambda _: False),
            chains=Chains("own", self.live, lambda _: self.live, 1),
            toolcalls=ToolCalls(),
            tell=self.said.append,
            clock=lambda: self.now,
        )
        self.gate.script = [*script, self.job.end]
        self.supervisor.run()

    def kinds(self):
        return [kind for _, kind, _, _ in self.log.frames]


@pytest.fixture(autouse=True)
def world_class(monkeypatch):
    """Scripts refer to the world being made."""
    made = []
    start = World.__init__

    def remember(self, *script, **options):
        made.append(self)
        start(self, *[lambda step=step: step(self) if callable(step) else [step] for step in script], **options)

    monkeypatch.setattr(World, "__init__", remember)
    return made


def test_a_refusal_is_a_frame_and_an_errno():
    world = World(request(7))
    assert world.gate.answers == {7: "refused"}
    (body,) = world.log.of("denial")
    assert (body["target"], body["ancestors"], body["count"]) == ("/x/file", [99, 50], 1)


def test_a_rule_that_came_while_the_call_was_judged_counts():
    def call(world):
        # The gate has judged by the old rules when the file changes.
        one = request(1)
        world.gate.judged(one)
        world.watch.put(rule(path=b"/x"))
        return [one]

    world = World(call)
    assert world.gate.answers == {1: "allowed"}
    assert world.kinds() == ["grant", "rules_changed"]


def test_a_held_call_is_let_through_by_a_rule_and_others_are_not_stalled():
    world = World(
        asking(1),
        request(2),
        lambda world: world.watch.put(rule(path=b"/p/.envrc")),
    )
    assert world.gate.answers == {2: "refused", 1: "allowed"}
    assert world.log.of("denial")[0]["held"] is True
    assert world.log.of("denial_end")[0]["outcome"] == "allowed"


def test_a_deny_ends_the_wait():
    world = World(asking(1), lambda world: world.watch.put(rule(Effect.DENY, b"/p/.envrc")))
    assert world.gate.answers == {1: "refused"}
    assert world.log.of("denial_end")[0]["outcome"] == "denied"


def test_an_unrelated_rule_leaves_it_waiting_until_its_deadline():
    def wait(world):
        assert world.gate.answers == {}
        world.now += 20 * SECOND

    world = World(asking(1), lambda world: world.watch.put(rule(path=b"/other")), wait, lambda _: None)
    assert world.gate.answers == {1: "refused"}
    assert world.log.of("denial_end")[0]["outcome"] == "expired"


def test_a_caller_that_went_away_is_told_of():
    world = World(asking(1), lambda world: world.gate.dead.add(1), lambda _: None)
    assert world.log.of("denial_end")[0]["outcome"] == "gone"
    assert world.gate.answers == {}


def test_a_grant_for_one_use_opens_once():
    once = rule(path=b"/x", scope=Scope.ONCE, id="o1")
    world = World(lambda world: world.watch.put(once), request(1), request(2))
    assert world.gate.answers == {1: "allowed", 2: "refused"}
    (spent,) = world.log.of("revoke")
    assert (spent["rule"]["id"], spent["spent"]) == ("o1", True)
    assert world.kinds() == ["grant", "rules_changed", "revoke", "denial"]


def test_a_grant_for_one_use_answers_one_of_two_questions():
    once = rule(path=b"/p/.envrc", scope=Scope.ONCE)
    world = World(asking(1), asking(2), lambda world: world.watch.put(once))
    assert world.gate.answers[1] == "allowed"
    assert world.gate.answers[2] == "refused"


def test_a_deny_for_one_use_is_spent_by_its_refusal():
    once = rule(Effect.DENY, b"/p/.envrc", Scope.ONCE)
    world = World(asking(1), lambda world: world.watch.put(once), hold=20 * SECOND)
    assert world.gate.answers == {1: "refused"}
    assert world.log.of("revoke")[0]["spent"] is True


def test_a_broken_file_is_told_and_changes_nothing():
    def broken(world):
        world.watch.put(*world.watch.rules, error="record.json: broken")

    world = World(lambda world: world.watch.put(rule(path=b"/x")), broken, request(1))
    assert world.gate.answers == {1: "allowed"}
    assert world.log.of("rules_changed")[-1]["error"] == "record.json: broken"
    assert "last good rules hold" in world.said[0]


def test_taking_a_grant_back_is_told_and_the_next_refusal_at_once():
    world = World(
        request(1),
        request(2),
        lambda world: world.watch.put(rule(path=b"/x")),
        request(3),
        lambda world: world.watch.put(),
        request(4),
    )
    assert world.gate.answers == {1: "refused", 2: "refused", 3: "allowed", 4: "refused"}
    assert [(body["count"], body.get("repeat_of")) for body in world.log.of("denial")] == [
        (1, None),
        (1, "d1"),
        (1, None),
    ]
    # The counted repeat was refused by the old rules, so it is told before the new ones.
    assert world.kinds() == ["denial", "denial", "grant", "rules_changed", "revoke", "rules_changed", "denial"]


def test_nothing_is_allowed_that_cannot_be_told(monkeypatch):
    monkeypatch.setattr(livelog, "MOST_QUEUED", 2)

    def full(world):
        world.log.error = OSError(28, "No space left on device")

    def room(world):
        world.log.error = None
        world.now += livelog.RETRY

    world = World(
        lambda world: world.watch.put(rule(path=b"/x")),
        request(1),
        full,
        request(2, target=b"/y1"),
        request(3, target=b"/y2"),
        request(4),
        room,
        lambda _: None,
        request(5),
    )
    assert world.gate.answers == {1: "allowed", 2: "refused", 3: "refused", 4: "refused", 5: "allowed"}
    assert world.log.of("log_gap") == [{"lost": 1}]


def test_a_defect_of_ours_is_a_frame_each_time_and_said_once():
    def broken(world):
        world.gate.faults += [Fault(7, "openat", "KeyError: 1", "sh"), Fault(8, "openat", "KeyError: 1", "sh")]

    world = World(broken, lambda _: None)
    assert [(body["pid"], body["op"], body["error"]) for body in world.log.of("call_fault")] == [
        (7, "openat", "KeyError: 1"),
        (8, "openat", "KeyError: 1"),
    ]
    assert [text for text in world.said if "KeyError" in text] == [
        "a call was refused by a defect of nd7, please report it: openat: KeyError: 1"
    ]
