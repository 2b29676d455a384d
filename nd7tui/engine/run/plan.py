"""What a run is going to be, before anything of it exists.

Rule: whatever can be refused is refused here, with one clear error, and nothing has been created. Looks at the file
system and the environment; changes neither, save what an agent's adapter makes for the agent (`remove_after`).
"""

from __future__ import annotations

import os
import stat

from nd7tui.engine import paths
from nd7tui.engine.records import dataclass, replace
from nd7tui.errors import RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nd7tui.engine.agents.adapter import Adapter
    from nd7tui.engine.run.options import RunOptions


@dataclass(frozen=True, slots=True)
class Programs:
    """nd7's own programs inside a run, empty where they are not installed.

    Attributes:
        exec: Path of `nd7-exec`.
        hook: Path of `nd7-hook`.
    """

    exec: str = ""
    hook: str = ""

    def directories(self) -> tuple[bytes, ...]:
        """Returns what holds them, never writable for the run."""
        return tuple({os.fsencode(path) for path in (self.exec, self.hook) if path})


NO_PROGRAMS = Programs()


@dataclass(frozen=True, slots=True)
class Plan:
    """One run to be.

    Attributes:
        argv: Arguments, program first.
        exe: Path of the program's file.
        env: Its environment, without the run's own marks.
        session_id: Id of the run's log.
        project: Canonical project directory; also the working directory if the user named it.
        cwd: Working directory.
        home: Canonical home directory.
        scratch: Further directories the agent may write.
        protected: Files nobody may write.
        remove_after: Files and directories to remove after the end.
        notes: What the person should be told.
        adapter: The agent's, if the program is a known one.
        programs: nd7's own.
    """

    argv: tuple[str, ...]
    exe: str
    env: dict[str, str]
    session_id: str
    project: str
    cwd: str
    home: str
    scratch: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    remove_after: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    adapter: Adapter | None = None
    programs: Programs = NO_PROGRAMS


def plan_of(options: RunOptions, programs: Programs) -> Plan:
    """Checks the program and the project and asks the agent's adapter, if there is one.

    Raises:
        RefusedError: There is no such program, or the project cannot be one.
        UsageError: An agent's own options cannot be read.
    """
    from nd7tui.engine.agents.registry import adapter_for

    home = paths.home()
    project = project_of(options.project)
    cwd = project if options.project is not None else os.getcwd()
    plain = Plan(options.argv, "", dict(os.environ), options.session_id, project, cwd, home, programs=programs)
    adapter = adapter_for(options.argv)
    if adapter is not None:
        return _looked_up(_prepared(plain, adapter, options))
    return _looked_up(plain)


def _prepared(plan: Plan, adapter: Adapter, options: RunOptions) -> Plan:
    """Returns the plan as the agent's adapter wants it."""
    from nd7tui.engine.agents.adapter import RunFacts

    if not plan.programs.hook or not plan.programs.exec:
        if not options.allow_partial:
            raise RefusedError(
                "nd7-exec and nd7-hook are not built: what the agent means to do would not be recorded",
                hint="install a C compiler and install nd7 again, or --allow-partial",
            )
        return replace(plan, notes=("nd7-exec and nd7-hook are not built: the agent's hooks are not recorded",))
    facts = RunFacts(
        session_id=plan.session_id,
        run_pid=os.getpid(),
        hook_program=plan.programs.hook,
        exec_program=plan.programs.exec,
        home=plan.home,
        project=plan.project,
        project_given=options.project is not None,
    )
    prepared = adapter.prepare(options.argv, plan.env, facts)
    return replace(
        plan,
        argv=prepared.argv,
        env=prepared.env,
        session_id=prepared.session_id,
        project=prepared.project,
        cwd=plan.cwd if prepared.project == plan.project else prepared.project,
        scratch=prepared.scratch,
        protected=prepared.protected,
        remove_after=prepared.remove_after,
        notes=prepared.notes,
        adapter=adapter,
    )


def _looked_up(plan: Plan) -> Plan:
    """Returns the plan with the program's file; raises RefusedError when there is none."""
    from nd7tui.engine.sandbox.launch import find_program

    return replace(plan, exe=find_program(plan.argv[0], plan.env.get("PATH", os.defpath), plan.cwd))


def project_of(given: str | None) -> str:
    """Returns the canonical project directory; raises RefusedError unless it can be written."""
    try:
        project = os.path.realpath(os.getcwd() if given is None else given, strict=True)
        mode = os.stat(project).st_mode
    except OSError as error:
        where = "the working directory" if given is None else given
        raise RefusedError(f"project {where}: {(error.strerror or str(error)).lower()}") from error
    if not stat.S_ISDIR(mode):
        raise RefusedError(f"project {given}: not a directory")
    if not os.access(project, os.W_OK | os.X_OK) or _is_read_only(project):
        raise RefusedError(
            f"project {project}: cannot be written", hint="--project DIR names the directory the program may write"
        )
    return project


def _is_read_only(path: str) -> bool:
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def find_programs() -> Programs:
    """Finds nd7's own programs.

    Raises:
        RefusedError: One of them could be replaced by somebody else.
    """
    from nd7tui.engine import helpers

    found = {helper.name: helper for helper in helpers.find()}
    for helper in found.values():
        if helper.path is not None and helper.fault:
            raise RefusedError(f"{helper.name}: {helper.fault}", hint="the run could be given another program")
    return Programs(found["nd7-exec"].path or "", found["nd7-hook"].path or "")
