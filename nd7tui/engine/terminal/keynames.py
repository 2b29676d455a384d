"""Key names, as Textual writes them, taken apart.

Rule: a name is modifiers joined with `+` and one base: a character, a name of a character, or a key without one.
Pure.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import NamedTuple

SHIFT, ALT, CTRL, SUPER, HYPER, META = 1, 2, 4, 8, 16, 32
"""Modifier bits as the kitty protocol and xterm number them (their parameter is 1 + bits)."""

_MODIFIERS = {"shift": SHIFT, "alt": ALT, "ctrl": CTRL, "super": SUPER, "hyper": HYPER, "meta": META}

_SPELLED = {
    "space": " ", "exclamation_mark": "!", "quotation_mark": '"', "number_sign": "#", "dollar_sign": "$",
    "percent_sign": "%", "ampersand": "&", "apostrophe": "'", "left_parenthesis": "(", "right_parenthesis": ")",
    "asterisk": "*", "plus": "+", "comma": ",", "minus": "-", "full_stop": ".", "slash": "/", "colon": ":",
    "semicolon": ";", "less_than_sign": "<", "equals_sign": "=", "greater_than_sign": ">", "question_mark": "?",
    "at": "@", "left_square_bracket": "[", "backslash": "\\", "right_square_bracket": "]", "circumflex_accent": "^",
    "underscore": "_", "grave_accent": "`", "left_curly_bracket": "{", "vertical_line": "|",
    "right_curly_bracket": "}", "tilde": "~",
    "decimal": ".", "divide": "/", "multiply": "*", "subtract": "-", "add": "+", "equal": "=", "separator": ",",
}  # fmt: skip
"""Names Textual gives ASCII characters, and the keypad's keys. Source: textual/keys.py, _keyboard_protocol.py."""

_ALIASES = {"return": "enter", "newline": "ctrl+j", "ctrl-at": "ctrl+space", "ctrl+@": "ctrl+space",
            "ctrl+at": "ctrl+space", "backtab": "shift+tab"}  # fmt: skip


class Key(NamedTuple):
    """One key press.

    Attributes:
        base: Name of a key without a character (`up`, `f5`, `enter`), or ''.
        char: The unshifted character as far as it is known, or ''.
        mods: Modifier bits.
        text: What the press would type without ctrl, alt and super, or ''.
    """

    base: str
    char: str
    mods: int
    text: str


@lru_cache(maxsize=512)
def parse(name: str, character: str | None) -> Key:
    """Takes a Textual key apart.

    Args:
        name: `event.key`, for example `ctrl+shift+up`, `A`, `full_stop`.
        character: `event.character`.
    """
    *prefixes, base = _ALIASES.get(name, name).split("+")
    mods = sum(_MODIFIERS.get(prefix, 0) for prefix in set(prefixes))
    typed = character if character and character.isprintable() else None
    char = base if len(base) == 1 else _SPELLED.get(base) or (typed if typed and len(typed) == 1 else _lookup(base))
    if not char:
        return Key(base, "", mods, "")
    text = typed if typed and not mods & ~SHIFT else char.upper() if mods & SHIFT else char
    lower = char.lower()
    if len(lower) == 1 and lower != char:
        return Key("", lower, mods | SHIFT, text)
    return Key("", char, mods, text)


def _lookup(base: str) -> str:
    """Returns the character of a Unicode name spelled with underscores, or ''."""
    if base.isascii() and "_" in base:
        try:
            return unicodedata.lookup(base.replace("_", " ").upper())
        except KeyError:
            return ""
    return ""
