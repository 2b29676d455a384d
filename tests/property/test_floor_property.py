"""What the floor grants and which other names mounts give, checked against a second, naive telling of it."""

from __future__ import annotations

import os
import stat
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st
from policy_strategies import DISK, NAMES, PATHS, POLICIES

from nd7tui.engine.policy.rules import Access, Effect, Policy, split
from nd7tui.engine.sandbox import floor
from nd7tui.engine.sandbox.mounts import Mount, Mounts

KINDS = (stat.S_IFDIR, stat.S_IFDIR, stat.S_IFREG, stat.S_IFLNK)


class Disk:
    """A file system of names; every ancestor of a path is a directory."""

    def __init__(self, paths: list[tuple[bytes, int]]) -> None:
        self.modes = {path: mode for path, mode in paths if path != b"/"} | {b"/": stat.S_IFDIR}
        for path in list(self.modes):
            above = path
            while above != b"/":
                above = split(above)[0]
                self.modes[above] = stat.S_IFDIR

    def stat(self, path: bytes, *, follow_symlinks: bool) -> os.stat_result:
        assert not follow_symlinks
        return os.stat_result((self.modes[path], *[0] * 9))

    def listdir(self, path: bytes) -> list[bytes]:
        return [split(name)[1] for name in self.modes if name != b"/" and split(name)[0] == path]


def naive(policy: Policy, access: Access, disk: Disk, path: bytes = b"/") -> list[bytes]:
    """The largest allowed trees: every path whose tree is allowed while its parent's is not."""
    if disk.modes[path] == stat.S_IFLNK:
        return []
    if policy.decide_tree(access, path).effect is Effect.ALLOW:
        return [path]
    if disk.modes[path] != stat.S_IFDIR:
        return []
    children = [path.rstrip(b"/") + b"/" + name for name in disk.listdir(path)]
    return [found for child in children for found in naive(policy, access, disk, child)]


@given(POLICIES, DISK, st.lists(st.tuples(PATHS, st.sampled_from(KINDS)), max_size=12))
def test_the_floor_grants_the_largest_trees_that_policy_allows(
    policy: Policy, access: Access, paths: list[tuple[bytes, int]]
) -> None:
    disk = Disk(paths)
    with patch.object(os, "stat", disk.stat), patch.object(os, "listdir", disk.listdir):
        granted = [path for path, _ in floor._grants(policy, access)]
    assert sorted(granted) == sorted(naive(policy, access, disk))


def naive_aliases(path: bytes, mounts: list[Mount]) -> list[bytes]:
    def beneath(one: bytes, top: bytes) -> bool:
        return (one.rstrip(b"/") + b"/").startswith(top.rstrip(b"/") + b"/")

    holding = [mount for mount in mounts if beneath(path, mount.point)]
    if not holding:
        return []
    longest = max(len(mount.point) for mount in holding)
    home = [mount for mount in holding if len(mount.point) == longest][-1]
    inner = os.path.normpath(home.root + b"/" + path[len(home.point.rstrip(b"/")) :]).replace(b"//", b"/")
    return [
        alias
        for mount in mounts
        if mount is not home and mount.device == home.device and beneath(inner, mount.root)
        for alias in [os.path.normpath(mount.point + b"/" + inner[len(mount.root.rstrip(b"/")) :]).replace(b"//", b"/")]
        if alias != path
    ]


@given(PATHS, st.lists(st.builds(Mount, st.sampled_from((b"8:1", b"8:2")), PATHS, PATHS), max_size=6), NAMES)
def test_other_names_of_a_path_are_found_in_every_mount_of_its_file_system(
    path: bytes, mounts: list[Mount], name: bytes
) -> None:
    mounts.append(Mount(b"0:5", b"/", path.rstrip(b"/") + b"/" + name))
    assert Mounts(mounts).aliases(path) == naive_aliases(path, mounts)
