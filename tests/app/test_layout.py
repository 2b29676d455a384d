"""The session screen's layout, by drawing it."""

from __future__ import annotations

import pytest

from nd7tui.screens.layout import LEAST, Part, Shape, draw, plan


def letters(drawing):
    """The drawing with runs shortened: one line a distinct line, with how often it comes."""
    out = []
    for line in drawing.splitlines():
        short, last = [], ""
        for char in line:
            if char == last:
                short[-1] = (char, short[-1][1] + 1)
            else:
                short.append((char, 1))
                last = char
        text = " ".join(f"{char}{count}" for char, count in short)
        if out and out[-1][0] == text:
            out[-1] = (text, out[-1][1] + 1)
        else:
            out.append((text, 1))
    return [f"{count} x {text}" for text, count in out]


def picture(width, height, **options):
    return letters(draw(plan(width, height, **options), width, height))


def test_wide():
    assert picture(120, 40) == ["19 x P80 D40", "19 x P80 L40", "1 x S120", "1 x K120"]
    assert picture(200, 60) == ["29 x P124 D76", "29 x P124 L76", "1 x S200", "1 x K200"]


def test_stacked():
    assert picture(80, 24) == ["17 x P80", "5 x D48 L32", "1 x S80", "1 x K80"]
    assert picture(119, 40) == ["29 x P119", "9 x D71 L48", "1 x S119", "1 x K119"]


def test_stacked_gives_room_to_the_list_in_use():
    assert picture(80, 24, focus=Part.DENIALS) == ["11 x P80", "11 x D48 L32", "1 x S80", "1 x K80"]
    assert picture(80, 24, focus=Part.LOG) == ["11 x P80", "11 x D32 L48", "1 x S80", "1 x K80"]


def test_narrow_and_short():
    assert picture(40, 10) == ["6 x P40", "2 x D40", "1 x S40", "1 x K40"]
    assert picture(60, 24) == ["18 x P60", "4 x D60", "1 x S60", "1 x K60"]
    assert picture(100, 12) == ["8 x P100", "2 x D100", "1 x S100", "1 x K100"]
    assert picture(60, 24, focus=Part.LOG) == ["18 x L60", "4 x D60", "1 x S60", "1 x K60"]
    assert picture(60, 24, focus=Part.DENIALS) == ["8 x P60", "14 x D60", "1 x S60", "1 x K60"]


def test_zoom_keeps_the_status():
    assert picture(120, 40, zoom=True) == ["38 x P120", "1 x S120", "1 x K120"]


def test_notice_is_on_top():
    assert picture(80, 24, notice=True)[0] == "1 x N80"


def test_watched():
    assert picture(120, 40, pane=False) == ["38 x D60 L60", "1 x S120", "1 x K120"]
    assert picture(80, 24, pane=False) == ["11 x D80", "11 x L80", "1 x S80", "1 x K80"]


@pytest.mark.parametrize("size", [(0, 0), (20, 5), (39, 100), (200, 9)])
def test_too_small(size):
    assert plan(*size).shape is Shape.TOO_SMALL


@pytest.mark.parametrize("pane", [True, False])
@pytest.mark.parametrize("notice", [True, False])
@pytest.mark.parametrize("focus", [Part.PANE, Part.DENIALS, Part.LOG])
def test_every_size_is_filled_without_overlap_and_shows_denials_and_status(pane, notice, focus):
    for width in range(LEAST[0], 210, 7):
        for height in range(LEAST[1], 80, 3):
            wanted = plan(width, height, pane=pane, notice=notice, focus=focus)
            assert "." not in draw(wanted, width, height)
            assert {Part.STATUS, Part.HINTS, Part.DENIALS} <= set(wanted.boxes)
            assert all(box.width > 0 and box.height > 0 for box in wanted.boxes.values()), (width, height)
            assert wanted.boxes[Part.DENIALS].height >= 2
