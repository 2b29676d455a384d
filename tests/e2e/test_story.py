"""The main job, in the real program as a person would do it: refused, seen, allowed, works, taken back, refused again.

Everything is real: tmux, the UI, the supervisor, the kernel. Only the home directory is a throw-away one.
"""

from __future__ import annotations

import os
import signal
import time

import person as people
import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

STORY = ["denial", "grant", "revoke", "denial"]
RETRY = """
import sys
for number, line in enumerate(sys.stdin):
    try:
        with open(sys.argv[1], "a") as file:
            file.write(line)
        print(f"try-{number} written", flush=True)
    except OSError as error:
        print(f"try-{number} {error.strerror}", flush=True)
"""
STAYS = """
import os, signal, time
signal.signal(signal.SIGHUP, signal.SIG_IGN)
out = open("out", "w", buffering=1)
for number in (1, 2, 3):
    end = time.monotonic() + 60
    while not os.path.exists(f"go-{number}") and time.monotonic() < end:
        time.sleep(0.05)
    try:
        with open("inside", "w") as file:
            file.write(str(number))
        print(number, "written", file=out)
    except OSError as error:
        print(number, error.strerror, file=out)
"""


@pytest.fixture
def person():
    person = people.make()
    yield person
    person.leave()


def listed(lines, state, target):
    """Whether a denial stands in the list with this state; beside the pane it takes two lines, the target below."""
    return any(state in line and target in below for line, below in zip(lines, [*lines[1:], ""], strict=True))


def quit_shell(person):
    """Leaves the program in the pane, then the UI."""
    person.terminal.type("exit")
    person.terminal.until("ended")
    person.told("run_end")
    person.quit()


def test_bash_allowed_and_taken_back_in_the_same_shell(person):
    outside = person.home / "outside"
    terminal = person.open("bash", "--norc")
    terminal.type("echo x > ~/outside")
    terminal.until("outside: Permission denied")
    terminal.until(lambda lines: listed(lines, "✗ refused", "~/outside"))
    assert not outside.exists()

    person.allow("write ~/outside")
    terminal.type("echo x > ~/outside && echo now-$((6*7))")
    terminal.until("now-42")
    terminal.until(lambda lines: listed(lines, "✓ allowed", "~/outside"))
    assert outside.read_text() == "x\n"

    person.take_back("write ~/outside")
    terminal.until(lambda lines: listed(lines, "↶ taken back", "~/outside"))
    terminal.type("clear; echo y > ~/outside || echo again-$((6*7))")
    terminal.until("again-42")
    terminal.until(lambda lines: listed(lines, "✗ refused", "~/outside"))
    assert outside.read_text() == "x\n"

    terminal.type("cat ~/.ssh/id_ed25519")
    terminal.until("id_ed25519: Permission denied")
    terminal.until(lambda lines: listed(lines, "✗ refused", "~/.ssh/id_ed25519"))
    assert "PRIVATE" not in terminal.screen()
    quit_shell(person)

    assert person.story(outside) == STORY
    assert person.story(person.key) == ["denial"]
    assert person.verified()


def test_vim_writes_outside_after_a_key(person):
    outside = person.home / "outside"
    (person.project / "file.txt").write_text("text\n")
    terminal = person.open("vim", "-u", "NONE", "-N", "file.txt")
    terminal.until("text")
    terminal.type(":w ~/outside")
    terminal.until("E212")
    terminal.keys("Enter")
    terminal.until(lambda lines: listed(lines, "✗ refused", "~/outside"))

    person.allow("write ~/outside")
    terminal.type(":w ~/outside")
    terminal.until("[New]")
    assert outside.read_text() == "text\n"

    person.take_back("write ~/outside")
    terminal.type(":%s/text/more/")
    terminal.type(":w! ~/outside")
    terminal.until(lambda lines: listed(lines, "✗ refused", "~/outside"))
    terminal.until("E212")
    assert outside.read_text() == "text\n"
    terminal.keys("Enter")
    terminal.type(":q!")
    person.told("run_end")
    assert person.story(outside)[:2] == ["denial", "grant"]
    assert person.story(outside)[2:] in (["revoke", "denial"], ["revoke", "denial", "denial"])
    assert person.verified()


def test_what_vim_writes_beside_a_file_is_not_what_the_key_allows(person):
    existing = person.home / "existing"
    existing.write_text("old\n")
    terminal = person.open("vim", "-u", "NONE", "-N", "file.txt")
    terminal.until("[New]")
    terminal.type(":e ~/existing")
    terminal.until("existing")
    terminal.keys("Enter")  # it says that there can be no swap file
    terminal.keys("O")
    terminal.type("new")
    terminal.keys("Escape")
    time.sleep(0.5)
    terminal.type(":w!")
    terminal.until("E212")
    terminal.keys("Enter")
    terminal.until(lambda lines: listed(lines, "✗ refused", "~/existing~"))
    person.allow("write ~/existing")
    terminal.type(":w!")
    terminal.until("written")
    assert existing.read_text().startswith("new\n")
    terminal.type(":q!")
    person.told("run_end")
    assert person.verified()


def test_a_python_process_retries_without_a_restart(person):
    outside = person.home / "outside"
    (person.project / "retry.py").write_text(RETRY)
    terminal = person.open("python3", "retry.py", str(outside))
    terminal.type("one")
    terminal.until("try-0 Permission denied")
    terminal.until(lambda lines: listed(lines, "✗ refused", "~/outside"))
    person.allow("write ~/outside")
    terminal.type("two")
    terminal.until("try-1 written")
    person.take_back("write ~/outside")
    terminal.type("three")
    terminal.until("try-2 Permission denied")
    terminal.until(lambda lines: listed(lines, "✗ refused", "~/outside"))
    assert outside.read_text() == "two\n"
    terminal.keys("C-d")
    person.told("run_end")
    assert person.story(outside) == STORY
    assert person.verified()


