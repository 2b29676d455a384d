"""What a program in the pane learns from its environment about its terminal.

Rule: it is told of our terminal and of no outer one; a leftover TMUX or KITTY_WINDOW_ID would make it speak to the
wrong terminal. Pure, but for the default.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

TERM = "xterm-256color"
"""Known on every machine; libghostty-vt and bittty understand more than it promises."""

_OUTER = frozenset({
    "COLUMNS", "LINES", "TERMCAP", "TERMINFO", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TERM_SESSION_ID", "TMUX",
    "TMUX_PANE", "STY", "WINDOW", "WINDOWID", "VTE_VERSION", "LC_TERMINAL", "LC_TERMINAL_VERSION",
    "KONSOLE_VERSION", "KONSOLE_DBUS_SESSION", "XTERM_VERSION", "ALACRITTY_WINDOW_ID", "ALACRITTY_SOCKET",
    "ALACRITTY_LOG", "WT_SESSION", "WT_PROFILE_ID",
})  # fmt: skip
_OUTER_PREFIXES = ("KITTY_", "WEZTERM_", "ITERM_", "GHOSTTY_", "ZELLIJ", "TEXTUAL")


def terminal_environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Returns an environment for a program in the pane.

    Args:
        env: What to start from; None for this process's own.
    """
    source = os.environ if env is None else env
    outer = {name for name in source if name in _OUTER or name.startswith(_OUTER_PREFIXES)}
    return {name: source[name] for name in source if name not in outer} | {"TERM": TERM, "COLORTERM": "truecolor"}
