"""Bad input at the real program: one clear error or a visible state, no traceback, nothing lost, nothing wider open."""

from __future__ import annotations

import os
import time

import person as people
import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]


@pytest.fixture
def person():
    person = people.make()
    yield person
    person.leave()


@pytest.fixture
def ordinary():
    person = people.make(os.getuid() or people.ORDINARY)
    yield person
    person.leave()


def refused(done, *words):
    """One clear error: status 2, one line and at most one hint, on stderr."""
    assert done.returncode == 2, done
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0].startswith("nd7: ")
    assert all(line.startswith("nd7: hint: ") for line in lines[1:])
    for word in words:
        assert word in done.stderr
    return True


def test_an_unknown_program_is_said_and_the_screen_stays(person):
    terminal = person.open("no-such-program", ready="no-such-program ended, exit status 126")
    lines = terminal.until("nd7: no program 'no-such-program'")
    assert any("nothing ran" in line for line in lines)
    assert "Traceback" not in terminal.screen()
    person.quit()
    terminal.type("echo status-$?")
    terminal.until("status-126")
    assert not person.sessions.exists()


def test_a_project_that_cannot_be_written_is_refused(ordinary):
    ordinary.sit_down()
    ordinary.project.chmod(0o555)
    done = ordinary.nd7("run", "true")
    assert done.returncode == 126
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
    terminal = ordinary.open("bash", "--norc", ready="bash ended, exit status 126")
    terminal.until("cannot be written")
    assert any("nothing ran" in line for line in terminal.lines())
    assert not ordinary.sessions.exists()


def test_the_story_as_an_ordinary_user(ordinary):
    outside = ordinary.home / "outside"
    terminal = ordinary.open("bash", "--norc")
    terminal.type("echo x > ~/outside")
    terminal.until("outside: Permission denied")
    ordinary.allow("write ~/outside")
    terminal.type("echo x > ~/outside && echo now-$((6*7))")
    terminal.until("now-42")
    ordinary.take_back("write ~/outside")
    terminal.type("echo x > ~/outside || echo again-$((6*7))")
    terminal.until("again-42")
    terminal.type("exit")
    ordinary.told("run_end")
    assert ordinary.story(outside) == ["denial", "grant", "revoke", "denial"]
    assert ordinary.verified()


def break_by_nonsense(path):
    path.write_text("{ nonsense")


def break_by_mode(path):
    path.chmod(0)


@pytest.mark.parametrize("spoil", [break_by_nonsense, break_by_mode])
def test_a_broken_rule_file_shows_and_the_last_good_rules_hold(ordinary, spoil):
    terminal = ordinary.open("bash", "--norc")
    terminal.type("echo x > ~/outside")
    terminal.until("outside: Permission denied")
    ordinary.allow("write ~/outside")
    ordinary.told("grant")
    record = ordinary.record
    good = record.read_text()

    spoil(record)
    terminal.until("rule file: the last good rules hold")
    assert [body for body in ordinary.told("rules_changed", 2) if body.get("error")]
    terminal.type("clear; echo x > ~/outside && echo kept-$((6*7)); echo x > ~/other")
    terminal.until("kept-42")
    terminal.until("other: Permission denied")
    time.sleep(0.6)
    terminal.keys("C-g", "a")
    terminal.until(lambda lines: lines[-1 if lines[-1] else -2].startswith(" nd7: "))
    terminal.type("echo x > ~/other || echo still-$((6*7))")
    terminal.until("still-42")

    record.chmod(0o600)
    record.write_text(good)
    terminal.until(lambda lines: not any("rule file:" in line for line in lines))
    ordinary.allow("write ~/other")
    terminal.type("echo x > ~/other && echo open-$((6*7))")
    terminal.until("open-42")
    assert "Traceback" not in terminal.screen()
    terminal.type("exit")
    ordinary.told("run_end")
    assert ordinary.verified()


def test_grants_that_cannot_be(person):
    terminal = person.open("bash", "--norc")
    before = person.record.read_text()
    assert refused(person.nd7("allow", str(person.home / "nothing/here")), "no such file or directory")
    for path in (person.home / ".nd7", person.home / ".nd7/sessions", person.record, person.sessions):
        assert refused(person.nd7("allow", str(path)), "nd7")
    terminal.type("echo x > ~/.nd7/x")
    terminal.until("Permission denied")
    time.sleep(0.6)
    terminal.keys("C-g")
    terminal.until("[write ~/.nd7/x]")
    terminal.keys("a")
    terminal.until("never-list")
    assert person.record.read_text() == before
    assert "grant" not in [frame["kind"] for frame in person.frames()]


def test_a_terminal_too_small_and_back(person):
    person.sit_down(20, 5)
    terminal = person.open("bash", "--norc", ready="too small")
    terminal.until("this is 20x5")
    terminal.resize(80, 24)
    terminal.until("running")
    terminal.type("echo x > ~/outside")
    terminal.until("✗ refused")
    terminal.resize(20, 5)
    terminal.until("too small")
    terminal.keys("x", "C-g", "a")
    terminal.resize(40, 10)
    lines = terminal.until("✗ refused")
    assert any("~/outside" in line for line in lines)
    terminal.type("echo size-$((6*7))")
    terminal.until("size-42")
    terminal.resize(200, 60)
    terminal.until("chain ok")
    assert "grant" not in [frame["kind"] for frame in person.frames()]
    assert "Traceback" not in terminal.screen()


def test_a_torn_log_is_said_everywhere_and_nothing_else_is_lost(person):
    done = person.nd7("run", "sh", "-c", f"echo x > {person.home}/outside")
    assert "Permission denied" in done.stderr
    log = person.sessions / person.session / "events.ndjson"
    whole = log.read_bytes()
    log.write_bytes(whole + whole.splitlines()[-1][:100])

    listed = person.nd7("sessions")
    assert " torn" in listed.stdout
    verified = person.nd7("verify", person.session)
    assert verified.returncode == 1
    assert "frame 3: the file ends mid-frame" in verified.stderr
    for command in ("show", "denials"):
        shown = person.nd7(command, person.session)
        assert f"nd7: at byte {len(whole)}: the file ends mid-frame" in shown.stderr
        assert "write " in shown.stdout
    assert len(person.nd7("show", person.session, "--json").stdout.splitlines()) == 3
    for done in (listed, verified, shown):
        assert "Traceback" not in done.stdout + done.stderr

    terminal = person.open(ready="recent sessions")
    terminal.keys("s")
    terminal.until("1 of 1 sessions")
    terminal.until(" torn ")
    terminal.keys("Enter")
    lines = terminal.until("damaged")
    assert any("denied" in line and "~/outside" in line for line in lines)
    terminal.keys("v")
    terminal.until("the file ends mid-frame")
    assert log.read_bytes().startswith(whole)


@pytest.mark.parametrize("name", ["../x", "..", "../../../etc", "/etc", "x/../y", ""])
def test_a_session_id_that_is_a_path(person, name):
    person.nd7("run", "true")
    for command in ("verify", "show"):
        assert refused(person.nd7(command, name), "no session")
        assert refused(person.nd7(command, f"../sessions/{person.session}"), "no session")
    assert refused(person.nd7("run", "--session-id", name, "true"), "not a session id")
    assert refused(person.nd7("tui", "--session-id", name, "true"), "not a session id")
    assert len(list(person.sessions.iterdir())) == 1


def test_without_a_terminal(person):
    assert refused(person.nd7("tui", "bash"), "needs a terminal")
