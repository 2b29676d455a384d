from __future__ import annotations

import json
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nd7tui.engine.agents.claude import ADAPTER as CLAUDE
from nd7tui.engine.agents.codex import ADAPTER as CODEX
from nd7tui.engine.agents.demo import ADAPTER as DEMO
from nd7tui.engine.agents.rewrite import hook_reply, quote, unwrap, wrap

EXEC = "/opt/nd7/nd7-exec"


def call(**tool_input: object) -> dict[str, object]:
    return {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": tool_input, "tool_use_id": "t1"}


def test_echoes_the_whole_input_without_a_decision():
    reply = hook_reply(call(command="echo $HOME", description="d", timeout=5, other=[1]), DEMO, EXEC)
    assert reply == {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "updatedInput": {
                "command": "/opt/nd7/nd7-exec -c 'echo $HOME'",
                "description": "d",
                "timeout": 5,
                "other": [1],
            },
        }
    }


def test_claude_is_not_rewritten_because_its_users_rules_would_judge_the_wrapper():
    assert hook_reply(call(command="ls"), CLAUDE, EXEC) is None


def test_codex_needs_allow():
    reply = hook_reply(call(command="ls"), CODEX, EXEC)
    assert reply is not None
    assert reply["hookSpecificOutput"]["permissionDecision"] == "allow"


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {**call(command="ls"), "hook_event_name": "PostToolUse"},
        {**call(command="ls"), "tool_name": "Write"},
        {**call(), "tool_input": "ls"},
        call(command=None),
        call(command=["ls"]),
        call(command="a\0b"),
        call(command="x" * 200_000),
        call(command="'" * 30_000),
    ],
)
def test_no_answer(payload):
    assert hook_reply(payload, DEMO, EXEC) is None


def test_twice_changes_nothing():
    first = wrap("echo 'a b'", EXEC)
    assert first is not None
    assert hook_reply(call(command=first), DEMO, EXEC) is None


def test_only_exactly_our_own_wrapping_counts_as_wrapped():
    for command in (f"{EXEC} -c 'true'; rm -rf 'x'", f"{EXEC} -c true", f"{EXEC} -c 'a' 'b'"):
        assert unwrap(command, EXEC) is None
        wrapped = wrap(command, EXEC)
        assert wrapped is not None
        assert unwrap(wrapped, EXEC) == command


def test_a_path_with_blanks_is_quoted():
    assert quote("/a b/nd7-exec") == "'/a b/nd7-exec'"


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=[])))
def test_unwrap_is_the_inverse(command):
    wrapped = wrap(command, "/it's/nd7-exec")
    if unwrap(command, "/it's/nd7-exec") is None:
        assert wrapped is not None
        assert unwrap(wrapped, "/it's/nd7-exec") == command
        json.dumps(hook_reply(call(command=command), DEMO, EXEC))


@pytest.mark.parametrize(
    "command", ["echo it's", "printf %s \"$((1+1))\" 'a\nb'", "a='x'; echo \"$a\" \\\\ `echo q`", "-n"]
)
def test_the_outer_shell_passes_it_on_unchanged(tmp_path, command):
    fake = tmp_path / "it's nd7-exec"
    fake.write_text('#!/bin/sh\nprintf %s "$2"\n')
    fake.chmod(0o755)
    wrapped = wrap(command, str(fake))
    assert wrapped is not None
    seen = subprocess.run(["/bin/sh", "-c", wrapped], capture_output=True, check=True)
    assert seen.stdout.decode() == command
