"""A list that paints only the lines on view, however long it is.

Rule: rows are `(text, role)` lists made on demand by `row_parts`; nothing is parsed as markup and nothing is laid out
that is not seen, so a hundred thousand rows cost what forty do.

Owns: cursor, scrolling, following the end, painting roles. Knows nothing of what the rows mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from nd7tui.widgets.cells import ROLES, Row, fit

if TYPE_CHECKING:
    from textual import events

WHEEL_ROWS = 3


class RowView(ScrollView, can_focus=True):
    """A list of rows of one height, with a cursor.

    Attributes:
        cursor: The row under the cursor.
        row_height: Lines a row takes.
        follow: The end stays on view as rows are added, until the cursor leaves it.
        has_cursor: Whether a row is marked (plain text has no cursor: keys scroll).
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"row--{role}" for role in ROLES), "row--cursor", "row--cursor-blurred",
    }  # fmt: skip

    DEFAULT_CSS = """
    RowView {
        background: $background;
        color: $foreground;
        scrollbar-size-vertical: 1;
        scrollbar-gutter: stable;
        overflow-x: hidden;
        overflow-y: auto;
        & > .row--dim { color: $text-muted; }
        & > .row--strong { text-style: bold; }
        & > .row--accent { color: $text-accent; }
        & > .row--ok { color: $text-success; }
        & > .row--warn { color: $text-warning; text-style: bold; }
        & > .row--bad { color: $text-error; text-style: bold; }
        & > .row--cursor { background: $primary 45%; text-style: bold; }
        & > .row--cursor-blurred { background: $surface; }
    }
    """

    cursor: reactive[int] = reactive(0)
    row_height = 1
    has_cursor = True

    @dataclass
    class Chosen(Message):
        """A row was clicked twice, or clicked while it was under the cursor."""

        view: RowView
        index: int

    @dataclass
    class Moved(Message):
        """The cursor is on another row."""

        view: RowView
        index: int

    def __init__(self, *, follow: bool = False, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self.follow = follow
        self._styles: dict[str, Style] = {}

    # --- what a subclass says

    def row_count(self) -> int:
        """Returns how many rows there are."""
        return 0

    def row_parts(self, index: int, width: int) -> list[Row]:
        """Returns the lines of one row (`row_height` of them), for `width` cells."""
        raise NotImplementedError

    # --- state

    def rows_changed(self) -> None:
        """Says that rows came, went or changed."""
        count = self.row_count()
        self.virtual_size = Size(self.scrollable_content_region.width, count * self.row_height)
        if self.follow and count:
            self.cursor = count - 1
            self._show_cursor()
        elif self.cursor >= count:
            self.cursor = max(0, count - 1)
        self.refresh()

    def move(self, to: int) -> None:
        """Puts the cursor on row `to`, as near as there is, and shows it."""
        last = self.row_count() - 1
        self.cursor = max(0, min(to, last))
        if self.follow_allowed:
            self.follow = self.cursor == last
        self._show_cursor()

    follow_allowed = False

    def watch_cursor(self, old: int, new: int) -> None:
        """Repaints both rows and tells."""
        if old != new:
            self.refresh()
            self.post_message(self.Moved(self, new))

    def _show_cursor(self) -> None:
        height = self.row_height
        self.scroll_to_region(
            Region(0, self.cursor * height, 1, height), animate=False, force=True, immediate=True, x_axis=False
        )

    @property
    def page(self) -> int:
        """Rows on view."""
        return max(1, self.scrollable_content_region.height // self.row_height)

    # --- keys and mouse

    def on_key(self, event: events.Key) -> None:
        """Moves the cursor, or the view when there is none."""
        steps = {"up": -1, "down": 1, "pageup": -self.page, "pagedown": self.page}
        here = self.cursor if self.has_cursor else self.scroll_offset.y
        if event.key in steps:
            self._go(here + steps[event.key])
        elif event.key == "home":
            self._go(0)
        elif event.key == "end":
            self._go(self.row_count())
        else:
            return
        event.stop()
        event.prevent_default()

    def _go(self, to: int) -> None:
        if self.has_cursor:
            self.move(to)
        else:
            self.scroll_to(y=to, animate=False, force=True, immediate=True)

    def on_click(self, event: events.Click) -> None:
        """Moves the cursor to the row; on the row under the cursor, chooses it."""
        if not self.has_cursor:
            return
        offset = event.get_content_offset(self)
        if offset is None:
            return
        index = (offset.y + self.scroll_offset.y) // self.row_height
        if not 0 <= index < self.row_count():
            return
        if event.chain > 1:
            self.post_message(self.Chosen(self, index))
        else:
            self.move(index)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scrolls; a list that follows its end stops doing so."""
        event.stop()
        self.follow = False
        self.scroll_to(y=self.scroll_offset.y - WHEEL_ROWS, animate=False, force=True)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scrolls."""
        event.stop()
        self.scroll_to(y=self.scroll_offset.y + WHEEL_ROWS, animate=False, force=True)

    def on_resize(self) -> None:
        """Fits the rows into the new width."""
        self.rows_changed()
        if self.has_cursor:
            self.call_after_refresh(self._show_cursor)

    # --- painting

    def notify_style_update(self) -> None:
        """Forgets the styles of the old theme."""
        super().notify_style_update()
        self._styles.clear()

    def _style(self, role: str, *, cursor: bool) -> Style:
        name = f"{role}/{cursor}/{self.has_focus}"
        if name not in self._styles:
            style = self.get_component_rich_style(f"row--{role}") if role else self.rich_style
            if cursor:
                marked = self.get_component_rich_style("row--cursor" if self.has_focus else "row--cursor-blurred")
                style += Style(bgcolor=marked.bgcolor, bold=marked.bold)
            self._styles[name] = style
        return self._styles[name]

    def render_line(self, y: int) -> Strip:
        """Paints one line of the view."""
        width = self.scrollable_content_region.width
        index, line = divmod(y + self.scroll_offset.y, self.row_height)
        if index >= self.row_count():
            return Strip.blank(width, self.rich_style)
        marked = self.has_cursor and index == self.cursor
        lines = self.row_parts(index, width)
        parts = fit(lines[line] if line < len(lines) else [], width)
        return Strip([Segment(text, self._style(role, cursor=marked)) for text, role in parts], width)


class TextView(RowView):
    """Plain text in lines, scrolled by keys; long lines are folded by whoever sets them."""

    has_cursor = False

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._lines: list[Row] = []

    def show(self, lines: list[Row]) -> None:
        """Shows these lines from the top."""
        self._lines = lines
        self.rows_changed()
        self.scroll_to(y=0, animate=False, force=True, immediate=True)

    @property
    def lines(self) -> list[Row]:
        """What is shown."""
        return self._lines

    def row_count(self) -> int:
        """Returns the number of lines."""
        return len(self._lines)

    def row_parts(self, index: int, width: int) -> list[Row]:
        """Returns one line."""
        del width
        return [self._lines[index]]
