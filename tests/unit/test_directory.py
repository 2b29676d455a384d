from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from nd7tui.engine import locks, paths
from nd7tui.engine.policy.document import RunRecord
from nd7tui.engine.policy.members import RuleFileError
from nd7tui.engine.policy.rules import Access, Effect, PathTarget, Rule, Scope
from nd7tui.engine.run import directory
from nd7tui.errors import Nd7Error, RefusedError, UsageError


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "home", lambda: os.path.realpath(tmp_path))
    return tmp_path


def record(pid: int, **members) -> RunRecord:
    return RunRecord("s", pid, 1, ("/usr/bin/claude",), b"/home/ann/app", b"/home/ann", (b"/tmp",), "/log", **members)


def rule(name: str, path: bytes = b"/srv", effect: Effect = Effect.ALLOW) -> Rule:
    return Rule(effect, Access.WRITE, PathTarget(path), Scope.RUN, "test", 1, name)


def start(pid: int) -> directory.Run:
    made = directory.create(pid)
    directory.write_record(made, record(pid))
    return directory.load(made, pid)


@pytest.fixture
def sleeper():
    child = subprocess.Popen(["sleep", "60"])
    yield child
    child.kill()
    child.wait()


def test_modes(home) -> None:
    run = start(os.getpid())
    for path in (home / ".nd7", home / ".nd7/sessions", run.dir):
        assert os.stat(path).st_mode & 0o777 == 0o700
    for name in os.listdir(run.dir):
        assert os.stat(os.path.join(run.dir, name)).st_mode & 0o777 == 0o600


def test_one_run_is_found_without_naming_it(home) -> None:
    start(os.getpid())
    found = directory.find_run(None)
    assert found.pid == os.getpid()
    assert found.record == record(os.getpid())


def test_several_runs_are_named_in_the_hint(home, sleeper) -> None:
    start(os.getpid())
    start(sleeper.pid)
    with pytest.raises(UsageError, match="2 runs") as caught:
        directory.find_run(None)
    assert f"--session {sleeper.pid} is claude in /home/ann/app" in (caught.value.hint or "")
    assert directory.find_run(sleeper.pid).pid == sleeper.pid
    with pytest.raises(UsageError, match="no run has the pid 1"):
        directory.find_run(1)


def test_no_run(home) -> None:
    with pytest.raises(UsageError, match="no run is going"):
        directory.find_run(None)


def test_a_dead_run_is_swept_and_a_live_one_is_not(home, sleeper) -> None:
    start(os.getpid())
    dead = start(sleeper.pid)
    os.mkdir(os.path.join(dead.dir, "sub"))
    os.symlink("/", os.path.join(dead.dir, "link"))
    sleeper.kill()
    sleeper.wait()
    assert [run.pid for run in directory.list_runs()] == [os.getpid()]
    assert directory.sweep() == [sleeper.pid]
    assert not os.path.exists(dead.dir)
    assert [run.pid for run in directory.list_runs()] == [os.getpid()]


def test_another_process_with_the_same_pid_is_another_run(home) -> None:
    run = start(os.getpid())
    process = os.path.join(run.dir, directory.PROCESS)
    with open(process, "a") as file:
        file.write("1")
    assert directory.list_runs() == []
    assert directory.sweep() == [os.getpid()]


def test_a_run_that_says_nothing_of_its_process_is_kept_while_the_pid_lives(home) -> None:
    run = start(os.getpid())
    os.unlink(os.path.join(run.dir, directory.PROCESS))
    assert directory.sweep() == []


def test_create_replaces_what_a_dead_process_left(home) -> None:
    run = start(os.getpid())
    directory.add_rule(run, rule("old"))
    assert directory.create(os.getpid()) == run.dir
    assert directory.load(run.dir, os.getpid()).record is None


@pytest.mark.parametrize("name", [".nd7", ".nd7/sessions"])
def test_a_link_is_refused(home, name) -> None:
    (home / "elsewhere").mkdir()
    (home / name).parent.mkdir(exist_ok=True)
    (home / name).symlink_to(home / "elsewhere")
    with pytest.raises(RefusedError, match="not a directory"):
        directory.create(os.getpid())


def test_loose_modes_are_tightened(home) -> None:
    (home / ".nd7").mkdir(mode=0o755)
    os.chmod(home / ".nd7", 0o775)  # noqa: S103
    directory.create(os.getpid())
    assert os.stat(home / ".nd7").st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to give a directory away")
def test_somebody_elses_directory_is_refused(home) -> None:
    (home / ".nd7").mkdir()
    os.chown(home / ".nd7", 12345, 12345)
    with pytest.raises(RefusedError, match="somebody else"):
        directory.create(os.getpid())


def test_rules_come_and_go(home) -> None:
    run = start(os.getpid())
    directory.add_rule(run, rule("a"))
    directory.add_rule(run, rule("b", b"/opt"))
    directory.add_rule(run, rule("a", b"/srv/x"))
    assert [r.target.path for r in directory.find_run(None).record.rules] == [b"/opt", b"/srv/x"]
    assert directory.remove_rule(run, "b")
    assert not directory.remove_rule(run, "b")
    assert directory.take_back(run, PathTarget(b"/srv/x"), Access.READ) == ()
    assert [r.id for r in directory.take_back(run, PathTarget(b"/srv/x"), Access.WRITE)] == ["a"]
    assert directory.find_run(None).record.rules == ()


def test_a_broken_file_is_left_alone_and_told(home) -> None:
    run = start(os.getpid())
    with open(run.path, "w") as file:
        file.write("{")
    with pytest.raises(RuleFileError) as caught:
        directory.add_rule(run, rule("a"))
    assert run.path in (caught.value.hint or "")
    with open(run.path) as file:
        assert file.read() == "{"
    (broken,) = directory.list_runs()
    assert broken.record is None
    assert "record.json" in broken.fault


def test_a_link_in_place_of_the_file_is_not_followed(home) -> None:
    run = start(os.getpid())
    os.rename(run.path, home / "copy")
    os.symlink(home / "copy", run.path)
    assert directory.load(run.dir, run.pid).record is None
    with pytest.raises(OSError, match="symbolic"):
        directory.read_record(run.dir)


def test_the_end_of_the_run_is_told(home) -> None:
    run = start(os.getpid())
    directory.remove(run.dir)
    directory.remove(run.dir)
    with pytest.raises(UsageError, match="has ended"):
        directory.add_rule(run, rule("a"))


def test_writers_at_once_lose_nothing(home) -> None:
    run = start(os.getpid())
    threads = [
        threading.Thread(target=lambda n=n: [directory.add_rule(run, rule(f"{n}-{m}")) for m in range(10)])
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(directory.find_run(None).record.rules) == 40


def test_a_lock_that_is_kept_is_told(home, monkeypatch) -> None:
    monkeypatch.setattr(locks, "PATIENCE", 0.05)
    run = start(os.getpid())
    with directory._locked(run.dir), pytest.raises(Nd7Error, match="held the lock"):
        directory.add_rule(run, rule("a"))


def test_allow_imports_little() -> None:
    code = (
        "import sys; from nd7tui.commands import allow, deny; "
        "heavy = {'asyncio', 'click', 'tomlkit', 'tomllib', 'subprocess', 'textual', 'cbor2', 'psutil'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
