from __future__ import annotations

import argparse
import re

import pytest
from run_fakes import request

from nd7tui.engine.records import replace
from nd7tui.engine.run import frames, options
from nd7tui.engine.run.denials import Tell
from nd7tui.engine.run.frames import Origin
from nd7tui.engine.run.options import checked_hold, checked_session_id, new_session_id
from nd7tui.engine.run.toolcalls import ToolCalls
from nd7tui.engine.version import VERSION
from nd7tui.errors import UsageError


def test_a_denial_frame_has_its_members_in_order():
    body = frames.denial(Tell(request(), "d1", hold=5), Origin(100, [9, 8], "sh", "toolu_1"), 1000)
    assert list(body) == [
        *("pid", "ancestors", "comm", "tool_use_id", "id", "op", "access", "target", "exe", "reason", "errno"),
        *("count", "held", "deadline"),
    ]
    assert (body["errno"], body["deadline"], body["access"]) == ("EACCES", 1005, "write")


def test_a_path_that_is_not_text_is_given_exactly():
    body = frames.denial(Tell(request(target=b"/a\xff"), "d1"), Origin(1), 0)
    assert (body["target"], body["target_hex"]) == ("/a\\xff", "2f61ff")
    assert "held" not in body


def test_a_new_session_id_is_a_random_uuid():
    found = {new_session_id() for _ in range(50)}
    assert len(found) == 50
    assert all(
        re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", one) for one in found
    )


@pytest.mark.parametrize("text", ["", "../x", "a" * 36, "00000000-0000-0000-0000-00000000000g"])
def test_what_is_no_session_id_is_a_usage_error(text):
    with pytest.raises(UsageError):
        checked_session_id(text)


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), 3601])
def test_a_hold_has_bounds(seconds):
    with pytest.raises(UsageError):
        checked_hold(seconds)


def pre(name, command):
    return {"hook_event_name": "PreToolUse", "tool_use_id": name, "tool_input": {"command": command}}


def test_a_process_is_matched_with_the_latest_open_tool_call_of_its_command():
    calls = ToolCalls(lambda text: text.removeprefix("nd7-exec "))
    calls.hook(pre("t1", "make"))
    calls.hook(pre("t2", "nd7-exec make"))
    assert calls.announce(10, "make") == "t2"
    calls.hook({"hook_event_name": "PostToolUse", "tool_use_id": "t2"})
    assert calls.announce(11, "make") == "t1"
    assert calls.announce(12, "other") is None
    assert calls.of([99, 10, 11]) == "t2"
    calls.gone(10)
    assert calls.of([99, 10, 11]) == "t1"


@pytest.mark.parametrize("payload", [{}, {"tool_use_id": 3}, pre(None, "x"), pre("t", None), pre("t", ["x"])])
def test_any_payload_is_taken(payload):
    calls = ToolCalls()
    calls.hook(payload)
    assert calls.announce(1, "x") is None


def test_there_is_one_version():
    from nd7tui import cli

    assert cli.VERSION == VERSION


def test_a_command_line_without_options_means_what_the_parser_says_of_it():
    parser = argparse.ArgumentParser()
    options.add_arguments(parser)
    parser.add_argument("program", nargs=argparse.REMAINDER)
    words = ["claude", "--fast", "--", "x"]
    parsed = options.from_arguments(parser.parse_args(words))
    assert replace(options.without_any(words), session_id=parsed.session_id) == parsed
