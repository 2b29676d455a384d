"""What both engines owe the pane beyond the shared cases."""

from __future__ import annotations

import builtins

import pytest

from nd7tui.engine.terminal import choose as choosing
from nd7tui.engine.terminal.choose import ENGINES, choose, make
from nd7tui.engine.terminal.errors import EngineMissingError
from nd7tui.engine.terminal.protocol import (
    PLAIN,
    Bell,
    ClipboardWrite,
    MouseFormat,
    MouseMode,
    Notify,
    Reply,
    Shape,
    Style,
    Title,
    Underline,
)
from nd7tui.engine.terminal.replies import color_scheme


@pytest.fixture(params=ENGINES)
def engine(request):
    engine = make(request.param, 20, 5)
    yield engine
    engine.close()


def shown(engine):
    engine.take_dirty()
    return ["".join(run.text for run in engine.row(y)).rstrip() for y in range(engine.size[1])]


def test_rows_are_exactly_as_wide_as_the_screen(engine):
    engine.feed("中文 a\x1b[44m\x1b[K\r\n\x1b[31mé".encode())
    engine.take_dirty()
    assert [sum(run.width for run in engine.row(y)) for y in range(5)] == [20] * 5


def test_only_changed_rows_are_dirty(engine):
    assert engine.take_dirty() == [0, 1, 2, 3, 4]
    assert engine.take_dirty() == []
    engine.feed(b"\x1b[3;1Hx")
    assert 2 in engine.take_dirty()
    engine.feed(b"\x1b[3;1Hx")
    assert engine.take_dirty() == []


def test_styles(engine):
    engine.feed(
        b"\x1b[1;3;4:3;7;9;38;2;1;2;3;48;5;200;58;2;9;8;7mA\x1b[m\x1b[2;53;21;95mB\x1b[m\x1b[5;8mC\x1b[m"
        b"\x1b]8;;https://e.x\x1b\\D\x1b]8;;\x1b\\"
    )
    engine.take_dirty()
    a, b, c, d, rest = engine.row(0)
    assert a.style == Style(
        fg=(1, 2, 3), bg=200, bold=True, italic=True, underline=Underline.CURLY, underline_color=(9, 8, 7),
        reverse=True, strike=True,
    )  # fmt: skip
    assert b.style == Style(fg=13, dim=True, overline=True, underline=Underline.DOUBLE)
    assert c.style == Style(blink=True, conceal=True)
    assert d.style == Style(link="https://e.x")
    assert rest.style == PLAIN


def test_links_next_to_each_other_stay_apart(engine):
    engine.feed(b"\x1b]8;;http://a\x07A\x1b]8;;http://b\x07B\x1b]8;;\x07C")
    engine.take_dirty()
    assert [(run.text.strip(), run.style.link) for run in engine.row(0)] == [
        ("A", "http://a"), ("B", "http://b"), ("C", None)
    ]  # fmt: skip


def test_no_control_character_reaches_a_cell(engine):
    engine.feed("a\x7fb\u009bc\u202ed\u200be".encode())
    assert all(not char.isprintable() or ord(char) >= 32 for line in shown(engine) for char in line)
    assert not any("\x7f" <= char <= "\x9f" or char == "\u202e" for char in shown(engine)[0])


def test_cursor(engine):
    engine.feed(b"ab\r\ncd")
    engine.take_dirty()
    assert engine.cursor[:3] == (1, 2, True)
    engine.feed(b"\x1b[?25l\x1b[5 q")
    engine.take_dirty()
    assert not engine.cursor.visible
    assert engine.cursor.shape is Shape.BAR
    engine.feed(b"\x1b[4 q")
    engine.take_dirty()
    assert engine.cursor.shape is Shape.UNDERLINE


@pytest.mark.parametrize(
    ("sequence", "field", "value"),
    [
        (b"\x1b[?1049h", "alternate", True),
        (b"\x1b[?1h", "cursor_keys", True),
        (b"\x1b=", "keypad", True),
        (b"\x1b[?67h", "backarrow", True),
        (b"\x1b[20h", "newline", True),
        (b"\x1b[?1000h", "mouse", MouseMode.NORMAL),
        (b"\x1b[?1002h", "mouse", MouseMode.BUTTON),
        (b"\x1b[?1003h", "mouse", MouseMode.ANY),
        (b"\x1b[?9h", "mouse", MouseMode.X10),
        (b"\x1b[?1006h", "mouse_format", MouseFormat.SGR),
        (b"\x1b[?1016h", "mouse_format", MouseFormat.SGR_PIXELS),
        (b"\x1b[?1004h", "focus", True),
        (b"\x1b[?2004h", "bracketed_paste", True),
        (b"\x1b[?2026h", "sync", True),
        (b"\x1b[>5u", "kitty", 5),
        (b"\x1b[>1u\x1b[>7u\x1b[<u", "kitty", 1),
        (b"\x1b[>4;2m", "modify_other_keys", 2),
        (b"\x1b[>4;2m\x1b[>4m", "modify_other_keys", 0),
    ],
)
def test_modes(engine, sequence, field, value):
    before = getattr(engine.modes, field)
    engine.feed(sequence)
    assert getattr(engine.modes, field) == value
    engine.feed(b"\x1bc")
    assert getattr(engine.modes, field) == before


