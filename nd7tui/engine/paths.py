"""Where nd7 keeps things, for the user this process runs as.

Rule: the home directory is the password database's, never `$HOME`, which a confined program could have set.
"""

from __future__ import annotations

import os
import pwd


def home() -> str:
    """Returns the canonical home directory of the real user, from the password database."""
    return os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir)


def state_dir() -> str:
    """Returns `$XDG_STATE_HOME/nd7`, by default `~/.local/state/nd7`.

    Source: XDG Base Directory Specification (a relative value is ignored).
    """
    return _xdg("XDG_STATE_HOME", ".local/state")


def caches_dir() -> str:
    """Returns where package managers keep what confined runs fetch: `$XDG_CACHE_HOME/nd7`, by default `~/.cache/nd7`.

    Source: XDG Base Directory Specification (a relative value is ignored).
    """
    return _xdg("XDG_CACHE_HOME", ".cache")


def sessions_dir() -> str:
    """Returns the directory that holds one directory per session log."""
    return os.path.join(state_dir(), "sessions")


def runs_dir() -> str:
    """Returns the directory that holds one directory per live run, named by the supervisor's pid."""
    return os.path.join(home(), ".nd7", "sessions")


def config_file() -> str:
    """Returns the path of the user's configuration, `~/.config/nd7/config.toml`."""
    return os.path.join(home(), ".config", "nd7", "config.toml")


def _xdg(variable: str, default: str) -> str:
    base = os.environ.get(variable, "")
    return os.path.join(base if os.path.isabs(base) else os.path.join(home(), default), "nd7")
