"""An agent's own directory when the user moved it by an environment variable.

Rule: the directory becomes writable, so it must be one that can only be the agent's: never the home directory, one
above it, or one of nd7's own.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nd7tui.engine.agents.adapter import RunFacts


def own_directory(variable: str, env: Mapping[str, str], run: RunFacts) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the directories to make writable and what to tell the person.

    Args:
        variable: `CLAUDE_CONFIG_DIR` or `CODEX_HOME`.
        env: The environment the agent will get.
        run: The run; its home decides what is too wide.
    """
    value = env.get(variable, "")
    if not value:
        return (), ()
    path = os.path.realpath(value)
    refused = [os.path.join(run.home, name) for name in (".nd7", ".ssh", ".gnupg", ".config", ".local", ".aws")]
    if _covers(path, run.home) or any(_covers(path, other) or _covers(other, path) for other in refused):
        return (), (f"{variable} is {path!r}: too wide to make writable, so the agent cannot write there",)
    return (path,), ()


def _covers(upper: str, lower: str) -> bool:
    return os.path.commonpath((upper, lower)) == upper
