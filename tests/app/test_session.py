"""The session screen: keys, denials, answers, what it says."""

from __future__ import annotations

import time

import pytest
from textual import events
from ui_fakes import SUPERVISOR, armed, session, until

from nd7tui.actions import load_keymap
from nd7tui.engine.policy.rules import Effect, Scope
from nd7tui.screens.base import TooSmall
from nd7tui.screens.dialogs import Confirm
from nd7tui.screens.home import HomeScreen
from nd7tui.screens.layout import Part
from nd7tui.widgets.cells import plain
from nd7tui.widgets.denials import State

WIDE = (120, 40)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)


def listed(screen):
    return "\n".join(plain(line) for i in range(screen.denials.row_count()) for line in screen.denials.row_parts(i, 60))


async def test_a_denial_is_listed_within_200_ms_and_takes_neither_focus_nor_key(world):
    async with world.app().run_test(size=WIDE) as pilot:
        screen = await session(world, pilot)
        await pilot.press("e", "c", "h", "o")
        outside = f"{world.home}/outside"
        began = time.monotonic()
        world.deny(outside)
        await until(pilot, lambda: "~/outside" in listed(screen))
        assert time.monotonic() - began < 0.2
        await pilot.press("a", "d", "A", "enter", "ctrl+q", "ctrl+p", "ctrl+c", "escape", "tab", "f1")
        assert world.pane.keys == [
            "e", "c", "h", "o", "a", "d", "A", "enter", "ctrl+q", "ctrl+p", "ctrl+c", "escape", "tab", "f1",
        ]  # fmt: skip
        assert screen.focused is world.pane
        assert world.record().rules == ()
        assert screen.book.unread == 1
        assert "1 unread" in screen.status.text


async def test_the_prefix_twice_sends_it_through(world):
    async with world.app().run_test(size=WIDE) as pilot:
        await session(world, pilot)
        await pilot.press("ctrl+g", "ctrl+g", "x")
        assert world.pane.keys == ["ctrl+g", "x"]


async def test_another_prefix(world):
    async with world.app(keymap=load_keymap({"prefix": "ctrl+b", "focus-denials": "d", "deny-newest": "l"})).run_test(
        size=WIDE
    ) as pilot:
        screen = await session(world, pilot)
        await pilot.press("ctrl+g", "ctrl+b", "d")
        assert world.pane.keys == ["ctrl+g"]
        assert screen.board.part is Part.DENIALS


async def test_allow_and_take_back_by_the_prefix(world):
    async with world.app().run_test(size=WIDE) as pilot:
        screen = await session(world, pilot)
        outside = f"{world.home}/outside"
        world.deny(outside)
        await until(pilot, lambda: screen.book.unread == 1)
        await pilot.press("ctrl+g", "a")
        assert "only just appeared" in screen.message
        assert world.record().rules == ()
        await armed(pilot)
        await pilot.press("ctrl+g", "a")
        (rule,) = world.supervise()
        assert (rule.effect, rule.access.value, rule.target.path, rule.scope) == (
            Effect.ALLOW, "write", outside.encode(), Scope.RUN,
        )  # fmt: skip
        assert rule.by == "tui"
        await until(pilot, lambda: "✓ allowed" in listed(screen))
        assert "allowed write ~/outside until this run ends" in screen.message
        assert screen.book.unread == 0

        await pilot.press("ctrl+g", "d")
        assert world.supervise() == ()
        await until(pilot, lambda: "↶ taken back" in listed(screen))

        world.deny(outside)
        await until(pilot, lambda: "✗ refused" in listed(screen))
        assert screen.book.unread == 1
        assert world.pane.keys == []


async def test_the_prefix_means_the_denial_that_was_newest_when_it_was_pressed(world):
    async with world.app().run_test(size=WIDE) as pilot:
        screen = await session(world, pilot)
        world.deny(f"{world.home}/seen")
        await until(pilot, lambda: screen.book.unread == 1)
        await armed(pilot)
        await pilot.press("ctrl+g")
        world.deny(f"{world.home}/.bashrc")
        await until(pilot, lambda: screen.book.unread == 2)
        await pilot.press("a")
        assert [rule.target.path for rule in world.record().rules] == [f"{world.home}/seen".encode()]


