"""Following a log: partial lines, damage, shrinking, replacement."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nd7tui.engine.log import faults
from nd7tui.engine.log.frame import Frame
from nd7tui.engine.log.store import SessionLog
from nd7tui.engine.log.tail import Damaged, Tail

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "chain.json").read_text())
LINES = [vector["frame"].encode() for vector in VECTORS["frames"]]


@pytest.fixture
def events(tmp_path: Path) -> Path:
    directory = tmp_path / VECTORS["session_id"]
    directory.mkdir()
    return directory / "events.ndjson"


def _seqs(found: list[Frame | Damaged]) -> list[int]:
    return [item.seq for item in found if isinstance(item, Frame)]


def test_a_log_that_is_not_there_yet(tmp_path: Path) -> None:
    tail = Tail(str(tmp_path / "later" / "events.ndjson"))
    assert tail.poll() == []
    assert list(tmp_path.iterdir()) == []
    with SessionLog("later", str(tmp_path)) as log:
        log.append("nd7:test", "k", {})
        assert _seqs(tail.poll()) == [0]
        log.append("nd7:test", "k", {})
        log.append("nd7:test", "k", {})
        assert _seqs(tail.poll()) == [1, 2]
        assert tail.poll() == []
    tail.close()


def test_a_line_is_handed_out_once_it_is_whole(events: Path) -> None:
    tail = Tail(str(events))
    events.write_bytes(LINES[0] + LINES[1][:50])
    assert _seqs(tail.poll()) == [0]
    assert tail.poll() == []
    events.write_bytes(LINES[0] + LINES[1])
    assert _seqs(tail.poll()) == [1]
    tail.close()


def test_a_torn_line_that_was_set_aside_is_never_glued_to_the_next(events: Path, tmp_path: Path) -> None:
    tail = Tail(str(events))
    with SessionLog(events.parent.name, str(tmp_path)) as log:
        log.append("nd7:test", "k", {})
        with events.open("ab") as file:
            file.write(b'{"torn":')
        assert _seqs(tail.poll()) == [0]
        log.append("nd7:test", "k", {})
    found = tail.poll()
    assert [item.kind for item in found if isinstance(item, Frame)] == ["log_torn", "k"]
    assert len(found) == 2
    tail.close()


def test_damage_is_named_once_and_the_rest_is_shown(events: Path) -> None:
    changed = LINES[2].replace(b"cargo test", b"cargo rest")
    events.write_bytes(b"".join([LINES[0], b"junk\n", changed, LINES[4]]))
    tail = Tail(str(events))
    first, junk, second, third = tail.poll()
    assert isinstance(first, Frame)
    assert isinstance(junk, Damaged)
    assert isinstance(junk.fault, faults.NotSealedError)
    assert (junk.offset, junk.raw, junk.frame) == (len(LINES[0]), b"junk\n", None)
    assert isinstance(second, Damaged)
    assert isinstance(second.fault, faults.HashMismatchError)
    assert second.frame is not None
    assert second.frame.seq == 2
    assert isinstance(third, Damaged)
    assert isinstance(third.fault, faults.WrongSeqError)
    tail.close()


def test_a_log_that_got_shorter_says_so(events: Path) -> None:
    events.write_bytes(b"".join(LINES))
    tail = Tail(str(events))
    tail.poll()
    events.write_bytes(b"".join(LINES[:3]))
    (damaged,) = tail.poll()
    assert isinstance(damaged, Damaged)
    assert "shorter" in str(damaged.fault)
    with events.open("ab") as file:
        file.write(LINES[3])
    assert _seqs(tail.poll()) == [3]
    tail.close()


def test_a_replaced_log_says_so_and_is_read_from_its_beginning(events: Path) -> None:
    events.write_bytes(b"".join(LINES[:2]))
    tail = Tail(str(events))
    tail.poll()
    other = events.with_name("other")
    other.write_bytes(b"".join(LINES))
    other.rename(events)
    found = tail.poll()
    assert isinstance(found[0], Damaged)
    assert _seqs(found) == [0, 1, 2, 3, 4]
    tail.close()


def test_from_the_end(events: Path) -> None:
    events.write_bytes(b"".join(LINES[:3]) + LINES[3][:20])
    tail = Tail(str(events), from_end=True)
    assert tail.poll() == []
    events.write_bytes(b"".join(LINES))
    assert _seqs(tail.poll()) == [3, 4]
    tail.close()


def test_a_poll_is_bounded_and_the_next_goes_on(events: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nd7tui.engine.log import tail as module

    monkeypatch.setattr(module, "_CHUNK", 700)
    events.write_bytes(b"".join(LINES))
    tail = Tail(str(events))
    polls = [_seqs(tail.poll(limit=1)) for _ in range(6)]
    assert [seq for poll in polls for seq in poll] == [0, 1, 2, 3, 4]
    assert len([poll for poll in polls if poll]) > 1
    tail.close()
    assert tail.poll() == []
