"""nd7's own native programs: where they are, and whether somebody else could replace them.

Rule: they are looked for beside the running `nd7` and its interpreter, never in PATH, which the caller chooses. A
program that another user could replace, by itself or by any directory above it, is not used.
Owns: the two names. Does not prove: that the files are the ones we built.
"""

from __future__ import annotations

import os
import stat
import sys

from nd7tui.engine.records import dataclass

NAMES = ("nd7-exec", "nd7-hook")
NOT_BUILT = "not built: a C compiler was missing when nd7 was installed"


@dataclass(frozen=True, slots=True)
class Helper:
    """One helper program.

    Attributes:
        name: `nd7-exec` or `nd7-hook`.
        path: Canonical absolute path, None when it was not found.
        fault: Why it cannot be used, empty when it can.
    """

    name: str
    path: str | None
    fault: str = ""


def find(near: str | None = None) -> tuple[Helper, ...]:
    """Returns both helpers.

    Args:
        near: A file in the directory to look in first; by default the running command.
    """
    return tuple(_find(name, near or sys.argv[0]) for name in NAMES)


def replaceable_by(path: str) -> str | None:
    """Returns the first of `path` and the directories above it that another user could change, None when none.

    The superuser is nobody else, and neither are the members of a group that holds only its user.
    """
    at = os.path.realpath(path)
    while True:
        if _others_may_change(at):
            return at
        if at == "/":
            return None
        at = os.path.dirname(at)


def _find(name: str, near: str) -> Helper:
    path = next((path for path in _candidates(name, near) if os.access(path, os.X_OK)), None)
    if path is None:
        return Helper(name, None, NOT_BUILT)
    path = os.path.realpath(path)
    weak = replaceable_by(path)
    return Helper(name, path, "" if weak is None else f"{weak} can be written by others (chmod go-w {weak})")


def _candidates(name: str, near: str) -> tuple[str, ...]:
    # The interpreter's directory by its own name, not resolved: a virtual environment's, not the system's.
    beside = (os.path.dirname(os.path.abspath(near)), os.path.dirname(os.path.abspath(sys.executable)))
    return tuple(os.path.join(directory, name) for directory in dict.fromkeys(beside))


def _others_may_change(path: str) -> bool:
    status = os.stat(path)
    if status.st_uid not in {0, os.geteuid()}:
        return True
    if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX:
        return False  # others may add entries, but not replace ours
    if status.st_mode & stat.S_IWOTH:
        return True
    return bool(status.st_mode & stat.S_IWGRP) and not _only_ours(status.st_gid)


def _only_ours(gid: int) -> bool:
    """Tells whether a group is the private one of this user (umask 002 is the default where these exist)."""
    import grp
    import pwd

    if gid == 0:
        return True
    try:
        group, user = grp.getgrgid(gid), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    return user.pw_gid == gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
