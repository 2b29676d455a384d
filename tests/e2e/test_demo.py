"""The demo agent, whole: real supervisor, real sandbox, real hooks, real log."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter

import pytest

from nd7tui.engine.agents.demo_driver import drive_demo
from nd7tui.engine.log.frame import parse
from nd7tui.engine.log.layout import events_path

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]

ND7 = os.path.join(os.path.dirname(sys.executable), "nd7")
HOME = os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir)


@pytest.fixture
def session(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return str(uuid.uuid4())


def start(session, *options, demo=("--fast",)):
    return subprocess.Popen(
        [ND7, "run", "--session-id", session, *options, "demo", *demo],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def frames(session):
    with open(events_path(session), "rb") as file:
        return [parse(line) for line in file]


def verify(session):
    return subprocess.run([ND7, "verify", session], capture_output=True, text=True, check=False)


def leftovers(run_pid):
    return [
        p for p in (f"{HOME}/nd7-demo-outside-{run_pid}.txt", f"{HOME}/.nd7/sessions/{run_pid}") if os.path.exists(p)
    ]


def test_runs_through_all_of_it_with_the_stand_in_for_the_keys(session):
    stop = threading.Event()
    driven = []
    thread = threading.Thread(target=lambda: driven.append(drive_demo(session, stop.is_set)))
    thread.start()
    run = start(session, demo=("--fast", "--wait", "15"))
    output, _ = run.communicate(timeout=60)
    stop.set()
    thread.join()
    assert run.returncode == 0, output
    assert driven == [True]
    assert "DEMO: a scripted program" in output
    assert "WRONG" not in output
    for words in ("it works now, no restart", "commands see the grant", "taken back", "no packet was sent"):
        assert words in output, output

    told = frames(session)
    kinds = Counter(frame.kind for frame in told)
    assert told[0].kind == "run_start"
    assert told[-1].kind == "run_end"
    assert kinds["session_start"] == kinds["prompt"] == kinds["turn_end"] == kinds["session_end"] == 1
    assert kinds["tool_call"] == kinds["tool_result"] >= 7
    assert {frame.source for frame in told if frame.kind == "tool_call"} == {"intent:demo"}

    outside = f"{HOME}/nd7-demo-outside-{run.pid}.txt"
    story = [step(frame, outside) for frame in told]
    story = [one for one, before in zip(story, [None, *story], strict=False) if one and one != before]
    assert story == ["refused", "granted", "written", "revoked", "refused"], story
    asked = [frame.body for frame in told if frame.kind == "denial" and frame.body.get("held")]
    assert [os.path.basename(body["target"]) for body in asked] == ["post-commit"]
    assert [frame.body["outcome"] for frame in told if frame.kind == "denial_end"] == ["denied"]
    connects = [frame.body["target"] for frame in told if frame.kind == "denial" and frame.body["access"] == "connect"]
    assert any(target.startswith("198.51.100.1:25") for target in connects)

    assert verify(session).returncode == 0
    assert leftovers(run.pid) == []
    project = told[0].body["cwd"]
    assert os.path.basename(project).startswith("nd7-demo-")
    assert not os.path.exists(project)


def step(frame, outside):
    """Names what a frame tells of the file outside, None when it is about something else."""
    body = frame.body
    if frame.kind == "denial" and body["target"] == outside:
        return "refused"
    if frame.kind in {"grant", "revoke"} and body["rule"]["target"].get("path") == outside:
        return {"grant": "granted", "revoke": "revoked"}[frame.kind]
    if frame.kind == "tool_result" and body["ok"] and body["tool_input"].get("file_path") == outside:
        return "written"
    return None


def test_without_anybody_at_the_keys_it_says_so_and_goes_on(session):
    run = start(session, "--hold", "1", demo=("--fast", "--wait", "1"))
    output, _ = run.communicate(timeout=60)
    assert run.returncode == 0, output
    assert "Nobody allowed it within 1 seconds" in output
    assert [frame.body["outcome"] for frame in frames(session) if frame.kind == "denial_end"] == ["expired"]
    assert verify(session).returncode == 0
    assert leftovers(run.pid) == []


def test_the_project_the_user_names_is_kept(session, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    run = start(session, "--project", str(mine), "--hold", "0", demo=("--fast", "--wait", "0"))
    output, _ = run.communicate(timeout=60)
    assert run.returncode == 0, output
    assert list(mine.iterdir()) == []


def test_interrupted_it_ends_and_the_log_is_whole(session):
    run = start(session, demo=("--wait", "30"))
    deadline = time.monotonic() + 20
    while not os.path.exists(events_path(session)) or not any(f.kind == "tool_call" for f in whole(session)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    run.terminate()
    run.communicate(timeout=20)
    assert run.returncode != 0
    assert verify(session).returncode == 0
    assert leftovers(run.pid) == []


def whole(session):
    with open(events_path(session), "rb") as file:
        return [parse(line) for line in file if line.endswith(b"\n")]


def test_json_of_every_frame_is_readable_by_anyone(session):
    run = start(session, "--hold", "0", demo=("--fast", "--wait", "0"))
    run.communicate(timeout=60)
    with open(events_path(session), encoding="utf-8") as file:
        assert all(json.loads(line)["session_id"] == session for line in file)
