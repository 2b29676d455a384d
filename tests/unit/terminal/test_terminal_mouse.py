"""What mouse events send, by tracking mode and encoding."""

from __future__ import annotations

import pytest

from nd7tui.engine.terminal.mouse import Button, Kind, encode
from nd7tui.engine.terminal.protocol import Modes, MouseFormat, MouseMode

P, R, M = Kind.PRESS, Kind.RELEASE, Kind.MOVE
LEFT, RIGHT, NONE, UP = Button.LEFT, Button.RIGHT, Button.NONE, Button.WHEEL_UP


def modes(mode, form=MouseFormat.SGR):
    return Modes(mouse=mode, mouse_format=form)


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [
        (MouseMode.OFF, []),
        (MouseMode.X10, [(P, LEFT), (P, UP)]),
        (MouseMode.NORMAL, [(P, LEFT), (R, LEFT), (P, UP)]),
        (MouseMode.BUTTON, [(P, LEFT), (R, LEFT), (M, LEFT), (P, UP)]),
        (MouseMode.ANY, [(P, LEFT), (R, LEFT), (M, LEFT), (M, NONE), (P, UP)]),
    ],
)
def test_which_events_are_sent(mode, wanted):
    every = [(P, LEFT), (R, LEFT), (M, LEFT), (M, NONE), (P, UP)]
    assert [event for event in every if encode(*event, 0, 0, modes(mode))] == wanted


@pytest.mark.parametrize(
    ("kind", "button", "keys", "sent"),
    [
        (P, LEFT, {}, b"\x1b[<0;5;3M"),
        (R, LEFT, {}, b"\x1b[<0;5;3m"),
        (P, RIGHT, {}, b"\x1b[<2;5;3M"),
        (P, UP, {}, b"\x1b[<64;5;3M"),
        (M, LEFT, {}, b"\x1b[<32;5;3M"),
        (M, NONE, {}, b"\x1b[<35;5;3M"),
        (P, LEFT, {"shift": True}, b"\x1b[<4;5;3M"),
        (P, LEFT, {"meta": True}, b"\x1b[<8;5;3M"),
        (P, LEFT, {"ctrl": True}, b"\x1b[<16;5;3M"),
        (P, LEFT, {"shift": True, "meta": True, "ctrl": True}, b"\x1b[<28;5;3M"),
    ],
)
def test_sgr(kind, button, keys, sent):
    assert encode(kind, button, 4, 2, modes(MouseMode.ANY), **keys) == sent


@pytest.mark.parametrize("form", [MouseFormat.LEGACY, MouseFormat.UTF8, MouseFormat.URXVT])
def test_legacy(form):
    assert encode(P, LEFT, 4, 2, modes(MouseMode.NORMAL, form)) == b"\x1b[M %#"
    assert encode(R, LEFT, 4, 2, modes(MouseMode.NORMAL, form)) == b"\x1b[M#%#"
    assert encode(P, UP, 222, 222, modes(MouseMode.NORMAL, form)) == b"\x1b[M`\xff\xff"
    assert encode(P, LEFT, 223, 0, modes(MouseMode.NORMAL, form)) == b""


def test_x10_has_no_modifiers():
    assert encode(P, LEFT, 0, 0, modes(MouseMode.X10, MouseFormat.LEGACY), ctrl=True) == b"\x1b[M !!"


def test_pixels_are_the_middle_of_the_cell():
    assert encode(P, LEFT, 1, 1, modes(MouseMode.NORMAL, MouseFormat.SGR_PIXELS)) == b"\x1b[<0;13;25M"


def test_outside_is_nothing():
    assert encode(P, LEFT, -1, 0, modes(MouseMode.ANY)) == b""
