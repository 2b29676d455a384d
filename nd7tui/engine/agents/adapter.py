"""What nd7 has to know about an agent, and nothing more.

Rule: an adapter only prepares the start: arguments, environment, directories. It never decides what is allowed and is
never asked while the agent runs; the kernel boundary is the same with and without one. A third agent is one file with
an `ADAPTER` and one line in `registry.py`.

What a prepared start does not prove: that the agent runs our hooks. Both agents go on when a hook is missing, slow or
broken, and have switches that turn hooks off, so intents can be missing from a log; effects and denials cannot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from nd7tui.engine.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What an adapter may know of the run it prepares.

    Attributes:
        session_id: The id proposed for the session, a UUID in text form.
        run_pid: The supervisor's pid; it names the run for `nd7 allow --session`.
        hook_program: Absolute path of `nd7-hook`, empty when it is not installed.
        exec_program: Absolute path of `nd7-exec`, likewise.
        home: The user's home directory, canonical.
        project: The run's project directory, canonical.
        project_given: Whether the user named the project; otherwise it is the working directory and may be replaced.
    """

    session_id: str
    run_pid: int
    hook_program: str
    exec_program: str
    home: str
    project: str
    project_given: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """How to start the agent.

    Attributes:
        argv: The arguments, program first; not yet looked up in PATH.
        env: The whole environment.
        session_id: The id to keep the log under: the proposed one, or the one the user named.
        session_id_follows: The agent chooses its own id; the supervisor learns it from the first hook and links both.
        project: The directory that becomes project and working directory of the run.
        scratch: More directories the agent must be able to write.
        protected: Files nobody may write whatever is granted (the agent's configuration, when it is not at home).
        remove_after: Throw-away files and directories made for this run; the supervisor removes them after the end.
        notes: What the person should be told, one line each, in nd7's voice.
    """

    argv: tuple[str, ...]
    env: dict[str, str]
    session_id: str
    session_id_follows: bool
    project: str
    scratch: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    remove_after: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Adapter(Protocol):
    """One agent.

    Attributes:
        name: The word that names it, and the file name it is recognised by.
        source: `source` of the frames its hooks become.
        rewrites: Whether its shell commands are rewritten to run through nd7-exec (see rewrite.py).
        decision: The `permissionDecision` to send with a rewritten command, None for none.
    """

    @property
    def name(self) -> str:
        """The word that names it."""

    @property
    def source(self) -> str:
        """`source` of its frames."""

    @property
    def rewrites(self) -> bool:
        """Whether its commands are rewritten."""

    @property
    def decision(self) -> str | None:
        """The decision sent with a rewrite."""

    def prepare(self, argv: Sequence[str], env: Mapping[str, str], run: RunFacts) -> Prepared:
        """Adds what nd7 needs to the user's own command line; the user's own options stay.

        Raises:
            UsageError: The user's options name a file that cannot be read as what it should be.
        """
