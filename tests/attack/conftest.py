from __future__ import annotations

import os
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from confine import drop_arena, make_arena

from nd7tui.engine.sandbox import launch, prepare


@pytest.fixture(scope="session", autouse=True)
def kernel():
    """The attack tests need a kernel that enforces all of it; without one they fail, they are not skipped."""
    found = prepare.probe()
    assert found.landlock_abi >= 6, f"Landlock ABI {found.landlock_abi}: the attack tests need 6"
    assert found.listener, "no seccomp user notification"
    assert os.getuid() == 0, "run as root: the tests make an ordinary user themselves"


@pytest.fixture(params=["root", "user"])
def arena(request):
    made = make_arena(request.param)
    yield made
    drop_arena(made)


@pytest.fixture
def outside(arena):
    """A process outside the run that the same user could trace."""

    def drop():
        if not arena.uid:
            # No more capabilities than the run has: else the kernel's own rules protect it from the run.
            launch._drop_capabilities()
            launch._inherit_no_capabilities()

    with open(arena.top / "outside/file") as file:
        process = subprocess.Popen(
            ["sleep", "60"], env={"SECRET": "leak"}, user=arena.uid, group=arena.gid, extra_groups=[],
            cwd=arena.top / "outside", stdin=file, preexec_fn=drop,  # noqa: PLW1509 - no threads here
        )  # fmt: skip
    yield process
    process.kill()
    process.wait()
