"""How the UI starts a run: as a child of its own in the pane, by the same command a person would type.

Rule: the supervisor is a separate process that needs nothing of the UI; if the UI is killed, the run's terminal hangs
up and the run ends as it does when a terminal is closed. Python is told never to import from the working directory,
which the confined program may write.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from nd7tui.engine.agents.registry import DEMO


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start.

    Attributes:
        program: The program and its arguments.
        options: Options of `nd7 run`, already in words.
        cwd: The directory to start it in; None for this one.
        session_id: The session's id, when the person named it.
    """

    program: tuple[str, ...]
    options: tuple[str, ...] = ()
    cwd: str | None = None
    session_id: str | None = None

    @property
    def plays_itself(self) -> bool:
        """Whether this is the demo, and the person has not said that they want its keys for themselves."""
        return self.program[0] == DEMO and "--manual" not in self.program


def run_command(launch: Launch, session_id: str) -> list[str]:
    """Returns the command that starts the supervisor."""
    return [*_nd7(), "run", "--session-id", session_id, *launch.options, *launch.program]


def _nd7() -> list[str]:
    # The installed script finds nd7's other programs beside itself.
    for place in (os.path.dirname(os.path.abspath(sys.argv[0])), os.path.dirname(sys.executable)):
        script = os.path.join(place, "nd7")
        if os.path.isfile(script) and os.access(script, os.X_OK):
            return [script]
    return [sys.executable, "-P", "-m", "nd7tui.cli"]