def test_allow_after_a_deny_undoes_it_and_nothing_older(person):
    outside = person.home / "outside"
    terminal = person.open("bash", "--norc")
    terminal.type("cat ~/.ssh/id_ed25519; echo x > ~/outside")
    terminal.until("outside: Permission denied")
    person.chord("d", "[write ~/outside]", "denied write ~/outside")
    person.chord("d", "[read ~/.ssh/id_ed25519]", "denied read ~/.ssh/id_ed25519")
    person.chord("a", "[allow again: read ~/.ssh/id_ed25519]", "allowed read ~/.ssh/id_ed25519")
    person.take_back("read ~/.ssh/id_ed25519")
    person.chord("a", "[allow again: read ~/.ssh/id_ed25519]", "allowed read ~/.ssh/id_ed25519")
    # What was denied before that is not what one more press means.
    person.chord("a", "take back: read ~/.ssh/id_ed25519", "no denial to decide")
    quit_shell(person)
    assert person.story(outside) == ["denial", "grant"]
    assert person.verified()


def test_no_key_of_the_ui_reaches_the_program(person):
    outside = person.home / "outside"
    script = (
        "import os, tty; tty.setraw(0); print('ready', end='\\r\\n', flush=True)\n"
        "while (data := os.read(0, 4096)) != b'q': print(ascii(data), end='\\r\\n', flush=True)\n"
    )
    (person.project / "raw.py").write_text(script)
    terminal = person.open("sh", "-c", f"'echo x > {outside}; python3 raw.py'")
    terminal.until("ready")
    person.allow("write ~/outside")
    for _ in range(5):
        person.take_back("write ~/outside")
        person.chord("a", "[allow again: write ~/outside]", "allowed write ~/outside")
    terminal.resize(90, 30)
    terminal.resize(120, 40)
    terminal.keys("z")
    lines = terminal.until("b'z'")
    assert [line.split()[0] for line in lines if line.startswith("b'")] == ["b'z'"]
    terminal.keys("q")
    person.told("run_end")


def test_the_demo_plays_itself_to_its_end(person):
    terminal = person.open("demo", "--fast", "--wait", "15", ready="DEMO: a scripted program")
    lines = terminal.until("demo ended, exit status 0", 90)
    assert not [line for line in lines if "WRONG" in line]
    (end,) = person.told("run_end")
    assert end["exit"] == 0
    assert {body["rule"]["by"] for body in person.told("grant", 2)} == {"demo"}
    (outside,) = {body["target"] for body in person.told("denial") if "nd7-demo-outside" in body["target"]}
    assert str(person.key) in {body["target"] for body in person.told("denial") if body["access"] == "read"}
    assert person.story(outside) == STORY
    assert person.story(person.key) == ["denial"]
    assert [body["outcome"] for body in person.told("denial_end")] == ["denied"]
    assert not os.path.exists(outside)
    assert person.verified()


def test_the_demo_leaves_the_keys_to_whoever_wants_them(person):
    terminal = person.open("demo", "--fast", "--manual", "--wait", "60", ready="DEMO: a scripted program")
    terminal.until("WAITING  allow it")
    outside = next(body["target"] for body in person.told("denial") if "nd7-demo-outside" in body["target"])
    person.chord("a", "[write ~/nd7-demo-outside", "allowed write")
    terminal.until("WAITING  take it back")
    person.chord("d", "[take back: write ~/nd7-demo-outside", "took back")
    terminal.until("WAITING  answer")
    person.chord("d", "post-commit]", "denied write")
    terminal.until("demo ended, exit status 0", 60)
    assert {body["rule"]["by"] for body in person.told("grant", 2)} == {"tui"}
    assert person.story(outside) == STORY


def test_killing_the_ui_loses_no_frame(person):
    outside = person.home / "outside"
    terminal = person.open("bash", "--norc")
    terminal.type("echo x > ~/outside")
    terminal.until(lambda lines: listed(lines, "✗ refused", "~/outside"))
    person.allow("write ~/outside")
    terminal.type("for i in $(seq 200); do echo x > ~/no-$i; done 2>/dev/null; echo done-$((6*7)); cat")
    person.told("denial", 20)
    os.kill(person.ui, signal.SIGKILL)
    terminal.until("Killed")
    (end,) = person.told("run_end")  # its terminal hung up
    assert end["signal"] == signal.SIGHUP
    frames = person.frames()
    assert [frame["seq"] for frame in frames] == list(range(len(frames)))
    refused = [frame["body"]["target"] for frame in frames if frame["kind"] == "denial"]
    assert refused == [str(outside), *(f"{person.home}/no-{n}" for n in range(1, len(refused)))]
    assert person.story(outside) == ["denial", "grant"]
    assert person.verified()
    assert not list((person.home / ".nd7/sessions").iterdir())


def test_killing_the_supervisor_shuts_the_program_and_is_seen(person):
    (person.project / "stays.py").write_text(STAYS)
    terminal = person.open("python3", "stays.py")
    out = person.project / "out"
    (person.project / "go-1").touch()
    wait_for(lambda: out.exists() and "1 written" in out.read_text())
    os.kill(person.supervisor, signal.SIGKILL)
    terminal.until("ended by signal 9")
    (person.project / "go-2").touch()
    wait_for(lambda: "2 Function not implemented" in out.read_text())
    assert (person.project / "inside").read_text() == "1"
    assert person.verified()
    terminal.until("the supervisor was killed")
    terminal.keys("v")
    terminal.until("✓ clean")
    (person.project / "go-3").touch()


def wait_for(condition, timeout=20.0):
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
