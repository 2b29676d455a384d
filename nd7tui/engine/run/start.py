"""Puts a run together, runs it, and takes it apart again.

Rule: first everything that can be refused, then the run's directory, the log, the program; taken apart in the opposite
order whatever happens. If the supervisor itself fails, the tree is ended and nothing more is allowed.
Owns: the order. Returns how the program ended; ending like it is the command's.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import TYPE_CHECKING

from nd7tui.engine import paths
from nd7tui.engine.log.layout import events_path
from nd7tui.engine.log.store import SessionLog
from nd7tui.engine.policy import config, document
from nd7tui.engine.policy.members import RuleFileError
from nd7tui.engine.policy.rules import Access, Effect, Scope
from nd7tui.engine.policy.surroundings import floor_of, layout_of, tmp_directories
from nd7tui.engine.records import dataclass
from nd7tui.engine.run import directory, frames, jobs
from nd7tui.engine.run.chains import Chains
from nd7tui.engine.run.denials import SECOND, Denials
from nd7tui.engine.run.frames import SUPERVISOR
from nd7tui.engine.run.hasher import Hasher
from nd7tui.engine.run.hooks import HookServer
from nd7tui.engine.run.intents import Intents
from nd7tui.engine.run.leftovers import end_now
from nd7tui.engine.run.livelog import LiveLog
from nd7tui.engine.run.liverules import LiveRules
from nd7tui.engine.run.noise import is_noise
from nd7tui.engine.run.options import HOLD_SECONDS
from nd7tui.engine.run.plan import find_programs, plan_of
from nd7tui.engine.run.rulewatch import RuleWatch
from nd7tui.engine.run.supervisor import Supervisor
from nd7tui.engine.run.toolcalls import ToolCalls
from nd7tui.engine.sandbox import launch
from nd7tui.engine.sandbox.prepare import probe
from nd7tui.engine.version import VERSION
from nd7tui.errors import Nd7Error, RefusedError, UsageError

if TYPE_CHECKING:
    from nd7tui.engine.policy.config import Config
    from nd7tui.engine.policy.document import RunRecord
    from nd7tui.engine.policy.rules import Policy, Rule
    from nd7tui.engine.run.options import RunOptions
    from nd7tui.engine.run.plan import Plan
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
        return _Run(options, plan, enforced, stack).run()


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


class _Run:
    """One run, from its log to its end; `stack` takes it apart."""

    def __init__(self, options: RunOptions, plan: Plan, enforced: Enforcement, stack: contextlib.ExitStack) -> None:
        self._options = options
        self._plan = plan
        self._enforced = enforced
        self._stack = stack
        self._began = time.monotonic_ns()
        configured = _configured()
        hold = options.hold_seconds if options.hold_seconds is not None else configured.hold_seconds
        self._hold_seconds = HOLD_SECONDS if hold is None else hold
        self._fast = options.fast or configured.mode == "fast"
        self._dir = os.path.join(paths.runs_dir(), str(os.getpid()))
        self._tmp = tmp_directories(plan.env, plan.home)
        # Without the other names of mounts, which are no lines of the tables.
        self._floor = configured.apply(self._surroundings(), os.fsencode(plan.project))
        self._record = self._described()

    def _surroundings(self) -> Policy:
        plan = self._plan
        programs = plan.programs.directories()
        return floor_of(
            layout_of(
                plan.project,
                self._dir,
                tmp=self._tmp,
                scratch=plan.scratch,
                programs=programs,
                protected=plan.protected,
            )
        )

    def _described(self) -> RunRecord:
        enforced = self._enforced
        record = document.RunRecord(
            session_id=self._plan.session_id,
            pid=os.getpid(),
            started=time.time_ns(),
            argv=self._plan.argv,
            project=os.fsencode(self._plan.project),
            home=os.fsencode(self._plan.home),
            tmp=self._tmp,
            log=events_path(self._plan.session_id),
            enforced=document.Enforced(enforced.landlock_abi, enforced.listener, enforced.partial, self._mode),
            hold_seconds=self._hold_seconds,
        )
        return record.with_rules(start_rules(self._options, record, self._floor))

    @property
    def _mode(self) -> str:
        return "fast" if self._fast else "default"

    def run(self) -> jobs.Ending:
        """Makes, starts and serves the run."""
        for note in () if self._options.quiet else self._notes():
            say(note)
        self._make_directory()
        chains = self._open_log()
        signals = jobs.Signals()
        self._stack.callback(signals.close)
        jobs.become_subreaper()
        floor = launch.with_aliases(self._floor)
        live = LiveRules(floor, self._record.rules)
        hasher = Hasher(self._plan.exe)
        started = self._launch(floor, chains)
        job = jobs.Job(started.pid)
        supervisor = self._supervisor(_Parts(started, job, signals, live, chains), hasher)
        self._tell_start(chains, job, hasher)
        fault = self._serve(supervisor, started, job)
        self._tell_end(chains, job, supervisor, fault)
        return jobs.Ending(code=126) if fault or job.ending is None else job.ending

    def _serve(self, supervisor: Supervisor, started: launch.Started, job: jobs.Job) -> str | None:
        """Serves the run to its end; returns what went wrong in the supervisor itself, if anything did."""
        try:
            supervisor.run()
        # The boundary of the supervisor: whatever it trips over, the run is told of it, ended, and never goes on
        # without somebody who decides.
        except Exception as error:  # noqa: BLE001
            fault = f"{type(error).__name__}: {error}"
            say(f"the supervisor failed and ends the run: {fault}")
            return fault
        finally:
            started.gate.close()
            end_now(started.tree.pids, job)
        return None

    def _notes(self) -> tuple[str, ...]:
        plan = self._plan
        if (plan.home + "/").startswith(plan.project.rstrip("/") + "/"):
            return (*plan.notes, f"the project is {plan.project}: everything in your home but secrets may be written")
        return plan.notes

    def _open_log(self) -> Chains:
        def open_log(session_id: str) -> LiveLog:
            return LiveLog(lambda: SessionLog(session_id), say)

        own = open_log(self._plan.session_id)
        try:
            own.open()
        except OSError as error:
            raise RefusedError(f"the log cannot be opened: {_reason(error)}") from error
        chains = Chains(self._plan.session_id, own, open_log, os.getpid())
        self._stack.callback(chains.close)
        return chains

    def _make_directory(self) -> None:
        try:
            directory.sweep()
            directory.create(os.getpid())
            self._stack.callback(directory.remove, self._dir)
            directory.write_record(self._dir, self._record)
        except OSError as error:
            raise RefusedError(f"the run's directory cannot be made: {_reason(error)}") from error

    def _launch(self, floor: Policy, chains: Chains) -> launch.Started:
        try:
            return self._launched(floor)
        except Nd7Error as error:
            body = frames.run_end(os.getpid(), error.exit_code, None, 0, 0)
            chains.own.append(SUPERVISOR, "run_end", body | {"error": str(error)})
            raise

    def _launched(self, floor: Policy) -> launch.Started:
        plan = self._plan
        env = plan.env | {"ND7_SESSION": plan.session_id, "ND7_RUN": str(os.getpid())}
        if env.get("PWD") and plan.cwd != os.getcwd():
            env["PWD"] = plan.cwd
        return launch.start(
            list(plan.argv),
            env,
            plan.cwd,
            floor.with_live((*floor.live, *self._record.rules)),
            rules_path=os.path.join(self._dir, directory.RECORD),
            fast=self._fast,
            aliased=True,
        )

    def _supervisor(self, parts: _Parts, hasher: Hasher) -> Supervisor:
        toolcalls = ToolCalls(self._unwrap)
        supervisor = Supervisor(
            gate=parts.started.gate,
            tree=parts.started.tree,
            job=parts.job,
            signals=parts.signals,
            watch=self._watch(),
            rules=parts.live,
            denials=Denials(
                round(self._hold_seconds * SECOND),
                self._options.ask,
                log_noise=self._options.log_noise,
                is_noise=is_noise,
            ),
            chains=parts.chains,
            toolcalls=toolcalls,
            tell=say,
            chore=lambda: hasher.tell(parts.chains, parts.job.pid),
        )
        intents = Intents(
            chains=parts.chains,
            toolcalls=toolcalls,
            rules=parts.live,
            look_at_rules=supervisor.look_at_rules,
            narrowed=supervisor.be_strict,
            adapter=self._plan.adapter,
            exec_program=self._plan.programs.exec,
        )
        server = HookServer(self._dir, parts.started.tree.contains, intents.hook, intents.announce)
        self._stack.callback(server.close)
        supervisor.server = server
        return supervisor

    def _watch(self) -> RuleWatch:
        def rules_in(content: bytes) -> tuple[Rule, ...]:
            return document.parse(content).rules

        def restore(rules: tuple[Rule, ...]) -> None:
            os.makedirs(self._dir, 0o700, exist_ok=True)
            try:
                directory.write_record(self._dir, self._record.with_rules(rules))
            except Nd7Error as error:  # the lock is held by somebody
                raise OSError(None, str(error)) from error

        return RuleWatch(os.path.join(self._dir, directory.RECORD), self._record.rules, rules_in, restore)

    def _unwrap(self, command: str) -> str:
        if not self._plan.programs.exec:
            return command
        from nd7tui.engine.agents.rewrite import unwrap

        return unwrap(command, self._plan.programs.exec) or command

    def _tell_start(self, chains: Chains, job: jobs.Job, hasher: Hasher) -> None:
        body = {
            "pid": job.pid,
            "argv": list(self._plan.argv),
            "cwd": self._plan.cwd,
            "policy": frames.policy_summary(self._floor),
            "kernel": os.uname().release,
            "landlock_abi": self._enforced.landlock_abi,
            "mode": self._mode,
            "partial": list(self._enforced.partial),
            "nd7": VERSION,
            "exe": self._plan.exe,
            "exe_blake3": hasher.digest,
            "hold_seconds": self._hold_seconds,
        }
        chains.own.append(SUPERVISOR, "run_start", frames.compact(body))
        for rule in self._record.rules:
            chains.own.append(SUPERVISOR, "grant", {"pid": job.pid, "rule": document.rule_to_json(rule)})

    def _tell_end(self, chains: Chains, job: jobs.Job, supervisor: Supervisor, fault: str | None) -> None:
        ending = job.ending or jobs.Ending()
        took = (time.monotonic_ns() - self._began) // 1_000_000
        body = frames.run_end(job.pid, ending.code, ending.signal, took, supervisor.left_behind)
        chains.own.append(SUPERVISOR, "run_end", body | frames.compact({"error": fault}))


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a started run consists of."""

    started: launch.Started
    job: jobs.Job
    signals: jobs.Signals
    live: LiveRules
    chains: Chains


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


def _reason(error: OSError) -> str:
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
