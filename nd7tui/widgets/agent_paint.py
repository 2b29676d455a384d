"""Rows of the terminal to Textual strips.

Rule: a strip is exactly as wide as the pane. Where Rich measures a run differently from the engine, the run is cut or
filled to the engine's width, so that nothing to its right moves. Blinking is not shown. Only web links are passed on.

Owns the cache of styles. Knows neither pty nor engine.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style as RichStyle
from textual.geometry import Region
from textual.strip import Strip

from nd7tui.engine.terminal.protocol import PLAIN, Color, Row, Style, Underline

if TYPE_CHECKING:
    from collections.abc import Iterable

_LINKS = ("https://", "http://")


@lru_cache(maxsize=8192)
def rich_style(style: Style) -> RichStyle:
    """Returns a style of the engine as Rich's; default colours stay unset."""
    link = style.link if style.link and style.link.startswith(_LINKS) else None
    return RichStyle(
        color=_color(style.fg),
        bgcolor=_color(style.bg),
        bold=style.bold or None,
        dim=style.dim or None,
        italic=style.italic or None,
        underline=(style.underline not in {Underline.NONE, Underline.DOUBLE}) or None,
        underline2=style.underline == Underline.DOUBLE or None,
        reverse=style.reverse or None,
        conceal=style.conceal or None,
        strike=style.strike or None,
        overline=style.overline or None,
        link=link,
    )


def _color(color: Color) -> RichColor | None:
    if color is None:
        return None
    return RichColor.from_ansi(color) if isinstance(color, int) else RichColor.from_rgb(*color)


def strip_of(row: Row, width: int, base: RichStyle) -> Strip:
    """Returns one row as a strip.

    Args:
        row: The row.
        width: Cells of the pane; the row is cut or filled to it.
        base: The pane's own colours, under the row's.
    """
    strip = Strip(list(_segments(row, base)), sum(run.width for run in row))
    return strip if strip.cell_length == width else strip.adjust_cell_length(width, base)


def _segments(row: Row, base: RichStyle) -> Iterable[Segment]:
    for text, width, style in row:
        fits = (len(text) == width and text.isascii()) or cell_len(text) == width
        yield Segment(
            text if fits else set_cell_size(text, width), base if style is PLAIN else base + rich_style(style)
        )


def cell_width(row: Row, col: int) -> int:
    """Returns how many cells the character at `col` takes: 2 under a wide one, else 1."""
    for text, width, _style in row:
        if col >= width:
            col -= width
            continue
        if text.isascii():
            return 1
        for char in text:
            size = cell_len(char)
            if col < size:
                return max(1, size)
            col -= size
        return 1
    return 1


def overlay(strip: Strip, start: int, end: int, style: RichStyle) -> Strip:
    """Returns the strip with `style` over the cells from `start` up to `end`."""
    width = strip.cell_length
    start, end = max(0, min(start, width)), max(0, min(end, width))
    if start >= end:
        return strip
    middle = strip.crop(start, end)
    painted = Strip([Segment(text, _over(under, style)) for text, under, _ in middle], end - start)
    return Strip.join([strip.crop(0, start), painted, strip.crop(end, width)])


def _over(under: RichStyle | None, style: RichStyle) -> RichStyle:
    """Lays a style over another; reverse on reverse is seen, so it turns back."""
    if under is None:
        return style
    if style.reverse and under.reverse:
        return under + style + RichStyle(reverse=False)
    return under + style


def label(strip: Strip, text: str, style: RichStyle) -> Strip:
    """Returns the strip with `text` over its right end."""
    start = max(0, strip.cell_length - len(text))
    sign = Strip([Segment(text, style)], len(text))
    return Strip.join([strip.crop(0, start), sign]).adjust_cell_length(strip.cell_length)


def regions(rows: list[int], width: int) -> Iterable[Region]:
    """Yields rows as regions, neighbours joined; the compositor takes its time by the region."""
    start = previous = -1
    for y in rows:
        if y != previous + 1 or start < 0:
            if start >= 0:
                yield Region(0, start, width, previous - start + 1)
            start = y
        previous = y
    if start >= 0:
        yield Region(0, start, width, previous - start + 1)
