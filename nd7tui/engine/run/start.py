"""Puts a run together, runs it, and takes it apart again.

Rule: first everything that can be refused, then the run's directory, the log, the program; taken apart in the opposite
order whatever happens. What only serving the program needs is in `running`, imported while the child confines itself.
Owns: the order. Returns how the program ended; ending like it is the command's.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time

import nd7tui
from nd7tui.engine import paths
from nd7tui.engine.log.layout import events_path
from nd7tui.engine.policy import config, document
from nd7tui.engine.policy.members import RuleFileError
from nd7tui.engine.policy.rules import Access, Effect, Scope
from nd7tui.engine.policy.surroundings import floor_of, layout_of, make_caches, tmp_directories
from nd7tui.engine.run import directory as runs
from nd7tui.engine.run import jobs
from nd7tui.engine.run.options import HOLD_SECONDS
from nd7tui.engine.run.plan import find_programs, plan_of
from nd7tui.engine.sandbox import launch
from nd7tui.engine.sandbox.prepare import probe
from nd7tui.errors import Nd7Error, RefusedError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nd7tui.engine.policy.config import Config
    from nd7tui.engine.policy.document import RunRecord
    from nd7tui.engine.policy.rules import Policy, Rule
    from nd7tui.engine.run.options import RunOptions
    from nd7tui.engine.run.plan import Plan
    from nd7tui.engine.run.running import Running
    from nd7tui.engine.sandbox.prepare import Enforcement


def say(text: str) -> None:
    """Tells the person one line; the terminal may be in raw mode."""
    with contextlib.suppress(OSError, ValueError):
        end = "\r\n" if sys.stderr.isatty() else "\n"
        sys.stderr.write(f"nd7: {text}{end}")
        sys.stderr.flush()


def run(options: RunOptions) -> jobs.Ending:
    """Runs a program confined and returns how it ended.

    Raises:
        RefusedError: Nothing was started.
        UsageError: The options make no sense.
    """
    enforced = _enforcement(options)
    plan = plan_of(options, find_programs())
    with contextlib.ExitStack() as stack:
        stack.callback(_remove_all, plan.remove_after)
        return Run(options, plan, enforced, stack).run()


def _enforcement(options: RunOptions) -> Enforcement:
    """Returns what this kernel enforces; raises RefusedError when that is not all and the user has not said so."""
    enforced = probe()
    if not enforced.partial:
        return enforced
    able = enforced.listener and enforced.landlock_abi
    if not options.allow_partial or not able:
        hint = "--allow-partial starts it all the same" if able else "nd7 doctor"
        raise RefusedError("not enforced by this kernel: " + "; ".join(enforced.partial), hint=hint)
    for what in enforced.partial:
        say(f"not enforced: {what}")
    return enforced


def _configured() -> Config:
    """Returns the user's configuration; a run does not start on one that cannot be understood."""
    try:
        return config.load()
    except RuleFileError as error:
        raise RefusedError(str(error), hint=error.hint) from error


