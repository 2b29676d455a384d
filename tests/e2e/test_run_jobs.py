"""Job control as a shell and a terminal see it: `nd7 run` must be as good as the program alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from terminal import Terminal

pytestmark = pytest.mark.e2e
DRIVER = [sys.executable, os.path.join(os.path.dirname(__file__), "job_driver.py")]
RUN = " ".join(DRIVER)


@pytest.fixture
def terminal(tmp_path):
    terminal = Terminal(tmp_path, cwd=tmp_path)
    yield terminal
    terminal.close()


def run(*argv, **options):
    return subprocess.run([*DRIVER, *argv], check=False, timeout=20, **options)


@pytest.mark.parametrize("code", [0, 1, 42, 126, 255])
def test_the_exit_status_is_the_programs(code):
    assert run("sh", "-c", f"exit {code}").returncode == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGSEGV, signal.SIGUSR1])
def test_it_dies_of_the_programs_signal(number, tmp_path):
    assert run("sh", "-c", f"kill -{int(number)} $$", cwd=tmp_path).returncode == -number
    assert not list(tmp_path.iterdir()), "no core of the supervisor"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2])
def test_a_signal_sent_to_it_reaches_the_program(number):
    trap = f"trap 'echo got; exit 7' {int(number)}; echo u\"\"p; while :; do sleep 0.05; done"
    with subprocess.Popen([*DRIVER, "bash", "-c", trap], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "up\n"
        process.send_signal(number)
        assert process.stdout.read() == "got\n"
    assert process.returncode == 7


def test_signals_are_as_a_program_expects_them():
    shown = "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status"
    bare = subprocess.run(["sh", "-c", shown], check=True, capture_output=True).stdout
    assert run("sh", "-c", shown, capture_output=True).stdout == bare


def test_stop_and_continue_are_seen_by_the_parent():
    with subprocess.Popen([*DRIVER, "sh", "-c", "kill -STOP $$; exit 5"]) as process:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        process.send_signal(signal.SIGCONT)
        assert process.wait(10) == 5


def test_ctrl_c_reaches_the_program_once_and_not_the_supervisor(terminal):
    terminal.type(f'{RUN} bash -c \'n=0;trap "n=\\$((n+1))" INT; echo u""p; sleep 1; sleep .3; echo got-$n; exit 3\'')
    terminal.wait_for("\nup")
    terminal.keys("C-c")
    terminal.wait_for("got-1")
    terminal.type("echo status-$?")
    terminal.wait_for("status-3")


def test_ctrl_c_kills_a_program_that_does_not_care(terminal):
    terminal.type(f"{RUN} bash -c 'echo u\"\"p; exec sleep 100'")
    terminal.wait_for("\nup")
    terminal.keys("C-c")
    terminal.type("echo status-$?")
    terminal.wait_for("status-130")


def test_ctrl_z_stops_the_job_and_fg_goes_on(terminal):
    terminal.type(f"{RUN} bash -c 'echo u\"\"p; read line; echo read-$line'")
    terminal.wait_for("\nup")
    terminal.keys("C-z")
    terminal.wait_for("Stopped")
    terminal.type("jobs -l; echo still-$((1+1))")
    terminal.wait_for("still-2")
    terminal.type("fg")
    time.sleep(0.5)
    terminal.type("hello")
    terminal.wait_for("read-hello")


def test_a_background_program_that_reads_is_stopped_as_alone(terminal):
    terminal.type(f"{RUN} cat &")
    terminal.type("")
    time.sleep(1)
    terminal.type("jobs")
    terminal.wait_for("Stopped")
    terminal.type("kill %1; fg; echo done-$((1+1))")
    terminal.wait_for("done-2")


def test_kill_of_the_job_ends_it(terminal):
    terminal.type(f"{RUN} bash -c 'echo u\"\"p; exec sleep 100' &")
    terminal.wait_for("$ up")
    terminal.type("kill %1")
    time.sleep(0.5)
    terminal.type("")
    terminal.wait_for("Terminated")


def test_an_interactive_shell_takes_the_terminal_and_gives_it_back(terminal):
    terminal.type(f"PS1='inner> ' {RUN} bash --norc --noprofile -i")
    terminal.wait_for("inner>")
    terminal.type("sleep 100")
    time.sleep(0.3)
    terminal.keys("C-z")
    terminal.wait_for("Stopped")
    terminal.type("kill %1; suspend")
    terminal.wait_for("Stopped", count=2)
    terminal.type("echo outer-$((1+1))")
    terminal.wait_for("outer-2")
    terminal.type("fg")
    terminal.wait_for("inner>", count=4)
    terminal.type("echo back-$((1+1))")
    terminal.wait_for("back-2")
    terminal.type("exit 9")
    terminal.type("echo status-$?")
    terminal.wait_for("status-9")


def test_a_full_screen_program_sees_the_window_change(terminal):
    terminal.type(f'{RUN} bash -c \'trap "stty size" WINCH; echo u""p; while :; do sleep 0.1; done\'')
    terminal.wait_for("\nup")
    terminal.resize(100, 30)
    terminal.wait_for("30 100")
    terminal.keys("C-c")


def test_the_terminal_closing_ends_the_program(tmp_path):
    terminal = Terminal(tmp_path, cwd=tmp_path)
    terminal.type(f'exec {RUN} bash -c \'trap "echo hup > hup; exit" HUP; echo u""p; while :; do sleep 0.1; done\'')
    terminal.wait_for("\nup")
    terminal.close()
    end = time.monotonic() + 5
    while not (tmp_path / "hup").exists():
        assert time.monotonic() < end
        time.sleep(0.05)
