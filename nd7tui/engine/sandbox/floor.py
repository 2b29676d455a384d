"""The Landlock floor of a run: what the kernel enforces even if everything else fails.

Rule: a directory is granted whole only when policy allows everything beneath it. Around whatever policy refuses or
asks about, the siblings are granted one by one along each ancestor, so that nothing refused is ever inside a grant;
what appears there later is not covered and goes through emulation.
Owns: the ruleset. `Coverage` is the list of what it grants.
Source: landlock(7), Documentation/userspace-api/landlock.rst.
"""

from __future__ import annotations

import os
import stat

from nd7tui.engine.policy.rules import Access, Effect, PathTarget, Policy, split
from nd7tui.engine.sandbox import landlock
from nd7tui.engine.sandbox.coverage import Coverage, Root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Coverage", "Root", "build"]

_READ = landlock.EXECUTE | landlock.READ_FILE | landlock.READ_DIR
_READ_A_FILE = landlock.EXECUTE | landlock.READ_FILE
_WRITE_A_FILE = landlock.WRITE_FILE | landlock.TRUNCATE
# No MAKE_CHAR and no MAKE_BLOCK: a device node would be a way around every path rule.
_WRITE = (
    _WRITE_A_FILE
    | landlock.REMOVE_DIR
    | landlock.REMOVE_FILE
    | landlock.MAKE_DIR
    | landlock.MAKE_REG
    | landlock.MAKE_SOCK
    | landlock.MAKE_FIFO
    | landlock.MAKE_SYM
    | landlock.REFER
)
_HANDLED = _READ | _WRITE | landlock.MAKE_CHAR | landlock.MAKE_BLOCK | landlock.IOCTL_DEV


def build(policy: Policy, project: bytes) -> tuple[landlock.Ruleset, Coverage]:
    """Makes the ruleset for `policy`.

    Args:
        policy: The run's policy at its start.
        project: The project directory; sockets and fifos may be made anywhere in it, since neither is ever run.

    Returns:
        The ruleset (its caller closes it) and what it covers.

    Raises:
        OSError: The kernel refused a rule.
    """
    # Sockets are connected by the supervisor, so no port needs to be granted here.
    ruleset = landlock.Ruleset(
        files=_HANDLED,
        network=landlock.CONNECT_TCP,
        scoped=landlock.SCOPE_ABSTRACT_UNIX_SOCKET | landlock.SCOPE_SIGNAL,
    )
    coverage = Coverage()
    ruleset.allow(b"/", landlock.READ_DIR)  # names can be listed everywhere, contents not
    for access in (Access.READ, Access.WRITE):
        for path, info in _grants(policy, access):
            _grant(ruleset, coverage, access, path, info)
    if os.path.isdir(project):
        ruleset.allow(project, landlock.MAKE_SOCK | landlock.MAKE_FIFO)
    return ruleset, coverage


def _grant(ruleset: landlock.Ruleset, coverage: Coverage, access: Access, path: bytes, info: os.stat_result) -> None:
    is_directory, is_device = stat.S_ISDIR(info.st_mode), stat.S_ISCHR(info.st_mode)
    if access is Access.READ:
        rights = _READ if is_directory else _READ_A_FILE
    else:
        rights = _WRITE if is_directory else _WRITE_A_FILE
    if is_device or (access is Access.WRITE and path.startswith(b"/dev/")):
        rights |= landlock.IOCTL_DEV
    if access is Access.WRITE and not is_directory and not is_device:
        return  # a file can be replaced at any time: always emulated
    try:
        ruleset.allow(path, rights)
    except FileNotFoundError:
        return
    if is_directory or is_device:
        coverage.roots[access][path] = Root(path, info.st_dev, info.st_ino)


def _grants(policy: Policy, access: Access) -> Iterator[tuple[bytes, os.stat_result]]:
    """Yields the largest existing paths that policy allows whole."""
    named = _Named(policy, access)
    queue = [(b"/", False)]
    while queue:
        path, is_allowed = queue.pop()
        try:
            info = os.stat(path, follow_symlinks=False)
        except OSError:
            continue
        if stat.S_ISLNK(info.st_mode):
            continue  # the target is granted under its own name
        if is_allowed or policy.decide_tree(access, path).effect is Effect.ALLOW:
            yield path, info
        elif path in named.tops and stat.S_ISDIR(info.st_mode):
            queue.extend(_children(path, policy, access, named))


class _Named:
    """Where the rules for `access` speak of something by name.

    Attributes:
        tops: Every strict ancestor of a rule's path.
        paths: The rules' paths, patterns left out.
        patterned: The directories that a pattern speaks of children of.
    """

    def __init__(self, policy: Policy, access: Access) -> None:
        self.tops: set[bytes] = set()
        self.paths: set[bytes] = set()
        self.patterned: set[bytes] = set()
        for rule in (*policy.default, *policy.live, *policy.never):
            if rule.access is access and isinstance(rule.target, PathTarget):
                self._add(rule.target)

    def _add(self, target: PathTarget) -> None:
        path = target.path
        if target.glob:
            self.patterned.add(split(path)[0])
        else:
            self.paths.add(path)
        while path != b"/":
            path = split(path)[0]
            if path in self.tops:
                break
            self.tops.add(path)


def _children(path: bytes, policy: Policy, access: Access, named: _Named) -> Iterator[tuple[bytes, bool]]:
    """Yields the entries to look at, each with whether policy allows it whole for sure.

    What no rule names, neither itself nor anything beneath, is allowed exactly if its directory is.
    """
    stem = path.rstrip(b"/") + b"/"
    try:
        names = os.listdir(path)
    except OSError:
        return  # what we cannot list we cannot grant
    rest = policy.decide_path(access, path).effect is Effect.ALLOW
    by_name = path in named.patterned
    for name in names:
        child = stem + name
        if child in named.tops:
            yield child, False
        elif by_name or child in named.paths:
            if policy.decide_path(access, child).effect is Effect.ALLOW:
                yield child, True
        elif rest:
            yield child, True