async def test_nothing_to_allow_says_so(world):
    async with world.app().run_test(size=WIDE) as pilot:
        screen = await session(world, pilot)
        await pilot.press("ctrl+g", "a")
        assert screen.message == "allow: no denial to decide"


async def test_the_list_allows_once_widens_denies_and_shows_details(world):
    async with world.app().run_test(size=WIDE) as pilot:
        screen = await session(world, pilot)
        world.deny(f"{world.home}/data/sub/file")
        await until(pilot, lambda: screen.book.unread == 1)
        await armed(pilot)
        await pilot.press("ctrl+g", "l")
        await pilot.pause(0.1)
        assert screen.focused is screen.denials
        await pilot.press("o")
        await until(pilot, lambda: len(world.record().rules) == 1)
        assert world.record().rules[0].scope is Scope.ONCE
        await until(pilot, lambda: screen.book.state(screen.denials.current, time.time_ns()) is State.ONCE)

        await pilot.pause(0.1)
        await pilot.press("plus")
        assert "grant covers ~/data/sub/" in screen.hints.text
        await pilot.press("a")
        await until(pilot, lambda: len(world.record().rules) == 2)
        assert world.record().rules[1].target.path == f"{world.home}/data/sub".encode()
        await until(pilot, lambda: screen.book.state(screen.denials.current, time.time_ns()) is State.ONCE)

        await pilot.press("enter")
        await pilot.pause(0.2)
        text = "\n".join(plain(row) for row in pilot.app.screen.query_one("TextView").lines)
        for words in ("write", "/data/sub/file", "4242 ← 4200", "openat", "EACCES", "outside the project", "hash "):
            assert words in text
        await pilot.press("escape", "escape")
        await pilot.pause(0.1)
        assert screen.focused is world.pane
        assert screen.book.unread == 0


async def test_deny_from_the_list_adds_a_deny_and_allow_replaces_it(world):
    async with world.app().run_test(size=WIDE) as pilot:
        screen = await session(world, pilot)
        world.deny(f"{world.home}/x")
        await until(pilot, lambda: screen.book.unread == 1)
        await armed(pilot)
        await pilot.press("ctrl+g", "l")
        await pilot.press("d")
        await until(pilot, lambda: len(world.record().rules) == 1)
        assert world.record().rules[0].effect is Effect.DENY
        await until(pilot, lambda: "⊘ denied" in listed(screen))
        await pilot.pause(0.1)
        await pilot.press("d")
        await until(pilot, lambda: "already denied" in screen.message)
        await pilot.pause(0.1)
        await pilot.press("a")
        await until(pilot, lambda: [rule.effect for rule in world.record().rules] == [Effect.ALLOW])


async def test_keys_in_a_burst_decide_nothing(world):
    async with world.app().run_test(size=WIDE) as pilot:
        screen = await session(world, pilot)
        world.deny(f"{world.home}/x")
        await until(pilot, lambda: screen.book.unread == 1)
        await armed(pilot)
        await pilot.press("ctrl+g", "l")
        for key in ("a", "d", "A"):
            screen.take_key(events.Key(key, key))
        await pilot.pause(0.3)
        assert world.record().rules == ()
        assert "paste" in screen.message
        pilot.app.post_message(events.Paste("a"))
        await pilot.pause()
        await pilot.press("a")
        await pilot.pause(0.2)
        assert world.record().rules == ()


async def test_always_asks_again_and_enter_cancels(world):
    async with world.app().run_test(size=WIDE) as pilot:
        screen = await session(world, pilot)
        world.deny(f"{world.home}/cache/x")
        await until(pilot, lambda: screen.book.unread == 1)
        await armed(pilot)
        await pilot.press("ctrl+g", "l")
        await pilot.press("A")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
        shown = " ".join(str(widget.render()) for widget in pilot.app.screen.query("Static"))
        assert f"{world.home}/cache/x" in shown
        assert f"{world.home}/project" in shown
        await pilot.press("enter")
        await until(pilot, lambda: pilot.app.screen is screen)
        assert world.record().rules == ()
        await pilot.press("A")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
        await pilot.press("right", "enter")
        await until(pilot, lambda: len(world.record().rules) == 1)
        assert "/cache/x" in read(f"{world.home}/.config/nd7/config.toml").decode()


