"""Frames as plain text: the essential thing, and nothing that could harm a terminal."""

from __future__ import annotations

from typing import Any

import pytest

from nd7tui.engine.log.frame import Frame
from nd7tui.engine.log.plain import clean, clean_block, clip
from nd7tui.engine.log.summary import Tone, details, summary


def _frame(kind: str, **body: Any) -> Frame:
    return Frame(0, "s", 3, 1, "h", "nd7:test", kind, "0" * 64, body, "1" * 64, b"")


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        (_frame("run_start", argv=["claude", "-p"], cwd="/p", mode="fast"), "claude -p  in /p  [fast]"),
        (_frame("run_end", exit=3, duration_ms=3200, left_behind=2), "exit 3  after 3.2 s  2 left behind, killed"),
        (_frame("run_end", signal=9), "signal 9"),
        (_frame("prompt", text="a\nb"), "a b"),
        (_frame("tool_call", tool_name="Bash", tool_input={"command": "ls"}), "Bash: ls"),
        (_frame("tool_call", tool_name="Edit", tool_input={"file_path": "/f", "x": 1}), "Edit: /f"),
        (_frame("tool_result", tool_name="Bash", tool_response={"stdout": "out"}, duration_ms=7), "Bash: out  7 ms"),
        (_frame("hook", raw={"hook_event_name": "Notification", "message": "m"}), "Notification  m"),
        (_frame("hook", raw_text="{"), "unreadable payload:  {"),
        (
            _frame("denial", access="write", target="/x", comm="bash", pid=7, count=3, reason="default"),
            "write /x  x3  by bash (7)  default",
        ),
        (_frame("denial_end", id="d1", outcome="expired"), "d1  expired"),
        (
            _frame("grant", rule={"effect": "allow", "access": "connect", "target": {"host": "h", "port": 1}}),
            "allow connect h:1",
        ),
        (_frame("rules_changed", error="bad"), "unreadable, the last good ones stay: bad"),
        (_frame("log_torn", bytes=5, file="torn-1"), "a torn last line of 5 bytes was moved to torn-1"),
        (_frame("run_link", session_id="s2"), "the same run also writes session s2"),
        (_frame("log_gap", lost=4), "4 frames could not be kept"),
        (
            _frame("call_fault", op="open", error="KeyError: 1", comm="sh", pid=7),
            "open refused: KeyError: 1  by sh (7)",
        ),
        (_frame("of_tomorrow", a=1), '{"a": 1}'),
    ],
)
def test_the_essential_thing(frame: Frame, text: str) -> None:
    assert summary(frame).text == text


def test_denials_are_told_apart() -> None:
    plain, noise = summary(_frame("denial", target="/x")), summary(_frame("denial", target="/x", noise=True))
    held = summary(_frame("denial", target="/x", held=True))
    assert (plain.is_denial, plain.is_noise, plain.tone) == (True, False, Tone.DENIAL)
    assert (noise.is_denial, noise.is_noise, noise.tone) == (True, True, Tone.QUIET)
    assert held.label == "held"
    assert not summary(_frame("prompt", text="denied")).is_denial


@pytest.mark.parametrize(
    ("text", "harmless"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]52;c;aGk=\x1b\\after", "after"),
        ("\x1bPdcs\x1b\\after", "after"),
        ("\x9b2Jx", "x"),
        ("\x1b(Bx\x1bcy", "xy"),
        ("a\x08\x08b\x7fc\x00", "abc"),
        ("a\r\nb\tc\u2028d", "a b c d"),
        ("evil\u202egnp.exe", "evilgnp.exe"),
        ("z\u200bw\ufeff\U000e0041", "zw"),
        ("\ud800x", "x"),
        ("\x1b", ""),
        ("\x1b]0;never ended", ""),
    ],
)
def test_controls_do_not_reach_the_terminal(text: str, harmless: str) -> None:
    assert clean(text) == harmless
    assert summary(_frame("prompt", text=text)).text == harmless


def test_long_text_is_cut_and_says_so() -> None:
    assert clean("x" * 10, 5) == "xxxx…"
    assert clean("\x1b[0m" * 100 + "x", 5) == "…"
    assert len(summary(_frame("prompt", text="x" * 10_000_000)).text) == 500


def test_a_block_keeps_its_lines() -> None:
    assert clean_block("a\r\nb\n\x1b[1mc\td\x0b") == "a\nb\nc\td"


@pytest.mark.parametrize(
    ("text", "cells", "fits"), [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("日本語", 5, "日本…"), ("x", 0, "")]
)
def test_clip_counts_cells(text: str, cells: int, fits: str) -> None:
    assert clip(text, cells) == fits


def test_details_are_harmless_and_whole() -> None:
    shown = dict(details(_frame("k", **{"a\x1b[1m": "x\x1b[2J", "b": [1, {"c": None}]})))
    assert shown["a"] == "x"
    assert shown["b"] == '[1, {"c": null}]'
    assert {"seq", "source", "kind", "prev", "hash"} <= shown.keys()
