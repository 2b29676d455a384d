from __future__ import annotations

import json

import pytest

from nd7tui.engine.agents.adapter import RunFacts
from nd7tui.engine.agents.claude import ADAPTER, HOOKS
from nd7tui.errors import UsageError

ID = "0b0e7a40-5f0c-4c60-9d7e-5f1f0a6a8d11"
OTHER = "11111111-2222-4333-8444-555555555555"
RUN = RunFacts(ID, 4711, "/opt/nd7-hook", "/opt/nd7-exec", "/home/dev", "/home/dev/proj")


def prepare(*args, env=None):
    return ADAPTER.prepare(["claude", *args], env or {"PATH": "/bin"}, RUN)


def option(prepared, name):
    at = [i for i, arg in enumerate(prepared.argv) if arg == name]
    assert len(at) == 1, prepared.argv
    return prepared.argv[at[0] + 1]


def test_plain_start():
    prepared = prepare()
    settings = json.loads(option(prepared, "--settings"))
    assert settings["sandbox"] == {"enabled": False}
    assert settings["disableAllHooks"] is False
    assert list(settings["hooks"]) == list(HOOKS)
    hook = settings["hooks"]["PreToolUse"][0]["hooks"][0]
    assert hook == {"type": "command", "command": "/opt/nd7-hook", "args": [], "timeout": 5}
    assert settings["hooks"]["SessionEnd"][0]["hooks"][0]["timeout"] == 1
    assert option(prepared, "--session-id") == ID
    assert (prepared.session_id, prepared.session_id_follows) == (ID, False)
    note = option(prepared, "--append-system-prompt")
    assert "nd7 allow" in note
    assert "--session 4711" in note
    assert prepared.env == {"PATH": "/bin"}
    assert prepared.notes == ()


def test_the_users_arguments_stay_in_order():
    args = ["--model", "opus", "-p", "do it", "--allowedTools", "Bash(ls:*)", "Edit", "--", "--settings", "x"]
    assert list(prepare(*args).argv[-len(args) :]) == args


@pytest.mark.parametrize("args", [["mcp", "list"], ["doctor"], ["--version"], ["-h"], ["update"]])
def test_a_subcommand_is_left_alone(args):
    prepared = prepare(*args)
    assert list(prepared.argv) == ["claude", *args]
    assert prepared.session_id_follows


@pytest.mark.parametrize(
    ("args", "session", "follows"),
    [
        (["-c"], ID, True),
        (["--continue"], ID, True),
        (["-r"], ID, True),
        (["--resume"], ID, True),
        (["--resume", "my name"], ID, True),
        (["--resume", OTHER], OTHER, True),
        ([f"--resume={OTHER}"], OTHER, True),
        (["-r", OTHER, "--fork-session"], ID, True),
        (["-pc", "hello"], ID, True),
        (["--from-pr", "12"], ID, True),
        (["--session-id", OTHER], OTHER, False),
        ([f"--session-id={OTHER}"], OTHER, False),
        (["--session-id", "../../x"], ID, True),
        (["--bg"], ID, True),
    ],
)
def test_the_session_id_is_the_users_when_they_choose(args, session, follows):
    prepared = prepare(*args)
    assert (prepared.session_id, prepared.session_id_follows) == (session, follows)
    assert prepared.argv.count("--session-id") == args.count("--session-id")


def test_an_option_of_another_options_value_is_no_option():
    prepared = prepare("--append-system-prompt", "-c")
    assert option(prepared, "--session-id") == ID
    assert option(prepared, "--append-system-prompt").startswith("-c\n\n# nd7 boundary")


def test_the_users_settings_are_merged(tmp_path):
    theirs = {
        "model": "opus",
        "disableAllHooks": True,
        "sandbox": {"enabled": True, "autoAllow": True},
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}], "Notification": []},
    }
    file = tmp_path / "s.json"
    file.write_text(json.dumps(theirs))
    for value in (str(file), json.dumps(theirs)):
        prepared = prepare("--settings", value, "-p", "x")
        settings = json.loads(option(prepared, "--settings"))
        assert settings["model"] == "opus"
        assert settings["disableAllHooks"] is False
        assert settings["sandbox"] == {"enabled": False, "autoAllow": True}
        assert [entry["hooks"][0]["command"] for entry in settings["hooks"]["Stop"]] == ["say done", "/opt/nd7-hook"]
        assert settings["hooks"]["Notification"] == []


@pytest.mark.parametrize("value", ["{not json", "/no/such/file", "[1]"])
def test_settings_that_cannot_be_merged_are_an_error(value):
    with pytest.raises(UsageError, match="--settings"):
        prepare("--settings", value)


def test_a_prompt_file_is_merged(tmp_path):
    (tmp_path / "p").write_text("THEIRS")
    prepared = prepare("--append-system-prompt-file", str(tmp_path / "p"))
    assert option(prepared, "--append-system-prompt").startswith("THEIRS\n\n# nd7")
    assert "--append-system-prompt-file" not in prepared.argv


def test_what_switches_hooks_off_is_said():
    assert "--safe-mode switches hooks off" in prepare("--safe-mode").notes[0]
    assert "CLAUDE_CODE_SIMPLE switches" in prepare(env={"CLAUDE_CODE_SIMPLE": "1"}).notes[0]
    assert prepare(env={"CLAUDE_CODE_SIMPLE": "0"}).notes == ()
    assert "--bg works outside this run" in prepare("--bg").notes[0]


def test_a_moved_configuration_directory(tmp_path):
    prepared = prepare(env={"CLAUDE_CONFIG_DIR": str(tmp_path)})
    assert prepared.scratch == (str(tmp_path),)
    assert f"{tmp_path}/settings.json" in prepared.protected


@pytest.mark.parametrize(
    "value", ["/", "/home", "/home/dev", "/home/dev/.ssh", "/home/dev/.nd7/x", "/home/dev/.config"]
)
def test_a_configuration_directory_that_is_too_wide_is_refused_and_said(value):
    prepared = prepare(env={"CLAUDE_CONFIG_DIR": value})
    assert prepared.scratch == ()
    assert "too wide" in prepared.notes[0]


def test_without_the_hook_program_there_are_no_hooks_and_it_is_said():
    prepared = ADAPTER.prepare(["claude"], {}, RunFacts(ID, 1, "", "", "/home/dev", "/p"))
    assert json.loads(option(prepared, "--settings"))["hooks"] == {}
    assert "nd7-hook is not installed" in prepared.notes[0]
