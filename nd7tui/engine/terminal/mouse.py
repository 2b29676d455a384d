"""Mouse events to the bytes a terminal sends, by the modes in force.

Rule: pure; an event the program did not ask for gives no bytes.

Source: https://invisible-island.net/xterm/ctlseqs/ctlseqs.html (Mouse Tracking). UTF-8 (1005) and urxvt (1015)
encodings are obsolete and ambiguous; a program that asks only for those gets the legacy one, which ends at column 223.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from nd7tui.engine.terminal.protocol import CELL_PIXELS, MouseFormat, MouseMode

if TYPE_CHECKING:
    from nd7tui.engine.terminal.protocol import Modes

_LEGACY_LIMIT = 223
_SHIFT, _META, _CTRL, _MOTION = 4, 8, 16, 32


class Kind(enum.Enum):
    """What the mouse did."""

    PRESS = "press"
    RELEASE = "release"
    MOVE = "move"


class Button(enum.IntEnum):
    """A button by its code in the report; NONE is a move without one."""

    LEFT = 0
    MIDDLE = 1
    RIGHT = 2
    NONE = 3
    WHEEL_UP = 64
    WHEEL_DOWN = 65
    WHEEL_LEFT = 66
    WHEEL_RIGHT = 67


def wanted(kind: Kind, button: Button, mode: MouseMode) -> bool:
    """Returns whether the program asked for such events."""
    if mode == MouseMode.OFF:
        return False
    if kind is Kind.MOVE:
        return mode == MouseMode.ANY or (mode == MouseMode.BUTTON and button is not Button.NONE)
    return kind is Kind.PRESS or mode != MouseMode.X10


def encode(
    kind: Kind,
    button: Button,
    col: int,
    row: int,
    modes: Modes,
    *,
    shift: bool = False,
    meta: bool = False,
    ctrl: bool = False,
) -> bytes:
    """Returns what a mouse event sends; empty when it is not wanted or cannot be said.

    Args:
        kind: What happened.
        button: Which button, for MOVE the one held down.
        col: Cells from the left, from 0.
        row: Cells from the top, from 0.
        modes: The program's modes.
        shift: Shift is down.
        meta: Alt or meta is down.
        ctrl: Control is down.
    """
    if col < 0 or row < 0 or not wanted(kind, button, modes.mouse):
        return b""
    code = int(button) + (_MOTION if kind is Kind.MOVE else 0)
    if modes.mouse != MouseMode.X10:
        code += _SHIFT * shift + _META * meta + _CTRL * ctrl
    if modes.mouse_format in {MouseFormat.SGR, MouseFormat.SGR_PIXELS}:
        x, y = (col + 1, row + 1) if modes.mouse_format == MouseFormat.SGR else _pixels(col, row)
        return f"\x1b[<{code};{x};{y}{'m' if kind is Kind.RELEASE else 'M'}".encode()
    if kind is Kind.RELEASE:
        code = code & ~3 | Button.NONE
    if max(col, row) >= _LEGACY_LIMIT:
        return b""
    return b"\x1b[M" + bytes((32 + code, 33 + col, 33 + row))


def _pixels(col: int, row: int) -> tuple[int, int]:
    """The middle of the cell, from 1."""
    width, height = CELL_PIXELS
    return col * width + width // 2 + 1, row * height + height // 2 + 1
