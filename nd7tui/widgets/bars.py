"""One-line bars: status, key hints, notices; every key in them can be clicked.

Rule: text comes in parts with a role and maybe an action; markup is never parsed. A bar that is too narrow loses its
end, so what must be seen comes first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from textual.content import Content
from textual.style import Style
from textual.widget import Widget

from nd7tui.widgets.cells import clean, cut, width

if TYPE_CHECKING:
    from collections.abc import Sequence

_STYLES = {
    "": "$foreground",
    "dim": "$text-muted",
    "strong": "bold $foreground",
    "accent": "$text-accent",
    "key": "bold $text-accent",
    "ok": "$text-success",
    "warn": "bold $text-warning",
    "bad": "bold $text-error",
}


class Piece(NamedTuple):
    """A piece of a bar.

    Attributes:
        text: What it says.
        role: What it means.
        action: Id of the action a click performs, or "".
    """

    text: str
    role: str = ""
    action: str = ""


class Bar(Widget):
    """One line of pieces."""

    DEFAULT_CSS = """
    Bar { height: 1; width: 1fr; background: $panel; color: $foreground; }
    Bar.-notice { background: $warning-muted; }
    """

    auto_links = False

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._pieces: list[Piece] = []

    @property
    def text(self) -> str:
        """What the bar says, whole."""
        return "".join(piece.text for piece in self._pieces)

    def show(self, pieces: Sequence[Piece]) -> None:
        """Shows these pieces."""
        cleaned = [Piece(clean(piece.text), piece.role, piece.action) for piece in pieces]
        if cleaned != self._pieces:
            self._pieces = cleaned
            self.refresh()

    def render(self) -> Content:
        """Returns the line, cut to the width there is."""
        left = self.size.width
        parts: list[tuple[str, Style]] = []
        for piece in self._pieces:
            text = cut(piece.text, left)
            left -= width(text)
            parts.append((text, self._style_of(piece)))
            if left <= 0:
                break
        return Content.assemble(*parts)

    def _style_of(self, piece: Piece) -> Style:
        style = Style.parse(_STYLES[piece.role])
        if piece.action:
            style += Style.from_meta({"@click": f"app.perform('{piece.action}')"})
        return style
