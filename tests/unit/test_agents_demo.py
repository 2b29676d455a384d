from __future__ import annotations

import io
import json
import os
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from nd7tui.engine.agents import demo_driver, demo_steps
from nd7tui.engine.agents.adapter import RunFacts
from nd7tui.engine.agents.demo import ADAPTER, outside_path
from nd7tui.engine.agents.demo_client import Client
from nd7tui.engine.agents.demo_driver import Press, Script, TakeBack, drive_demo, rule_for
from nd7tui.engine.agents.demo_program import main
from nd7tui.engine.agents.demo_screen import Screen
from nd7tui.engine.agents.demo_steps import Stage
from nd7tui.engine.log.frame import Frame
from nd7tui.engine.log.store import SessionLog
from nd7tui.engine.policy.document import RunRecord
from nd7tui.engine.policy.rules import Effect, Scope

OUT = "/home/dev/nd7-demo-outside-7.txt"
HOOK = "/tmp/p/.git/hooks/post-commit"
ID = "0b0e7a40-5f0c-4c60-9d7e-5f1f0a6a8d11"


def facts(project="/p", **more):
    return RunFacts(ID, 7, "/opt/nd7-hook", "/opt/nd7-exec", "/home/dev", project, **more)


# ---- adapter


def test_the_demo_makes_its_own_project(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    prepared = ADAPTER.prepare(["demo", "--fast"], {"A": "b"}, facts())
    assert prepared.argv[:4] == (sys.executable, "-P", "-m", "nd7tui.engine.agents.demo_program")
    assert prepared.argv[-3:] == ("--outside", OUT, "--fast")
    assert os.path.dirname(prepared.project) == os.path.realpath(tmp_path)
    assert os.path.isdir(f"{prepared.project}/.git/hooks")
    assert prepared.remove_after == (prepared.project, OUT)
    assert (prepared.session_id, prepared.session_id_follows) == (ID, False)


def test_a_given_project_is_kept():
    prepared = ADAPTER.prepare(["demo"], {}, facts("/given", project_given=True))
    assert prepared.project == "/given"
    assert prepared.remove_after == (OUT,)


# ---- the script of keys


def frame(kind, **body):
    return Frame(0, ID, 0, 0, "h", "s", kind, "0" * 64, body, "0" * 64, b"")


def test_allow_take_back_and_deny_in_order_each_once():
    script = Script(OUT, HOOK, reaction=2.0)
    denied = frame("denial", access="write", target=OUT)
    wrote = frame("tool_result", ok=True, tool_input={"file_path": OUT})
    asked = frame("denial", access="write", target=HOOK, held=True)
    script.see(denied, 0.0)
    script.see(denied, 0.5)
    assert script.due(1.9) == []
    assert script.due(2.0) == [Press(Effect.ALLOW, OUT, Scope.RUN)]
    script.see(wrote, 3.0)
    script.see(denied, 3.1)  # a count of repeats that comes late
    script.see(asked, 4.0)
    assert script.due(6.0) == [TakeBack(OUT), Press(Effect.DENY, HOOK, Scope.ONCE)]
    script.see(denied, 7.0)
    assert script.due(100.0) == []


@pytest.mark.parametrize(
    "other",
    [
        frame("denial", access="read", target=OUT),
        frame("denial", access="write", target="/home/dev/.bashrc"),
        frame("denial", access="write", target="/home/dev/nd7-demo-outside-8.txt"),
        frame("denial", access="write", target=HOOK),
        frame("denial"),
        frame("tool_result", ok=False, tool_input={"file_path": OUT}),
        frame("tool_result", ok=True, tool_input="x"),
        frame("tool_result", ok=True),
    ],
)
def test_nothing_else_is_answered(other):
    script = Script(OUT, HOOK, reaction=0.0)
    script.see(other, 0.0)
    assert script.due(1.0) == []


def test_the_rule_says_who_made_it():
    rule = rule_for(Press(Effect.ALLOW, OUT, Scope.RUN), "demo-1")
    assert (rule.by, rule.effect, rule.scope, rule.target.path) == ("demo", Effect.ALLOW, Scope.RUN, OUT.encode())


# ---- the driver, on a real log and an in-memory rule file


class RuleFile:
    def __init__(self, record):
        self.run = SimpleNamespace(pid=7, dir="/none", record=record)
        self.rules = {}
        self.story = []

    def list_runs(self):
        return [SimpleNamespace(pid=1, dir="/x", record=None), self.run]

    def add_rule(self, run, rule):
        assert run is self.run
        self.rules[rule.id] = rule
        self.story.append((str(rule.effect), rule.target.path))

    def remove_rule(self, run, identity):
        del self.rules[identity]
        self.story.append(("back", identity))


def record(argv=("demo",)):
    return RunRecord(ID, 7, 1, argv, b"/tmp/p", b"/home/dev", (), "/log")


def use(monkeypatch, tmp_path, rules):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "nd7tui.engine.run.directory", rules)
    monkeypatch.setattr("nd7tui.engine.run.directory", rules, raising=False)
    monkeypatch.setattr(demo_driver, "_LOOK_SECONDS", 0.01)


