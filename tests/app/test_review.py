"""Reviewing a log: filter, details, a big one, a damaged one."""

from __future__ import annotations

import os

import pytest
from textual.widgets import Input
from ui_fakes import SECCOMP, UUID, until

from nd7tui.app import Nd7App
from nd7tui.engine.log.frame import seal
from nd7tui.engine.log.store import SessionLog
from nd7tui.screens.details import frame_rows, read_frame
from nd7tui.screens.frame_index import Filter, load
from nd7tui.screens.review import ReviewScreen
from nd7tui.widgets.cells import plain, width


@pytest.fixture
def log(world):
    log = SessionLog(UUID)
    log.append("nd7:supervisor", "run_start", {"pid": 1, "argv": ["bash"], "cwd": world.home})
    log.append("intent:claude-code", "prompt", {"text": "[red]hello[/] world\x1b[2J"})
    log.append(SECCOMP, "denial", {"id": "d1", "access": "write", "target": "/etc/passwd", "comm": "tee"})
    log.append("intent:claude-code", "hook", {"raw": {"deep": {"er": ["a", {"b": "line one\nline two"}]}}})
    return log


async def review(pilot, log):
    await pilot.app.push_screen(ReviewScreen(log.directory))
    screen = pilot.app.screen
    await until(pilot, lambda: screen.rows and not screen.reading[2])
    return screen


async def test_frames_filter_and_details(log):
    async with Nd7App().run_test(size=(140, 40)) as pilot:
        screen = await review(pilot, log)
        assert len(screen.shown) == 4
        await pilot.press("d")
        assert [row.kind for row in screen.shown] == ["denial"]
        await pilot.pause()
        assert "/etc/passwd" in "\n".join(plain(row) for row in screen.detail.lines)
        await pilot.press("d", "slash")
        await pilot.press(*"kind:prompt")
        assert screen.query_one(Input).value == "kind:prompt"
        assert [row.kind for row in screen.shown] == ["prompt"]
        await pilot.press("enter", "enter")
        await pilot.pause(0.1)
        text = "\n".join(plain(row) for row in pilot.app.screen.query_one("TextView").lines)
        assert "[red]hello[/] world␛[2J" in text
        await pilot.press("escape", "escape")
        assert len(screen.shown) == 4
        await pilot.press("k")
        assert {row.kind for row in screen.shown} == {"denial"}
        await pilot.press("escape")
        assert pilot.app.screen is not screen


async def test_nothing_found_is_no_crash(log):
    async with Nd7App().run_test(size=(80, 24)) as pilot:
        screen = await review(pilot, log)
        await pilot.press("slash", *"zzzz", "enter", "enter", "c", "down")
        assert screen.shown == []
        assert "no frame here" in screen.message or screen.message == ""


async def test_a_big_log_does_not_freeze_the_screen(world):
    directory = os.path.join(os.environ["XDG_STATE_HOME"], "nd7/sessions/big")
    os.makedirs(directory)
    lines = [
        seal(
            "big",
            seq,
            seq,
            host="h",
            source="intent:claude-code",
            kind="prompt",
            prev="0" * 64,
            body={"text": f"frame number {seq} " + "x" * 200},
        )
        for seq in range(100_000)
    ]
    with open(f"{directory}/events.ndjson", "wb") as file:  # noqa: ASYNC230
        file.writelines(lines)
    async with Nd7App().run_test(size=(120, 40)) as pilot:
        await pilot.app.push_screen(ReviewScreen(directory))
        screen = pilot.app.screen
        await until(pilot, lambda: len(screen.rows) > 1000)
        await pilot.press("down")
        assert screen.frames.cursor == 1
        assert screen.reading[2], "the key waited until everything was read"
        await until(pilot, lambda: not screen.reading[2], 60)
        assert len(screen.rows) == 100_000
        assert screen.frames.cursor == 1
        await pilot.press("end")
        assert screen.frames.current.seq == 99_999


async def test_a_log_that_is_not_there(world):
    async with Nd7App().run_test(size=(80, 24)) as pilot:
        await pilot.app.push_screen(ReviewScreen(f"{world.home}/nothing"))
        screen = pilot.app.screen
        await until(pilot, lambda: "cannot be read" in screen.head.text)


def test_a_damaged_line_is_a_row(log):
    with open(log.path, "ab") as file:
        file.write(b"garbage \x1b\n")
    rows = [row for piece in load(log.path) for row in piece.rows]
    assert rows[-1].kind == "damaged"
    assert rows[-1].seen.icon == "!"


def test_offsets_lead_back_to_the_frames(log):
    rows = [row for piece in load(log.path) for row in piece.rows]
    with open(log.path, "rb") as file:
        data = file.read()
    assert [data[row.offset : row.offset + row.length] for row in rows] == data.splitlines(keepends=True)
    assert read_frame(log.path, 2).body["target"] == "/etc/passwd"
    assert read_frame(log.path, 9) is None


def test_filter_words():
    assert Filter().is_all
    assert not Filter("x").is_all


def test_details_fold_and_clean(log):
    frame = read_frame(log.path, 3)
    rows = frame_rows(frame, 40)
    text = "\n".join(plain(row) for row in rows)
    assert '"deep": {' in text
    assert all(width(plain(row)) <= 40 for row in rows[:-2])
