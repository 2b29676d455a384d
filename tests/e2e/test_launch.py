"""A child that confines itself and waits for leave to be the program."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from nd7tui.engine.policy.rules import Access, Effect, PathTarget, Policy, Rule, Scope
from nd7tui.engine.sandbox import launch
from nd7tui.engine.sandbox.coverage import Coverage, Root, unpacked
from nd7tui.engine.sandbox.entries import entries
from nd7tui.errors import RefusedError

pytestmark = pytest.mark.e2e


def allowed(*paths):
    return Policy(
        default=tuple(
            Rule(Effect.ALLOW, access, PathTarget(os.fsencode(path)), Scope.DEFAULT, "test", 0, f"{access}{path}")
            for path in paths
            for access in (Access.READ, Access.WRITE)
        )
    )


def begin(directory, text):
    argv = ["sh", "-c", text]
    return launch.begin(argv, dict(os.environ), str(directory), allowed("/usr", "/lib", "/lib64", directory))


def test_nothing_of_the_program_runs_before_it_is_told_to(tmp_path):
    beginning = begin(tmp_path, "echo > ran")
    listener, granted, made = beginning._confined()
    os.close(listener)
    assert os.fsencode(tmp_path) in unpacked(granted).roots[Access.WRITE]
    assert sorted(made) == sorted(entries(beginning._policy, unpacked(granted)))
    beginning.cancel()
    beginning.cancel()
    with pytest.raises(ChildProcessError):
        os.waitpid(beginning.pid, 0)
    assert not (tmp_path / "ran").exists()


def test_a_child_whose_supervisor_goes_ends_without_a_program(tmp_path):
    beginning = begin(tmp_path, "echo > ran")
    beginning._close()
    _, status = os.waitpid(beginning.pid, 0)
    assert status != 0
    assert not (tmp_path / "ran").exists()


def test_what_goes_wrong_in_the_child_is_said_and_nothing_starts(tmp_path):
    beginning = begin(tmp_path / "none", "true")
    with pytest.raises(RefusedError, match="cannot confine the program: No such file"):
        beginning.finish()
    with pytest.raises(ChildProcessError):
        os.waitpid(beginning.pid, 0)


def test_a_child_that_was_killed_is_no_start(tmp_path):
    beginning = begin(tmp_path, "true")
    os.kill(beginning.pid, 9)
    with pytest.raises(RefusedError, match="cannot confine"):
        beginning.finish()


def test_what_is_granted_is_heard_as_it_was_told():
    coverage = Coverage()
    coverage.roots[Access.READ][b"/a\xff"] = Root(b"/a\xff", 1 << 40, 7)
    assert unpacked(coverage.packed()) == coverage


LATE = """
import sys
from nd7tui import cli
from nd7tui.engine.run import jobs
from nd7tui.engine.sandbox import launch

early, finish, end = set(), launch.Beginning.finish, jobs.end_like

def finished(self, *args):
    started = finish(self, *args)
    early.update(sys.modules)
    return started

def ending(how):
    print("slow:", sorted({"typing", "dataclasses"} & early))
    print("late:", sorted(name for name in set(sys.modules) - early if name.startswith("nd7tui")))
    end(how)

launch.Beginning.finish, jobs.end_like = finished, ending
cli.main()
"""


@pytest.mark.parametrize(
    "program",
    [
        ["sh", "-c", "echo x > ~/x; mkdir d; mv d e; rmdir e"],
        [sys.executable, "-c", "import socket; socket.socket().connect_ex(('198.51.100.1', 80))"],
        ["demo", "--fast"],
    ],
    ids=["files", "network", "agent"],
)
def test_nothing_of_nd7_is_imported_while_the_program_could_change_it(tmp_path, program):
    (tmp_path / "project").mkdir()
    argv = [sys.executable, "-c", LATE, "run", "--quiet", "--hold", "0", *program]
    env = os.environ | {"XDG_STATE_HOME": str(tmp_path / "state")}
    done = subprocess.run(
        argv, cwd=tmp_path / "project", env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=90, check=False
    )
    slow, late = done.stdout.decode().splitlines()[-2:]
    assert late == "late: []", done.stderr
    assert slow == "slow: []" or program[0] == "demo", "what every run pays for"
