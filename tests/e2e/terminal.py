"""A real terminal for end-to-end tests: tmux on a server of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import time


class Terminal:
    """One tmux pane running a plain bash.

    Its server's socket lies in `directory`, so that no other tmux is seen or touched.
    """

    def __init__(self, directory, *, env=None, columns=120, lines=40, cwd=None):
        assert shutil.which("tmux"), "tmux is needed for the end-to-end tests"
        self.socket = str(directory / "tmux.sock")
        self.env = {**os.environ, "PS1": "$ ", "TERM": "screen-256color", "LC_ALL": "C.UTF-8", **(env or {})}
        self.env.pop("TMUX", None)
        size = ["-x", str(columns), "-y", str(lines)]
        where = ["-c", str(cwd)] if cwd else []
        shell = "exec env PS1='$ ' bash --norc --noprofile -i"
        self._tmux("-f", "/dev/null", "new-session", "-d", *size, *where, shell)
        self.wait_for("$")

    def _tmux(self, *args):
        done = subprocess.run(
            ["tmux", "-S", self.socket, *args], env=self.env, capture_output=True, text=True, check=True, timeout=20
        )
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

    def wait_for(self, text, timeout=10.0, *, count=1):
        """Waits until `text` is there `count` times on a line that is not just its echo."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            screen = self.screen()
            if screen.count(text) >= count:
                return screen
            time.sleep(0.05)
        raise AssertionError(f"{text!r} did not appear:\n{self.screen()}")

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], env=self.env, check=False, capture_output=True)
