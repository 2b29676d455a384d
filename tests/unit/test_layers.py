"""The direction of imports, by the linter's contracts and by what really gets loaded."""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys

import nd7tui.engine

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
UI_LIBRARIES = {"textual", "rich"}
# What `nd7 run` and `nd7 --version` must not pay for. `click` is nobody's.
HEAVY = UI_LIBRARIES | {"click", "asyncio", "dataclasses", "inspect", "pyghostty", "bittty", "tomlkit"}


def modules_of_the_engine():
    return [found.name for found in pkgutil.walk_packages(nd7tui.engine.__path__, "nd7tui.engine.")]


def loaded_by(*statements):
    """Returns the top-level modules that a new Python has loaded after these statements."""
    text = "\n".join([*statements, "import sys", "print(*{name.partition('.')[0] for name in sys.modules})"])
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.split())


def test_import_contracts_hold():
    # As `make lint` runs it, so that `make test` alone shows a broken direction too.
    lint = os.path.join(os.path.dirname(sys.executable), "lint-imports")
    done = subprocess.run([lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_module_of_the_engine_loads_the_uis_libraries():
    names = modules_of_the_engine()
    assert len(names) > 20
    assert loaded_by(*(f"import {name}" for name in names)) & UI_LIBRARIES == set()


def test_the_command_line_loads_nothing_heavy():
    assert loaded_by("import nd7tui.cli") & HEAVY == set()


def test_what_a_run_loads_first_is_light():
    light = [
        name
        for name in modules_of_the_engine()
        if name.split(".")[2] in {"log", "policy", "run", "sandbox", "helpers", "paths"}
    ]
    assert loaded_by(*(f"import {name}" for name in light)) & HEAVY == set()