async def test_an_open_question_counts_down_and_its_end_is_shown(world):
    async with world.app().run_test(size=WIDE) as pilot:
        screen = await session(world, pilot)
        frame = world.deny(
            f"{world.project}/.git/hooks/pre-commit", held=True, deadline=time.time_ns() + 17_000_000_000
        )
        await until(pilot, lambda: "? ASK 17s" in listed(screen))
        assert "1 ASKED" in screen.status.text
        world.append(SUPERVISOR, "denial_end", id=frame.body["id"], outcome="expired")
        await until(pilot, lambda: "✗ refused" in listed(screen))


async def test_never_list_says_why(world):
    async with world.app().run_test(size=WIDE) as pilot:
        screen = await session(world, pilot)
        world.deny(f"{world.home}/.nd7/x")
        await until(pilot, lambda: screen.book.unread == 1)
        await armed(pilot)
        await pilot.press("ctrl+g", "a")
        assert "never-list" in screen.message
        assert world.record().rules == ()


async def test_repeats_are_counted_and_noise_is_hidden_until_asked_for(world):
    async with world.app().run_test(size=WIDE) as pilot:
        screen = await session(world, pilot)
        world.deny("/run/nscd/socket", access="connect", noise=True)
        world.deny(f"{world.home}/x")
        world.deny(f"{world.home}/x", count=41, repeat_of="d2")
        await until(pilot, lambda: "\N{MULTIPLICATION SIGN}42" in listed(screen))
        assert "nscd" not in listed(screen)
        await pilot.press("ctrl+g", "l")
        await pilot.press("n")
        assert "nscd" in listed(screen)


async def test_what_is_enforced_the_chain_and_partial_are_in_words(world):
    async with world.app().run_test(size=(160, 40)) as pilot:
        await until(pilot, lambda: world.pane is not None)
        world.start_run(partial=("network",), mode="fast")
        screen = await session(world, pilot)
        await until(pilot, lambda: "chain ok" in screen.status.text)
        for words in ("Landlock 7", "listener", "fast", "PARTIAL: network", "1 frames", "running"):
            assert words in screen.status.text
        assert "NOT ENFORCED here: network" in screen.notice.text


async def test_a_broken_rule_file_shows_until_repaired(world):
    async with world.app().run_test(size=WIDE) as pilot:
        screen = await session(world, pilot)
        path = f"{world.run_dir}/record.json"
        good = read(path)
        write(path, b"{ nonsense")
        world.append(SUPERVISOR, "rules_changed", added=[], removed=[], error="not JSON")
        await until(pilot, lambda: "rule file:" in screen.notice.text and screen.notice.region.height == 1)
        write(path, good)
        world.append(SUPERVISOR, "rules_changed", added=[], removed=[])
        await until(pilot, lambda: not screen.notice.text)


async def test_a_damaged_log_is_said(world):
    async with world.app().run_test(size=WIDE) as pilot:
        screen = await session(world, pilot)
        write(world.log.path, read(world.log.path) + b'{"v":0}\n')
        await until(pilot, lambda: "DAMAGED" in screen.status.text + screen.notice.text)
        await until(pilot, lambda: "DAMAGED" in screen.log_tail.current.seen.text)


async def test_after_the_end_the_screen_stays_and_offers(world):
    async with world.app().run_test(size=WIDE) as pilot:
        screen = await session(world, pilot)
        world.end_run(3)
        await until(pilot, lambda: screen.ended)
        assert "ended, exit status 3" in screen.status.text + screen.notice.text
        await pilot.press("q")
        assert "just ended" in screen.message
        await pilot.pause(1.1)
        screen._message_until = 0
        screen.show_hints()
        for word in ("review", "verify", "restart", "menu"):
            assert word in screen.hints.text
        await pilot.press("w")
        assert isinstance(pilot.app.screen, HomeScreen)


