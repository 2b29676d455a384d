"""Any chunking gives the same screen; no bytes raise; encoders are total."""

from __future__ import annotations

import itertools
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nd7tui.engine.terminal import keys, mouse, paste
from nd7tui.engine.terminal.cells import cell_text
from nd7tui.engine.terminal.choose import ENGINES, make
from nd7tui.engine.terminal.protocol import Engine, Modes, MouseFormat, MouseMode
from nd7tui.engine.terminal.replies import allowed, plain_text

CAPTURES = sorted((Path(__file__).parents[2] / "captures").glob("*.raw"))
START, END = "\x1b[200~", "\x1b[201~"

modes = st.builds(
    Modes,
    alternate=st.booleans(), cursor_keys=st.booleans(), backarrow=st.booleans(), newline=st.booleans(),
    mouse=st.sampled_from(MouseMode), mouse_format=st.sampled_from(MouseFormat),
    kitty=st.integers(0, 31), modify_other_keys=st.integers(0, 2),
)  # fmt: skip


def size_of(capture: Path) -> tuple[int, int]:
    cols, rows = capture.name.split("-")[1].split("x")
    return int(cols), int(rows)


def state(engine: Engine) -> tuple[object, ...]:
    """Everything a person or the encoders can see."""
    engine.take_dirty()
    rows = tuple(engine.row(y) for y in range(engine.size[1]))
    return rows, engine.cursor, engine.modes, engine.title, engine.scroll


def replay(name: str, capture: Path, cuts: list[int]) -> tuple[object, ...]:
    data = capture.read_bytes()
    places = sorted({0, len(data), *(cut % len(data) for cut in cuts)})
    engine = make(name, *size_of(capture))
    for start, end in itertools.pairwise(places):
        engine.feed(data[start:end])
    said = b"".join(event.data for event in engine.drain() if hasattr(event, "data"))
    result = (*state(engine), said)
    engine.close()
    return result


@lru_cache
def whole(name: str, capture: Path) -> tuple[object, ...]:
    return replay(name, capture, [])


@pytest.mark.parametrize("capture", CAPTURES, ids=[path.stem for path in CAPTURES])
@settings(max_examples=15, deadline=None)
@given(cuts=st.lists(st.integers(0, 1 << 20), max_size=200))
def test_any_chunking_gives_the_same_screen(capture, cuts):
    assert replay("ghostty", capture, cuts) == whole("ghostty", capture)


@pytest.mark.parametrize("capture", CAPTURES, ids=[path.stem for path in CAPTURES])
@settings(max_examples=3, deadline=None)
@given(cuts=st.lists(st.integers(0, 1 << 20), max_size=200))
def test_any_chunking_gives_the_same_screen_in_pure_python(capture, cuts):
    assert replay("bittty", capture, cuts) == whole("bittty", capture)


@pytest.mark.parametrize("capture", CAPTURES, ids=[path.stem for path in CAPTURES])
def test_byte_by_byte(capture):
    assert replay("ghostty", capture, list(range(len(capture.read_bytes())))) == whole("ghostty", capture)


@pytest.mark.parametrize("capture", CAPTURES, ids=[path.stem for path in CAPTURES])
def test_reading_in_between_changes_nothing(capture):
    """Dirty rows add up: a screen read after every piece is the one read at the end."""
    data, (cols, rows) = capture.read_bytes(), size_of(capture)
    engine = make("ghostty", cols, rows)
    kept: dict[int, object] = {}
    for start in range(0, len(data), 997):
        engine.feed(data[start : start + 997])
        kept |= {y: engine.row(y) for y in engine.take_dirty()}
    assert tuple(kept[y] for y in range(rows)) == whole("ghostty", capture)[0]
    engine.close()


@pytest.mark.parametrize("capture", CAPTURES, ids=[path.stem for path in CAPTURES])
def test_both_engines_show_the_same_text(capture):
    def text(name: str) -> list[str]:
        return ["".join(run.text for run in row).rstrip() for row in whole(name, capture)[0]]

    assert text("ghostty") == text("bittty")


def check_rows(engine: Engine) -> None:
    cols, rows = engine.size
    engine.take_dirty()
    for y in range(rows):
        row = engine.row(y)
        assert sum(run.width for run in row) == cols
        assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for run in row for char in run.text)


