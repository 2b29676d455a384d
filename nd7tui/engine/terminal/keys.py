"""Key presses to the bytes a terminal sends, by the modes in force.

Rule: pure; the same key and modes always give the same bytes, and a key that has no encoding gives none. Only presses
are known (the outer terminal is never asked for releases), so kitty flag 2 changes nothing.

Source: https://sw.kovidgoyal.net/kitty/keyboard-protocol/ ;
https://invisible-island.net/xterm/ctlseqs/ctlseqs.html ; https://invisible-island.net/xterm/modified-keys.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nd7tui.engine.terminal.keynames import ALT, CTRL, META, SHIFT, SUPER, Key, parse

if TYPE_CHECKING:
    from nd7tui.engine.terminal.protocol import Modes

DISAMBIGUATE, ALTERNATES, ALL_KEYS, TEXT = 1, 4, 8, 16
"""Kitty flags that change what a press sends."""

_COMMAND = ALT | CTRL | SUPER | 16 | META

_LETTER = {"up": "A", "down": "B", "right": "C", "left": "D", "kp_begin": "E", "end": "F", "home": "H",
           "f1": "P", "f2": "Q", "f3": "R", "f4": "S"}  # fmt: skip
_TILDE = {"insert": 2, "delete": 3, "pageup": 5, "pagedown": 6, "f5": 15, "f6": 17, "f7": 18, "f8": 19, "f9": 20,
          "f10": 21, "f11": 23, "f12": 24, "f13": 25, "f14": 26, "f15": 28, "f16": 29, "f17": 31, "f18": 32,
          "f19": 33, "f20": 34, "f21": 42, "f22": 43, "f23": 44, "f24": 45}  # fmt: skip
_PLAIN = {"enter": 13, "tab": 9, "backspace": 127, "escape": 27}
_KITTY = {
    **{f"f{number}": 57363 + number for number in range(13, 36)},
    "caps_lock": 57358, "scroll_lock": 57359, "num_lock": 57360, "print_screen": 57361, "pause": 57362, "menu": 57363,
    **_PLAIN,
}  # fmt: skip
_CONTROL = {" ": 0, "@": 0, "2": 0, "[": 27, "3": 27, "\\": 28, "4": 28, "]": 29, "5": 29, "^": 30, "6": 30, "~": 30,
            "_": 31, "7": 31, "/": 31, "-": 31, "?": 127, "8": 127}  # fmt: skip


def encode(name: str, character: str | None, modes: Modes) -> bytes:
    """Returns what a key press sends.

    Args:
        name: Textual's name of the key, with its modifiers.
        character: The character Textual says it types, or None.
        modes: The program's modes.

    Returns:
        The bytes; empty when the key means nothing to a terminal (a modifier alone, a key without an encoding).
    """
    key = parse(name, character)
    if not (key.base or key.char):
        return b""
    if modes.kitty & (DISAMBIGUATE | ALL_KEYS):
        return _kitty(key, modes).encode()
    return (_legacy_special(key, modes) if key.base else _legacy_char(key, modes)).encode()


# --- kitty


def _kitty(key: Key, modes: Modes) -> str:
    flags = modes.kitty
    if key.char:
        if not flags & ALL_KEYS and not key.mods & _COMMAND:
            return key.text
        return _kitty_char(key, flags)
    if key.base in _PLAIN and key.base != "escape" and not key.mods and not flags & ALL_KEYS:
        return _legacy_special(key, modes)
    if key.base in _KITTY:
        return f"\x1b[{_KITTY[key.base]}{_field(key.mods)}u"
    if key.base == "f3":  # CSI R would be a cursor report
        return f"\x1b[13{_field(key.mods)}~"
    if key.base in _LETTER:
        return f"\x1b[{'1' + _field(key.mods) if key.mods else ''}{_LETTER[key.base]}"
    return f"\x1b[{_TILDE[key.base]}{_field(key.mods)}~" if key.base in _TILDE else ""


def _kitty_char(key: Key, flags: int) -> str:
    code = str(ord(key.char))
    if flags & ALTERNATES and key.mods & SHIFT and key.text != key.char and len(key.text) == 1:
        code += f":{ord(key.text)}"
    typed = flags & ALL_KEYS and flags & TEXT and key.text and not key.mods & (_COMMAND & ~ALT)
    if typed and not key.mods & ALT:
        text = ":".join(str(ord(char)) for char in key.text)
        return f"\x1b[{code};{key.mods + 1 if key.mods else ''};{text}u"
    return f"\x1b[{code}{_field(key.mods)}u"


def _field(mods: int) -> str:
    return f";{mods + 1}" if mods else ""


# --- xterm


def _legacy_special(key: Key, modes: Modes) -> str:
    mods = key.mods & (SHIFT | ALT | CTRL | META)
    if key.base in _PLAIN:
        return _legacy_plain(key.base, mods, modes)
    if key.base in _LETTER:
        letter = _LETTER[key.base]
        if mods:
            return f"\x1b[1;{mods + 1}{letter}"
        return f"\x1bO{letter}" if key.base.startswith("f") or modes.cursor_keys else f"\x1b[{letter}"
    return f"\x1b[{_TILDE[key.base]}{_field(mods)}~" if key.base in _TILDE else ""


def _legacy_plain(base: str, mods: int, modes: Modes) -> str:
    """Enter, tab, backspace and escape, which have control characters of their own."""
    if base == "tab" and mods & ~ALT == SHIFT:
        return ("\x1b" if mods & ALT else "") + "\x1b[Z"
    if modes.modify_other_keys and mods and base != "escape" and (mods != ALT or modes.modify_other_keys == 2):
        return f"\x1b[27;{mods + 1};{_PLAIN[base]}~"
    text = {"enter": "\r\n" if modes.newline else "\r", "tab": "\t", "escape": "\x1b"}.get(base)
    if text is None:
        text = "\x08" if modes.backarrow != bool(mods & CTRL) else "\x7f"
    return "\x1b" + text if mods & (ALT | META) else text


def _legacy_char(key: Key, modes: Modes) -> str:
    mods = key.mods
    if mods & SUPER:
        return ""  # the outer desktop's; typing the letter would surprise
    if modes.modify_other_keys and mods & (CTRL | ALT | META) and _other_key(key, modes.modify_other_keys):
        return f"\x1b[27;{mods + 1};{ord(key.text if len(key.text) == 1 else key.char)}~"
    text = key.text
    if mods & CTRL:
        text = _control(key)
    return "\x1b" + text if mods & (ALT | META) else text


def _other_key(key: Key, level: int) -> bool:
    """Whether modifyOtherKeys covers it: all at level 2, at level 1 what has no well-known code."""
    if level == 2:
        return True
    return bool(key.mods & CTRL) and not ("a" <= key.char <= "z" or key.char in _CONTROL)


def _control(key: Key) -> str:
    if "a" <= key.char <= "z":
        return chr(ord(key.char) & 0x1F)
    code = _CONTROL.get(key.text if key.text in _CONTROL else key.char)
    return key.text if code is None else chr(code)
