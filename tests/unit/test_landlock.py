"""The ruleset calls: which rights each ABI knows, and that an applied ruleset refuses what it does not grant."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from nd7tui.engine.sandbox import abi, landlock

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("level", "files", "network", "scopes"),
    [
        (1, 0x1FFF, 0, 0),
        (2, 0x3FFF, 0, 0),
        (3, 0x7FFF, 0, 0),
        (4, 0x7FFF, 2, 0),
        (5, 0xFFFF, 2, 0),
        (6, 0xFFFF, 2, 3),
        (7, 0xFFFF, 2, 3),
    ],
)
def test_rights_came_with_the_abi_that_the_kernel_document_says(
    level: int, files: int, network: int, scopes: int
) -> None:
    assert landlock.known(level) == (files, network, scopes)


def errnos_under(granted: Path, *, probes: list[tuple[Path, int]]) -> list[int]:
    """Opens each probe in a child confined to reading beneath `granted`; returns the errnos, 0 where it opened."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            rights = landlock.READ_FILE | landlock.WRITE_FILE | landlock.TRUNCATE
            ruleset = landlock.Ruleset(files=rights, network=landlock.CONNECT_TCP, scoped=landlock.SCOPE_SIGNAL)
            ruleset.allow(os.fsencode(granted), landlock.READ_FILE | landlock.READ_DIR)
            abi.syscall(abi.NR["prctl"], abi.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            ruleset.restrict()
            found = []
            for path, flags in probes:
                try:
                    os.close(os.open(path, flags))
                    found.append(0)
                except OSError as error:
                    found.append(error.errno)
            os.write(write, bytes(found))
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        told = list(file.read())
    os.waitpid(pid, 0)
    return told


@pytest.mark.parametrize("level", [None, 1, 3])
def test_what_is_handled_and_not_granted_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: int | None
) -> None:
    assert landlock.version() >= 1, "this kernel has no Landlock"
    if level is not None:
        monkeypatch.setattr(landlock, "version", lambda: level)
    inside, outside = tmp_path / "in" / "file", tmp_path / "out"
    inside.parent.mkdir()
    for path in (inside, outside):
        path.write_text("x")
    probes = [(inside, os.O_RDONLY), (inside, os.O_WRONLY), (outside, os.O_RDONLY), (outside, os.O_WRONLY)]
    assert errnos_under(inside.parent, probes=probes) == [0, 13, 13, 13]


def test_a_grant_on_nothing_says_so(tmp_path: Path) -> None:
    ruleset = landlock.Ruleset(files=landlock.READ_FILE, network=0, scoped=0)
    try:
        with pytest.raises(FileNotFoundError):
            ruleset.allow(os.fsencode(tmp_path / "none"), landlock.READ_FILE)
    finally:
        os.close(ruleset.fd)


def test_without_landlock_its_abi_is_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(abi.NR, "landlock_create_ruleset", 1_000_000)
    assert landlock.version() == 0
    with pytest.raises(OSError, match=os.strerror(38)):
        landlock.Ruleset(files=landlock.READ_FILE, network=0, scoped=0)
