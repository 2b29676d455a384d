"""The supervisor's loop: notified calls in, decisions and frames out.

Rule: before every decision the rule file is looked at, so that the next call of the program sees what a person has
just said. A call that policy refuses is told of before its caller hears of it. Nothing here blocks but the gate's
wait, so one held caller stalls nobody. What cannot be told is not allowed (see `livelog`).
Owns: the order of things. The parts keep their own rules: `denials`, `liverules`, `rulewatch`, `jobs`, `livelog`.
Does not prove: that the gate enforces; that is the kernel's and the gate's.
"""

from __future__ import annotations

import select
import time

from nd7tui.engine.policy.document import rule_to_json
from nd7tui.engine.policy.rules import Effect, Policy, Scope
from nd7tui.engine.run import frames
from nd7tui.engine.run.denials import Ended, Outcome, Refuse, Tell
from nd7tui.engine.run.frames import SECCOMP, SUPERVISOR, Origin
from nd7tui.engine.run.leftovers import Leftovers
from nd7tui.engine.run.liverules import judge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Protocol

    from nd7tui.engine.policy.rules import Rule
    from nd7tui.engine.run.chains import Chains
    from nd7tui.engine.run.denials import Action, Denials
    from nd7tui.engine.run.jobs import Job, Signals
    from nd7tui.engine.run.liverules import LiveRules
    from nd7tui.engine.run.rulewatch import Change, RuleWatch
    from nd7tui.engine.run.toolcalls import ToolCalls
    from nd7tui.engine.sandbox.outcome import Fault, Request

    class GateLike(Protocol):
        """What the loop needs of the gate."""

        def wait(self, timeout_ms: int, wake_fd: int) -> list[Request]:
            """Answers what policy allows, returns what it does not."""

        def refuse(self, request: Request) -> None:
            """Answers with the request's errno."""

        def retry(self, request: Request) -> bool:
            """Judges again; returns whether it was answered."""

        def alive(self, request: Request) -> bool:
            """Tells whether the caller still waits."""

        def take_faults(self) -> list[Fault]:
            """Returns what failed since the last time."""

        def set_policy(self, policy: Policy, strict: bool = False) -> None:
            """Decides by `policy` from now on; `strict` continues nothing even where the floor would allow it."""

    class TreeLike(Protocol):
        """What the loop needs of the process tree."""

        def pids(self) -> list[int]:
            """Returns the processes of the run."""

        def ancestors(self, pid: int) -> list[int]:
            """Returns the ancestors up to the program, nearest first."""

    class Server(Protocol):
        """Something that answers requests on a descriptor, a little at a time."""

        def fileno(self) -> int:
            """Readable when there is something to serve."""

        def serve(self) -> None:
            """Serves what is ready, without waiting."""


MILLISECOND = 1_000_000
IDLE_MS = 200
HELD_MS = 20
MOST_FAULTS_TOLD = 20


