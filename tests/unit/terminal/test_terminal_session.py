"""The pump between program and engine, without a widget."""

from __future__ import annotations

import asyncio
import itertools
import time

from nd7tui.engine.terminal import session as module
from nd7tui.engine.terminal.choose import make
from nd7tui.engine.terminal.protocol import Bell
from nd7tui.engine.terminal.pty import Exit, PtyProcess
from nd7tui.engine.terminal.session import TerminalSession


class Watched:
    """A session whose callbacks are kept."""

    def __init__(self, script: str, engine: str = "ghostty") -> None:
        self.events: list[object] = []
        self.frames: list[tuple[float, set[int]]] = []
        self.end: Exit | None = None
        self.session = TerminalSession(
            make(engine, 40, 6),
            PtyProcess.spawn(["sh", "-c", script], cols=40, rows=6),
            on_event=self.events.append,
            on_rows=lambda rows: self.frames.append((time.monotonic(), rows)),
            on_exit=lambda end: setattr(self, "end", end),
        )

    def text(self) -> str:
        engine = self.session.engine
        if not self.frames:
            return ""
        return "\n".join("".join(run.text for run in engine.row(y)).rstrip() for y in range(6)).rstrip()

    async def until(self, condition):
        deadline = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < deadline, self.text()
            await asyncio.sleep(0.005)


async def test_output_and_end_arrive():
    watched = Watched(r"printf 'hello\a'; exit 3")
    await watched.until(lambda: watched.end and "hello" in watched.text())
    assert watched.end == Exit(3, None)
    assert watched.events == [Bell()]
    assert watched.session.ended
    watched.session.close()


async def test_replies_go_back():
    watched = Watched(r"stty raw -echo min 0 time 20; printf '\033[6n'; dd bs=1 count=6 2>/dev/null | od -c | head -1")
    await watched.until(lambda: watched.end and watched.text())
    assert "033   [   1   ;   1   R" in watched.text()
    watched.session.close()


async def test_at_most_sixty_frames_a_second():
    watched = Watched("i=0; while [ $i -lt 4000 ]; do echo $i; i=$((i+1)); done")
    await watched.until(lambda: watched.end)
    times = [at for at, _ in watched.frames]
    assert all(later - earlier > module.FRAME * 0.9 for earlier, later in itertools.pairwise(times))
    watched.session.close()


async def test_a_synchronised_update_is_not_seen_half():
    watched = Watched(r"printf '\033[?2026hhalf'; sleep 0.1; printf ' whole\033[?2026l'; sleep 0.3")
    seen: set[str] = set()
    await watched.until(lambda: seen.add(watched.text()) or watched.end)
    assert "half" not in seen
    assert "half whole" in seen
    watched.session.close()


async def test_a_synchronised_update_that_never_ends_is_shown():
    watched = Watched(r"printf '\033[?2026hstuck'; sleep 1")
    start = time.monotonic()
    await watched.until(lambda: watched.text() == "stuck")
    assert 0.15 < time.monotonic() - start < 0.8
    watched.session.close()


async def test_updates_back_to_back_are_shown():
    """An update is open at every look; what each end completed is on view all the same."""
    watched = Watched(
        r"i=0; while [ $i -lt 40 ]; do printf '\033[?2026h\033[Hframe %s\033[?2026l\033[?2026h' $i;"
        r" i=$((i+1)); sleep 0.02; done"
    )
    seen: set[str] = set()
    await watched.until(lambda: seen.add(watched.text()) or watched.end)
    assert len(seen) > 10
    watched.session.close()


async def test_pause_and_resume():
    watched = Watched("yes")
    await watched.until(lambda: watched.text().startswith("y"))
    watched.session.pause()
    await asyncio.sleep(0.05)
    before = len(watched.frames)
    await asyncio.sleep(0.1)
    assert len(watched.frames) <= before + 1
    watched.session.resume()
    await asyncio.sleep(0.1)
    watched.session.terminate(grace=0.2)
    await watched.until(lambda: watched.end)
    watched.session.close()


async def test_the_loop_stays_free_under_a_flood():
    watched = Watched("yes 'a flood of lines, one after the other'")
    worst = 0.0
    for _ in range(40):
        start = time.monotonic()
        await asyncio.sleep(0.01)
        worst = max(worst, time.monotonic() - start - 0.01)
    assert worst < 0.15
    watched.session.terminate(grace=0.2)
    await watched.until(lambda: watched.end)
    watched.session.close()


async def test_terminate_kills_what_ignores_the_hang_up():
    watched = Watched("trap '' HUP TERM; echo up; while :; do sleep 1; done")
    await watched.until(lambda: "up" in watched.text())
    watched.session.terminate(grace=0.1)
    await watched.until(lambda: watched.end)
    assert watched.end == Exit(137, 9)
    watched.session.close()


async def test_the_end_is_told_though_a_descendant_holds_the_pty():
    watched = Watched("(trap '' HUP; sleep 2) & echo done; exit 4")
    start = time.monotonic()
    await watched.until(lambda: watched.end)
    assert watched.end == Exit(4, None)
    assert time.monotonic() - start < 1.5
    await watched.until(lambda: "done" in watched.text())
    watched.session.close()


async def test_close_leaves_no_program():
    watched = Watched("sleep 100")
    process = watched.session.process
    watched.session.close()
    watched.session.close()
    await watched.until(process.poll)
    assert process.exit == Exit(129, 1)
    assert watched.end is None
