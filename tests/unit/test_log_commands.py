"""`record`, `verify`, `sessions`, `show` and `denials` as a person or an agent calls them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from nd7tui.engine.log import sessions as sessions_module
from nd7tui.engine.log.store import SessionLog
from nd7tui.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

ID = "3f2d1c48-9b7a"
NEXT = "3f2dffff-0000"


def _nd7(state: Path, *words: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    environment = os.environ | {"XDG_STATE_HOME": str(state), "TZ": "UTC"}
    command = [sys.executable, "-m", "nd7tui.cli", *words]
    return subprocess.run(command, input=given, capture_output=True, env=environment, check=False, timeout=60)


def _root(state: Path) -> Path:
    return state / "nd7" / "sessions"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    with SessionLog(ID, str(_root(tmp_path))) as log:
        log.append("nd7:supervisor", "run_start", {"argv": ["/usr/bin/claude"], "cwd": "/p"}, 1_000_000_000)
        log.append("intent:claude-code", "prompt", {"text": "do \x1b[31mit\x1b]0;t\x07"}, 2_000_000_000)
        log.append("effect:seccomp", "denial", {"id": "d1", "access": "write", "target": "/x"}, 3_000_000_000)
        log.append("effect:seccomp", "denial", {"id": "d2", "access": "read", "target": "/n", "noise": True})
        log.append("effect:seccomp", "denial_end", {"id": "d1", "outcome": "denied"})
        log.append("effect:seccomp", "denial_end", {"id": "d2", "outcome": "gone"})
        log.append("nd7:supervisor", "run_end", {"exit": 0}, 63_000_000_000)
    return tmp_path


def test_record_appends_and_is_silent(tmp_path: Path) -> None:
    payload = {"session_id": ID, "hook_event_name": "UserPromptSubmit", "prompt": "hé", "turn_id": "t"}
    done = _nd7(tmp_path, "record", given=json.dumps(payload).encode())
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    frame = json.loads((_root(tmp_path) / ID / "events.ndjson").read_bytes())
    assert (frame["source"], frame["kind"], frame["body"]["text"]) == ("intent:codex", "prompt", "hé")
    assert frame["body"]["hook_ppid"] == os.getpid()


@pytest.mark.parametrize(
    "given",
    [b"", b"junk", b"\xff\xfe", b"{}", b'{"session_id":3}', b'{"session_id":"../../x"}', b'{"session_id":"\\ud800"}',
     b'{"session_id":"' + b"x" * 300 + b'"}'],
)  # fmt: skip
def test_record_keeps_what_names_no_session(tmp_path: Path, given: bytes) -> None:
    done = _nd7(tmp_path, "record", given=given)
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.startswith(b"nd7: unusable session id")
    assert done.stderr.count(b"\n") == 1
    (line,) = (tmp_path / "nd7" / "refused.ndjson").read_bytes().splitlines()
    kept = json.loads(line)
    assert kept.get("raw_text", "").encode() == given or "raw_base64" in kept
    assert not _root(tmp_path).exists()


def test_record_ignores_mistaken_options(tmp_path: Path) -> None:
    given = json.dumps({"session_id": ID}).encode()
    for words in (["--bogus"], ["a", "b"], ["--source"], ["--source", "intent:x"]):
        done = _nd7(tmp_path, "record", *words, given=given)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    lines = (_root(tmp_path) / ID / "events.ndjson").read_bytes().splitlines()
    assert [json.loads(line)["source"] for line in lines] == ["intent:claude-code"] * 3 + ["intent:x"]


def test_record_into_a_broken_log_says_one_line(state: Path) -> None:
    (_root(state) / ID / "head").write_bytes(b"bad")
    done = _nd7(state, "record", given=json.dumps({"session_id": ID}).encode())
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.count(b"\n") == 1
    assert b"refused.ndjson" in done.stderr
    assert (_root(state) / ID / "refused.ndjson").exists()


def test_record_survives_a_state_directory_it_cannot_use(tmp_path: Path) -> None:
    (tmp_path / "nd7").write_bytes(b"a file")
    done = _nd7(tmp_path, "record", given=json.dumps({"session_id": ID}).encode())
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (0, b"", 1)


def test_verify_says_what_it_proves(state: Path) -> None:
    done = _nd7(state, "verify", ID)
    assert done.returncode == 0
    assert b"unchanged, 7 frames, head 6 " in done.stdout
    assert b"could rewrite the whole chain" in done.stdout
    told = json.loads(_nd7(state, "verify", "last", "--json").stdout)
    assert (told["ok"], told["frames"], told["head"]["seq"]) == (True, 7, 6)
    assert "rewrite the whole chain" in told["caveat"]


def test_verify_names_the_fault(state: Path) -> None:
    events = _root(state) / ID / "events.ndjson"
    events.write_bytes(events.read_bytes().replace(b'"target":"/x"', b'"target":"/y"'))
    done = _nd7(state, "verify", "--all")
    assert done.returncode == 1
    assert done.stderr == f"nd7: {ID}: frame 2: hash does not match its bytes\n".encode()
    told = json.loads(_nd7(state, "verify", "--json", ID).stdout)
    assert (told["ok"], told["fault"], told["frame"]) == (False, "hash_mismatch", 2)


def test_verify_usage(state: Path) -> None:
    for words in ([], ["nope"], [ID, "--all"], [""]):
        done = _nd7(state, "verify", *words)
        assert (done.returncode, done.stdout) == (2, b"")
        assert done.stderr.startswith(b"nd7: ")


def test_sessions_newest_first(state: Path) -> None:
    with SessionLog("bare", str(_root(state))) as log:
        log.append("intent:codex", "prompt", {"cwd": "/q\x1b[2J", "text": ""}, 64_000_000_000)
    (_root(state) / "empty").mkdir()
    lines = _nd7(state, "sessions").stdout.decode().splitlines()
    assert lines[0].split() == ["ID", "STARTED", "DURATION", "AGENT", "PROJECT", "FRAMES", "DENIALS", "STATE"]
    assert lines[1].split() == ["bare", "1970-01-01", "00:01", "0s", "codex", "/q", "1", "0", "open"]
    assert lines[2].split() == [ID, "1970-01-01", "00:00", "1m02s", "claude", "/p", "7", "1", "ended"]
    first, second = [json.loads(line) for line in _nd7(state, "sessions", "--json").stdout.splitlines()]
    assert (first["session_id"], second["denials"], second["state"]) == ("bare", 1, "ended")


def test_sessions_without_any(tmp_path: Path) -> None:
    done = _nd7(tmp_path, "sessions")
    assert (done.returncode, done.stdout) == (0, b"")
    assert list(tmp_path.iterdir()) == []


def test_show_is_a_harmless_line_a_frame(state: Path) -> None:
    out = _nd7(state, "show", ID).stdout.decode()
    assert "\x1b" not in out
    lines = out.splitlines()
    assert len(lines) == 7
    assert lines[1] == "00:00:02.000 > prompt   do it"
    assert lines[2] == "00:00:03.000 ✖ denied   write /x  by ?"


def test_show_json_is_verbatim(state: Path) -> None:
    assert _nd7(state, "show", "last", "--json").stdout == (_root(state) / ID / "events.ndjson").read_bytes()


def test_show_says_damage_and_shows_the_rest(state: Path) -> None:
    events = _root(state) / ID / "events.ndjson"
    events.write_bytes(events.read_bytes().replace(b'"id":"d1","access"', b'"id":"d9","access"') + b"junk\n")
    done = _nd7(state, "show", ID)
    assert len(done.stdout.splitlines()) == 7
    assert b"frame 2: hash does not match" in done.stderr
    assert b"frame 7: not sealed" in done.stderr


def test_denials_without_and_with_noise(state: Path) -> None:
    kinds = [
        (frame["kind"], frame["body"]["id"])
        for frame in map(json.loads, _nd7(state, "denials", "--json").stdout.splitlines())
    ]
    assert kinds == [("denial", "d1"), ("denial_end", "d1")]
    assert len(_nd7(state, "denials", ID, "--all").stdout.splitlines()) == 4


def test_follow_shows_what_comes_and_ends_cleanly(state: Path) -> None:
    environment = os.environ | {"XDG_STATE_HOME": str(state)}
    command = [sys.executable, "-m", "nd7tui.cli", "denials", ID, "--follow"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as follower:
        assert follower.stdout is not None
        assert b"/x" in follower.stdout.readline()
        follower.stdout.readline()
        with SessionLog(ID, str(_root(state))) as log:
            log.append("effect:seccomp", "denial", {"id": "d3", "access": "write", "target": "/late"})
        started = time.monotonic()
        assert b"/late" in follower.stdout.readline()
        assert time.monotonic() - started < 5
        follower.send_signal(signal.SIGINT)
        _, said = follower.communicate(timeout=10)
    assert (follower.returncode, said) == (0, b"")


def test_a_session_is_found_by_its_beginning(state: Path) -> None:
    root = str(_root(state))
    assert sessions_module.find_session("3f", root) == ID
    SessionLog(NEXT, root).close()
    os.utime(_root(state) / ID / "events.ndjson", (1, 1))
    assert sessions_module.find_session(ID, root) == ID
    assert sessions_module.find_session("last", root) == NEXT
    for word in ("3f", "x", "", "../nd7", "."):
        with pytest.raises(UsageError):
            sessions_module.find_session(word, root)


def test_running_is_what_a_live_run_names(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = state / "runs"
    for pid, record in ((os.getpid(), {"session_id": ID}), (2**22 + 5, {"session_id": "dead"}), (1, [])):
        (runs / str(pid)).mkdir(parents=True)
        (runs / str(pid) / "record.json").write_text(json.dumps(record))
    (runs / "not-a-pid").mkdir()
    monkeypatch.setattr(sessions_module.paths, "runs_dir", lambda: str(runs))
    assert sessions_module.running_sessions() == {ID}
    (session,) = sessions_module.list_sessions(str(_root(state)))
    assert (session.state, session.denials) == ("running", None)
