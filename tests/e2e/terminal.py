"""A real terminal for end-to-end tests: tmux on a server of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import time


class Terminal:
    """One tmux pane running a plain bash.

    Its server's socket lies in `directory`, so that no other tmux is seen or touched. The server is started by `wrap`
    (a command that becomes what follows it), with `only` as its whole environment or else this process's own.
    """

    def __init__(self, directory, *, env=None, only=None, columns=120, lines=40, cwd=None, wrap=()):
        assert shutil.which("tmux"), "tmux is needed for the end-to-end tests"
        self.socket = str(directory / "tmux.sock")
        self.env = {**(os.environ if only is None else only), "PS1": "$ ", "TERM": "screen-256color"}
        self.env |= {"LC_ALL": "C.UTF-8", **(env or {})}
        # They would be the outer terminal's, and stronger than what tmux says of its own.
        for name in ("TMUX", "COLUMNS", "LINES"):
            self.env.pop(name, None)
        size = ["-x", str(columns), "-y", str(lines)]
        where = ["-c", str(cwd)] if cwd else []
        shell = "exec env PS1='$ ' bash --norc --noprofile -i"
        self._tmux("-f", "/dev/null", "new-session", "-d", *size, *where, shell, wrap=wrap)
        self.wait_for("$")

    def _tmux(self, *args, wrap=()):
        argv = [*wrap, "tmux", "-S", self.socket, *args]
        done = subprocess.run(argv, env=self.env, capture_output=True, text=True, check=True, timeout=20)
        return done.stdout

    def type(self, text):
        """Types a line and Enter."""
        self._tmux("send-keys", "-l", text)
        self._tmux("send-keys", "Enter")

    def keys(self, *names):
        """Presses keys by tmux's names (`C-c`, `Escape`)."""
        self._tmux("send-keys", *names)

    def resize(self, columns, lines):
        self._tmux("resize-window", "-x", str(columns), "-y", str(lines))

    def screen(self):
        """What the pane shows, with its history."""
        return self._tmux("capture-pane", "-p", "-S", "-500")

    def lines(self):
        """What the pane shows now, a line each, without trailing blanks."""
        return [line.rstrip() for line in self._tmux("capture-pane", "-p").split("\n")]

    def wait_for(self, text, timeout=10.0, *, count=1):
        """Waits until `text` is there `count` times on a line that is not just its echo."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            screen = self.screen()
            if screen.count(text) >= count:
                return screen
            time.sleep(0.05)
        raise AssertionError(f"{text!r} did not appear:\n{self.screen()}")

    def until(self, wanted, timeout=20.0):
        """Waits until `wanted` (text on view, or a predicate of the lines on view) holds; returns the lines."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            lines = self.lines()
            if wanted(lines) if callable(wanted) else any(wanted in line for line in lines):
                return lines
            time.sleep(0.05)
        raise AssertionError(f"{wanted!r} is not on:\n" + "\n".join(self.lines()))

    @property
    def shell_pid(self):
        """The pid of the pane's bash."""
        return int(self._tmux("display-message", "-p", "#{pane_pid}"))

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], env=self.env, check=False, capture_output=True)
