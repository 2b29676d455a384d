"""The bundled demo agent's adapter: a scripted program that shows the whole product without an account or a network.

Rule: the demo gets nothing that a real agent does not get. It is the same run, the same boundary and the same log; all
it has of its own is a throw-away project, made here outside the boundary, and one file name in the home directory that
it will try to write.
"""

from __future__ import annotations

import os
import sys
import tempfile
from typing import TYPE_CHECKING

from nd7tui.engine.agents.adapter import Prepared
from nd7tui.engine.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nd7tui.engine.agents.adapter import RunFacts

PROGRAM = "nd7tui.engine.agents.demo_program"
_FILES = {
    "README.txt": "A throw-away project of the nd7 demo. It is removed when the demo ends.\n",
    ".git/HEAD": "ref: refs/heads/main\n",
    ".git/config": "[core]\n\trepositoryformatversion = 0\n\tbare = false\n",
}
_FOLDERS = (".git/hooks", ".git/objects/info", ".git/objects/pack", ".git/refs/heads")


@dataclass(frozen=True, slots=True)
class Demo:
    """The adapter for the demo agent."""

    name: str = "demo"
    source: str = "intent:demo"
    rewrites: bool = True
    decision: str | None = None

    def prepare(self, argv: Sequence[str], env: Mapping[str, str], run: RunFacts) -> Prepared:
        """Makes the throw-away project, unless the user named one, and turns `demo` into the program's own start."""
        own = None if run.project_given else make_project()
        outside = outside_path(run.home, run.run_pid)
        facts = ("--hook", run.hook_program, "--exec", run.exec_program, "--session", run.session_id)
        return Prepared(
            # -P: a directory named nd7tui in the project must not be imported instead of nd7's own.
            argv=(sys.executable, "-P", "-m", PROGRAM, *facts, "--outside", outside, *argv[1:]),
            env=dict(env),
            session_id=run.session_id,
            session_id_follows=False,
            project=own or run.project,
            remove_after=(*((own,) if own else ()), outside),
        )


def outside_path(home: str, run_pid: int) -> str:
    """Returns the file outside the project that the demo of one run tries to write; nothing else has this name."""
    return os.path.join(home, f"nd7-demo-outside-{run_pid}.txt")


def make_project() -> str:
    """Creates a small git project in the temporary directory and returns its canonical path."""
    top = os.path.realpath(tempfile.mkdtemp(prefix="nd7-demo-"))
    for folder in _FOLDERS:
        os.makedirs(os.path.join(top, folder))
    for name, text in _FILES.items():
        with open(os.path.join(top, name), "w", encoding="ascii") as file:
            file.write(text)
    return top


ADAPTER = Demo()
