from __future__ import annotations

import os

import pytest

from nd7tui.engine import helpers


@pytest.fixture
def installed(tmp_path):
    """A directory that only its owner can change, with both programs in it."""
    os.chmod(tmp_path, 0o755)  # noqa: S103 - what an installed program has
    for name in helpers.NAMES:
        path = tmp_path / name
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    return tmp_path


def faults(directory):
    return [helper.fault for helper in helpers.find(str(directory / "nd7"))]


def test_finds_both_beside_the_command(installed):
    found = helpers.find(str(installed / "nd7"))
    assert [helper.name for helper in found] == ["nd7-exec", "nd7-hook"]
    assert [helper.path for helper in found] == [os.path.realpath(installed / name) for name in helpers.NAMES]
    assert faults(installed) == ["", ""]


def test_none_built(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    assert helpers.find(str(tmp_path / "nd7")) == tuple(
        helpers.Helper(name, None, helpers.NOT_BUILT) for name in helpers.NAMES
    )


def test_path_is_not_looked_at(installed, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(installed))
    monkeypatch.setattr("sys.executable", str(tmp_path / "none" / "python"))
    assert helpers.find(str(tmp_path / "elsewhere" / "nd7"))[0].path is None


@pytest.mark.parametrize("mode", [0o757, 0o777])
def test_a_program_that_others_can_write(installed, mode):
    (installed / "nd7-exec").chmod(mode)
    first, second = faults(installed)
    assert "can be written by others" in first
    assert second == ""


def test_a_directory_that_others_can_write(installed):
    installed.chmod(0o777)
    assert all("can be written by others" in fault for fault in faults(installed))


def test_a_directory_far_above_that_others_can_write(installed):
    inner = installed / "a" / "b"
    inner.mkdir(parents=True)
    (installed / "a").chmod(0o777)
    assert helpers.replaceable_by(str(inner)) == os.path.realpath(installed / "a")


def test_a_sticky_directory_lets_nobody_replace_ours(installed):
    installed.chmod(0o1777)
    assert helpers.replaceable_by(str(installed / "nd7-exec")) is None


def test_a_group_of_more_than_its_user(installed, monkeypatch):
    (installed / "nd7-exec").chmod(0o775)
    monkeypatch.setattr(helpers, "_only_ours", lambda gid: False)
    assert faults(installed)[0]
    monkeypatch.setattr(helpers, "_only_ours", lambda gid: True)
    assert not faults(installed)[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a file away takes root")
def test_somebody_elses_program(installed):
    os.chown(installed / "nd7-exec", 12345, 12345)
    assert "can be written by others" in faults(installed)[0]


def test_an_unknown_group_is_not_ours():
    assert not helpers._only_ours(4_000_000)
