"""The format to the byte: the reference's vectors, bodies, and what cannot be written as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nd7tui.engine.log import bodies
from nd7tui.engine.log.chain import genesis, verify_segment
from nd7tui.engine.log.faults import FrameError
from nd7tui.engine.log.frame import parse, seal
from nd7tui.engine.log.store import SessionLog

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "chain.json").read_text())


def test_the_five_vectors_come_out_to_the_byte(tmp_path: Path) -> None:
    facts = VECTORS["invocation"]
    with SessionLog(VECTORS["session_id"], str(tmp_path), host=facts["host"]) as log:
        for payload, ts, expected in zip(VECTORS["payloads"], facts["ts"], VECTORS["frames"], strict=True):
            frame = log.record_hook(json.dumps(payload).encode(), None, ts, facts["hook_ppid"])
            assert frame.raw.decode() == expected["frame"]
            assert (frame.seq, frame.prev, frame.hash) == (expected["seq"], expected["prev"], expected["hash"])
    on_disk = Path(log.path).read_bytes()
    assert on_disk == "".join(vector["frame"] for vector in VECTORS["frames"]).encode()


def test_the_vectors_verify_and_parse() -> None:
    lines = [vector["frame"].encode() for vector in VECTORS["frames"]]
    head = verify_segment(VECTORS["session_id"], None, lines)
    assert head is not None
    assert (head.seq, head.hash) == (4, VECTORS["frames"][4]["hash"])
    assert genesis(VECTORS["session_id"]) == VECTORS["genesis_prev"]
    assert [parse(line).kind for line in lines] == [
        "session_start", "prompt", "tool_call", "tool_result", "session_end",
    ]  # fmt: skip


def _seal(body: dict[str, object]) -> bytes:
    return seal("s", 0, 1, host="h", source="nd7:test", kind="k", prev="0" * 64, body=body)


def test_non_ascii_is_literal_and_the_order_is_kept() -> None:
    line = _seal({"z": "café 日本 🙂", "a": 1})
    assert '"body":{"z":"café 日本 🙂","a":1}'.encode() in line


def test_a_lone_surrogate_becomes_visible_text() -> None:
    line = _seal({"path": b"/tmp/\xff\xfe", "text": "\ud800"})
    assert parse(line).body == {"path": "/tmp/\\udcff\\udcfe", "text": "\\ud800"}
    line.decode()


def test_what_json_cannot_hold_is_an_error() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        _seal({"x": float("nan")})
    with pytest.raises(TypeError):
        _seal({"x": object()})


@pytest.mark.parametrize(
    "line", [b"", b"\n", b"{}\n", b"[]\n", b"nope\n", b"\xff\n", b"[" * 5000, _seal({}).replace(b'"v":0', b'"v":"0"')]
)
def test_what_is_not_a_frame_is_an_error(line: bytes) -> None:
    with pytest.raises(FrameError):
        parse(line)


def _hook(**members: object) -> dict[str, object]:
    return {"session_id": "s", "cwd": "/p", **members}


def test_free_form_members_are_sorted_at_every_depth() -> None:
    given = {"b": [{"z": 1, "a": 2}], "a": {"y": 1, "x": {"d": 1, "c": 2}}}
    payload = _hook(hook_event_name="PreToolUse", tool_name="T", tool_input=given, tool_use_id="u")
    _, body = bodies.from_hook(payload)
    assert json.dumps(body["tool_input"]) == json.dumps(given, sort_keys=True)
    _, body = bodies.from_hook(_hook(hook_event_name="Unknown", b={"z": 1, "a": 2}))
    assert list(body["raw"]) == ["b", "cwd", "hook_event_name", "session_id"]
    assert list(body["raw"]["b"]) == ["a", "z"]


def test_a_tool_call_has_its_command_and_its_paths() -> None:
    event = {"hook_event_name": "PreToolUse", "tool_use_id": "u"}
    _, body = bodies.from_hook(_hook(**event, tool_name="Bash", tool_input={"command": "ls"}))
    assert list(body) == ["cwd", "hook_event_name", "tool_use_id", "tool_name", "tool_input", "argv"]
    _, body = bodies.from_hook(_hook(**event, tool_name="Other", tool_input={"command": "ls"}))
    assert "argv" not in body
    given = {"notebook_path": "/n", "file_path": "/f"}
    _, body = bodies.from_hook(_hook(**event, tool_name="Edit", tool_input=given))
    assert body["paths"] == ["/f", "/n"]


def test_a_failure_keeps_its_error_as_the_response() -> None:
    payload = _hook(
        hook_event_name="PostToolUseFailure", tool_name="Bash", tool_input={}, error="Exit code 1", duration_ms=3
    )
    kind, body = bodies.from_hook(payload)
    assert kind == "tool_result"
    assert (body["tool_response"], body["ok"], body["duration_ms"]) == ("Exit code 1", False, 3)


def test_codex_null_transcript_is_written_through_other_nulls_are_left_out() -> None:
    payload = _hook(hook_event_name="Stop", transcript_path=None, prompt_id=None, last_assistant_message=None)
    kind, body = bodies.from_hook(payload, 7)
    assert (kind, body) == (
        "turn_end",
        {"cwd": "/p", "transcript_path": None, "hook_event_name": "Stop", "hook_ppid": 7},
    )


@pytest.mark.parametrize(
    "members",
    [
        {"hook_event_name": "UserPromptSubmit"},
        {"hook_event_name": "UserPromptSubmit", "prompt": 3},
        {"hook_event_name": "SessionStart", "source": None},
        {"hook_event_name": "PreToolUse", "tool_name": "Bash"},
        {
            "hook_event_name": "PostToolUse",
            "tool_name": "Bash",
            "tool_input": {},
            "tool_response": "",
            "duration_ms": True,
        },
        {"hook_event_name": "Stop", "stop_hook_active": "yes"},
        {"hook_event_name": "Stop", "cwd": 3},
        {"hook_event_name": ["Stop"]},
        {},
    ],
)
def test_a_malformed_event_is_kept_whole(members: dict[str, object]) -> None:
    payload = _hook(**members)
    kind, body = bodies.from_hook(payload)
    assert kind == "hook"
    assert body["raw"] == payload


@pytest.mark.parametrize(
    "text",
    [
        b"", b"not json", b"[1]", b'"text"', b'{"a":NaN}', b'{"a":Infinity}', b'{"a":1e999}', b'{"a":1,"a":2}',
        b'{"a":{"b":1,"b":1}}', b'{"a":' + b"9" * 5000 + b"}", b'{"a":' + b"[" * 3000 + b"]" * 3000 + b"}",
    ],
)  # fmt: skip
def test_what_cannot_be_kept_exactly_as_json_is_kept_as_text(text: bytes) -> None:
    assert bodies.from_bytes(text, 5) == ("hook", {"hook_ppid": 5, "raw_text": text.decode()})


def test_bytes_that_are_not_text_are_kept_in_base64() -> None:
    assert bodies.from_bytes(b"\xff\x00") == ("hook", {"raw_base64": "/wA="})


def test_a_big_integer_is_kept_exactly() -> None:
    _, body = bodies.from_bytes(b'{"n":123456789012345678901234567890}')
    assert body["raw"]["n"] == 123456789012345678901234567890


def test_the_agent_is_recognised() -> None:
    assert bodies.source_of({"turn_id": "t"}) == bodies.CODEX
    assert bodies.source_of({"transcript_path": "/h/.codex/sessions/rollout-1.jsonl"}) == bodies.CODEX
    assert bodies.source_of({"transcript_path": None}) == bodies.CLAUDE
    assert bodies.source_of(None) == bodies.CLAUDE
