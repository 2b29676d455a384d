"""What the Landlock floor of a run grants.

Rule: a grant binds to an inode. The inode of each granted directory is kept, so that a replaced directory is known to
have lost its cover.
Does not prove: that the kernel was told. `floor` tells it and fills this in, in the child that confines itself;
`packed` is how the supervisor hears of it.
"""

from __future__ import annotations

import marshal
import os

from nd7tui.engine.policy.rules import Access, split
from nd7tui.engine.records import dataclass, field


@dataclass(frozen=True, slots=True)
class Root:
    """One granted path and the inode the grant is bound to."""

    path: bytes
    device: int
    inode: int

    @property
    def top_level(self) -> bool:
        """Directly below `/`: nothing inside can rename or replace it."""
        return self.path.count(b"/") == 1


@dataclass(slots=True)
class Coverage:
    """What the floor grants: by access, canonical path to root."""

    roots: dict[Access, dict[bytes, Root]] = field(default_factory=lambda: {Access.READ: {}, Access.WRITE: {}})

    def covers(self, access: Access, path: bytes) -> bool:
        """Tells whether the kernel grants `access` on the canonical `path`, an existing one or one to be made."""
        roots = self.roots[access]
        while True:
            root = roots.get(path)
            if root is not None and (root.top_level or _is_still(root)):
                return True
            if path == b"/":
                return False
            path = split(path)[0]

    def packed(self) -> bytes:
        """Returns all of it as bytes, for a process of the same program."""
        found = [
            (access.value, root.path, root.device, root.inode)
            for access, roots in self.roots.items()
            for root in roots.values()
        ]
        return marshal.dumps(found)


def unpacked(data: bytes) -> Coverage:
    """Returns what `packed` gave; `data` comes from our own child, before it is anybody else's."""
    coverage = Coverage()
    for access, path, device, inode in marshal.loads(data):  # noqa: S302 - see above
        coverage.roots[Access(access)][path] = Root(path, device, inode)
    return coverage


def _is_still(root: Root) -> bool:
    try:
        info = os.stat(root.path, follow_symlinks=False)
    except OSError:
        return False
    return info.st_ino == root.inode and info.st_dev == root.device
