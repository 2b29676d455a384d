"""The pane in a headless app, with real programs."""

from __future__ import annotations

import asyncio
import sys
import time

import pytest
from pane_host import Host
from textual import events
from textual.geometry import Offset
from textual.selection import Selection

from nd7tui.engine.terminal.choose import ENGINES
from nd7tui.engine.terminal.pty import PtyProcess
from nd7tui.widgets.agent_pane import AgentPane

SIZE = (60, 12)


def sh(script: str, engine: str | None = None) -> Host:
    return Host(["sh", "-c", script], engine)


async def until(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "not in time"
        await asyncio.sleep(0.01)


async def shows(host: Host, text: str) -> None:
    deadline = time.monotonic() + 10
    while text not in host.pane.screen_text():
        assert time.monotonic() < deadline, host.pane.screen_text()
        await asyncio.sleep(0.01)


def painted(host: Host) -> list[str]:
    """What the widget gives the compositor."""
    return [host.pane.render_line(y).text.rstrip() for y in range(host.pane.size.height)]


def of(host: Host, kind: type) -> list:
    return [message for message in host.seen if isinstance(message, kind)]


ECHO_BYTES = (
    f"{sys.executable} -c \"import sys,tty,os; tty.setraw(0); print('up', flush=True)\n"
    "while True: print(os.read(0, 4096), flush=True, end='\\r\\n')\""
)


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_program_runs_and_its_last_screen_stays(engine):
    host = sh(r"printf 'hello \033[31mred\033[m'; exit 5", engine)
    async with host.run_test(size=SIZE):
        await until(lambda: of(host, AgentPane.Exited))
        assert of(host, AgentPane.Exited)[0].status == 5
        assert host.pane.exit_status == 5
        assert not host.pane.running
        await shows(host, "hello red")
        assert painted(host)[0] == "hello red"
        assert (of(host, AgentPane.Ready)[0].engine, host.pane.engine_name) == (engine, engine)
        segments = list(host.pane.render_line(0))
        assert next(s for s in segments if s.text == "red").style.color.number == 1


async def test_every_line_is_as_wide_as_the_pane():
    host = sh("printf '中文 wide \\360\\237\\230\\200 \\033[7mx\\033[m'; sleep 5")
    async with host.run_test(size=(21, 6)):
        await shows(host, "wide")
        assert {host.pane.render_line(y).cell_length for y in range(6)} == {21}


async def test_keys_reach_the_program_by_its_modes():
    host = sh(ECHO_BYTES)
    async with host.run_test(size=SIZE) as pilot:
        await shows(host, "up")
        await pilot.press("a", "ctrl+p", "ctrl+c", "ctrl+q", "up", "tab", "escape", "f1")
        for sent in ("b'a'", r"b'\x10'", r"b'\x03'", r"b'\x11'", r"b'\x1b[A'", r"b'\t'", r"b'\x1b'", r"b'\x1bOP'"):
            await shows(host, sent)


async def test_kitty_keys_after_the_program_asked():
    host = sh(f"printf '\\033[>5u'; {ECHO_BYTES}")
    async with host.run_test(size=SIZE) as pilot:
        await shows(host, "up")
        assert host.pane.modes.kitty == 5
        await pilot.press("shift+enter", "ctrl+c")
        await shows(host, r"b'\x1b[13;2u'")
        await shows(host, r"b'\x1b[99;5u'")


async def test_send_key_tells_whether_it_took_the_key():
    host = sh("sleep 0.2")
    async with host.run_test(size=SIZE):
        await until(lambda: of(host, AgentPane.Ready))
        assert host.pane.send_key(events.Key("x", "x"))
        assert not host.pane.send_key(events.Key("left_shift", None))
        await until(lambda: of(host, AgentPane.Exited))
        assert not host.pane.send_key(events.Key("x", "x"))


async def test_paste_in_brackets_and_without():
    host = sh(f"printf '\\033[?2004h'; {ECHO_BYTES}")
    async with host.run_test(size=SIZE):
        await shows(host, "up")
        host.pane.post_message(events.Paste("a\x1b[201~b"))
        await shows(host, r"b'\x1b[200~a [201~b\x1b[201~'")
    host = sh(ECHO_BYTES)
    async with host.run_test(size=SIZE):
        await shows(host, "up")
        host.pane.paste("one\ntwo")
        await shows(host, r"b'one\rtwo'")
        host.pane.send_text("raw\x01")
        await shows(host, r"b'raw\x01'")


async def test_the_programs_wishes_become_messages():
    host = sh(r"printf '\033]2;title\007\007\033]52;c;c2VjcmV0\007\033]9;look here\007'; sleep 5")
    async with host.run_test(size=SIZE):
        await until(lambda: of(host, AgentPane.Notification))
        assert of(host, AgentPane.TitleChanged)[0].title == "title"
        assert host.pane.program_title == "title"
        assert of(host, AgentPane.Bell)
        assert of(host, AgentPane.ClipboardAsked)[0].text == "secret"
        assert of(host, AgentPane.Notification)[0].text == "look here"
        assert host.clipboard != "secret"


async def test_a_new_size_reaches_the_program():
    host = sh("trap 'stty size' WINCH; stty size; while :; do sleep 0.05; done")
    async with host.run_test(size=SIZE) as pilot:
        await shows(host, "12 60")
        await pilot.resize_terminal(40, 9)
        await shows(host, "9 40")
        assert {host.pane.render_line(y).cell_length for y in range(9)} == {40}


async def test_history():
    host = sh("i=0; while [ $i -lt 50 ]; do echo line $i; i=$((i+1)); done; cat")
    async with host.run_test(size=SIZE) as pilot:
        await shows(host, "line 49")
        await pilot.press("shift+pageup")
        assert host.pane.scrolled == 11
        await shows(host, "line 30")
        assert "11 rows up" in painted(host)[0]
        host.pane.post_message(events.MouseScrollDown(None, 1, 1, 0, 0, 0, False, False, False))
        await until(lambda: host.pane.scrolled == 8)
        await pilot.press("x")  # typing shows the live screen
        assert host.pane.scrolled == 0
        await shows(host, "line 49")
        assert not any("rows up" in line for line in painted(host))


async def test_mouse_goes_to_the_program_that_takes_it():
    host = sh(f"printf '\\033[?1002h\\033[?1006h'; {ECHO_BYTES}")
    async with host.run_test(size=SIZE) as pilot:
        await shows(host, "up")
        assert not host.pane.allow_select
        await pilot.mouse_down(AgentPane, offset=(4, 2))
        await pilot.hover(AgentPane, offset=(6, 2))
        await pilot.mouse_up(AgentPane, offset=(6, 2))
        for sent in (r"\x1b[<0;5;3M", r"\x1b[<32;7;3M", r"\x1b[<0;7;3m"):
            await shows(host, sent)
        host.pane.post_message(events.MouseScrollUp(None, 1, 1, 0, 0, 0, False, False, False))
        await shows(host, r"\x1b[<64;2;2M")


async def test_wheel_is_arrows_on_the_alternate_screen():
    host = sh(f"printf '\\033[?1049h\\033[?1h'; {ECHO_BYTES}")
    async with host.run_test(size=SIZE):
        await shows(host, "up")
        host.pane.post_message(events.MouseScrollUp(None, 1, 1, 0, 0, 0, False, False, False))
        await shows(host, r"b'\x1bOA\x1bOA\x1bOA'")


async def test_focus_is_reported():
    host = sh(f"printf '\\033[?1004h'; {ECHO_BYTES}")
    async with host.run_test(size=SIZE):
        await shows(host, "up")
        host.screen.set_focus(None)
        await shows(host, r"b'\x1b[O'")
        host.pane.focus()
        await shows(host, r"b'\x1b[I'")


async def test_the_cursor_shows_focus():
    host = sh("printf 'ab'; sleep 5")
    async with host.run_test(size=SIZE) as pilot:
        await shows(host, "ab")

        def cell():
            return next(iter(host.pane.render_line(0).crop(2, 3))).style

        assert cell().reverse
        host.screen.set_focus(None)
        await pilot.pause()
        assert not cell().reverse
        assert cell().underline


async def test_a_wide_character_is_under_a_wide_cursor():
    host = sh(r"printf '中x\033[H'; sleep 5")
    async with host.run_test(size=SIZE):
        await shows(host, "中x")
        assert [s.text for s in host.pane.render_line(0) if s.style and s.style.reverse] == ["中"]


async def test_selected_text():
    host = sh("printf 'first line\\nsecond line'; sleep 5")
    async with host.run_test(size=SIZE):
        await shows(host, "second")
        selection = Selection(Offset(6, 0), Offset(6, 1))
        assert host.pane.get_selection(selection) == ("line\nsecond", "\n")
        assert host.pane.allow_select
        host.screen.selections = {host.pane: selection}
        assert host.pane.render_line(0).text.rstrip() == "first line"


async def test_what_cannot_be_started_is_said_in_the_pane():
    host = Host(["no-such-program-at-all"])
    async with host.run_test(size=SIZE):
        await until(lambda: of(host, AgentPane.Exited))
        message = of(host, AgentPane.Exited)[0]
        assert message.status == 127
        assert "cannot start no-such-program-at-all" in (message.error or "")
        assert "nd7: cannot start" in painted(host)[0]


async def test_a_program_that_already_runs():
    process = PtyProcess.spawn(["sh", "-c", "echo before; sleep 5"])
    host = Host([])
    host.compose = lambda: iter([AgentPane(process=process, id="agent")])
    async with host.run_test(size=SIZE):
        await shows(host, "before")
        host.pane.terminate()
        await until(lambda: of(host, AgentPane.Exited))
        assert of(host, AgentPane.Exited)[0].signal == 1


async def test_removing_the_pane_ends_the_program():
    host = sh("sleep 100")
    async with host.run_test(size=SIZE):
        await until(lambda: host.pane.running)
        process = host.pane.process
        await host.pane.remove()
        await until(lambda: process.poll() is not None)
        assert process.exit.signal == 1


async def test_colours_are_told_and_follow_the_theme():
    host = sh(f"printf '\\033]11;?\\007'; {ECHO_BYTES}")
    async with host.run_test(size=SIZE) as pilot:
        await shows(host, "up")
        background = host.pane.background_colors[1].rgb
        await shows(host, "]11;rgb:" + "/".join(f"{part:02x}{part:02x}" for part in background))
        host.theme = "textual-light"
        await pilot.pause()
        assert host.pane.background_colors[1].rgb != background


async def test_a_program_that_asked_hears_of_a_light_theme():
    host = sh(f"printf '\\033[?2031h'; {ECHO_BYTES}")
    async with host.run_test(size=SIZE):
        await shows(host, "up")
        host.theme = "textual-light"
        await shows(host, r"b'\x1b[?997;2n'")


async def test_the_pane_stays_in_time_under_a_flood():
    host = Host(["yes", "a line of a flood that does not end"])
    async with host.run_test(size=SIZE):
        await shows(host, "flood")
        waits = []
        for _ in range(20):
            start = time.monotonic()
            await asyncio.sleep(0)
            waits.append(time.monotonic() - start)
            await asyncio.sleep(0.01)
        assert sorted(waits)[-2] < 0.2


async def test_no_control_character_is_painted():
    host = sh(r"printf 'a\177b\302\233c\342\200\256d'; sleep 5")
    async with host.run_test(size=SIZE):
        await until(lambda: painted(host)[0].startswith("ab"))
        assert all(ord(char) >= 32 and not 127 <= ord(char) < 160 for line in painted(host) for char in line)


async def test_only_web_links_are_passed_on():
    host = sh(r"printf '\033]8;;https://a.b/\007L\033]8;;\007\033]8;;file:///etc\007F\033]8;;\007'; sleep 5")
    async with host.run_test(size=SIZE):
        await shows(host, "LF")
        links = {s.text: s.style.link for s in host.pane.render_line(0) if s.text in "LF"}
        assert links == {"L": "https://a.b/", "F": None}
