from __future__ import annotations

import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from confine import drop_arena, make_arena

from nd7tui.engine.sandbox import prepare


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
