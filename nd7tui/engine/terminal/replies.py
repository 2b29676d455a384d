"""Which of an emulator's answers reach the program, and how program text is made safe to show.

Rule: the pane answers only what it can do. An emulator core that says OK to a kitty graphics query would make the
program send pictures that are never drawn, so every APC answer is dropped; the clipboard is never read out to the
program. Pure.

Owns the identity the pane reports (`XTVERSION`). Does not parse the program's output; the cores swallow APC, PM, SOS
and DCS themselves, which the terminal cases check.
"""

from __future__ import annotations

import re

XTVERSION = b"nd7tui 0.1"
"""Answer to `CSI > q`. Source: https://invisible-island.net/xterm/ctlseqs/ctlseqs.html (XTVERSION)."""

TEXT_LIMIT = 4096
"""Longest title or notification kept, in characters."""

CLIPBOARD_LIMIT = 1 << 20
"""Longest OSC 52 text offered to the person, in bytes; longer ones are dropped whole."""

_APC = re.compile(rb"\x1b_[^\x1b]*(?:\x1b\\|$)", re.DOTALL)
_OSC52 = re.compile(rb"\x1b\]52;[^\x07\x1b]*(?:\x07|\x1b\\|$)", re.DOTALL)
_CONTROLS = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0)))
_BIDI = dict.fromkeys((0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)))
_UNSAFE = _CONTROLS | _BIDI


def allowed(reply: bytes) -> bytes:
    r"""Returns what of an emulator's reply may be written to the program.

    Kitty graphics answers (`ESC _ G … ESC \\`) and clipboard contents (OSC 52) are taken out.
    """
    if b"\x1b_" in reply:
        reply = _APC.sub(b"", reply)
    if b"\x1b]52" in reply:
        reply = _OSC52.sub(b"", reply)
    return reply


def plain_text(text: str, limit: int = TEXT_LIMIT) -> str:
    """Returns program text without control and bidirectional override characters, at most `limit` characters."""
    return text[: limit * 2].translate(_UNSAFE)[:limit]


def is_dark(background: tuple[int, int, int]) -> bool:
    """Returns whether a background is dark, by its luma.

    Source: ITU-R BT.601.
    """
    red, green, blue = background
    return 299 * red + 587 * green + 114 * blue < 128_000


def color_scheme(background: tuple[int, int, int]) -> bytes:
    """Returns the report of dark (1) or light (2) that programs with mode 2031 get when it changes.

    Source: https://contour-terminal.org/vt-extensions/color-palette-update-notifications/
    """
    return b"\x1b[?997;%dn" % (1 if is_dark(background) else 2)