def test_drives_a_demo_by_its_log(monkeypatch, tmp_path):
    rules = RuleFile(record())
    use(monkeypatch, tmp_path, rules)
    done = []
    thread = threading.Thread(target=lambda: done.append(drive_demo(ID, lambda: False, reaction=0.02)))
    thread.start()
    log = SessionLog(ID)
    log.append("effect:seccomp", "denial", {"access": "write", "target": OUT})
    wait_for(lambda: rules.rules)
    log.append("intent:demo", "tool_result", {"tool_use_id": "d", "tool_input": {"file_path": OUT}, "ok": True})
    wait_for(lambda: not rules.rules)
    log.append("effect:seccomp", "denial", {"access": "write", "target": HOOK, "held": True})
    wait_for(lambda: rules.rules)
    log.append("nd7:supervisor", "run_end", {"exit": 0})
    thread.join(5)
    log.close()
    assert done == [True]
    assert rules.story == [("allow", OUT.encode()), ("back", "demo-1"), ("deny", HOOK.encode())]


def test_leaves_other_programs_alone(monkeypatch, tmp_path):
    rules = RuleFile(record(("claude", "demo")))
    use(monkeypatch, tmp_path, rules)
    assert drive_demo(ID, lambda: False, reaction=0.0) is False
    assert rules.story == []


def test_stops_when_told(monkeypatch, tmp_path):
    use(monkeypatch, tmp_path, RuleFile(record()))
    assert drive_demo("another", lambda: True) is False
    assert drive_demo(ID, iter([False, True]).__next__) is True


def wait_for(condition):
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# ---- client and scenes


@pytest.fixture
def hook(tmp_path):
    program = tmp_path / "nd7-hook"

    def make(script):
        program.write_text(f"#!/bin/sh\ncat >> {tmp_path}/seen; echo >> {tmp_path}/seen\n{script}\n")
        program.chmod(0o755)
        return str(program)

    return make


def seen(tmp_path):
    return [json.loads(line) for line in (tmp_path / "seen").read_text().splitlines()]


def test_a_command_runs_as_the_hook_rewrote_it(tmp_path, hook):
    reply = {"hookSpecificOutput": {"updatedInput": {"command": "echo rewritten; exit 3"}}}
    client = Client(hook(f"echo '{json.dumps(reply)}'"), ID)
    done = client.call("Bash", command="echo original").run()
    assert done.stdout == b"rewritten\n"
    before, after = seen(tmp_path)
    assert (before["hook_event_name"], before["tool_input"]) == ("PreToolUse", {"command": "echo original"})
    assert after["hook_event_name"] == "PostToolUseFailure"
    assert after["tool_use_id"] == before["tool_use_id"]
    assert after["error"] == "Exit code 3\nrewritten\n"
    assert client.faults == []


@pytest.mark.parametrize("script", ["exit 2", "echo nonsense", "kill -9 $$"])
def test_a_hook_that_fails_is_remembered_and_not_fatal(hook, script):
    client = Client(hook(script), ID)
    call = client.call("Bash", command="echo on")
    assert call.run().stdout == b"on\n"
    assert client.faults


def test_a_hook_that_is_missing(tmp_path):
    client = Client(str(tmp_path / "none"), ID)
    assert client.hook("Stop") == {}
    assert len(client.faults) == 1


def stage(hook_program, wait=0.0):
    out = io.StringIO()
    return Stage(Screen(out, fast=True), Client(hook_program, ID), OUT, "/home/dev", wait), out


def test_outside_tells_the_whole_story(monkeypatch, hook):
    refused = PermissionError(13, "Permission denied")
    answers = iter([refused, refused, None, None, refused])
    monkeypatch.setattr(demo_steps, "_write", lambda _: next(answers))
    monkeypatch.setattr(demo_steps, "_command_outside", lambda _: None)
    monkeypatch.setattr(demo_steps, "_POLL_SECONDS", 0)
    told, out = stage(hook(""), wait=5)
    demo_steps.outside(told)
    words = [line.split()[0] for line in out.getvalue().splitlines() if line.startswith("  ") and line[2:3].isupper()]
    assert [w for w in words if w.isupper() and len(w) > 1] == ["REFUSED", "WAITING", "ALLOWED", "WAITING", "REFUSED"]
    assert told.wrong == []


def test_outside_without_an_answer_goes_on(monkeypatch, hook):
    monkeypatch.setattr(demo_steps, "_write", lambda _: PermissionError(13, "Permission denied"))
    told, out = stage(hook(""))
    demo_steps.outside(told)
    assert "Nobody allowed it" in out.getvalue()
    assert told.wrong == []


def test_a_boundary_that_does_not_hold_is_wrong(monkeypatch, hook, tmp_path):
    monkeypatch.setattr(demo_steps, "_write", lambda _: None)
    monkeypatch.setattr(demo_steps, "_connect", lambda _: (None, 0.0))
    key = tmp_path / ".ssh/id_ed25519"
    key.parent.mkdir()
    key.write_text("k")
    told, out = stage(hook(""))
    told.home = str(tmp_path)
    demo_steps.outside(told)
    demo_steps.secret(told)
    demo_steps.network(told)
    assert len(told.wrong) == 3
    assert out.getvalue().count("WRONG") == 3


def test_refuses_to_run_outside_nd7(capsys):
    assert main([]) == 2
    assert "nd7 tui demo" in capsys.readouterr().err


def test_outside_path_names_the_run():
    assert outside_path("/home/dev", 7) == OUT
