"""Pastes towards the program, and the guard on the way in."""

from __future__ import annotations

from nd7tui.engine.terminal.paste import Guard, clean, encode

START, END = "\x1b[200~", "\x1b[201~"


def test_brackets():
    assert encode("a\nb", bracketed=True) == b"\x1b[200~a\nb\x1b[201~"


def test_without_brackets_line_ends_are_enter():
    assert encode("a\r\nb\nc\rd", bracketed=False) == b"a\rb\rc\rd"


def test_a_paste_cannot_end_its_brackets_or_press_keys():
    sent = encode("x\x1b[201~rm -rf\r\x03\x04\x9b201~y\x7f", bracketed=True)
    assert sent == b"\x1b[200~x [201~rm -rf\r   201~y \x1b[201~"
    assert sent.count(b"\x1b") == 2


def test_clean_keeps_text():
    assert clean("tab\tünï\n中") == "tab\tünï\n中"


def test_the_guard_takes_esc_out_of_pastes_only():
    guard = Guard()
    assert guard.feed(f"\x1b[A{START}a\x1b[31mb\x1b{END}\x1b[B") == f"\x1b[A{START}a[31mb{END}\x1b[B"


def test_the_guard_passes_keys_at_once():
    guard = Guard()
    assert guard.feed("\x1b") == "\x1b"
    assert guard.feed("[20") == "[20"
    assert guard.feed("0~x\x1b") == "0~x"
    assert guard.feed("[201") == ""
    assert guard.feed("~y") == f"{END}y"


def test_the_guard_lets_a_broken_end_go():
    guard = Guard()
    assert guard.feed(f"{START}a\x1b[20") == f"{START}a"
    assert guard.feed(f"x{END}") == f"[20x{END}"


def test_brackets_in_brackets():
    assert Guard().feed(f"{START}a{START}b{END}c") == f"{START}a[200~b{END}c"
