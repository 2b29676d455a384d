"""What one run's decisions stand on: its policy, what the floor covers, its processes.

Rule: `may_continue` is the only place that says a call may go to the kernel unchanged.
"""

from __future__ import annotations

import errno
import os
import stat

from nd7tui.engine.sandbox.resolve import Entry, Place, Resolver, fail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from nd7tui.engine.policy.rules import Access, Policy
    from nd7tui.engine.sandbox.call import Call
    from nd7tui.engine.sandbox.floor import Coverage
    from nd7tui.engine.sandbox.tree import Tree

_MOST_LINKS = 40


class Ground:
    """The state that handlers share.

    Attributes:
        policy: What holds now.
        coverage: What the Landlock floor grants.
        tree: The run's processes.
        strict: Nothing is continued: a live rule refuses something inside the floor, so a path swapped after the
            check could reach it (Source: seccomp_unotify(2), NOTES).
    """

    def __init__(self, policy: Policy, coverage: Coverage, tree: Tree) -> None:
        self.policy = policy
        self.coverage = coverage
        self.tree = tree
        self.strict = False
        self.resolver = Resolver(tree)

    def set_policy(self, policy: Policy, *, sticky: bool = False) -> None:
        """Makes `policy` the one that holds.

        Args:
            policy: The new policy.
            sticky: Stay strict even without a live denial inside the floor (a command has narrowed itself by a
                Landlock layer that this process cannot see).
        """
        self.policy = policy
        self.strict = sticky or not self._floor_is_allowed()

    def _floor_is_allowed(self) -> bool:
        """Tells whether policy still allows all that the floor grants."""
        for access, roots in self.coverage.roots.items():
            if any(self.policy.decide_tree(access, path).effect != "allow" for path in roots):
                return False
        return True

    def may_continue(self, accesses: Iterable[Access], path: bytes, *, in_memory: bool = False) -> bool:
        """Tells whether the kernel may run a call that wants `accesses` beneath `path`.

        Args:
            accesses: What policy has allowed.
            path: Canonical path of the object, or of the directory whose entry is made, removed or renamed.
            in_memory: The call's flags are in the caller's memory too (openat2).
        """
        del in_memory  # The floor judges whatever the flags become; strict mode continues nothing at all.
        return not self.strict and all(self.coverage.covers(access, path) for access in accesses)

    def new_entry(self, call: Call, dirfd: int, path: bytes, *, follow: bool) -> Entry:
        """Returns the entry that an open with O_CREAT would make, through dangling links when `follow`.

        Raises:
            OSError: As the call would.
        """
        entry = self.resolver.entry(call, dirfd, path)
        for _ in range(_MOST_LINKS):
            info = entry.info()
            if info is None or not stat.S_ISLNK(info.st_mode):
                return entry
            if not follow:
                entry.close()
                raise fail(errno.EEXIST)
            text = os.readlink(entry.name, dir_fd=entry.parent.fd)
            entry = self._beside(call, entry, text)
        entry.close()
        raise fail(errno.ELOOP)

    def _beside(self, call: Call, entry: Entry, text: bytes) -> Entry:
        """Returns the entry that a link's text names, seen from the link's directory."""
        stem, _, name = text.rpartition(b"/")
        base = os.open("/", os.O_PATH | os.O_CLOEXEC) if text.startswith(b"/") else os.dup(entry.parent.fd)
        try:
            parent: Place = self.resolver.walk(call, base, stem or b".", follow=True)
        finally:
            os.close(base)
            entry.close()
        return Entry(parent, name)