class Run:
    """One run to be, checked; `stack` takes it apart.

    Attributes:
        options: As given.
        plan: What is going to be started, and where.
        enforced: What this kernel enforces.
        stack: What is to be done at the end.
        began: When, monotonic ns.
        hold_seconds: How long a caller may be held.
        fast: Reads are judged by the floor alone.
        directory: The run's directory.
        floor: The policy at the start, without the other names of mounts, which are no lines of the tables.
        record: What the rule file says at the start.
    """

    def __init__(self, options: RunOptions, plan: Plan, enforced: Enforcement, stack: contextlib.ExitStack) -> None:
        self.options = options
        self.plan = plan
        self.enforced = enforced
        self.stack = stack
        self.began = time.monotonic_ns()
        configured = _configured()
        hold = options.hold_seconds if options.hold_seconds is not None else configured.hold_seconds
        self.hold_seconds = HOLD_SECONDS if hold is None else hold
        self.fast = options.fast or configured.mode == "fast"
        self.directory = os.path.join(paths.runs_dir(), str(os.getpid()))
        self._tmp = tmp_directories(plan.env, plan.home)
        self.floor = configured.apply(self._surroundings(), os.fsencode(plan.project))
        self.record = self._described()

    def _surroundings(self) -> Policy:
        plan = self.plan
        programs = plan.programs.directories()
        return floor_of(
            layout_of(
                plan.project,
                self.directory,
                tmp=self._tmp,
                scratch=plan.scratch,
                programs=programs,
                protected=plan.protected,
            )
        )

    def _described(self) -> RunRecord:
        enforced = self.enforced
        record = document.RunRecord(
            session_id=self.plan.session_id,
            pid=os.getpid(),
            started=time.time_ns(),
            argv=self.plan.argv,
            project=os.fsencode(self.plan.project),
            home=os.fsencode(self.plan.home),
            tmp=self._tmp,
            log=events_path(self.plan.session_id),
            enforced=document.Enforced(enforced.landlock_abi, enforced.listener, enforced.partial, self.mode),
            hold_seconds=self.hold_seconds,
        )
        return record.with_rules(start_rules(self.options, record, self.floor))

    @property
    def mode(self) -> str:
        """How reads are judged, as the rule file says it."""
        return "fast" if self.fast else "default"

    def run(self) -> jobs.Ending:
        """Makes, starts and serves the run."""
        for note in () if self.options.quiet else self._notes():
            say(note)
        self._make_directory()
        signals = jobs.Signals()
        self.stack.callback(signals.close)
        jobs.become_subreaper()
        policy = launch.with_aliases(self.floor)
        try:
            beginning = self._begin(policy)
        except Nd7Error as error:
            self._running(policy, signals).tell_refused(error)
            raise
        self.stack.callback(beginning.cancel)
        return self._running(policy, signals).serve(beginning)

    def _running(self, policy: Policy, signals: jobs.Signals) -> Running:
        from nd7tui.engine.run import running

        return running.Running(self, policy, signals)

    def _begin(self, policy: Policy) -> launch.Beginning:
        plan = self.plan
        env = plan.env | make_caches(plan.env)
        env |= {"ND7_SESSION": plan.session_id, "ND7_RUN": str(os.getpid())}
        if env.get("PWD") and plan.cwd != os.getcwd():
            env["PWD"] = plan.cwd
        return launch.begin(
            list(plan.argv),
            env,
            plan.cwd,
            policy.with_live((*policy.live, *self.record.rules)),
            fast=self.fast,
        )

    def _notes(self) -> tuple[str, ...]:
        """Returns what the person should be told before it starts."""
        plan = self.plan
        notes = list(plan.notes)
        if (plan.home + "/").startswith(plan.project.rstrip("/") + "/"):
            notes.append(f"the project is {plan.project}: everything in your home but secrets may be written")
        own = os.path.dirname(nd7tui.__file__)
        if self.floor.decide_path(Access.WRITE, os.fsencode(own)).effect is Effect.ALLOW:
            notes.append(f"nd7 itself is in {own}, where the program may write: it could change what you start next")
        return tuple(notes)

    def _make_directory(self) -> None:
        try:
            runs.sweep()
            runs.create(os.getpid())
            self.stack.callback(runs.remove, self.directory)
        except OSError as error:
            raise RefusedError(f"the run's directory cannot be made: {reason(error)}") from error


def start_rules(options: RunOptions, record: RunRecord, floor: Policy) -> tuple[Rule, ...]:
    """Returns the grants given on the command line.

    Raises:
        UsageError: One makes no sense, or would open nothing.
    """
    words = [(Access.READ, word) for word in options.read] + [(Access.WRITE, word) for word in options.write]
    if not words and not options.connect:
        return ()
    from nd7tui.engine.run import grants

    wishes = [(word, grants.path_wish(word, access, must_exist=True)) for access, word in words]
    for word in options.connect:
        wishes += [(word, wish) for wish in grants.connect_wishes(word, must_exist=True)]
    rules: list[Rule] = []
    for word, wish in wishes:
        grants.check_words(word, wish, record, sure=True)
        rules.append(grants.rule_for(Effect.ALLOW, wish, Scope.RUN, "nd7 run"))
        verdict = grants.decide(floor.with_live((*floor.live, *rules)), wish)
        if verdict.effect is not Effect.ALLOW:
            raise UsageError(f"{wish.words} stays refused: {verdict.reason}", hint=grants.NEVER_HINT)
    return tuple(rules)


def reason(error: OSError) -> str:
    """Returns what failed, in words."""
    text = (error.strerror or str(error)).lower()
    return f"{os.fsdecode(error.filename)}: {text}" if error.filename else text


def _remove_all(paths: tuple[str, ...]) -> None:
    for path in paths:
        if os.path.isdir(path) and not os.path.islink(path):
            import shutil

            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                os.unlink(path)
