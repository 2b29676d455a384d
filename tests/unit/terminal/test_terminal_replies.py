"""Which replies reach the program, and what program text may be shown."""

from __future__ import annotations

import pytest

from nd7tui.engine.terminal.cells import cell_text
from nd7tui.engine.terminal.environment import terminal_environment
from nd7tui.engine.terminal.replies import allowed, plain_text


def test_picture_answers_are_dropped():
    assert allowed(b"\x1b_Gi=31;OK\x1b\\") == b""
    assert allowed(b"\x1b[0n\x1b_Gi=31;OK\x1b\\\x1b[?62c") == b"\x1b[0n\x1b[?62c"


def test_the_clipboard_is_not_read_out():
    assert allowed(b"\x1b]52;c;c2VjcmV0\x07\x1b[0n") == b"\x1b[0n"
    assert allowed(b"\x1b]52;c;c2VjcmV0\x1b\\") == b""


def test_other_answers_pass():
    assert allowed(b"\x1bP>|x\x1b\\\x1b]11;rgb:0/0/0\x07") == b"\x1bP>|x\x1b\\\x1b]11;rgb:0/0/0\x07"


def test_plain_text():
    assert plain_text("a\x1b[31m\x07\u202eb\x9bc\n") == "a[31mbc"
    assert len(plain_text("x" * 10_000)) == 4096


@pytest.mark.parametrize(
    ("cell", "shown"),
    [("a", "a"), ("中", "中"), ("e\u0301", "e\u0301"), ("\x1b", "\ufffd"), ("\x9b", "\ufffd"), ("\u202e", "\ufffd"),
     ("a\u202e", "a"), ("\u0301", " \u0301"), ("\ue0b0", "\ue0b0"), ("👩\u200d💻", "👩\u200d💻"), ("\ud800", "\ufffd")],
)  # fmt: skip
def test_cell_text(cell, shown):
    assert cell_text(cell) == shown


def test_the_program_hears_of_our_terminal_only():
    env = terminal_environment({"TMUX": "x", "KITTY_PID": "1", "TERM": "screen", "PATH": "/bin", "LINES": "3"})
    assert env == {"PATH": "/bin", "TERM": "xterm-256color", "COLORTERM": "truecolor"}
