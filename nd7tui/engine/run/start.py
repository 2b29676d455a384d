"""Puts a run together, runs it, and takes it apart again.

Rule: first everything that can be refused, then the log, then the run's directory, then the program; taken apart in
the opposite order whatever happens. If the supervisor itself fails, the tree is ended and nothing more is allowed.
Owns: the order. Returns how the program ended; ending like it is the command's.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import TYPE_CHECKING

from nd7tui.engine.log.layout import events_path
from nd7tui.engine.log.store import SessionLog
from nd7tui.engine.policy import document
from nd7tui.engine.policy.surroundings import floor_of, layout_of, tmp_directories
from nd7tui.engine.run import directory, frames, jobs
from nd7tui.engine.run.chains import Chains
from nd7tui.engine.run.denials import SECOND, Denials
from nd7tui.engine.run.frames import SUPERVISOR
from nd7tui.engine.run.hasher import Hasher
from nd7tui.engine.run.hooks import HookServer
from nd7tui.engine.run.intents import Intents
from nd7tui.engine.run.livelog import LiveLog
from nd7tui.engine.run.liverules import LiveRules
from nd7tui.engine.run.noise import is_noise
from nd7tui.engine.run.plan import find_programs, plan_of
from nd7tui.engine.run.rulewatch import RuleWatch
from nd7tui.engine.run.supervisor import Supervisor
from nd7tui.engine.run.toolcalls import ToolCalls
from nd7tui.engine.sandbox import launch
from nd7tui.engine.sandbox.prepare import probe
from nd7tui.errors import Nd7Error, RefusedError

if TYPE_CHECKING:
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
    if not options.allow_partial or not enforced.listener or not enforced.landlock_abi:
        hint = None if not enforced.listener or not enforced.landlock_abi else "--allow-partial starts it all the same"
        raise RefusedError("not enforced by this kernel: " + "; ".join(enforced.partial), hint=hint)
    for what in enforced.partial:
        say(f"not enforced: {what}")
    return enforced


class _Run:
    """One run, from its log to its end; `stack` takes it apart."""

    def __init__(self, options: RunOptions, plan: Plan, enforced: Enforcement, stack: contextlib.ExitStack) -> None:
        self._options = options
        self._plan = plan
        self._enforced = enforced
        self._stack = stack
        self._began = time.monotonic_ns()
        for note in () if options.quiet else plan.notes:
            say(note)

    def run(self) -> jobs.Ending:
        plan = self._plan
        rules = start_rules(self._options)
        tmp = tmp_directories(plan.env, plan.home)
        chains = self._open_log()
        directory.sweep()
        run_dir = directory.create(os.getpid())
        self._stack.callback(directory.remove, run_dir)
        programs = plan.programs.directories()
        layout = layout_of(
            plan.project, run_dir, tmp=tmp, scratch=plan.scratch, programs=programs, protected=plan.protected
        )
        policy = launch.with_aliases(floor_of(layout))
        record = self._record(rules, tmp)
        directory.write_record(run_dir, record)
        live = LiveRules(policy, rules)
        signals = jobs.Signals()
        self._stack.callback(signals.close)
        jobs.become_subreaper()
        started = self._launch(live.for_gate(), run_dir)
        job = jobs.Job(started.pid)
        hasher = Hasher(self._plan.exe)
        self._tell_start(chains, job, policy, rules, hasher)
        supervisor = self._supervisor(started, job, signals, live, chains, record, run_dir, hasher)
        try:
            supervisor.run()
        finally:
            started.gate.close()
            self._tell_end(chains, job, supervisor)
        return job.ending or jobs.Ending(code=126)

    def _open_log(self) -> Chains:
        def open_log(session_id: str) -> LiveLog:
            return LiveLog(lambda: SessionLog(session_id), say)

        own = open_log(self._plan.session_id)
        try:
            own.open()
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise RefusedError(f"the log cannot be opened: {error.filename}: {reason}") from error
        chains = Chains(self._plan.session_id, own, open_log, os.getpid())
        self._stack.callback(chains.close)
        return chains

    def _record(self, rules: tuple[Rule, ...], tmp: tuple[bytes, ...]) -> RunRecord:
        enforced = self._enforced
        return document.RunRecord(
            session_id=self._plan.session_id,
            pid=os.getpid(),
            started=time.time_ns(),
            argv=self._plan.argv,
            project=os.fsencode(self._plan.project),
            home=os.fsencode(self._plan.home),
            tmp=tmp,
            log=events_path(self._plan.session_id),
            enforced=document.Enforced(enforced.landlock_abi, enforced.listener, enforced.partial, self._mode),
            hold_seconds=self._options.hold_seconds,
            rules=rules,
        )

    @property
    def _mode(self) -> str:
        return "fast" if self._options.fast else "default"

    def _launch(self, policy: Policy, run_dir: str) -> launch.Started:
        plan = self._plan
        env = plan.env | {"ND7_SESSION": plan.session_id, "ND7_RUN": str(os.getpid())}
        if env.get("PWD") and plan.cwd != os.getcwd():
            env["PWD"] = plan.cwd
        return launch.start(
            list(plan.argv),
            env,
            plan.cwd,
            policy,
            rules_path=os.path.join(run_dir, directory.RECORD),
            fast=self._options.fast,
        )

    def _supervisor(
        self,
        started: launch.Started,
        job: jobs.Job,
        signals: jobs.Signals,
        live: LiveRules,
        chains: Chains,
        record: RunRecord,
        run_dir: str,
        hasher: Hasher,
    ) -> Supervisor:
        def restore(rules: tuple[Rule, ...]) -> None:
            os.makedirs(run_dir, 0o700, exist_ok=True)
            try:
                directory.write_record(run_dir, record.with_rules(rules))
            except Nd7Error as error:
                raise OSError(None, str(error)) from error

        toolcalls = ToolCalls(self._unwrap)
        supervisor = Supervisor(
            gate=started.gate,
            tree=started.tree,
            job=job,
            signals=signals,
            watch=RuleWatch(
                os.path.join(run_dir, directory.RECORD),
                record.rules,
                lambda content: document.parse(content).rules,
                restore,
            ),
            rules=live,
            denials=Denials(
                round(self._options.hold_seconds * SECOND),
                self._options.ask,
                log_noise=self._options.log_noise,
                is_noise=is_noise,
            ),
            chains=chains,
            toolcalls=toolcalls,
            tell=say,
            chore=lambda: hasher.tell(chains, job.pid),
        )
        intents = Intents(
            chains=chains,
            toolcalls=toolcalls,
            rules=live,
            look_at_rules=supervisor.look_at_rules,
            narrowed=supervisor.be_strict,
            adapter=self._plan.adapter,
            exec_program=self._plan.programs.exec,
        )
        server = HookServer(run_dir, started.tree.contains, intents.hook, intents.announce)
        self._stack.callback(server.close)
        supervisor.server = server
        return supervisor

    def _unwrap(self, command: str) -> str:
        if not self._plan.programs.exec:
            return command
        from nd7tui.engine.agents.rewrite import unwrap

        return unwrap(command, self._plan.programs.exec) or command

    def _tell_start(
        self, chains: Chains, job: jobs.Job, policy: Policy, rules: tuple[Rule, ...], hasher: Hasher
    ) -> None:
        from nd7tui.cli import VERSION

        body = {
            "pid": job.pid,
            "argv": list(self._plan.argv),
            "cwd": self._plan.cwd,
            "policy": frames.policy_summary(policy),
            "kernel": os.uname().release,
            "landlock_abi": self._enforced.landlock_abi,
            "mode": self._mode,
            "partial": list(self._enforced.partial),
            "nd7": VERSION,
            "exe": self._plan.exe,
            "exe_blake3": hasher.digest,
            "hold_seconds": self._options.hold_seconds,
        }
        chains.own.append(SUPERVISOR, "run_start", frames.compact(body))
        for rule in rules:
            chains.own.append(SUPERVISOR, "grant", {"pid": job.pid, "rule": document.rule_to_json(rule)})

    def _tell_end(self, chains: Chains, job: jobs.Job, supervisor: Supervisor) -> None:
        ending = job.ending or jobs.Ending()
        took = (time.monotonic_ns() - self._began) // 1_000_000
        body = frames.run_end(job.pid, ending.code, ending.signal, took, supervisor.left_behind)
        chains.own.append(SUPERVISOR, "run_end", body)


def start_rules(options: RunOptions) -> tuple[Rule, ...]:
    """Returns the grants given on the command line; raises UsageError for one that makes no sense."""
    words = [*options.read, *options.write, *options.connect]
    if not words:
        return ()
    raise NotImplementedError


def _remove_all(paths: tuple[str, ...]) -> None:
    for path in paths:
        if os.path.isdir(path) and not os.path.islink(path):
            import shutil

            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                os.unlink(path)
