"""bash, vim, less and htop in the pane, the whole app in tmux: what a person would see.

tmux 3.3a is the outer terminal; nothing of the pane is stubbed.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nd7tui.engine.terminal.choose import ENGINES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.e2e]

HOST = Path(__file__).parents[1] / "app" / "pane_host.py"
COLS, ROWS = 100, 30


class Outer:
    """One tmux server of our own with the host app in its only window."""

    def __init__(self, socket: Path, argv: list[str]) -> None:
        self.socket = socket
        size = ["-x", str(COLS), "-y", str(ROWS)]
        self.tmux("-f", "/dev/null", "new-session", "-d", *size, shlex.join(argv))

    def tmux(self, *words: str, **options: object) -> str:
        argv = ["tmux", "-S", str(self.socket), *words]
        env = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES", "TMUX"}}
        return subprocess.run(argv, check=True, capture_output=True, text=True, env=env, **options).stdout

    def keys(self, *names: str) -> None:
        self.tmux("send-keys", *names)

    def type(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)

    def screen(self, *, styled: bool = False) -> list[str]:
        return [line.rstrip() for line in self.tmux("capture-pane", "-p", *(["-e"] if styled else [])).split("\n")]

    def wait(self, wanted: str | Callable[[list[str]], bool], timeout: float = 15.0) -> list[str]:
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            screen = self.screen()
            if wanted(screen) if callable(wanted) else any(wanted in line for line in screen):
                return screen
            time.sleep(0.05)
        raise AssertionError(f"{wanted!r} is not on:\n" + "\n".join(self.screen()))

    def paste(self, text: str) -> None:
        self.tmux("load-buffer", "-", input=text)
        self.tmux("paste-buffer", "-p", "-r")

    def close(self) -> None:
        subprocess.run(["tmux", "-S", str(self.socket), "kill-server"], capture_output=True, check=False)


@pytest.fixture(params=ENGINES)
def start(request, tmp_path) -> Iterator[Callable[..., Outer]]:
    opened: list[Outer] = []

    def begin(*program: str) -> Outer:
        outer = Outer(tmp_path / "tmux", [sys.executable, str(HOST), "--engine", request.param, *program])
        opened.append(outer)
        return outer

    yield begin
    for outer in opened:
        outer.close()


def test_bash(start):
    outer = start("bash", "--norc", "--noprofile")
    outer.wait(lambda screen: screen[0].endswith("#" if os.getuid() == 0 else "$"))
    outer.type("stty size; echo $((6*7)) $TERM")
    outer.keys("Enter")
    outer.wait(f"{ROWS} {COLS}")
    outer.wait("42 xterm-256color")
    outer.type("sleep 100")
    outer.keys("Enter")
    time.sleep(0.4)  # until it is sleep that has the terminal
    outer.keys("C-c")
    outer.type("echo code $?")
    outer.keys("Enter")
    outer.wait("code 130")
    outer.type("printf '\\033[1;31mred\\033[0m\\n'")
    outer.keys("Enter")
    outer.wait(lambda screen: "red" in screen)
    assert any(re.search(r"\x1b\[[\d;]*1[\d;]*m *red", line) for line in outer.screen(styled=True))
    outer.type("echo abc")
    outer.keys("Left", "Left", "X", "C-a", "C-e", "BSpace", "Enter")  # aXbc, then the c away
    outer.wait(lambda screen: "aXb" in screen)
    outer.type("sleep 50")
    outer.keys("Enter")
    time.sleep(0.4)
    outer.keys("C-z")
    outer.wait("Stopped")
    outer.type("kill %1; exit 9")
    outer.keys("Enter")
    outer.wait("exit")
    assert any("aXb" in line for line in outer.screen())  # the last screen stays


def test_vim(start, tmp_path):
    file = tmp_path / "text.txt"
    file.write_text("".join(f"line {n}\n" for n in range(200)))
    outer = start("vim", "-u", "NONE", "-N", str(file))
    outer.wait(lambda screen: screen[0] == "line 0")
    outer.type("ihello ")
    outer.keys("Escape")
    time.sleep(0.3)
    outer.wait(lambda screen: screen[0] == "hello line 0")
    outer.keys("Down", "Down")
    outer.type("dd")
    outer.wait(lambda screen: screen[2] == "line 3")
    outer.type("G")
    outer.wait("line 199")
    outer.keys("C-u")
    outer.type("gg")
    outer.wait(lambda screen: screen[0] == "hello line 0")
    outer.tmux("resize-window", "-x", "80", "-y", "20")
    outer.wait(lambda screen: screen[18] == "line 19" and "line 20" not in screen)
    outer.type(":wq")
    outer.keys("Enter")
    deadline = time.monotonic() + 10
    while not file.read_text().startswith("hello") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert file.read_text().startswith("hello line 0\nline 1\nline 3\n")


def test_less(start, tmp_path):
    file = tmp_path / "long.txt"
    file.write_text("".join(f"row {n}\n" for n in range(1000)))
    outer = start("less", str(file))
    outer.wait(lambda screen: screen[0] == "row 0" and screen[28] == "row 28")
    outer.keys("NPage")
    outer.wait(lambda screen: screen[0] == "row 29")
    outer.keys("PPage")
    outer.wait(lambda screen: screen[0] == "row 0")
    outer.type("G")
    outer.wait(lambda screen: screen[28] == "row 999")
    outer.type("/row 500")
    outer.keys("Enter")
    outer.type("?row 500")
    outer.keys("Enter")
    outer.wait("row 500")
    outer.type("q")


def test_htop(start):
    outer = start("htop", "-d", "5")
    screen = outer.wait("F10")
    assert any("PID" in line and "Command" in line for line in outer.wait("PID"))
    assert any("Mem[" in line for line in screen)
    outer.keys("F2")
    outer.wait("Categories")
    outer.keys("Escape")
    outer.wait("F10")
    outer.keys("F10")
    time.sleep(0.5)


def test_a_paste_with_escapes_is_not_typed(start):
    """Textual's parser would hand it out as keys; the guard makes it one paste."""
    script = (
        "import os,sys,tty; tty.setraw(0); sys.stdout.write('\\033[?2004hup\\r\\n'); sys.stdout.flush()\n"
        "while True: print(ascii(os.read(0, 4096)), end='\\r\\n', flush=True)"
    )
    outer = start(sys.executable, "-c", script)
    outer.wait("up")
    outer.paste("safe\x1b[Aand\x1b[200~sound\x1b")
    screen = outer.wait("safe")
    assert r"b'\x1b[200~safe[Aand[200~sound\x1b[201~'" in screen
    outer.keys("z")
    screen = outer.wait("b'z'")
    assert len([line for line in screen if line.startswith("b'")]) == 2
