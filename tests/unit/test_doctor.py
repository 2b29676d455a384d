from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from types import SimpleNamespace

import pytest

from nd7tui.commands import doctor as command
from nd7tui.engine import doctor_facts
from nd7tui.engine.doctor import Agent, Facts, State, Terminal, healthy, judge, kernel_version
from nd7tui.engine.helpers import Helper

GOOD = Facts(
    system="Linux",
    release="6.18.4-generic",
    machine="x86_64",
    landlock_abi=7,
    listener_errno=0,
    partial=(),
    unix_diag=True,
    hot_loop="c",
    helpers=(Helper("nd7-exec", "/opt/nd7-exec"), Helper("nd7-hook", "/opt/nd7-hook")),
    terminal=Terminal("xterm-256color", "truecolor", 120, 40, tmux=True),
    engine="ghostty",
    engine_notice="",
    agents=(Agent("claude", "/bin/claude", "2.1.332 (Claude Code)"),),
    state_dir="/home/dev/.local/state/nd7",
    state_writable=True,
    free_bytes=10 << 30,
)


def test_all_is_well():
    checks = judge(GOOD)
    assert {check.state for check in checks} == {State.OK}
    assert healthy(checks)
    names = [check.name for check in checks]
    assert names[:5] == ["kernel", "landlock", "listener", "unix_diag", "hot loop"]
    assert all("\n" not in command.line(check) for check in checks)


@pytest.mark.parametrize(
    ("change", "name", "words"),
    [
        ({"system": "Darwin"}, "kernel", "Linux only"),
        ({"release": "5.4.0"}, "kernel", "5.14"),
        ({"release": "odd"}, "kernel", "5.14"),
        ({"machine": "riscv64"}, "kernel", "x86_64"),
        ({"landlock_abi": 0}, "landlock", "lsm="),
        ({"listener_errno": errno.EBUSY}, "listener", "outside"),
        ({"listener_errno": errno.EINVAL}, "listener", "CONFIG_SECCOMP"),
        ({"helpers": (Helper("nd7-exec", None),)}, "nd7-exec", "install"),
        ({"helpers": (Helper("nd7-hook", "/x", "writable by others"),)}, "nd7-hook", "writable by others"),
        ({"engine": None, "engine_notice": "no wheel"}, "terminal engine", "no wheel"),
        ({"state_writable": False}, "logs", "writable"),
    ],
)
def test_what_is_needed_and_missing_fails_and_says_what_to_do(change, name, words):
    checks = judge(replace(GOOD, **change))
    missing = [check for check in checks if check.state is State.MISSING]
    assert [check.name for check in missing] == [name]
    assert words in command.line(missing[0])
    assert missing[0].todo
    assert not healthy(checks)


@pytest.mark.parametrize(
    ("change", "name", "words"),
    [
        ({"landlock_abi": 3}, "landlock", "truncation (Linux 6.12"),
        ({"partial": ("signals to other processes",)}, "not enforced", "--allow-partial"),
        ({"unix_diag": False}, "unix_diag", "modprobe"),
        ({"hot_loop": "python"}, "hot loop", "compiler"),
        ({"terminal": Terminal("", "", 80, 24, tmux=False)}, "terminal", "TERM is not set"),
        ({"terminal": Terminal("xterm", "", 20, 5, tmux=False)}, "terminal", "20x5"),
        ({"terminal": Terminal("xterm", "", 0, 0, tmux=False)}, "terminal", "none"),
        ({"engine_notice": "terminal engine is bittty (ghostty: no)"}, "terminal engine", "bittty"),
        ({"agents": ()}, "agents", "nd7 tui demo"),
        ({"agents": (Agent("codex", "/bin/codex", ""),)}, "codex", "did not say"),
        ({"free_bytes": 1 << 20}, "logs", "1 MiB"),
    ],
)
def test_what_is_merely_worse_warns(change, name, words):
    checks = judge(replace(GOOD, **change))
    warned = [check for check in checks if check.state is State.WARN]
    assert [check.name for check in warned] == [name]
    assert words in command.line(warned[0])
    assert healthy(checks)


def test_kernel_versions():
    assert kernel_version("6.18.44-fc") == (6, 18)
    assert kernel_version("5.4") == (5, 4)
    assert kernel_version("") == (0, 0)


def test_command(monkeypatch, capsys):
    monkeypatch.setattr(doctor_facts, "gather", lambda: GOOD)
    assert command.main(SimpleNamespace(json=True)) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["ok"] is True
    assert printed["checks"][0] == {
        "name": "kernel",
        "state": "ok",
        "text": "Linux 6.18.4-generic x86_64",
        "todo": "",
    }
    monkeypatch.setattr(doctor_facts, "gather", lambda: replace(GOOD, landlock_abi=0))
    assert command.main(SimpleNamespace(json=False)) == 1
    assert "MISSING landlock" in capsys.readouterr().out


def test_the_listener_is_tried_in_a_child():
    assert doctor_facts.try_listener() == 0, "this kernel gives no seccomp listener"


def test_agent_versions_are_asked_for_and_cut(tmp_path):
    program = tmp_path / "agent"
    program.write_text("#!/bin/sh\nprintf '1.2\\033[31m.3 x\\nmore\\n'\n")
    program.chmod(0o755)
    assert doctor_facts.agent_version(str(program)) == "1.2[31m.3 x"
    assert doctor_facts.agent_version(str(tmp_path / "none")) == ""


def test_directories_that_are_not_there_yet(tmp_path):
    assert doctor_facts.existing(str(tmp_path / "a/b/c")) == str(tmp_path)
    assert doctor_facts.writable(str(tmp_path))
    assert not doctor_facts.writable(str(tmp_path / "a"))
    assert doctor_facts.free_bytes(str(tmp_path)) > 0
    assert not os.path.exists(tmp_path / "a")
