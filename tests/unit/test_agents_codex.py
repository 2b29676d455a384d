from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nd7tui.engine.agents.adapter import RunFacts
from nd7tui.engine.agents.codex import ADAPTER, toml_string


@pytest.fixture
def run(tmp_path):
    return RunFacts("0b0e7a40-5f0c-4c60-9d7e-5f1f0a6a8d11", 4711, "/opt/nd7-hook", "/opt/nd7-exec", str(tmp_path), "/p")


def prepare(run, *args, env=None):
    prepared = ADAPTER.prepare(["codex", *args], env or {}, run)
    given = [a.partition("=")[2] for a in prepared.argv if a.startswith("developer_instructions=")]
    text = tomllib.loads(f"v = {given[0]}")["v"] if given else None
    assert len(given) < 2
    return prepared, ["NOTE" if a.startswith("developer_instructions=") else a for a in prepared.argv[1:]], text


OURS = ["-s", "danger-full-access", "-c", "NOTE"]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ([], ["--no-daemon", *OURS]),
        (["hello there"], ["--no-daemon", *OURS, "hello there"]),
        (["exec", "--json", "do"], ["--no-daemon", "exec", *OURS, "--json", "do"]),
        (["-m", "exec", "exec", "do"], ["--no-daemon", "-m", "exec", "exec", *OURS, "do"]),
        (["exec", "resume", "--last"], ["--no-daemon", "exec", *OURS, "resume", "--last"]),
        (["resume", "--last"], ["--no-daemon", "resume", *OURS, "--last"]),
        (["review"], ["--no-daemon", "review", "-c", 'sandbox_mode="danger-full-access"', "-c", "NOTE"]),
        (["--no-daemon", "x"], ["--no-daemon", *OURS, "x"]),
        (["-s", "read-only", "x"], ["--no-daemon", *OURS, "x"]),
        (["--sandbox=read-only", "x"], ["--no-daemon", *OURS, "x"]),
        (["-sread-only", "x"], ["--no-daemon", *OURS, "x"]),
        (["--yolo"], ["--no-daemon", "-c", "NOTE", "--yolo"]),
    ],
)
def test_where_the_flags_go(run, args, expected):
    assert prepare(run, *args)[1] == expected


@pytest.mark.parametrize("args", [["login"], ["mcp", "list"], ["--version"], ["-c", "a=1", "features"], ["app-server"]])
def test_other_commands_are_left_alone(run, args):
    assert prepare(run, *args)[1] == args


def test_an_overridden_sandbox_is_said(run):
    assert "read-only" in prepare(run, "-s", "read-only")[0].notes[0]
    assert prepare(run, "-s", "danger-full-access")[0].notes == ()
    assert "--remote works outside" in prepare(run, "--remote", "ws://x:1")[0].notes[0]


def test_the_users_instructions_are_kept(run, tmp_path):
    assert prepare(run, "-c", 'developer_instructions="be\\tkind"')[2].startswith("be\tkind\n\n# nd7")
    assert prepare(run, "-c", "developer_instructions=be kind")[2].startswith("be kind\n\n# nd7")
    assert prepare(run, "-cdeveloper_instructions=be kind")[2].startswith("be kind\n\n# nd7")
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex/config.toml").write_text('developer_instructions = "from file"\n')
    assert prepare(run)[2].startswith("from file\n\n# nd7")
    (tmp_path / ".codex/config.toml").write_text("broken = ")
    assert prepare(run)[2].startswith("# nd7")


def test_a_moved_home(run, tmp_path):
    moved = tmp_path / "moved"
    moved.mkdir()
    (moved / "config.toml").write_text('developer_instructions = "moved"\n')
    prepared, _, text = prepare(run, env={"CODEX_HOME": str(moved)})
    assert text.startswith("moved\n\n")
    assert prepared.scratch == (str(moved),)
    assert prepared.protected == (f"{moved}/config.toml", f"{moved}/hooks.json")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_toml_string_round_trips(text):
    assert tomllib.loads(f"v = {toml_string(text)}")["v"] == text