def test_events(engine):
    engine.feed(b"\x07\x1b]2;T\x01i\x07\x1b]52;c;aGk=\x07\x1b]9;note\x07\x1b]777;notify;head;body\x07")
    events = [event for event in engine.drain() if not isinstance(event, Reply)]
    assert events[:4] == [Bell(), Title("Ti"), ClipboardWrite("hi"), Notify("", "note")]
    assert isinstance(events[4], Notify)
    assert "body" in events[4].body
    assert engine.drain() == []


def test_progress_is_no_notification(engine):
    engine.feed(b"\x1b]9;4;1;50\x07\x1b]9;4;0\x07")
    assert engine.drain() == []


def test_pictures_get_no_answer(engine):
    engine.feed(b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\")
    engine.feed(b"\x1b_Gi=32,s=1,v=1,a=T,t=f,f=24;L2V0Yy9wYXNzd2Q=\x1b\\")
    assert engine.drain() == []
    assert shown(engine)[0] == ""


def test_the_clipboard_is_never_read_out(engine):
    engine.feed(b"\x1b]52;c;aGk=\x07\x1b]52;c;?\x07")
    assert not any(isinstance(event, Reply) and event.data for event in engine.drain())


def test_colour_queries_tell_the_panes_colours(engine):
    engine.set_colors((1, 2, 3), (4, 5, 6))
    engine.feed(b"\x1b]10;?\x07\x1b]11;?\x07")
    assert b"".join(event.data for event in engine.drain()) == (
        b"\x1b]10;rgb:0101/0202/0303\x07\x1b]11;rgb:0404/0505/0606\x07"
    )


def test_dark_or_light_is_told():
    engine = make("ghostty", 20, 5)
    for background, report in (((10, 10, 10), b"\x1b[?997;1n"), ((250, 250, 250), b"\x1b[?997;2n")):
        engine.set_colors((128, 128, 128), background)
        engine.feed(b"\x1b[?996n")
        assert engine.drain() == [Reply(report)]
        assert color_scheme(background) == report
    engine.close()


def test_xtversion_names_the_pane(engine):
    engine.feed(b"\x1b[>0q")
    assert engine.drain() == [Reply(b"\x1bP>|nd7tui 0.1\x1b\\")]


def test_history(engine):
    for number in range(30):
        engine.feed(f"line {number}\r\n".encode())
    assert engine.scroll == (26, 0)
    engine.scroll_to(3)
    assert shown(engine) == [f"line {n}" for n in range(23, 28)]
    assert not engine.cursor.visible
    engine.feed(b"more\r\n")  # the view stays on what it shows
    assert engine.scroll == (27, 4)
    assert shown(engine) == [f"line {n}" for n in range(23, 28)]
    engine.scroll_to(10_000)
    assert shown(engine)[0] == "line 0"
    engine.scroll_to(0)
    assert shown(engine)[-2:] == ["more", ""]
    assert engine.cursor[:3] == (4, 0, True)


def test_the_alternate_screen_has_no_history(engine):
    for number in range(30):
        engine.feed(f"line {number}\r\n".encode())
    engine.feed(b"\x1b[?1049h")
    engine.scroll_to(5)
    assert engine.scroll.offset == 0


def test_resize(engine):
    engine.feed(b"hello world")
    engine.resize(30, 8)
    assert engine.size == (30, 8)
    assert shown(engine)[0] == "hello world"
    assert len(engine.take_dirty()) == 0
    engine.resize(5, 3)
    engine.resize(1, 1)
    assert len(shown(engine)) == 1


def test_wide_unicode_is_on_and_comes_back(engine):
    for sequence in (b"", b"\x1bc", b"\x1b[?2027l"):
        engine.feed(sequence)
        engine.take_dirty()
        engine.feed("\x1b[2J\x1b[H👩\u200d💻|".encode())
        engine.take_dirty()
        assert engine.cursor.col == 3, sequence


# --- which engine


def test_the_first_choice_needs_no_words():
    choice = choose(10, 3)
    assert (choice.engine.name, choice.notice) == ("ghostty", None)
    choice.engine.close()


def test_the_fallback_says_why(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("pyghostty"):
            raise ImportError("no wheel")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    choice = choose(10, 3)
    assert choice.engine.name == "bittty"
    assert choice.notice == "terminal engine is bittty (ghostty: no wheel)"


def test_no_engine_at_all(monkeypatch):
    def fail(name, _cols, _rows):
        raise OSError(f"no {name}")

    monkeypatch.setattr(choosing, "make", fail)
    with pytest.raises(EngineMissingError) as caught:
        choose(10, 3)
    assert [name for name, _ in caught.value.tried] == list(ENGINES)
    assert "pip install" in (caught.value.hint or "")
