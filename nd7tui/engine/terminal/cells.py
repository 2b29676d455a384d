"""The text of one cell, for both engines.

Rule: what leaves here can be printed. Control characters and bidirectional overrides never reach the person's own
terminal, whatever the program put into a cell, and no cell is without something that takes its place. Pure.
"""

from __future__ import annotations

import unicodedata

from nd7tui.engine.terminal.replies import plain_text

REPLACEMENT = "\ufffd"
_CLUSTER_LIMIT = 32
_ZERO_WIDTH = frozenset({"Cf", "Mn", "Me"})
_UNSHOWABLE = frozenset({"Cs", "Cn", "Zl", "Zp"})


def cell_text(text: str) -> str:
    """Returns one cell's text safe to print; never empty.

    Args:
        text: The cell's character with what combines with it.

    Returns:
        The text; U+FFFD for a lone control or unassigned character; a space before a lone combining character.
    """
    safe = plain_text(text, _CLUSTER_LIMIT)
    if not safe:
        return REPLACEMENT
    kind = unicodedata.category(safe[0])
    if kind in _UNSHOWABLE:
        return REPLACEMENT
    return " " + safe if kind in _ZERO_WIDTH else safe
