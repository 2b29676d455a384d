"""What the demo agent prints: plain words, one colour for each outcome, and always the outcome as a word too.

Rule: only lines, no cursor movement, so that it reads the same in a pane, a pipe and a log.
"""

from __future__ import annotations

import os
import sys
import textwrap
import time
from typing import TextIO

_BANNER = (
    "████▄  ██████  ██▄ ▄██  ▄████▄",
    "██  ██ ██▄▄    ██▀█▀██  ██  ██",
    "██  ██ ██▀▀    ██ ▀ ██  ██  ██",
    "████▀  ██████  ██   ██  ▀████▀",
)
_WIDEST = 76
_READING = 60  # characters a second: brisk, since a title says the same


class Screen:
    """Prints the demo's narration.

    Args:
        out: Where to print.
        fast: Never pause (tests).
    """

    def __init__(self, out: TextIO = sys.stdout, *, fast: bool = False) -> None:
        self._out = out
        self._fast = fast
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
        self._colour = out.isatty() and not plain

    def banner(self) -> None:
        """Prints what this is, in letters nobody can miss."""
        for line in _BANNER:
            self._print(line, "1;35")
        self._print("")
        self._print("DEMO: a scripted program, not an AI. No account, no network.", "1")

    def step(self, number: int, of: int, title: str) -> None:
        """Prints the heading of one step."""
        self.pause(0.8)
        self._print("")
        self._print(f"[{number}/{of}] {title}", "1;36")

    def say(self, text: str) -> None:
        """Prints a sentence of narration and leaves time to read it."""
        for line in textwrap.wrap(text, self._width() - 2):
            self._print(f"  {line}")
        self.pause(len(text) / _READING)

    def doing(self, text: str) -> None:
        """Prints what is tried now."""
        self._print(f"  > {text}", "1")
        self.pause(0.3)

    def allowed(self, text: str) -> None:
        """Prints that it went through."""
        self._print(f"  ALLOWED  {text}", "32")

    def refused(self, text: str) -> None:
        """Prints that it was refused, as it should be."""
        self._print(f"  REFUSED  {text}", "31")

    def waiting(self, text: str) -> None:
        """Prints what the person can do now."""
        self._print(f"  WAITING  {text}", "1;33")

    def wrong(self, text: str) -> None:
        """Prints that something was not as it should be."""
        self._print(f"  WRONG    {text}", "1;7;31")

    def output(self, text: str) -> None:
        """Prints what a command printed."""
        for line in text.splitlines():
            self._print(f"  | {line}", "2")

    def pause(self, seconds: float) -> None:
        """Waits, unless fast."""
        if not self._fast:
            time.sleep(seconds)

    def _print(self, text: str, style: str = "") -> None:
        styled = f"\x1b[{style}m{text}\x1b[0m" if style and text and self._colour else text
        print(styled, file=self._out, flush=True)

    def _width(self) -> int:
        try:
            columns = os.get_terminal_size(self._out.fileno()).columns
        except (OSError, ValueError):
            columns = _WIDEST
        return max(24, min(columns, _WIDEST))
