"""Takes the screenshots in docs/screenshots: `python tests/app/screenshots.py`.

The screens, the log, the chain and the rules are real; the program in the pane is a fake with fixed text, and the home
directory a throw-away one that is written `~`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pathlib
import re
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(__file__))

from types import SimpleNamespace

from textual.content import Content
from ui_fakes import SUPERVISOR, UUID, FakePane, World, session, until

from nd7tui.engine import paths
from nd7tui.engine.log.store import SessionLog
from nd7tui.screens.dialogs import Confirm

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/screenshots")
SIZES = ((80, 24), (120, 40), (200, 60))
MENU = (("s", "sessions"), ("question_mark", "help"), ("v", "verify"), ("n", "new"), ("u", "running"))
EVERY_SIZE = ("session", "denials", "prefix", "menu", "review", "verify", "ended")

PANE = """\
[bold $text-accent]alice@build[/]:[bold]~/src/invoices[/]$ claude

 [bold]●[/] I'll add the migration and run the tests.

 [bold $text-success]●[/] [bold]Bash[/](pytest -q tests/test_invoices.py)
   ⎿  14 passed in 2.31s

 [bold $text-success]●[/] [bold]Write[/](migrations/0042_add_due_date.sql)
   ⎿  Wrote 18 lines

 [bold $text-error]●[/] [bold]Bash[/](echo 'export PATH=$HOME/bin:$PATH' >> ~/.bashrc)
   ⎿  bash: /home/alice/.bashrc: Permission denied

 [bold $text-error]●[/] [bold]Bash[/](cat ~/.ssh/id_ed25519)
   ⎿  cat: /home/alice/.ssh/id_ed25519: Permission denied

 [bold]●[/] Two steps were refused by the nd7 policy of this session. If you
   want the first one, press ctrl+g a, or run: nd7 allow ~/.bashrc

 [dim]────────────────────────────────────────────────────────────────[/]
 [bold]>[/] """


class Painted(FakePane):
    def render(self):
        return Content.from_markup(PANE)


def feed(world):
    world.start_run()
    world.append("intent:claude-code", "session_start", cwd=world.project, reason="startup")
    world.append("intent:claude-code", "prompt", text="add a due date to invoices, with a migration, and run the tests")
    calls = [("Bash", {"command": "pytest -q tests/test_invoices.py"}), ("Write", {"file_path": "migrations/0042.sql"})]
    for number, (tool, given) in enumerate(calls):
        world.append("intent:claude-code", "tool_call", tool_use_id=f"toolu_{number}", tool_name=tool, tool_input=given)
        world.append(
            "intent:claude-code", "tool_result", tool_use_id=f"toolu_{number}", tool_name=tool, tool_input=given,
            tool_response="14 passed in 2.31s", ok=True, duration_ms=2310,
        )  # fmt: skip
    world.deny(f"{world.home}/.cache/pip/http-v2/3/f", comm="pip", exe="/usr/bin/python3.11")
    world.deny("203.0.113.7:22/tcp", access="connect", comm="ssh", reason="only tcp 443, dns and loopback are open")
    world.deny(f"{world.home}/.bashrc", reason="your shell runs it", count=1)
    world.deny(f"{world.home}/.bashrc", reason="your shell runs it", count=3, repeat_of="d3")
    world.deny(f"{world.home}/.ssh/id_ed25519", access="read", comm="cat", reason="secret: ssh keys")
    hooks = f"{world.project}/.git/hooks/pre-commit"
    world.deny(hooks, held=True, deadline=time.time_ns() + 17_400_000_000, comm="cp", reason="git runs it")


async def shoot(app, name):
    await asyncio.sleep(0.25)
    svg = app.export_screenshot(title="nd7")
    # The same file for the same screen: Rich numbers its classes by a hash of everything.
    svg = re.sub(r"terminal-\d+", "terminal-nd7", svg)
    if name.endswith("120x40") or name.split("-")[0] in EVERY_SIZE:
        pathlib.Path(OUT, f"{name}.svg").write_text(svg, encoding="utf-8")  # noqa: ASYNC240


async def allow_one(world, pilot):
    screen = pilot.app.screen
    await asyncio.sleep(0.6)
    pip = next(row for row in screen.book.rows() if "pip" in row.target)
    screen.denials.select(pip)
    screen._allow(pip, __import__("nd7tui.engine.policy.rules", fromlist=["Scope"]).Scope.RUN, 2)
    world.supervise()
    await until(pilot, lambda: screen.book.policy.live)
    screen._message_until = 0
    screen.show_hints()


async def of_session(world, size):
    name = f"{size[0]}x{size[1]}"
    world.make_pane = lambda argv, cwd: setattr(world, "pane", Painted(argv, cwd)) or world.pane
    async with world.app("claude").run_test(size=size) as pilot:
        await until(pilot, lambda: world.pane is not None)
        feed(world)
        world.pane.process = SimpleNamespace(pid=world.pid)
        screen = await session(world, pilot)
        await until(pilot, lambda: screen.book.total >= 5)
        await allow_one(world, pilot)
        await shoot(pilot.app, f"session-{name}")
        await pilot.press("ctrl+g", "l")
        await shoot(pilot.app, f"denials-{name}")
        if size == (120, 40):
            await pilot.press("enter")
            await shoot(pilot.app, f"details-{name}")
            await pilot.press("escape")
            await pilot.press("A")
            await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
            await shoot(pilot.app, f"always-{name}")
            await pilot.press("escape")
        await pilot.press("escape")
        await pilot.press("ctrl+g")
        await shoot(pilot.app, f"prefix-{name}")
        await pilot.press("r")
        await shoot(pilot.app, f"rules-{name}")
        await pilot.press("escape")
        await pilot.press("ctrl+g", "w")
        await asyncio.sleep(0.3)
        await shoot(pilot.app, f"menu-{name}")
        for key, what in MENU:
            await pilot.press(key)
            await asyncio.sleep(0.3)
            await shoot(pilot.app, f"{what}-{name}")
            if what == "sessions":
                await pilot.press("enter")
                await asyncio.sleep(0.3)
                await pilot.press("end")
                await shoot(pilot.app, f"review-{name}")
                await pilot.press("escape")
            await pilot.press("escape")
        await pilot.press("enter")
        world.end_run(0)
        await until(pilot, lambda: screen.ended)
        await asyncio.sleep(0.6)
        screen._message_until = 0
        screen.show_hints()
        await shoot(pilot.app, f"ended-{name}")


def older(home):
    for number, (argv, where, status) in enumerate(
        [("codex", "src/invoices", 0), ("claude", "src/website", 0), ("bash", "src/kernel-notes", 130)]
    ):
        log = SessionLog(f"0{number}a1b2c3-1111-4222-8333-444455556666")
        then = time.time_ns() - (number + 1) * 9_000_000_000_000
        log.append(SUPERVISOR, "run_start", {"pid": 1, "argv": [argv], "cwd": f"{home}/{where}"}, then)
        for extra in range(7 * number):
            log.append("effect:seccomp", "denial", {"id": f"d{extra}", "access": "write", "target": "/etc/x"}, then)
        log.append(SUPERVISOR, "run_end", {"pid": 1, "exit": status, "duration_ms": 61000}, then + 60_000_000_000)
        log.close()


def main():
    os.makedirs(OUT, exist_ok=True)
    os.environ.pop("NO_COLOR", None)
    for size in SIZES:
        # A short home directory, so that paths look as they do for people.
        base = "/home" if os.access("/home", os.W_OK) and not os.path.exists("/home/alice") else None
        with tempfile.TemporaryDirectory(dir=base) as top, contextlib.ExitStack() as after:
            home = os.path.join(os.path.realpath(top), "alice")
            if base:
                home = "/home/alice"
                os.mkdir(home)
                after.callback(shutil.rmtree, home)
            os.makedirs(os.path.join(home, "src/invoices"))
            os.environ["XDG_STATE_HOME"] = os.path.join(home, ".local/state")
            os.chdir(os.path.join(home, "src/invoices"))
            paths.home = lambda home=home: home
            World.project = property(lambda self: os.path.join(self.home, "src/invoices"))
            older(home)
            world = World(home)
            assert UUID
            asyncio.run(of_session(world, size))
            os.chdir("/")


if __name__ == "__main__":
    main()
