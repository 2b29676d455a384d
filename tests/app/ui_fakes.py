"""A run without a kernel: a fake pane, a run directory and a log written the way the supervisor writes them."""

from __future__ import annotations

import asyncio
import os
import time
from types import SimpleNamespace

import pytest
from textual import events  # noqa: TC002  # Textual reads the annotation
from textual.widget import Widget

from nd7tui.app import Nd7App
from nd7tui.engine import paths
from nd7tui.engine.log.store import SessionLog
from nd7tui.engine.policy.document import Enforced, RunRecord, rule_to_json
from nd7tui.engine.run import directory
from nd7tui.screens.launch import Launch
from nd7tui.screens.session import SessionScreen
from nd7tui.widgets.agent_pane import AgentPane

SUPERVISOR, SECCOMP = "nd7:supervisor", "effect:seccomp"
UUID = "11111111-2222-4333-8444-555555555555"


class FakePane(Widget, can_focus=True):
    """Stands for the agent pane: remembers what it was sent."""

    DEFAULT_CSS = "FakePane { background: $background; }"

    def __init__(self, argv, cwd, lines=()):
        super().__init__()
        self.argv, self.cwd, self.lines = argv, cwd, list(lines)
        self.keys, self.pastes = [], []
        self.process = None
        self.terminated = False

    def send_key(self, event):
        self.keys.append(event.key)
        return True

    def on_paste(self, event: events.Paste):
        event.stop()
        self.pastes.append(event.text)

    def terminate(self, grace=0):
        self.terminated = True
        self.end(129, 1)

    def end(self, status, signal=None):
        self.post_message(AgentPane.Exited(self, status, signal))

    def render(self):
        from textual.content import Content

        return Content("\n".join(self.lines))


class World:
    """A home directory, a run in it, its log, and the app over it."""

    def __init__(self, home):
        self.home = str(home)
        self.pid = os.getpid()
        self.pane = None
        self.log = None
        self.run_dir = None
        self.count = 0
        self.pane_lines = ()

    def make_pane(self, argv, cwd):
        self.pane = FakePane(argv, cwd, self.pane_lines)
        return self.pane

    def app(self, *argv, **options):
        launch = Launch(argv or ("bash",), session_id=UUID)
        return Nd7App(launch, pane_factory=self.make_pane, **options)

    def start_run(self, *, partial=(), rules=(), mode="default"):
        """What `nd7 run` does: log, directory, record, first frame."""
        self.log = self.log or SessionLog(UUID)
        self.run_dir = directory.create(self.pid)
        record = RunRecord(
            session_id=UUID, pid=self.pid, started=time.time_ns(), argv=("bash",),
            project=self.project.encode(), home=self.home.encode(), tmp=(b"/tmp",), log=self.log.path,
            enforced=Enforced(7, True, tuple(partial), mode), rules=tuple(rules), hold_seconds=20.0,
        )  # fmt: skip
        directory.write_record(self.run_dir, record)
        self.append(SUPERVISOR, "run_start", argv=["bash"], cwd=self.project, landlock_abi=7, mode=mode)
        if self.pane is not None:
            self.pane.process = SimpleNamespace(pid=self.pid)

    @property
    def project(self):
        path = os.path.join(self.home, "project")
        os.makedirs(path, exist_ok=True)
        return path

    def append(self, source, kind, **body):
        return self.log.append(source, kind, {"pid": 4242, "ancestors": [4242, 4200], "comm": "bash"} | body)

    def deny(self, target, access="write", **more):
        self.count += 1
        body = {
            "id": f"d{self.count}", "op": "openat", "access": access, "target": target, "exe": "/usr/bin/bash",
            "reason": "outside the project", "errno": "EACCES", "count": 1,
        }  # fmt: skip
        return self.append(SECCOMP, "denial", **(body | more))

    def record(self):
        return directory.read_record(self.run_dir)

    def supervise(self):
        """What the supervisor does when the file changed: says so in the log."""
        known = getattr(self, "_known", ())
        rules = self.record().rules
        for rule in known:
            if rule not in rules:
                self.append(SUPERVISOR, "revoke", rule=rule_to_json(rule))
        for rule in rules:
            if rule not in known:
                self.append(SUPERVISOR, "grant", rule=rule_to_json(rule))
        self._known = rules
        return rules

    def end_run(self, status=0):
        self.append(SUPERVISOR, "run_end", exit=status, duration_ms=1200, left_behind=0)
        directory.remove(self.run_dir)
        self.pane.end(status)


@pytest.fixture
def world(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setattr(paths, "home", lambda: str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(home)
    return World(home)


async def until(pilot, condition, seconds=4.0):
    """Waits until something is true; the screens poll."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        await asyncio.sleep(0.01)
        await pilot.pause()


async def session(world, pilot) -> SessionScreen:
    """Waits for the session screen, with the run begun."""
    await until(pilot, lambda: isinstance(pilot.app.screen, SessionScreen) and world.pane is not None)
    if world.run_dir is None:
        world.start_run()
    screen = pilot.app.screen
    await until(pilot, lambda: screen.feed.record is not None and screen.feed.chain.frames > 0)
    return screen


async def armed(pilot):
    """Waits until what appeared can be decided."""
    await asyncio.sleep(0.55)
    await pilot.pause()
