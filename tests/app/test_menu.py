"""Menu, lists, new session, verify, rules, help."""

from __future__ import annotations

import os
import time

import pytest
from textual.widgets import Input
from ui_fakes import SUPERVISOR, UUID, World, session, until

from nd7tui.app import Nd7App
from nd7tui.engine.log.store import SessionLog
from nd7tui.engine.policy.rules import Access, Effect, PathTarget, Rule, Scope
from nd7tui.screens.help import HelpScreen
from nd7tui.screens.home import HomeScreen
from nd7tui.screens.new_session import NewSessionScreen
from nd7tui.screens.review import ReviewScreen
from nd7tui.screens.rules import RulesScreen
from nd7tui.screens.session import SessionScreen
from nd7tui.screens.sessions import RunningScreen, SessionsScreen
from nd7tui.screens.verify import VerifyScreen
from nd7tui.widgets.cells import plain

SIZE = (100, 30)


def record(name, project="/home/a/app", denials=0, frames=1):
    log = SessionLog(name)
    log.append(SUPERVISOR, "run_start", {"pid": 1, "argv": ["claude"], "cwd": project})
    for number in range(denials):
        log.append("effect:seccomp", "denial", {"id": f"d{number}", "access": "write", "target": "/x"})
    for _ in range(frames - 1):
        log.append(SUPERVISOR, "note", {})
    log.close()
    return log.directory


def table_text(table):
    return "\n".join(plain(table.row_parts(i, 100)[0]) for i in range(table.row_count()))


async def test_the_menu_reaches_every_screen_and_comes_back(world):
    record("one")
    async with Nd7App().run_test(size=SIZE) as pilot:
        app = pilot.app
        home = app.screen
        assert isinstance(home, HomeScreen)
        for key, kind in (
            ("n", NewSessionScreen), ("u", RunningScreen), ("s", SessionsScreen), ("v", VerifyScreen),
            ("R", RulesScreen), ("question_mark", HelpScreen),
        ):  # fmt: skip
            await pilot.press(key)
            await until(pilot, lambda kind=kind: isinstance(app.screen, kind))
            await pilot.pause(0.05)
            await pilot.press("escape")
            await until(pilot, lambda: app.screen is home)
        for _ in range(3):
            await pilot.press("down")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, VerifyScreen))
        await pilot.press("escape", "q")
    assert app.return_value == 0


@pytest.mark.parametrize("size", [(20, 5), (40, 10), (80, 24), (200, 60)])
@pytest.mark.parametrize("key", ["n", "u", "s", "v", "R", "question_mark", "escape"])
async def test_no_size_breaks_a_screen(world, size, key):
    record("one", denials=3)
    async with Nd7App().run_test(size=SIZE) as pilot:
        await pilot.press(key)
        await pilot.pause(0.05)
        await pilot.resize_terminal(*size)
        await pilot.press("down", "end", "pageup", "home")
        await pilot.pause(0.05)
        text = "\n".join("".join(s.text for s in line) for line in pilot.app.screen._compositor.render_strips())
        assert ("too small" in text) == (size == (20, 5))


async def test_past_sessions_sort_filter_and_open(world):
    record("aaaa", "/home/a/one", denials=2)
    record("bbbb", "/home/a/two", frames=9)
    async with Nd7App().run_test(size=SIZE) as pilot:
        await pilot.press("s")
        await until(
            pilot,
            lambda: isinstance(pilot.app.screen, SessionsScreen) and "2 denied" in table_text(pilot.app.screen.table),
        )
        screen = pilot.app.screen
        assert [s.session_id for s in screen.shown] == ["bbbb", "aaaa"]
        await pilot.press("o", "o")
        assert [s.session_id for s in screen.shown] == ["bbbb", "aaaa"]
        await pilot.press("o")
        assert [s.session_id for s in screen.shown] == ["aaaa", "bbbb"]
        await pilot.press("slash", *"two", "enter")
        assert [s.session_id for s in screen.shown] == ["bbbb"]
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReviewScreen))
        await pilot.press("escape")
        await pilot.press("escape")
        assert len(screen.shown) == 2


