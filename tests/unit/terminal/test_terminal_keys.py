"""What every key sends, in each keyboard mode.

The expectations are written out from the kitty protocol and xterm's documents, not taken from the encoder.
"""

from __future__ import annotations

import string

import pytest

from nd7tui.engine.terminal.keynames import CTRL, SHIFT, parse
from nd7tui.engine.terminal.keys import encode
from nd7tui.engine.terminal.protocol import Modes

ESC = b"\x1b"
LEGACY = Modes()
APPLICATION = Modes(cursor_keys=True)
OTHER = Modes(modify_other_keys=2)
OTHER1 = Modes(modify_other_keys=1)
KITTY = Modes(kitty=1)
CLAUDE = Modes(kitty=5)
CODEX = Modes(kitty=7)
ALL = Modes(kitty=1 | 8)
FULL = Modes(kitty=1 | 4 | 8 | 16)


@pytest.mark.parametrize(
    ("name", "character", "sent"),
    [
        ("a", "a", b"a"),
        ("A", "A", b"A"),
        ("é", "é", "é".encode()),
        ("中", "中", "中".encode()),
        ("space", " ", b" "),
        ("full_stop", ".", b"."),
        ("vertical_line", "|", b"|"),
        ("enter", "\r", b"\r"),
        ("tab", "\t", b"\t"),
        ("backspace", "\x7f", b"\x7f"),
        ("escape", "\x1b", ESC),
        ("shift+tab", None, b"\x1b[Z"),
        ("ctrl+a", "\x01", b"\x01"),
        ("ctrl+c", "\x03", b"\x03"),
        ("ctrl+z", "\x1a", b"\x1a"),
        ("ctrl+j", "\n", b"\n"),
        ("ctrl+i", None, b"\t"),
        ("ctrl+h", None, b"\x08"),
        ("ctrl+space", None, b"\x00"),
        ("ctrl+@", "\x00", b"\x00"),
        ("ctrl+at", None, b"\x00"),
        ("ctrl+left_square_bracket", None, ESC),
        ("ctrl+backslash", "\x1c", b"\x1c"),
        ("ctrl+right_square_bracket", "\x1d", b"\x1d"),
        ("ctrl+circumflex_accent", "\x1e", b"\x1e"),
        ("ctrl+underscore", "\x1f", b"\x1f"),
        ("ctrl+slash", None, b"\x1f"),
        ("ctrl+2", None, b"\x00"),
        ("ctrl+8", None, b"\x7f"),
        ("ctrl+1", None, b"1"),
        ("ctrl+shift+a", None, b"\x01"),
        ("ctrl+backspace", None, b"\x08"),
        ("alt+a", "a", b"\x1ba"),
        ("alt+shift+a", "A", b"\x1bA"),
        ("alt+full_stop", None, b"\x1b."),
        ("alt+enter", None, b"\x1b\r"),
        ("alt+backspace", None, b"\x1b\x7f"),
        ("alt+escape", None, b"\x1b\x1b"),
        ("alt+shift+tab", None, b"\x1b\x1b[Z"),
        ("ctrl+alt+x", None, b"\x1b\x18"),
        ("shift+enter", None, b"\r"),
        ("ctrl+enter", None, b"\r"),
        ("shift+space", " ", b" "),
        ("up", None, b"\x1b[A"),
        ("down", None, b"\x1b[B"),
        ("right", None, b"\x1b[C"),
        ("left", None, b"\x1b[D"),
        ("home", None, b"\x1b[H"),
        ("end", None, b"\x1b[F"),
        ("insert", None, b"\x1b[2~"),
        ("delete", None, b"\x1b[3~"),
        ("pageup", None, b"\x1b[5~"),
        ("pagedown", None, b"\x1b[6~"),
        ("shift+up", None, b"\x1b[1;2A"),
        ("alt+up", None, b"\x1b[1;3A"),
        ("ctrl+right", None, b"\x1b[1;5C"),
        ("ctrl+shift+left", None, b"\x1b[1;6D"),
        ("alt+ctrl+shift+end", None, b"\x1b[1;8F"),
        ("ctrl+delete", None, b"\x1b[3;5~"),
        ("shift+f5", None, b"\x1b[15;2~"),
        ("ctrl+f1", None, b"\x1b[1;5P"),
        ("decimal", ".", b"."),
        ("kp_begin", None, b"\x1b[E"),
        ("super+a", None, b""),
        ("left_shift", None, b""),
        ("caps_lock", None, b""),
        ("media_play", None, b""),
        ("ctrl+", None, b""),
        ("", None, b""),
    ],
)
def test_legacy(name, character, sent):
    assert encode(name, character, LEGACY) == sent


def test_function_keys():
    codes = ["15", "17", "18", "19", "20", "21", "23", "24", "25", "26", "28", "29", "31", "32", "33", "34"]
    assert [encode(f"f{n}", None, LEGACY) for n in range(1, 5)] == [b"\x1bOP", b"\x1bOQ", b"\x1bOR", b"\x1bOS"]
    assert [encode(f"f{n}", None, LEGACY) for n in range(5, 21)] == [f"\x1b[{code}~".encode() for code in codes]


