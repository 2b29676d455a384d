"""The list of what was refused, and what became of it.

Rule: it never takes the focus by itself, and its cursor stays on the same denial when others arrive. It shows what
`DenialBook` derives; it decides nothing (the session screen does).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from nd7tui.widgets.denial_rows import one_line, two_lines
from nd7tui.widgets.denials import DenialBook, DenialRow, State, can_widen, widened
from nd7tui.widgets.row_view import RowView

if TYPE_CHECKING:
    from nd7tui.widgets.cells import Row
    from nd7tui.widgets.denials import Key

TWO_LINES_UNDER = 64
TWO_LINES_FROM_HEIGHT = 8


class DenialList(RowView):
    """Rows of a `DenialBook`.

    Attributes:
        book: What is shown.
        show_noise: Known noise too.
        in_use: The person is in the list: its cursor stays on its denial.
        level: How many directories up the next grant goes.
        home: The home directory, to write `~`.
    """

    DEFAULT_CSS = "DenialList { border-top: solid $primary; &:focus { border-top: heavy $accent; } }"

    def __init__(self, book: DenialBook, home: str = "", *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.book = book
        self.home = home
        self.show_noise = False
        self.level = 0
        self.in_use = False
        self._key: Key | None = None
        self._rows: list[DenialRow] = []
        self._cursor_since = 0

    def row_count(self) -> int:
        """Returns the number of rows; one when there are none, to say so."""
        return max(1, len(self._rows))

    def row_parts(self, index: int, width: int) -> list[Row]:
        """Paints one denial."""
        if not self._rows:
            hidden = self.book.hidden
            return [[("  nothing was refused" + (f" ({hidden} of known noise hidden)" if hidden else ""), "dim")]]
        row, now = self._rows[index], time.time_ns()
        state = self.book.state(row, now)
        if self.row_height == 1:
            return [one_line(row, state, now, width, self.home)]
        return two_lines(row, state, now, width, self.home)

    def reload(self) -> None:
        """Reads the book again; the cursor stays on its denial."""
        self._rows = self.book.rows(noise=self.show_noise)
        keys = [row.key for row in self._rows]
        size = self.size
        self.row_height = 2 if size.width < TWO_LINES_UNDER and size.height >= TWO_LINES_FROM_HEIGHT else 1
        if not self.in_use and self.cursor:
            # Nobody is choosing: the newest stays on view.
            self.set_reactive(RowView.cursor, 0)
            self._note()
            self.scroll_to(y=0, animate=False, force=True, immediate=True)
        elif self.in_use and self._key in keys:
            self.set_reactive(RowView.cursor, keys.index(self._key))
        else:
            self.level = 0
            if self.cursor >= len(keys):
                self.set_reactive(RowView.cursor, max(0, len(keys) - 1))
            self._note()
        self.border_title = self._title()
        self.rows_changed()

    def on_resize(self) -> None:
        """Chooses one or two lines a row."""
        self.reload()

    def on_focus(self) -> None:
        """Begins at the newest unread denial."""
        newest = self.book.newest()
        if newest is not None:
            self.select(newest)

    def select(self, row: DenialRow) -> None:
        """Puts the cursor on a denial."""
        keys = [shown.key for shown in self._rows]
        if row.key in keys:
            self.move(keys.index(row.key))
            self._note()

    def watch_cursor(self, old: int, new: int) -> None:
        """Remembers which denial the cursor is on, and since when."""
        self._note()
        super().watch_cursor(old, new)

    def _note(self) -> None:
        key = self._rows[self.cursor].key if self.cursor < len(self._rows) else None
        if key != self._key:
            self._key, self.level, self._cursor_since = key, 0, time.time_ns()

    @property
    def current(self) -> DenialRow | None:
        """The denial under the cursor."""
        return self.book.row(self._key)

    @property
    def target(self) -> bytes:
        """What the next grant covers."""
        row = self.current
        return b"" if row is None else widened(row.raw, self.level)

    def widen(self, step: int) -> None:
        """Makes the next grant cover one directory more or less."""
        row = self.current
        if row is not None and (step < 0 or can_widen(row, self.level)):
            self.level = max(0, self.level + step)
            self.border_title = self._title()

    def asks(self) -> int:
        """Returns how many callers wait for an answer."""
        now = time.time_ns()
        return sum(self.book.state(row, now) is State.ASK for row in self._rows if row.ask_id)

    def _title(self) -> str:
        unread = self.book.unread
        text = f"denials {len(self._rows)}" + (f", {unread} unread" if unread else "")
        return text + (f", {asks} asked" if (asks := self.asks()) else "")
