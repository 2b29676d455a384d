from __future__ import annotations

import pytest
from run_fakes import FakeLog

from nd7tui.engine.log.store import AppendRefusedError
from nd7tui.engine.run import livelog
from nd7tui.engine.run.chains import MOST_SESSIONS, Chains
from nd7tui.engine.run.livelog import RETRY, LiveLog


class World:
    def __init__(self):
        self.log, self.said, self.now = FakeLog(), [], 0
        self.live = LiveLog(lambda: self.log, self.said.append, lambda: self.now)

    def later(self):
        self.now += RETRY
        self.live.tick()


@pytest.fixture
def world():
    return World()


def test_frames_wait_in_order_while_the_disk_is_full(world):
    world.live.append("s", "a", {})
    world.log.error = OSError(28, "No space left on device")
    for kind in "bcd":
        world.live.append("s", kind, {}, 7)
    assert len(world.said) == 1
    assert world.live.waiting == 3
    world.log.error = None
    world.live.append("s", "e", {})
    assert world.live.waiting == 4, "nothing overtakes what waits"
    world.later()
    assert [kind for _, kind, _, _ in world.log.frames] == list("abcde")
    assert world.log.frames[1][3] == 7, "the time is when it happened"
    assert len(world.said) == 2


def test_what_the_log_keeps_beside_itself_is_not_written_twice(world):
    world.log.error = AppendRefusedError("s", "the head differs", kept=True)
    world.live.append("s", "a", {})
    world.live.append("s", "b", {})
    assert world.live.waiting == 0
    assert len(world.said) == 1


def test_when_memory_is_full_it_says_so_and_counts_what_is_lost(world, monkeypatch):
    monkeypatch.setattr(livelog, "MOST_QUEUED", 3)
    world.log.error = AppendRefusedError("s", "read-only", kept=False)
    for _ in range(5):
        world.live.append("s", "a", {})
    assert world.live.full
    world.log.error = None
    world.later()
    assert not world.live.full
    assert [kind for _, kind, _, _ in world.log.frames] == ["a", "a", "a", "log_gap"]
    assert world.log.of("log_gap") == [{"lost": 2}]


def test_big_payloads_count_by_their_size(world, monkeypatch):
    monkeypatch.setattr(livelog, "MOST_QUEUED_BYTES", 1000)
    world.log.error = OSError(28, "full")
    world.live.record_hook(b"x" * 2000, None, 1, None)
    assert world.live.full


def test_closing_tells_what_is_lost(world):
    world.log.error = OSError(28, "full")
    world.live.append("s", "a", {})
    assert world.live.close() == 1
    assert "1 frame" in world.said[-1]


def test_hooks_of_another_session_go_to_its_chain_and_both_are_linked():
    logs = {}

    def open_log(name):
        return LiveLog(lambda: logs.setdefault(name, FakeLog()), print)

    chains = Chains("own", open_log("own"), open_log, 77)
    chains.record_hook(b"1", "own", None, 1, None)
    chains.record_hook(b"2", "other", None, 2, None)
    chains.record_hook(b"3", "other", None, 3, None)
    chains.record_hook(b"4", "../evil", None, 4, None)
    chains.record_hook(b"5", None, None, 5, None)
    assert [body.get("raw") or body["session_id"] for *_, body, _ in logs["own"].frames] == [b"1", "other", b"4", b"5"]
    assert [body.get("raw") or body["session_id"] for *_, body, _ in logs["other"].frames] == ["own", b"2", b"3"]
    for number in range(2 * MOST_SESSIONS):
        chains.record_hook(b"", f"s{number}", None, 1, None)
    assert len(logs) == MOST_SESSIONS + 1
    chains.close()
    assert all(log.closed for log in logs.values())