@pytest.mark.parametrize("letter", string.ascii_lowercase)
def test_every_ctrl_letter(letter):
    assert encode(f"ctrl+{letter}", None, LEGACY) == bytes([ord(letter) - 96])
    assert encode(f"ctrl+{letter}", None, OTHER) == f"\x1b[27;5;{ord(letter)}~".encode()
    assert encode(f"ctrl+{letter}", None, CLAUDE) == f"\x1b[{ord(letter)};5u".encode()


@pytest.mark.parametrize(
    ("name", "modes", "sent"),
    [
        ("up", APPLICATION, b"\x1bOA"),
        ("home", APPLICATION, b"\x1bOH"),
        ("ctrl+up", APPLICATION, b"\x1b[1;5A"),
        ("pageup", APPLICATION, b"\x1b[5~"),
        ("up", Modes(cursor_keys=True, kitty=1), b"\x1b[A"),
        ("enter", Modes(newline=True), b"\r\n"),
        ("backspace", Modes(backarrow=True), b"\x08"),
        ("ctrl+backspace", Modes(backarrow=True), b"\x7f"),
        ("shift+enter", OTHER, b"\x1b[27;2;13~"),
        ("ctrl+i", OTHER, b"\x1b[27;5;105~"),
        ("ctrl+tab", OTHER, b"\x1b[27;5;9~"),
        ("shift+tab", OTHER, b"\x1b[Z"),
        ("ctrl+shift+a", OTHER, b"\x1b[27;6;65~"),
        ("alt+b", OTHER, b"\x1b[27;3;98~"),
        ("alt+enter", OTHER, b"\x1b[27;3;13~"),
        ("escape", OTHER, ESC),
        ("enter", OTHER, b"\r"),
        ("ctrl+1", OTHER1, b"\x1b[27;5;49~"),
        ("ctrl+c", OTHER1, b"\x03"),
        ("alt+b", OTHER1, b"\x1bb"),
        ("shift+enter", OTHER1, b"\x1b[27;2;13~"),
    ],
)
def test_by_mode(name, modes, sent):
    assert encode(name, None, modes) == sent


@pytest.mark.parametrize("modes", [KITTY, CLAUDE, CODEX])
@pytest.mark.parametrize(
    ("name", "character", "sent"),
    [
        ("a", "a", b"a"),
        ("A", "A", b"A"),
        ("enter", "\r", b"\r"),
        ("tab", "\t", b"\t"),
        ("backspace", "\x7f", b"\x7f"),
        ("escape", "\x1b", b"\x1b[27u"),
        ("shift+enter", None, b"\x1b[13;2u"),
        ("alt+enter", None, b"\x1b[13;3u"),
        ("shift+tab", None, b"\x1b[9;2u"),
        ("alt+backspace", None, b"\x1b[127;3u"),
        ("ctrl+i", None, b"\x1b[105;5u"),
        ("ctrl+space", None, b"\x1b[32;5u"),
        ("ctrl+left_square_bracket", None, b"\x1b[91;5u"),
        ("alt+b", None, b"\x1b[98;3u"),
        ("super+a", None, b"\x1b[97;9u"),
        ("up", None, b"\x1b[A"),
        ("shift+up", None, b"\x1b[1;2A"),
        ("f1", None, b"\x1b[P"),
        ("f3", None, b"\x1b[13~"),
        ("ctrl+f3", None, b"\x1b[13;5~"),
        ("f12", None, b"\x1b[24~"),
        ("f13", None, b"\x1b[57376u"),
        ("delete", None, b"\x1b[3~"),
        ("left_control", None, b""),
    ],
)
def test_kitty_disambiguate(modes, name, character, sent):
    assert encode(name, character, modes) == sent


@pytest.mark.parametrize(
    ("name", "character", "modes", "sent"),
    [
        ("ctrl+shift+a", None, KITTY, b"\x1b[97;6u"),
        ("ctrl+shift+a", None, CLAUDE, b"\x1b[97:65;6u"),
        ("a", "a", ALL, b"\x1b[97u"),
        ("A", "A", ALL, b"\x1b[97;2u"),
        ("enter", "\r", ALL, b"\x1b[13u"),
        ("tab", "\t", ALL, b"\x1b[9u"),
        ("a", "a", FULL, b"\x1b[97;;97u"),
        ("A", "A", FULL, b"\x1b[97:65;2;65u"),
        ("é", "é", FULL, b"\x1b[233;;233u"),
        ("ctrl+a", None, FULL, b"\x1b[97;5u"),
        ("alt+a", None, FULL, b"\x1b[97;3u"),
    ],
)
def test_kitty_more(name, character, modes, sent):
    assert encode(name, character, modes) == sent


def test_names_come_apart():
    assert parse("ctrl+shift+a", None)[1:3] == ("a", CTRL | SHIFT)
    assert parse("A", "A")[1:] == ("a", SHIFT, "A")
    assert parse("ctrl+plus", None).char == "+"
    assert parse("pageup", None).base == "pageup"
    assert parse("latin_small_letter_sharp_s", "ß").text == "ß"