class Supervisor:
    """One run's loop.

    Args:
        gate: The sandbox's gate.
        tree: The run's processes.
        job: The program.
        signals: The signals of this process.
        watch: The rule file.
        rules: The policy.
        denials: What becomes of refused calls.
        chains: The logs.
        toolcalls: Which process works for which tool call.
        tell: Says one line to the person.
        server: Answers the run's hooks, if there are any.
        chore: Done at every turn; must not wait.
        clock: Monotonic, ns.
    """

    def __init__(
        self,
        *,
        gate: GateLike,
        tree: TreeLike,
        job: Job,
        signals: Signals,
        watch: RuleWatch,
        rules: LiveRules,
        denials: Denials,
        chains: Chains,
        toolcalls: ToolCalls,
        tell: Callable[[str], None],
        server: Server | None = None,
        chore: Callable[[], None] = lambda: None,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._gate = gate
        self._tree = tree
        self._job = job
        self._signals = signals
        self._watch = watch
        self._rules = rules
        self._denials = denials
        self._chains = chains
        self._toolcalls = toolcalls
        self._tell = tell
        self._chore = chore
        self.server = server
        self._clock = clock
        self._leftovers: Leftovers | None = None
        # Counts the policies the gate was given: a call judged by an older one is judged again.
        self._version = 0
        self._closed = False
        self._strict = False
        self._asked_by: dict[str, Origin] = {}
        self._faults_told: set[str] = set()

    @property
    def left_behind(self) -> int:
        """How many processes the program left behind."""
        return 0 if self._leftovers is None else self._leftovers.ended

    def be_strict(self) -> None:
        """Lets nothing be continued from now on: a process has narrowed itself in a way the gate cannot see."""
        if not self._strict:
            self._strict = True
            self._give_policy()

    def run(self) -> None:
        """Serves the run until its last process has ended."""
        wakes = select.epoll()
        try:
            wakes.register(self._signals.fd, select.EPOLLIN)
            if self.server is not None:
                wakes.register(self.server.fileno(), select.EPOLLIN)
            # A program that ended before we looked has sent its signal already, or has yet to send it.
            self._job.reap()
            while not self._over():
                self._turn(wakes)
        finally:
            wakes.close()

    def _turn(self, wakes: select.epoll) -> None:
        judged = self._version
        requests = self._gate.wait(self._patience_ms(), wakes.fileno())
        self.look_at_rules()
        for request in requests:
            self._decide(request, judged)
        self._wake(wakes)
        self._tick()

    def _patience_ms(self) -> int:
        longest = HELD_MS if self._denials.waiting or self._leftovers is not None else IDLE_MS
        due = self._denials.next_due()
        if due is None:
            return longest
        return min(longest, max(0, -((self._clock() - due) // MILLISECOND)))

    def _over(self) -> bool:
        """Tells whether nothing of the run is left; ends what the program has left behind."""
        if self._job.ending is None:
            return False
        if self._leftovers is None:
            self._do(self._denials.finish(self._clock()))
            if self._job.alone:
                return True
            self._leftovers = Leftovers(self._tree.pids, self._clock())
        return self._leftovers.step(self._clock())

    def _wake(self, wakes: select.epoll) -> None:
        for fd, _ in wakes.poll(0):
            if fd == self._signals.fd:
                for sent in self._signals.read():
                    self._job.take(sent)
            elif self.server is not None:
                self.server.serve()
        while self._job.reaped:
            self._toolcalls.gone(self._job.reaped.pop())

    def _tick(self) -> None:
        for request in self._denials.held():
            if not self._gate.alive(request):
                self._settle(request, Outcome.GONE)
        self._do(self._denials.tick(self._clock()))
        for fault in self._gate.take_faults():
            self._tell_fault(fault)
        self._chains.tick()
        self._chore()
        if self.server is not None:
            self.server.serve()  # its time limits do not wake anybody
        if self._chains.full != self._closed:
            self._closed = self._chains.full
            self._tell("no room left for the log: nothing more is allowed" if self._closed else "allowing again")
            self._give_policy()

    # ---- Calls

    def _decide(self, request: Request, judged: int) -> None:
        self.look_at_rules()
        if self._version != judged:
            if self._gate.retry(request):
                return
            self._judge(request)
        if self._use_once(request):
            return
        self._do(self._denials.arrive(request, self._clock()))
        self._spend_denial(request)

    def _judge(self, request: Request) -> None:
        request.verdict = judge(Policy() if self._closed else self._rules.for_gate(), request)

    def _use_once(self, request: Request) -> bool:
        """Lets a call through by a grant for one use, if there is one."""
        if self._closed or not self._rules.has_single_grants:
            return False
        whole = self._rules.whole()
        rule = judge(whole, request).rule
        if rule is None or rule.scope is not Scope.ONCE or rule.effect is not Effect.ALLOW:
            return False
        self._gate.set_policy(whole, self._strict)
        try:
            answered = self._gate.retry(request)
        finally:
            self._give_policy()
        if answered:
            self._spend(rule, request)
        return answered

    def _spend_denial(self, request: Request) -> None:
        rule = request.verdict.rule
        if rule is not None and rule.scope is Scope.ONCE and not self._rules.is_spent(rule):
            self._spend(rule, request)

    def _spend(self, rule: Rule, request: Request) -> None:
        self._rules.spend(rule)
        self._give_policy()
        told = {"rule": rule_to_json(rule), "spent": True}
        self._chains.own.append(SUPERVISOR, "revoke", self._origin_of(request).members() | told)

    def _settle(self, request: Request, outcome: Outcome) -> None:
        self._do(self._denials.settle(request, outcome, self._clock()))

    def _do(self, actions: Iterable[Action]) -> None:
        for action in actions:
            if isinstance(action, Refuse):
                self._gate.refuse(action.request)
            elif isinstance(action, Tell):
                self._tell_denial(action)
            else:
                self._tell_end(action)

    def _tell_denial(self, tell: Tell) -> None:
        origin = self._origin_of(tell.request)
        if tell.hold is not None:
            self._asked_by[tell.id] = origin
        self._chains.own.append(SECCOMP, "denial", frames.denial(tell, origin, time.time_ns()))

    def _tell_end(self, ended: Ended) -> None:
        origin = self._asked_by.pop(ended.id, None) or self._origin_of(ended.request)
        self._chains.own.append(SECCOMP, "denial_end", frames.denial_end(ended, origin))

    def _tell_fault(self, fault: Fault) -> None:
        self._chains.own.append(SECCOMP, "call_fault", frames.call_fault(fault, self._origin(fault.pid, fault.comm)))
        text = f"a call was refused by a defect of nd7, please report it: {fault.op}: {fault.error}"
        if text not in self._faults_told and len(self._faults_told) < MOST_FAULTS_TOLD:
            self._faults_told.add(text)
            self._tell(text)

    def _origin_of(self, request: Request) -> Origin:
        return self._origin(request.pid, request.comm)

    def _origin(self, pid: int, comm: str) -> Origin:
        ancestors = self._tree.ancestors(pid)
        return Origin(pid, ancestors, comm, self._toolcalls.of([pid, *ancestors]))

    # ---- Rules

    def look_at_rules(self) -> None:
        """Takes in a changed rule file."""
        change = self._watch.poll()
        if change is None:
            return
        if change.added or change.removed:
            # What was refused by the old rules is told before the new ones are: the log's order is the story.
            self._do(self._denials.rules_changed())
        self._tell_change(change)
        if not change.added and not change.removed:
            return
        self._rules.change(change.rules)
        self._give_policy()
        for request in self._denials.held():
            self._answer(request)

    def _give_policy(self) -> None:
        self._version += 1
        if self._closed:
            self._gate.set_policy(Policy(), True)
        else:
            self._gate.set_policy(self._rules.for_gate(), self._strict)

    def _answer(self, request: Request) -> None:
        """Ends the wait of a held call if the rules now say so."""
        if not self._gate.alive(request):
            self._settle(request, Outcome.GONE)
        elif self._use_once(request) or self._gate.retry(request):
            self._settle(request, Outcome.ALLOWED)
        else:
            self._judge(request)
            rule = request.verdict.rule
            if request.verdict.effect is Effect.DENY and rule is not None and rule.scope is not Scope.DEFAULT:
                self._settle(request, Outcome.DENIED)
                self._spend_denial(request)

    def _tell_change(self, change: Change) -> None:
        own = self._chains.own
        if change.error is not None:
            self._tell(f"{change.error}; the last good rules hold")
        for kind, rules in (("revoke", change.removed), ("grant", change.added)):
            for rule in rules:
                if kind == "grant" or not self._rules.is_spent(rule):
                    own.append(SUPERVISOR, kind, {"pid": self._job.pid, "rule": rule_to_json(rule)})
        body = {
            "pid": self._job.pid,
            "added": [rule.id for rule in change.added],
            "removed": [rule.id for rule in change.removed],
            "error": change.error,
            "digest": change.digest or None,
        }
        own.append(SUPERVISOR, "rules_changed", frames.compact(body))
