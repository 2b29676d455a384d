"""Appending: repairs, refusals, other processes, full disks; nothing handed over is lost."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import multiprocessing
import os
import shutil
import stat
import threading
import time
from typing import TYPE_CHECKING

import pytest

from nd7tui.engine.log import files, headfile, layout, store
from nd7tui.engine.log.chain import Head
from nd7tui.engine.log.frame import parse
from nd7tui.engine.log.store import AppendRefusedError, SessionLog
from nd7tui.engine.log.verify import verify

if TYPE_CHECKING:
    from pathlib import Path

ID = "session"


def _fill(root: Path, count: int = 3) -> Path:
    with SessionLog(ID, str(root), host="h") as log:
        for n in range(count):
            log.append("nd7:test", "k", {"n": n})
    return root / ID


def _frames(session: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (session / "events.ndjson").read_bytes().splitlines()]


def _refused(session: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (session / "refused.ndjson").read_bytes().splitlines()]


def test_files_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        session = _fill(tmp_path / "state" / "nd7" / "sessions")
    finally:
        os.umask(before)
    for path in [session, *session.parents[:3]]:
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    for path in session.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(os.listdir(session)) == ["events.ndjson", "head", "lock"]


@pytest.mark.parametrize("bad", ["", ".", "..", "a/b", "a\\b", "a\0b", "x" * 256, "\ud800", None, 3])
def test_unusable_session_ids_are_refused(tmp_path: Path, bad: object) -> None:
    with pytest.raises(layout.SessionIdError):
        SessionLog(bad, str(tmp_path))  # type: ignore[arg-type]
    assert os.listdir(tmp_path) == []


def test_a_session_id_is_its_directory_verbatim(tmp_path: Path) -> None:
    for session_id in ("...", "a b", "日本", "-x", "%2e"):
        with SessionLog(session_id, str(tmp_path)) as log:
            log.append("nd7:test", "k", {})
        assert verify(str(tmp_path / session_id)).frames == 1


def test_a_log_goes_on_where_another_process_left_it(tmp_path: Path) -> None:
    session = _fill(tmp_path)
    with SessionLog(ID, str(tmp_path)) as first, SessionLog(ID, str(tmp_path)) as second:
        for log in (first, second, second, first, first, second):
            log.append("nd7:test", "k", {})
    assert verify(str(session)).frames == 9


def test_without_exchange_it_is_a_plain_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headfile, "_exchange", lambda _fd: False)
    assert verify(str(_fill(tmp_path, 6))).frames == 6


def test_a_missing_head_is_repaired(tmp_path: Path) -> None:
    session = _fill(tmp_path)
    with SessionLog(ID, str(tmp_path)) as log:
        log.append("nd7:test", "k", {})
        (session / "head").unlink()
        log.append("nd7:test", "k", {})
    assert verify(str(session)).frames == 5
    assert not (session / "refused.ndjson").exists()


def test_a_head_one_behind_is_repaired_before_anything_is_appended(tmp_path: Path) -> None:
    session = _fill(tmp_path)
    last = parse((session / "events.ndjson").read_bytes().splitlines()[-1])
    (session / "head").write_bytes(Head(1, last.prev).line())
    with SessionLog(ID, str(tmp_path)) as log:
        log.append("nd7:test", "k", {})
    assert verify(str(session)).frames == 4


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (b"garbage", "unreadable"),
        (Head(0, "0" * 64).line(), "behind"),
        (Head(1, "0" * 64).line(), "behind"),
        (Head(9, "0" * 64).line(), "truncated"),
        (Head(2, "0" * 64).line(), "not that of the last frame"),
    ],
)
def test_any_other_disagreement_is_refused_and_the_frame_kept(tmp_path: Path, head: bytes, reason: str) -> None:
    session = _fill(tmp_path)
    (session / "head").write_bytes(head)
    before = (session / "events.ndjson").read_bytes()
    with SessionLog(ID, str(tmp_path)) as log, pytest.raises(AppendRefusedError, match=reason) as caught:
        log.append("effect:seccomp", "denial", {"target": b"/x\xff"}, 7)
    assert caught.value.kept
    assert (session / "events.ndjson").read_bytes() == before
    assert (session / "head").read_bytes() == head
    (entry,) = _refused(session)
    assert reason in str(entry["reason"])
    assert (entry["ts"], entry["kind"], entry["body"]) == (7, "denial", {"target": "/x\\udcff"})


@pytest.mark.parametrize("damage", ["changed", "unsealed"])
def test_a_damaged_last_frame_is_refused(tmp_path: Path, damage: str) -> None:
    session = _fill(tmp_path)
    events = session / "events.ndjson"
    events.write_bytes(events.read_bytes().replace(b'"n":2', b'"n":7') if damage == "changed" else b"junk\n")
    with SessionLog(ID, str(tmp_path)) as log, pytest.raises(AppendRefusedError):
        log.append("nd7:test", "k", {"kept": True})
    assert _refused(session)[0]["body"] == {"kept": True}


@pytest.mark.parametrize("kept", [0, 3])
def test_a_torn_line_is_set_aside_and_told_of(tmp_path: Path, kept: int) -> None:
    session = _fill(tmp_path, kept)
    torn = b'{"v":0,"session_id":"session","seq":' + b"9" * 70_000
    with (session / "events.ndjson").open("ab") as events:
        events.write(torn)
    with SessionLog(ID, str(tmp_path), writer="nd7:record") as log:
        log.append("nd7:test", "k", {"after": True})
    assert verify(str(session)).frames == kept + 2
    told, after = _frames(session)[kept:]
    assert (told["kind"], told["source"]) == ("log_torn", "nd7:record")
    body = told["body"]
    assert isinstance(body, dict)
    assert body["bytes"] == len(torn)
    assert (session / str(body["file"])).read_bytes() == torn
    assert after["body"] == {"after": True}


def test_a_whole_frame_without_its_newline_is_torn_too(tmp_path: Path) -> None:
    session = _fill(tmp_path)
    events = session / "events.ndjson"
    lines = events.read_bytes().splitlines(keepends=True)
    (session / "head").write_bytes(Head(1, parse(lines[1]).hash).line())
    events.write_bytes(b"".join(lines)[:-1])
    with SessionLog(ID, str(tmp_path)) as log:
        log.append("nd7:test", "k", {})
    assert verify(str(session)).frames == 4


def test_a_rollback_is_refused_by_the_process_that_saw_more(tmp_path: Path) -> None:
    session = _fill(tmp_path)
    shutil.copytree(session, tmp_path / "old")
    with SessionLog(ID, str(tmp_path)) as log:
        log.append("nd7:test", "k", {})
        for name in ("events.ndjson", "head"):
            (session / name).write_bytes((tmp_path / "old" / name).read_bytes())
        with pytest.raises(AppendRefusedError, match="replaced or cut"):
            log.append("nd7:test", "k", {"kept": 1})
    assert _refused(session)[0]["body"] == {"kept": 1}


def test_a_removed_session_is_refused_not_begun_anew(tmp_path: Path) -> None:
    session = _fill(tmp_path)
    with SessionLog(ID, str(tmp_path)) as log:
        log.append("nd7:test", "k", {})
        shutil.rmtree(session)
        with pytest.raises(AppendRefusedError, match="now it is empty"):
            log.append("nd7:test", "k", {"kept": 1})
    assert _refused(session)[0]["body"] == {"kept": 1}


def test_a_lock_held_for_ever_costs_patience_not_the_frame(tmp_path: Path) -> None:
    session = _fill(tmp_path)
    with (session / "lock").open("rb") as held, SessionLog(ID, str(tmp_path), patience=0.05) as log:
        fcntl.flock(held, fcntl.LOCK_SH)
        with pytest.raises(AppendRefusedError, match="held the lock"):
            log.append("nd7:test", "k", {"kept": 1})
        fcntl.flock(held, fcntl.LOCK_UN)
        log.append("nd7:test", "k", {})
    assert _refused(session)[0]["body"] == {"kept": 1}
    assert verify(str(session)).frames == 4


def test_a_write_cut_short_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(files.os, "write", lambda fd, data: real(fd, data[: max(1, len(data) // 2)]))
    assert verify(str(_fill(tmp_path))).frames == 3


def test_a_full_disk_leaves_a_torn_line_that_the_next_append_tells_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = _fill(tmp_path)
    real = os.write
    log = SessionLog(ID, str(tmp_path))
    log.append("nd7:test", "k", {})
    calls: list[int] = []

    def full(fd: int, data: bytes) -> int:
        calls.append(fd)
        if len(calls) == 1:
            return real(fd, data[:40])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "write", full)
        with pytest.raises(AppendRefusedError, match="No space left") as caught:
            log.append("nd7:test", "k", {"lost": False})
    assert not caught.value.kept
    log.append("nd7:test", "k", {"after": 1})
    log.close()
    assert [frame["kind"] for frame in _frames(session)] == ["k", "k", "k", "k", "log_torn", "k"]
    assert verify(str(session)).frames == 6


def test_a_frame_whose_head_could_not_be_written_is_repaired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = _fill(tmp_path)
    with SessionLog(ID, str(tmp_path)) as log:
        log.append("nd7:test", "k", {})
        with monkeypatch.context() as patch:
            patch.setattr(headfile, "write_all", _no_space)
            log.append("nd7:test", "k", {})
        log.append("nd7:test", "k", {})
    assert verify(str(session)).frames == 6


def _no_space(fd: int, data: bytes) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_an_unwritable_body_leaves_the_log_usable(tmp_path: Path) -> None:
    with SessionLog(ID, str(tmp_path)) as log:
        with pytest.raises(TypeError):
            log.append("nd7:test", "k", {"x": object()})
        log.append("nd7:test", "k", {})
    assert verify(str(tmp_path / ID)).frames == 1


def test_a_closed_log_keeps_what_it_is_given(tmp_path: Path) -> None:
    log = SessionLog(ID, str(tmp_path))
    log.close()
    log.close()
    with pytest.raises(AppendRefusedError, match="closed"):
        log.append("nd7:test", "k", {"kept": 1})
    assert _refused(tmp_path / ID)[0]["body"] == {"kept": 1}


def test_hooks_nested_too_deep_to_write_are_kept_as_text(tmp_path: Path) -> None:
    with SessionLog(ID, str(tmp_path)) as log:
        for depth in (10, 300, 450, 480, 490, 900, 990, 5000):
            payload = b'{"a":' + b"[" * depth + b"]" * depth + b"}"
            body = log.record_hook(payload).body
            assert body.get("raw") == json.loads(payload) if "raw" in body else body["raw_text"] == payload.decode()
    assert verify(str(tmp_path / ID)).frames == 8


def _append_many(root: str, who: int) -> None:
    for n in range(50):
        # Half of them open the log anew each time, as hooks do.
        if who % 2:
            with SessionLog(ID, root, patience=30) as log:
                log.append("nd7:test", "k", {"who": who, "n": n, "fill": "x" * (n * 97)})
        else:
            log = _kept(root)
            log.append("nd7:test", "k", {"who": who, "n": n, "fill": "x" * (n * 97)})


_open_logs: dict[str, SessionLog] = {}


def _kept(root: str) -> SessionLog:
    if root not in _open_logs:
        _open_logs[root] = SessionLog(ID, root, patience=30)
    return _open_logs[root]


def test_eight_processes_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_append_many, args=(str(tmp_path), who)) for who in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(90)
        assert worker.exitcode == 0
    assert verify(str(tmp_path / ID)).frames == 400
    seen = [(frame["body"]["who"], frame["body"]["n"]) for frame in _frames(tmp_path / ID)]  # type: ignore[index]
    assert sorted(seen) == [(who, n) for who in range(8) for n in range(50)]
    for who in range(8):
        assert [n for by, n in seen if by == who] == list(range(50))


def _append_until_killed(root: str) -> None:
    with SessionLog(ID, root) as log:
        while True:
            log.append("nd7:test", "k", {"fill": "x" * 3000})


def test_being_killed_at_any_moment_is_repaired(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork" if threading.active_count() == 1 else "spawn")
    for round_ in range(12):
        worker = context.Process(target=_append_until_killed, args=(str(tmp_path),))
        worker.start()
        while not (tmp_path / ID / "head").exists():
            time.sleep(0.001)
        time.sleep(0.003 + round_ * 0.0007)
        worker.kill()
        worker.join()
        with SessionLog(ID, str(tmp_path)) as log:
            log.append("nd7:test", "after", {})
        verify(str(tmp_path / ID))
    assert not (tmp_path / ID / "refused.ndjson").exists()


def test_threads_share_a_log(tmp_path: Path) -> None:
    with SessionLog(ID, str(tmp_path)) as log:
        threads = [
            threading.Thread(target=lambda: [log.append("nd7:test", "k", {}) for _ in range(50)]) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert verify(str(tmp_path / ID)).frames == 200


def test_the_cost_does_not_grow_with_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fill(tmp_path, 2000)
    read: list[int] = []
    real = os.pread

    def counted(fd: int, size: int, offset: int) -> bytes:
        data = real(fd, size, offset)
        read.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", counted)
    with SessionLog(ID, str(tmp_path)) as log:
        log.append("nd7:test", "k", {})
        assert 0 < sum(read) < 20_000
        read.clear()
        log.append("nd7:test", "k", {})
    assert read == []


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with SessionLog(ID, str(tmp_path)) as log, contextlib.suppress(AppendRefusedError):
            for n in range(4):
                log.append("nd7:test", "k", {"n": n})
            (tmp_path / ID / "head").write_bytes(b"bad")
            log.append("nd7:test", "k", {})
        (tmp_path / ID / "head").unlink()
    assert len(os.listdir("/proc/self/fd")) == before


def test_payloads_of_no_session_go_to_the_state_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert files.refuse_payload(b"junk", "why", "intent:codex", 3)
    assert json.loads((tmp_path / "nd7" / "refused.ndjson").read_text()) == {
        "ts": 3, "reason": "why", "source": "intent:codex", "raw_text": "junk",
    }  # fmt: skip


def test_the_patience_is_short_of_any_hooks_timeout() -> None:
    assert store.PATIENCE < 5