async def test_quit_asks_while_the_program_runs_and_hangs_up(world):
    app = world.app()
    async with app.run_test(size=WIDE) as pilot:
        screen = await session(world, pilot)
        await pilot.press("ctrl+g", "q")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is screen)
        assert not world.pane.terminated
        await pilot.press("ctrl+g", "q")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("right", "enter")
        await until(pilot, lambda: world.pane.terminated)
    assert app.return_value == 129


async def test_zoom_menu_and_back(world):
    async with world.app().run_test(size=WIDE) as pilot:
        screen = await session(world, pilot)
        narrow = world.pane.region.width
        await pilot.press("ctrl+g", "z")
        await until(pilot, lambda: world.pane.region.width == 120 > narrow)
        await pilot.press("ctrl+g", "z")
        await pilot.press("ctrl+g", "w")
        await until(pilot, lambda: isinstance(pilot.app.screen, HomeScreen))
        world.deny(f"{world.home}/x")
        await until(pilot, lambda: screen.book.unread == 1)
        await until(pilot, lambda: len(pilot.app.screen.entries) > 7)
        await pilot.press("enter")
        await until(pilot, lambda: pilot.app.screen is screen)
        await pilot.press("y")
        assert world.pane.keys == ["y"]


@pytest.mark.parametrize("size", [(20, 5), (1, 1), (39, 30), (200, 9)])
async def test_too_small_is_said_and_survived(world, size):
    async with world.app().run_test(size=WIDE) as pilot:
        screen = await session(world, pilot)
        await pilot.resize_terminal(*size)
        await pilot.pause(0.1)
        assert screen.query_one(TooSmall).display
        await pilot.press("x")
        world.deny(f"{world.home}/x")
        await until(pilot, lambda: screen.book.unread == 1)
        assert world.pane.keys == []
        await pilot.resize_terminal(80, 24)
        await pilot.pause(0.2)
        assert not screen.query_one(TooSmall).display
        assert screen.focused is world.pane
        await pilot.press("y")
        assert world.pane.keys == ["y"]


@pytest.mark.parametrize("size", [(40, 10), (60, 20), (80, 24), (119, 50), (120, 40), (200, 60)])
async def test_the_denial_shows_at_every_size(world, size):
    async with world.app().run_test(size=size) as pilot:
        screen = await session(world, pilot)
        world.deny(f"{world.home}/outside")
        await until(pilot, lambda: screen.book.unread == 1)
        await pilot.pause(0.1)
        text = "\n".join("".join(s.text for s in line) for line in pilot.app.screen._compositor.render_strips())
        assert "outside" in text
        assert "refused" in text


async def test_text_of_the_agent_is_never_markup_nor_control(world):
    async with world.app("[red]x[/red]").run_test(size=WIDE) as pilot:
        screen = await session(world, pilot)
        world.deny("/tmp/[@click=app.leave]evil[/] \x1b[2J\u202e\n/x")
        world.append("intent:claude-code", "prompt", text="[bold]\x1b]0;x\x07[/nope]")
        await until(pilot, lambda: screen.book.unread == 1)
        shown = listed(screen)
        assert "[@click=app.leave]evil[/]" in shown
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        await pilot.press("ctrl+g", "l")
        await pilot.press("enter")
        await pilot.pause(0.2)
        await pilot.press("escape")
        assert pilot.app.is_running


async def test_a_linked_sessions_frames_are_in_the_tail(world):
    from nd7tui.engine.log.store import SessionLog

    async with world.app().run_test(size=WIDE) as pilot:
        screen = await session(world, pilot)
        other = SessionLog("codex-own-id")
        other.append("intent:codex", "prompt", {"text": "from codex"})
        world.append(SUPERVISOR, "run_link", session_id="codex-own-id")
        await until(pilot, lambda: any("from codex" in row.seen.text for row in screen.log_tail._rows))


async def test_clicking_a_key_performs_it(world):
    async with world.app().run_test(size=WIDE) as pilot:
        screen = await session(world, pilot)
        await pilot.pause(0.6)
        x = screen.hints.text.index("denials")
        await pilot.click(screen.hints, offset=(x, 0))
        await until(pilot, lambda: screen.board.part is Part.DENIALS)
