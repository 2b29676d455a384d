"""Puts `engine.terminal.paste.Guard` before Textual's input parser.

Rule: an ESC in a bracketed paste makes Textual 8.2's parser hand the text out as key presses; they would be typed into
the agent, or answer a question. So the parser class the Linux driver uses is replaced, once, by one that filters first.

What it does not cover: other drivers (Windows, web), and terminals without bracketed paste.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual._xterm_parser import XTermParser
from textual.drivers import linux_driver

from nd7tui.engine.terminal.paste import Guard

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual.message import Message


class GuardedParser(XTermParser):
    """Textual's input parser behind the guard."""

    def __init__(self, debug: bool = False) -> None:
        super().__init__(debug)
        self._guard = Guard()

    def feed(self, data: str) -> Iterable[Message]:
        """Takes input. Nothing to pass on is not passed: an empty string means the end to the parser."""
        passed = self._guard.feed(data) if data else ""
        return super().feed(passed) if passed or not data else ()


def guard_pastes() -> None:
    """Guards the drivers that start from now on. Calling it again changes nothing."""
    linux_driver.XTermParser = GuardedParser  # type: ignore[attr-defined]