async def test_verify_names_the_first_failure_and_always_the_caveat(world):
    record("good")
    broken = record("evil", frames=4)
    path = f"{broken}/events.ndjson"
    with open(path, "rb") as file:  # noqa: ASYNC230
        data = file.read()
    with open(path, "wb") as file:  # noqa: ASYNC230
        file.write(data.replace(b"claude", b"claudf"))
    async with Nd7App().run_test(size=SIZE) as pilot:
        await pilot.press("v")
        await until(pilot, lambda: isinstance(pilot.app.screen, VerifyScreen))
        screen = pilot.app.screen
        await until(pilot, lambda: len(screen.results.done) == 2)
        text = table_text(screen.results)
        assert "✓ clean 1 frames" in text
        assert "✗ BROKEN frame 0: hash does not match its bytes" in text
        assert "1 BROKEN" in screen.head.text
        caveat = str(screen.query_one("#caveat").render())
        assert "a copy elsewhere" in caveat


async def test_a_program_is_started_from_the_menu(world, monkeypatch):
    fakes = World(world.home)
    async with Nd7App(pane_factory=fakes.make_pane).run_test(size=SIZE) as pilot:
        await pilot.press("n")
        await until(pilot, lambda: isinstance(pilot.app.screen, NewSessionScreen))
        form = pilot.app.screen
        await pilot.press("tab", *"sleep 'a b'", "tab")
        assert form.focused is form.query_one("#project", Input)
        form.query_one("#project", Input).value = "/nowhere"
        await pilot.press("shift+tab", "enter")
        assert "is not a directory" in form.message
        form.query_one("#project", Input).value = fakes.project
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, SessionScreen))
        assert fakes.pane.cwd == fakes.project
        assert fakes.pane.argv[-2:] == ["sleep", "a b"]
        assert "run" in fakes.pane.argv
        assert "--session-id" in fakes.pane.argv
        fakes.pane.end(0)
        await pilot.pause(0.1)


async def test_a_program_that_is_not_there_says_so(world, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    async with Nd7App().run_test(size=SIZE) as pilot:
        await pilot.press("n")
        await until(pilot, lambda: isinstance(pilot.app.screen, NewSessionScreen))
        await pilot.press("home", "enter")
        assert "claude: not found in PATH" in pilot.app.screen.message


async def test_another_terminals_run_can_be_watched_and_its_rules_taken_back(world):
    rule = Rule(Effect.ALLOW, Access.WRITE, PathTarget(b"/srv/data"), Scope.RUN, "nd7 allow", time.time_ns(), "r1")
    world.start_run(rules=(rule,))
    world.deny("/etc/passwd")
    async with Nd7App().run_test(size=SIZE) as pilot:
        await pilot.press("u")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunningScreen))
        await until(pilot, lambda: "elsewhere" in table_text(pilot.app.screen.table))
        await pilot.press("R")
        await until(pilot, lambda: isinstance(pilot.app.screen, RulesScreen))
        rules = pilot.app.screen
        assert "/srv/data" in table_text(rules.table).splitlines()[0]
        await pilot.press("down", "d")
        assert "cannot be taken back" in rules.message
        await pilot.press("up", "d")
        await until(pilot, lambda: world.record().rules == ())
        await pilot.press("escape", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, SessionScreen))
        watched = pilot.app.screen
        await until(pilot, lambda: watched.book.total == 1)
        await pilot.press("a")
        await pilot.pause(0.8)
        await pilot.press("a")
        await until(pilot, lambda: len(world.record().rules) == 1)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, HomeScreen))


async def test_restart_is_a_new_session(world):
    async with world.app().run_test(size=SIZE) as pilot:
        screen = await session(world, pilot)
        first = world.pane
        world.end_run(0)
        await until(pilot, lambda: screen.ended)
        await pilot.pause(1.05)
        await pilot.press("R")
        await until(pilot, lambda: world.pane is not first and pilot.app.screen is not screen)
        assert pilot.app.screen.feed.session_id != UUID
        assert world.pane.argv[-1] == "bash"
        world.pane.end(0)
        await pilot.pause(0.1)


async def test_no_color(world, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with world.app().run_test(size=SIZE) as pilot:
        screen = await session(world, pilot)
        world.deny("/etc/x")
        await until(pilot, lambda: screen.book.unread == 1)
        assert pilot.app.no_color


async def test_an_unknown_theme_is_said(world):
    async with Nd7App(theme="nosuch").run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "no theme 'nosuch'" in pilot.app.screen.message)
    assert os.environ
