"""What is done to a log's bytes is found and named; what a body holds comes back; any chunking reads the same."""

from __future__ import annotations

import json
import os
import tempfile
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nd7tui.engine.log import bodies
from nd7tui.engine.log.chain import check_head, genesis, verify_segment
from nd7tui.engine.log.faults import ChainError
from nd7tui.engine.log.frame import Frame, parse, seal
from nd7tui.engine.log.plain import clean
from nd7tui.engine.log.summary import details, summary
from nd7tui.engine.log.tail import Tail

ID = "session"

texts = st.text(st.characters(codec=None))
unicode_texts = st.text(st.characters(exclude_categories=["Cs"]))
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | unicode_texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(unicode_texts, inner, max_size=4),
    max_leaves=12,
)
any_bodies = st.dictionaries(unicode_texts, values, max_size=5)


def _chain(contents: list[dict[str, object]]) -> list[bytes]:
    lines: list[bytes] = []
    prev = genesis(ID)
    for seq, body in enumerate(contents):
        lines.append(seal(ID, seq, seq, host="h", source="nd7:test", kind="k", prev=prev, body=body))
        prev = parse(lines[-1]).hash
    return lines


LINES = _chain([{"n": 0, "text": 'é\\"'}, {"n": 1}, {}, {"deep": {"seq": 9, "prev": "x"}}, {"n": 4}])
BYTES = b"".join(LINES)
HEAD = verify_segment(ID, None, LINES)


def _check(data: bytes) -> None:
    """Verifies a log as `verify` does, against the head as it was."""
    assert HEAD is not None
    check_head(HEAD.line(), verify_segment(ID, None, _split(data)))


def _split(data: bytes) -> list[bytes]:
    *whole, rest = data.split(b"\n")
    return [line + b"\n" for line in whole] + ([rest] if rest else [])


@settings(deadline=None)
@given(unicode_texts, st.integers(0, 2**63), st.integers(-(2**63), 2**63), unicode_texts, any_bodies)
def test_a_frame_comes_back_as_it_went(session_id: str, seq: int, ts: int, word: str, body: dict[str, object]) -> None:
    line = seal(session_id, seq, ts, host=word, source=word, kind=word, prev="0" * 64, body=body)
    frame = parse(line)
    assert line.count(b"\n") == 1
    assert (frame.session_id, frame.seq, frame.ts, frame.kind) == (session_id, seq, ts, word)
    assert json.dumps(frame.body) == json.dumps(body)


@settings(deadline=None)
@given(texts, st.binary())
def test_no_text_or_path_crashes_the_writer(text: str, path: bytes) -> None:
    line = seal(ID, 0, 0, host=text, source=text, kind=text, prev=genesis(ID), body={"text": text, "path": path})
    line.decode()
    assert verify_segment(ID, None, [line]) is not None
    seen = parse(line).body["text"]
    assert seen == text or any(0xD800 <= ord(char) < 0xE000 for char in text)


@settings(deadline=None)
@given(st.integers(0, len(BYTES) - 1), st.integers(1, 255))
def test_any_changed_byte_is_found(place: int, change: int) -> None:
    data = bytearray(BYTES)
    data[place] ^= change
    with pytest.raises(ChainError):
        _check(bytes(data))


@settings(deadline=None)
@given(st.integers(0, len(BYTES) - 1), st.integers(1, 200))
def test_any_dropped_bytes_are_found(place: int, count: int) -> None:
    with pytest.raises(ChainError):
        _check(BYTES[:place] + BYTES[place + count :])


@settings(deadline=None)
@given(st.integers(0, len(BYTES)), st.binary(min_size=1))
def test_any_inserted_bytes_are_found(place: int, more: bytes) -> None:
    data = BYTES[:place] + more + BYTES[place:]
    assume(data != BYTES)
    with pytest.raises(ChainError):
        _check(data)


@settings(deadline=None)
@given(st.lists(st.integers(0, len(LINES) - 1), max_size=8))
def test_any_other_order_of_frames_is_found(order: list[int]) -> None:
    assume(order != list(range(len(LINES))))
    with pytest.raises(ChainError) as caught:
        _check(b"".join(LINES[index] for index in order))
    whole_until = next((n for n, index in enumerate(order) if n != index), len(order))
    assert caught.value.frame in {whole_until, None}


@settings(deadline=None)
@given(st.lists(any_bodies, max_size=6), st.lists(st.integers(1, 400), max_size=40))
def test_any_chunking_of_the_writes_gives_the_same_frames(contents: list[dict[str, object]], cuts: list[int]) -> None:
    lines = _chain(contents)
    data = b"".join(lines)
    places = sorted({0, len(data), *(min(sum(cuts[: n + 1]), len(data)) for n in range(len(cuts)))})
    with tempfile.TemporaryDirectory() as root:
        path = os.path.join(root, ID, "events.ndjson")
        os.mkdir(os.path.dirname(path))
        tail = Tail(path)
        found: list[object] = list(tail.poll())
        for start, end in pairwise(places):
            with open(path, "ab") as file:
                file.write(data[start:end])
            found += tail.poll()
        tail.close()
    assert found == [parse(line) for line in lines]


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["hook_event_name", "prompt", "tool_name", "tool_input", "raw", "x"]), values))
def test_no_payload_is_lost(payload: dict[str, object]) -> None:
    for event in ("UserPromptSubmit", "PreToolUse", "Stop", "Other", payload.get("hook_event_name")):
        told = payload | {"hook_event_name": event}
        kind, body = bodies.from_bytes(json.dumps(told).encode(), 1)
        assert kind != "hook" or body["raw"] == told


@settings(deadline=None)
@given(st.binary())
def test_any_bytes_become_a_body(data: bytes) -> None:
    kind, body = bodies.from_bytes(data)
    assert kind
    seal(ID, 0, 0, host="h", source="s", kind=kind, prev=genesis(ID), body=body)


KINDS = [
    "run_start", "run_end", "session_start", "session_end", "prompt", "tool_call", "tool_result", "turn_end", "hook",
    "denial", "denial_end", "grant", "revoke", "rules_changed", "log_torn", "process_exec", "net_connect", "other",
]  # fmt: skip
NAMES = [
    "argv", "cwd", "exit", "signal", "duration_ms", "left_behind", "reason", "text", "tool_name", "tool_input",
    "tool_response", "ok", "raw", "raw_text", "access", "target", "comm", "pid", "count", "held", "noise", "rule",
    "added",
]  # fmt: skip

BIDI = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


@settings(deadline=None)
@given(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(NAMES), values | texts))
def test_any_body_has_a_harmless_summary(kind: str, body: dict[str, object]) -> None:
    frame = Frame(0, ID, 0, 0, "h", "s", kind, "", body, "", b"")
    seen = summary(frame)
    for text in (seen.text, seen.label, *(part for pair in details(frame) for part in pair)):
        assert not {unicodedata.category(char) for char in text} & {"Cc", "Cs", "Zl", "Zp"}
        assert not {unicodedata.bidirectional(char) for char in text} & BIDI


@settings(deadline=None)
@given(texts, st.integers(1, 600))
def test_cleaning_is_bounded_and_stable(text: str, limit: int) -> None:
    line = clean(text, limit)
    assert len(line) <= limit
    assert clean(line, limit) == line
    line.encode()
