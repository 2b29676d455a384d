"""A run, from the moment its program confines itself to its end.

Rule: the log is open before the program begins, and the program begins when everything that it could ask for is there.
If the supervisor itself fails, the tree is ended and nothing more is allowed.
Owns: the order. What is imported here is imported while the child builds its floor (see `launch.begin`), and nothing
of nd7 that a start needs is left to import once the program runs.
"""

from __future__ import annotations

import gc
import os
import time

from nd7tui.engine.log.store import SessionLog
from nd7tui.engine.policy import document
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
from nd7tui.engine.run.rulewatch import RuleWatch
from nd7tui.engine.run.start import reason, say
from nd7tui.engine.run.supervisor import Supervisor
from nd7tui.engine.run.toolcalls import ToolCalls
from nd7tui.engine.version import VERSION
from nd7tui.errors import Nd7Error, RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nd7tui.engine.policy.rules import Policy, Rule
    from nd7tui.engine.run.start import Run
    from nd7tui.engine.sandbox.launch import Beginning, Started


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a started run consists of."""

    started: Started
    job: jobs.Job
    signals: jobs.Signals
    live: LiveRules
    chains: Chains


class Running:
    """Serves one run.

    Args:
        run: The run, its directory made.
        policy: Its policy with the other names of mounts, without live rules of its own.
        signals: The signals of this process, held back before the child was made.
    """

    def __init__(self, run: Run, policy: Policy, signals: jobs.Signals) -> None:
        self._run = run
        self._policy = policy
        self._signals = signals

    def serve(self, beginning: Beginning) -> jobs.Ending:
        """Lets the program begin, serves it to its end, and returns how it ended.

        Raises:
            RefusedError: The rule file or the log cannot be made, or the program could not be confined.
        """
        self._write_record()
        chains = self._open_log()
        if self._run.plan.adapter is not None:
            import nd7tui.engine.agents.rewrite  # noqa: F401 - its first hook must not be what imports it
        hasher = Hasher(self._run.plan.exe)
        live = LiveRules(self._policy, self._run.record.rules)
        started = self._start(beginning, chains)
        job = jobs.Job(started.pid)
        supervisor = self._supervisor(_Parts(started, job, self._signals, live, chains), hasher)
        self._tell_start(chains, job, hasher)
        gc.freeze()  # what is there stays; see `cli`
        gc.enable()
        fault = self._serve(supervisor, started, job)
        self._tell_end(chains, job, supervisor, fault)
        return jobs.Ending(code=126) if fault or job.ending is None else job.ending

    def tell_refused(self, error: Nd7Error) -> None:
        """Writes into the log that the program never began."""
        _tell_refused(self._open_log(), error)

    def _start(self, beginning: Beginning, chains: Chains) -> Started:
        try:
            return beginning.finish(os.path.join(self._run.directory, directory.RECORD))
        except Nd7Error as error:
            _tell_refused(chains, error)
            raise

    def _serve(self, supervisor: Supervisor, started: Started, job: jobs.Job) -> str | None:
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

    def _write_record(self) -> None:
        try:
            directory.write_record(self._run.directory, self._run.record)
        except OSError as error:
            raise RefusedError(f"the rule file cannot be made: {reason(error)}") from error

    def _open_log(self) -> Chains:
        def open_log(session_id: str) -> LiveLog:
            return LiveLog(lambda: SessionLog(session_id), say)

        own = open_log(self._run.plan.session_id)
        try:
            own.open()
        except OSError as error:
            raise RefusedError(f"the log cannot be opened: {reason(error)}") from error
        chains = Chains(self._run.plan.session_id, own, open_log, os.getpid())
        self._run.stack.callback(chains.close)
        return chains

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
                round(self._run.hold_seconds * SECOND),
                self._run.options.ask,
                log_noise=self._run.options.log_noise,
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
            adapter=self._run.plan.adapter,
            exec_program=self._run.plan.programs.exec,
        )
        server = HookServer(self._run.directory, parts.started.tree.contains, intents.hook, intents.announce)
        self._run.stack.callback(server.close)
        supervisor.server = server
        return supervisor

    def _watch(self) -> RuleWatch:
        def rules_in(content: bytes) -> tuple[Rule, ...]:
            return document.parse(content).rules

        def restore(rules: tuple[Rule, ...]) -> None:
            os.makedirs(self._run.directory, 0o700, exist_ok=True)
            try:
                directory.write_record(self._run.directory, self._run.record.with_rules(rules))
            except Nd7Error as error:  # the lock is held by somebody
                raise OSError(None, str(error)) from error

        return RuleWatch(os.path.join(self._run.directory, directory.RECORD), self._run.record.rules, rules_in, restore)

    def _unwrap(self, command: str) -> str:
        if not self._run.plan.programs.exec:
            return command
        from nd7tui.engine.agents.rewrite import unwrap

        return unwrap(command, self._run.plan.programs.exec) or command

    def _tell_start(self, chains: Chains, job: jobs.Job, hasher: Hasher) -> None:
        body = {
            "pid": job.pid,
            "argv": list(self._run.plan.argv),
            "cwd": self._run.plan.cwd,
            "policy": frames.policy_summary(self._run.floor),
            "kernel": os.uname().release,
            "landlock_abi": self._run.enforced.landlock_abi,
            "mode": self._run.mode,
            "partial": list(self._run.enforced.partial),
            "nd7": VERSION,
            "exe": self._run.plan.exe,
            "exe_blake3": hasher.digest,
            "hold_seconds": self._run.hold_seconds,
        }
        chains.own.append(SUPERVISOR, "run_start", frames.compact(body))
        for rule in self._run.record.rules:
            chains.own.append(SUPERVISOR, "grant", {"pid": job.pid, "rule": document.rule_to_json(rule)})

    def _tell_end(self, chains: Chains, job: jobs.Job, supervisor: Supervisor, fault: str | None) -> None:
        ending = job.ending or jobs.Ending()
        took = (time.monotonic_ns() - self._run.began) // 1_000_000
        body = frames.run_end(job.pid, ending.code, ending.signal, took, supervisor.left_behind)
        chains.own.append(SUPERVISOR, "run_end", body | frames.compact({"error": fault}))


def _tell_refused(chains: Chains, error: Nd7Error) -> None:
    body = frames.run_end(os.getpid(), error.exit_code, None, 0, 0)
    chains.own.append(SUPERVISOR, "run_end", body | {"error": str(error)})
