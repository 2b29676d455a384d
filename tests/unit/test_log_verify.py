"""Every named failure of a chain, and the order they are found in."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from nd7tui.engine.locks import LockHeldError
from nd7tui.engine.log import faults
from nd7tui.engine.log import verify as verify_module
from nd7tui.engine.log.chain import Head, check_head, genesis, verify_segment
from nd7tui.engine.log.frame import seal
from nd7tui.engine.log.store import SessionLog
from nd7tui.engine.log.verify import verify

if TYPE_CHECKING:
    from pathlib import Path

ID = "session"


@pytest.fixture
def session(tmp_path: Path) -> Path:
    with SessionLog(ID, str(tmp_path), host="h") as log:
        for n in range(5):
            log.append("nd7:test", "k", {"n": n})
    return tmp_path / ID


def _lines(session: Path) -> list[bytes]:
    return (session / "events.ndjson").read_bytes().splitlines(keepends=True)


def _put(session: Path, lines: list[bytes]) -> None:
    (session / "events.ndjson").write_bytes(b"".join(lines))


def _reseal(line: bytes, seq: int, prev: str) -> bytes:
    return seal(ID, seq, 1, host="h", source="nd7:test", kind="k", prev=prev, body={"of": line[:20].decode()})


def test_a_clean_log(session: Path) -> None:
    told: list[tuple[int, int]] = []
    result = verify(str(session), lambda done, total: told.append((done, total)))
    assert (result.session_id, result.frames, result.head and result.head.seq) == (ID, 5, 4)
    assert told[-1] == (result.size, result.size)


def test_reading_creates_nothing(session: Path) -> None:
    (session / "lock").unlink()
    before = sorted(os.listdir(session))
    verify(str(session))
    assert sorted(os.listdir(session)) == before
    with pytest.raises(FileNotFoundError):
        verify(str(session.parent / "other"))
    assert os.listdir(session.parent) == [ID]


def test_not_sealed(session: Path) -> None:
    lines = _lines(session)
    for bad in (b"\n", b"{}\n", lines[2].replace(b'"hash"', b'"hush"'), lines[2][:-3] + b"A" + lines[2][-2:]):
        _put(session, [*lines[:2], bad, *lines[3:]])
        with pytest.raises(faults.NotSealedError, match="frame 2: not sealed"):
            verify(str(session))


def test_hash_mismatch(session: Path) -> None:
    lines = _lines(session)
    _put(session, [*lines[:3], lines[3].replace(b'"n":3', b'"n":4'), lines[4]])
    with pytest.raises(faults.HashMismatchError, match="frame 3: hash does not match its bytes") as caught:
        verify(str(session))
    assert caught.value.frame == 3
    assert caught.value.stated != caught.value.computed


def test_wrong_seq(session: Path) -> None:
    lines = _lines(session)
    _put(session, [lines[0], *lines[2:]])
    with pytest.raises(faults.WrongSeqError, match="expected seq 1, found 2"):
        verify(str(session))


def test_wrong_prev(session: Path) -> None:
    lines = _lines(session)
    _put(session, [lines[0], _reseal(lines[1], 1, "0" * 64), *lines[2:]])
    with pytest.raises(faults.WrongPrevError, match="frame 1: prev"):
        verify(str(session))


def test_another_sessions_log_does_not_begin_with_this_genesis(session: Path) -> None:
    session.rename(session.parent / "other")
    with pytest.raises(faults.WrongPrevError, match="frame 0"):
        verify(str(session.parent / "other"))


def test_torn(session: Path) -> None:
    lines = _lines(session)
    _put(session, [*lines[:4], lines[4][:-1]])
    with pytest.raises(faults.TornError, match="frame 4: the file ends mid-frame"):
        verify(str(session))


def test_head_missing(session: Path) -> None:
    (session / "head").unlink()
    with pytest.raises(faults.HeadMissingError):
        verify(str(session))


@pytest.mark.parametrize(
    "content", [b"", b"x", b"4", b"4 abc\n", b"04 " + b"0" * 64 + b"\n", b"4 " + b"0" * 64 + b"\n\n"]
)
def test_head_unreadable(session: Path, content: bytes) -> None:
    (session / "head").write_bytes(content)
    with pytest.raises(faults.HeadUnreadableError) as caught:
        verify(str(session))
    assert caught.value.content == content


def test_head_behind(session: Path) -> None:
    (session / "head").write_bytes(Head(2, "0" * 64).line())
    with pytest.raises(faults.HeadBehindError, match="it says frame 2, the log ends with frame 4"):
        verify(str(session))


@pytest.mark.parametrize(("kept", "message"), [(3, "ends with frame 2"), (0, "the log is empty")])
def test_truncated(session: Path, kept: int, message: str) -> None:
    _put(session, _lines(session)[:kept])
    with pytest.raises(faults.TruncatedError, match=message):
        verify(str(session))


def test_truncated_to_nothing_at_all(session: Path) -> None:
    (session / "events.ndjson").unlink()
    with pytest.raises(faults.TruncatedError):
        verify(str(session))


def test_head_differs(session: Path) -> None:
    (session / "head").write_bytes(Head(4, "0" * 64).line())
    with pytest.raises(faults.HeadDiffersError):
        verify(str(session))


def test_the_first_fault_in_order_wins(session: Path) -> None:
    lines = _lines(session)
    (session / "head").unlink()
    _put(session, [lines[1].replace(b'"n":1', b'"n":9'), *lines[2:], b"torn"])
    with pytest.raises(faults.HashMismatchError):
        verify(str(session))
    _put(session, [*lines, b"torn"])
    with pytest.raises(faults.TornError):
        verify(str(session))


def test_every_fault_has_a_name_of_its_own() -> None:
    codes = [fault.code for fault in faults.ChainError.__subclasses__()]
    assert len(codes) == len(set(codes)) == 10


def test_frames_after_the_look_are_not_part_of_the_result(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SessionLog(ID, str(session.parent)) as log:
        real = verify_module._lines

        def late(*args: object) -> object:
            log.append("nd7:test", "k", {"late": True})
            return real(*args)  # type: ignore[arg-type]

        monkeypatch.setattr(verify_module, "_lines", late)
        assert verify(str(session)).frames == 5


def test_a_lock_held_for_ever_does_not_hang_the_reader(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    monkeypatch.setattr(verify_module, "_PATIENCE", 0.05)
    with (session / "lock").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(LockHeldError):
            verify(str(session))


def test_a_segment_follows_a_known_head(session: Path) -> None:
    lines = _lines(session)
    middle = verify_segment(ID, None, lines[:2])
    assert middle is not None
    assert verify_segment(ID, middle, lines[2:]) == verify_segment(ID, None, lines)
    assert verify_segment(ID, middle, []) == middle
    assert verify_segment(ID, None, []) is None
    with pytest.raises(faults.WrongPrevError):
        verify_segment(ID, Head(1, "0" * 64), lines[2:])


def test_an_empty_log_agrees_with_no_head() -> None:
    check_head(None, None)


def test_members_in_another_order_still_verify() -> None:
    # Another writer of ours would not do it; a verifier that needs the order would call an honest log broken.
    from nd7tui.engine.log.frame import digest

    unsealed = b'{"seq":0,"prev":"%b","v":0}' % genesis(ID).encode()
    line = unsealed[:-1] + b',"hash":"%b"}\n' % digest(unsealed).encode()
    assert verify_segment(ID, None, [line]) is not None
    forged = b'{"no":1}'
    line = forged[:-1] + b',"hash":"%b"}\n' % digest(forged).encode()
    with pytest.raises(faults.NotSealedError):
        verify_segment(ID, None, [line])
