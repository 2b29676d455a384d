from __future__ import annotations

import os

import pytest
from run_fakes import rule

from nd7tui.engine.policy.members import RuleFileError
from nd7tui.engine.run.rulewatch import GONE, RuleWatch


def parse(content):
    if content.startswith(b"!"):
        raise RuleFileError("broken", "line 1")
    return tuple(rule(id=name.decode()) for name in content.split())


class File:
    def __init__(self, path):
        self.path = str(path / "record.json")
        self.put(b"a")

    def put(self, content):
        with open(self.path + ".tmp", "wb") as file:
            file.write(content)
        os.chmod(self.path + ".tmp", 0o600)
        os.rename(self.path + ".tmp", self.path)

    def restore(self, rules):
        self.put(b" ".join(one.id.encode() for one in rules))


@pytest.fixture
def file(tmp_path):
    return File(tmp_path)


@pytest.fixture
def watch(file):
    watch = RuleWatch(file.path, parse(b"a"), parse, file.restore)
    assert watch.poll() is None
    return watch


def test_added_and_removed_rules_are_named(file, watch):
    file.put(b"b c")
    change = watch.poll()
    assert [one.id for one in change.added] == ["b", "c"]
    assert [one.id for one in change.removed] == ["a"]
    assert [one.id for one in watch.rules] == ["b", "c"]
    assert watch.poll() is None


def test_a_broken_file_keeps_the_last_good_rules_and_is_told_once(file, watch):
    file.put(b"! oops")
    change = watch.poll()
    assert "broken" in change.error
    assert [one.id for one in change.rules] == ["a"]
    assert watch.poll() is None
    file.put(b"! oops")
    assert watch.poll() is None, "the same content again is not news"
    file.put(b"! other")
    assert watch.poll().error


def test_a_repair_is_told_even_when_it_changes_nothing(file, watch):
    file.put(b"!")
    watch.poll()
    file.put(b"a")
    change = watch.poll()
    assert (change.error, change.added, change.removed) == (None, (), ())
    file.put(b"!")
    assert watch.poll().error, "broken once more is news once more"


def test_a_file_that_is_gone_is_written_again(file, watch):
    os.unlink(file.path)
    assert watch.poll().error == GONE
    with open(file.path, "rb") as found:
        assert found.read() == b"a"
    assert watch.poll() is None


def test_a_directory_that_is_gone_is_told_once(file, watch, tmp_path):
    os.unlink(file.path)
    os.rmdir(tmp_path)
    assert "gone" in watch.poll().error
    assert watch.poll() is None
    assert [one.id for one in watch.rules] == ["a"]


@pytest.mark.parametrize("make", ["link", "writable", "fifo", "directory"])
def test_what_is_not_a_plain_file_of_ours_does_not_count(file, watch, make):
    if make == "writable":
        file.put(b"b")
        os.chmod(file.path, 0o666)  # noqa: S103 - the fault under test
    else:
        os.unlink(file.path)
    if make == "link":
        os.symlink("/dev/null", file.path)
    elif make == "fifo":
        os.mkfifo(file.path)
    elif make == "directory":
        os.mkdir(file.path)
    assert watch.poll().error
    assert [one.id for one in watch.rules] == ["a"]
    assert watch.poll() is None


def test_a_second_change_within_one_clock_tick_is_seen(file, watch):
    file.put(b"b")
    status = os.stat(file.path)
    watch.poll()
    with open(file.path, "r+b") as found:
        found.write(b"c")
    os.utime(file.path, ns=(status.st_mtime_ns, status.st_mtime_ns))
    assert [one.id for one in watch.poll().added] == ["c"]
