"""A real program on a real pty."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest

from nd7tui.engine.terminal import pty
from nd7tui.engine.terminal.errors import SpawnError
from nd7tui.engine.terminal.pty import Exit, PtyProcess, Pumped


def run(argv, **options):
    """Runs a program to its end and returns (output, how it ended)."""
    process = PtyProcess.spawn(argv, **options)
    return finish(process), process.exit


def finish(process, timeout=10.0):
    output, deadline = bytearray(), time.monotonic() + timeout
    while time.monotonic() < deadline:
        end = process.pump(output.extend)
        if process.poll() is not None and end is not Pumped.BUDGET:
            break
        time.sleep(0.005)
    process.pump(output.extend)
    process.close()
    assert process.exit is not None, output
    return bytes(output)


def wait_for(process, text, timeout=10.0):
    output, deadline = bytearray(), time.monotonic() + timeout
    while text not in output and time.monotonic() < deadline:
        process.pump(output.extend)
        time.sleep(0.005)
    assert text in output, output
    return bytes(output)


def test_it_has_a_controlling_terminal_of_that_size(tmp_path):
    script = 'tty; stty size; ps -o sid=,tpgid= -p $$; echo $$; pwd; echo "$PWD"; : < /dev/tty && echo ctty'
    output, end = run(["sh", "-c", script], cwd=str(tmp_path), cols=97, rows=31)
    name, size, ids, pid, cwd, pwd, ctty = output.decode().split("\r\n")[:7]
    assert name.startswith("/dev/pts/")
    assert size == "31 97"
    assert ids.split() == [pid, pid]
    assert cwd == pwd == str(tmp_path)
    assert ctty == "ctty"
    assert end == Exit(0, None)


def test_its_environment_is_what_was_given():
    output, _ = run(["/usr/bin/env"], env={"A": "b", "PATH": "/bin:/usr/bin"})
    assert output.split() == [b"A=b", b"PATH=/bin:/usr/bin"]


def test_signals_are_back_to_normal():
    output, _ = run(["grep", "-E", "Sig(Ign|Blk)", "/proc/self/status"])
    libc_own = 0b11 << 31  # 32 and 33, which no program can set
    assert [int(line.split()[1], 16) & ~libc_own for line in output.splitlines()] == [0, 0]


def test_no_descriptor_leaks_into_it():
    with open("/dev/null") as held:
        os.set_inheritable(held.fileno(), True)
        output, _ = run(["ls", "/proc/self/fd"])
    assert output.split() == [b"0", b"1", b"2", b"3"]  # 3 is the listing itself


@pytest.mark.parametrize(
    ("script", "end"),
    [("exit 0", (0, None)), ("exit 7", (7, None)), ("kill -TERM $$", (143, 15)), ("kill -KILL $$", (137, 9))],
)
def test_exit_status(script, end):
    assert run(["sh", "-c", script])[1] == end


@pytest.mark.parametrize("argv", [["no-such-program-at-all"], ["/no/such"], ["/etc/passwd"], []])
def test_what_cannot_be_started(argv):
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(SpawnError, match="cannot start"):
        PtyProcess.spawn(argv)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_missing_directory_is_said():
    with pytest.raises(SpawnError, match="No such file"):
        PtyProcess.spawn(["true"], cwd="/no/such/place")


def test_a_new_size_is_heard():
    process = PtyProcess.spawn(["sh", "-c", "trap 'stty size; exit' WINCH; echo up; while :; do sleep 0.05; done"])
    wait_for(process, b"up")
    process.resize(50, 20)
    assert b"20 50" in finish(process)


def test_ctrl_c_interrupts():
    process = PtyProcess.spawn(["sh", "-c", "echo up; sleep 100"])
    wait_for(process, b"up")
    process.write(b"\x03")
    finish(process)
    assert process.exit == Exit(130, signal.SIGINT)


def test_hang_up_ends_a_stopped_program():
    process = PtyProcess.spawn(["sleep", "100"])
    process.signal(signal.SIGSTOP)
    time.sleep(0.05)
    process.hang_up()
    finish(process)
    assert process.exit == Exit(129, signal.SIGHUP)


def test_a_flood_stops_at_the_budget():
    process = PtyProcess.spawn(["yes"])
    start, seen = time.monotonic(), bytearray()
    ends = {process.pump(seen.extend, 0.006) for _ in range(10)}
    assert time.monotonic() - start < 1.0
    assert ends <= {Pumped.BUDGET, Pumped.EMPTY}
    process.kill()
    finish(process)
    assert process.exit == Exit(137, signal.SIGKILL)


def test_input_a_program_does_not_read_is_queued_then_refused(monkeypatch):
    monkeypatch.setattr(pty, "QUEUE_LIMIT", 1 << 18)
    process = PtyProcess.spawn(["sh", "-c", "stty raw -echo; echo up; sleep 100"])
    wait_for(process, b"up")
    start = time.monotonic()
    for _ in range(8):
        process.write(b"x" * (1 << 16))
    assert time.monotonic() - start < 0.5
    assert process.wants_write
    assert process.refused > 0
    process.kill()
    finish(process)


def test_a_long_paste_arrives_whole():
    script = "import sys,tty; tty.setraw(0); print('up', flush=True); d=b''\nwhile len(d) < 300000: d += sys.stdin.buffer.raw.read(65536)\nprint(len(d), d.count(b'z'))"  # noqa: E501
    process = PtyProcess.spawn([sys.executable, "-c", script])
    wait_for(process, b"up")
    process.write(b"z" * 300_000)
    deadline = time.monotonic() + 10
    while process.wants_write and time.monotonic() < deadline:
        process.flush()
        time.sleep(0.001)
    assert b"300000 300000" in finish(process)


def test_writing_after_the_end_is_nothing():
    process = PtyProcess.spawn(["true"])
    finish(process)
    process.write(b"x")
    process.resize(10, 10)
    process.signal(signal.SIGTERM)
    assert not process.wants_write
