"""Stand-ins for what the supervisor talks to: the gate, the log, the process tree."""

# ruff: noqa: A002 - the names are those of the real ones
from __future__ import annotations

import select
import threading
from dataclasses import dataclass, field

from nd7tui.engine.policy.rules import Access, Effect, PathTarget, Policy, Rule, Scope, Verdict
from nd7tui.engine.run.liverules import judge
from nd7tui.engine.sandbox.outcome import Request

DEFAULT_NO = Verdict(Effect.DENY, None, "outside the project")
ASK_RULE = Rule(Effect.ASK, Access.WRITE, PathTarget(b"/p/.envrc"), Scope.DEFAULT, "nd7", 0, "ask1", "run by direnv")


def rule(effect=Effect.ALLOW, path=b"/x", scope=Scope.RUN, id="r1", access=Access.WRITE):
    return Rule(effect, access, PathTarget(path), scope, "test", 1, id)


def request(id=1, target=b"/x/file", verdict=DEFAULT_NO, op="openat", exe="/bin/sh", pid=100, **more):
    return Request(id, pid, pid, op, Access.WRITE, "path", target, verdict, 13, "sh", exe, **more)


def asking(id=1, target=b"/p/.envrc", **more):
    return request(id, target, Verdict(Effect.ASK, ASK_RULE, "run by direnv"), **more)


@dataclass
class FakeGate:
    """Decides by the policy it was given; `script` holds the calls to come."""

    policy: Policy
    script: list = field(default_factory=list)
    strict: bool = False
    hung_up: bool = False
    answers: dict = field(default_factory=dict)
    dead: set = field(default_factory=set)
    faults: list = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def wait(self, timeout_ms, wake_fd):
        if not self.script:
            poller = select.poll()
            poller.register(wake_fd, select.POLLIN)
            poller.poll(timeout_ms)
            return []
        step = self.script.pop(0)
        made = [step] if isinstance(step, Request) else (step() or [])
        return [one for one in made if not self.judged(one)]

    def judged(self, one):
        one.verdict = judge(self.policy, one)
        if one.verdict.effect is Effect.ALLOW:
            assert one.id not in self.answers
            self.answers[one.id] = "allowed"
            return True
        return False

    def refuse(self, one):
        assert one.id not in self.answers
        self.answers[one.id] = "refused"

    def retry(self, one):
        return not self.alive(one) or self.judged(one)

    def alive(self, one):
        return one.id not in self.dead and one.id not in self.answers

    def take_faults(self):
        taken, self.faults = self.faults, []
        return taken

    def set_policy(self, policy, strict=False):
        self.policy, self.strict = policy, strict


class FakeTree:
    def __init__(self, pids=()):
        self.alive = list(pids)

    def pids(self):
        return list(self.alive)

    def ancestors(self, pid):
        return [pid - 1, 50]


class FakeLog:
    """Keeps frames; fails while `error` is set."""

    def __init__(self):
        self.frames = []
        self.error = None
        self.closed = False

    def append(self, source, kind, body, ts=None):
        if self.error:
            raise self.error
        self.frames.append((source, kind, body, ts))

    def record_hook(self, payload, source=None, ts=None, hook_ppid=None):
        self.append(source, "hook", {"raw": payload}, ts)

    def close(self):
        self.closed = True

    def of(self, kind):
        return [body for _, found, body, _ in self.frames if found == kind]