PIECES = st.one_of(
    st.binary(max_size=40),
    st.text(max_size=20).map(lambda text: text.encode(errors="replace")),
    st.builds(
        lambda intro, params, final: intro + params + final,
        st.sampled_from(b"\x1b[ \x1b[? \x1b[> \x1b[= \x1b] \x1bP \x1b_ \x1b^ \x1b \x9b".split(b" ")),
        st.lists(st.integers(0, 99999), max_size=4).map(lambda values: b";".join(str(v).encode() for v in values)),
        st.sampled_from([bytes([code]) for code in range(0x40, 0x7F)] + [b"\x07", b"\x1b\\", b" q", b"$p", b"!p"]),
    ),
)


@pytest.mark.parametrize("name", ENGINES)
@settings(max_examples=150, deadline=None)
@given(
    pieces=st.lists(PIECES, max_size=25),
    sizes=st.lists(st.tuples(st.integers(1, 60), st.integers(1, 20)), max_size=2),
    offset=st.integers(0, 5),
)
def test_no_output_raises(name, pieces, sizes, offset):
    engine = make(name, 20, 5)
    for index, piece in enumerate(pieces):
        engine.feed(piece)
        if index < len(sizes):
            engine.resize(*sizes[index])
        if index % 5 == 0:
            check_rows(engine)
    engine.scroll_to(offset)
    check_rows(engine)
    assert engine.modes is not None
    assert engine.cursor.row >= 0
    assert engine.title.isprintable()
    engine.drain()
    engine.close()


@given(
    name=st.one_of(
        st.text(max_size=12), st.lists(st.sampled_from(["ctrl", "alt", "shift", "up", "f5", "a", "+"])).map("+".join)
    ),
    character=st.one_of(st.none(), st.characters()),
    modes=modes,
)
def test_every_key_has_an_encoding_or_none(name, character, modes):
    assert isinstance(keys.encode(name, character, modes), bytes)


@given(character=st.characters(exclude_categories=["C", "Z"]), modes=modes)
def test_a_typed_character_is_sent_as_itself_unless_all_keys_are_wanted(character, modes):
    if not modes.kitty & 8 and len(character.lower()) == 1:
        assert keys.encode(character, character, modes).decode() == character


@given(
    kind=st.sampled_from(mouse.Kind), button=st.sampled_from(mouse.Button), col=st.integers(-2, 500),
    row=st.integers(-2, 500), modes=modes, flags=st.tuples(st.booleans(), st.booleans(), st.booleans()),
)  # fmt: skip
def test_every_mouse_event_has_an_encoding_or_none(*, kind, button, col, row, modes, flags):
    sent = mouse.encode(kind, button, col, row, modes, shift=flags[0], meta=flags[1], ctrl=flags[2])
    assert sent == b"" or sent.startswith((b"\x1b[<", b"\x1b[M"))


@given(st.text())
def test_a_bracketed_paste_has_two_escapes(text):
    sent = paste.encode(text, bracketed=True)
    assert sent.startswith(START.encode())
    assert sent.endswith(END.encode())
    assert sent.count(b"\x1b") == 2
    assert b"\x1b" not in paste.encode(text, bracketed=False)


loose = st.text(st.sampled_from("\x1b[201~x\r"), max_size=30)


@given(st.lists(st.one_of(loose, st.just(START), st.just(END)), max_size=8).map("".join), st.data())
def test_the_guard_at_any_chunking(text, data):
    whole_guard, cut_guard = paste.Guard(), paste.Guard()
    expected, got = whole_guard.feed(text), ""
    while text:
        size = data.draw(st.integers(1, len(text)))
        got += cut_guard.feed(text[:size])
        text = text[size:]
    assert got == expected


@given(loose.filter(lambda text: END not in text))
def test_a_guarded_paste_holds_no_escape(inside):
    passed = paste.Guard().feed(START + inside + END)
    assert passed == START + inside.replace("\x1b", "") + END


without_escape = st.binary().map(lambda data: data.replace(b"\x1b", b""))


@given(without_escape, without_escape, without_escape)
def test_pictures_are_cut_out_of_any_reply(before, picture, after):
    assert allowed(before + b"\x1b_G" + picture + b"\x1b\\" + after) == before + after


@given(st.text())
def test_shown_text_is_safe(text):
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in plain_text(text))
    if text:
        assert cell_text(text[0])
