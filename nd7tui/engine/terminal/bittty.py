"""The engine over bittty 0.3.0, pure Python: runs where pyghostty has no wheel, some forty times slower.

Rule: only the board is used, as data. Its own pty, process and keyboard code never runs.

Owns the board, a cable that catches its replies and the history, which bittty leaves to its display.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from nd7tui.engine.terminal.cells import cell_text
from nd7tui.engine.terminal.protocol import (
    PLAIN,
    Bell,
    ClipboardWrite,
    Color,
    Cursor,
    Event,
    Modes,
    MouseFormat,
    MouseMode,
    Notify,
    Reply,
    Row,
    Run,
    Scroll,
    Shape,
    Style,
    Title,
    Underline,
)
from nd7tui.engine.terminal.replies import CLIPBOARD_LIMIT, XTVERSION, allowed, plain_text

_MOUSE_MODES = {"x10": MouseMode.X10, "normal": MouseMode.NORMAL, "button": MouseMode.BUTTON, "any": MouseMode.ANY}
_MOUSE_FORMATS = {
    "utf8": MouseFormat.UTF8,
    "sgr": MouseFormat.SGR,
    "urxvt": MouseFormat.URXVT,
    "sgr-pixels": MouseFormat.SGR_PIXELS,
}
_UNDERLINES = {
    None: Underline.SINGLE,
    "double": Underline.DOUBLE,
    "curly": Underline.CURLY,
    "dotted": Underline.DOTTED,
    "dashed": Underline.DASHED,
}


class BitttyEngine:
    """A terminal of bittty; see `protocol.Engine`."""

    name = "bittty"

    def __init__(self, cols: int, rows: int, scrollback: int = 10_000) -> None:
        """Makes an emulator.

        Args:
            cols: Width in cells.
            rows: Height in cells.
            scrollback: Lines of history kept, counted at 200 cells a line.

        Raises:
            ImportError: bittty is not installed.
        """
        import bittty
        from bittty.terminals.scrollback import MemoryScrollback

        self._board: Any = bittty.Board(width=cols, height=rows, model=bittty.BITTTY)
        self._history: Any = MemoryScrollback(scrollback * 200)
        self._events: list[Event] = []
        self._offset = self._held = 0
        self._seen: Any = None
        self.title = ""
        self.rows: list[Row] = []
        self._board.host.connection = _Cable(self._events_append)
        self._board.attach_display(_Display(self))
        self._board.modes.set_grapheme_capability("permanently-set")

    # --- what the board says

    def _events_append(self, data: bytes) -> None:
        answer = allowed(data)
        if answer.startswith(b"\x1bP>|"):
            answer = b"\x1bP>|" + XTVERSION + b"\x1b\\"
        if answer:
            self._events.append(Reply(answer))

    def present(self, event: Any) -> None:
        """Takes one present event of the board, by its class's name."""
        match type(event).__name__:
            case "Bell":
                self._events.append(Bell())
            case "TitleChanged":
                self.title = plain_text(event.title)
                self._events.append(Title(self.title))
            case "ClipboardChanged" if len(event.text) <= CLIPBOARD_LIMIT:
                self._events.append(ClipboardWrite(event.text))
            case "Notification" if not event.text.startswith("4;"):  # OSC 9;4 is a progress bar
                self._events.append(Notify("", plain_text(event.text)))
            case "RowsScrolledOff":
                self._keep(event.lines)
            case "ScrollbackCleared":
                self._history.clear()

    def _keep(self, lines: Any) -> None:
        from bittty.terminals.scrollback import ScrollbackLine

        before = len(self._history.width(self.size[0])) if self._offset else 0
        for line in lines:
            self._history.append(ScrollbackLine.of(line.cells, not line.wrapped, line.attribute), line.wrapped)
        if self._offset:  # the view stays on the lines it shows
            self._offset += max(0, len(self._history.width(self.size[0])) - before)

    # --- Engine

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        return int(self._board.width), int(self._board.height)

    @property
    def cursor(self) -> Cursor:
        """The cursor."""
        board = self._board
        row = int(board.cursor.y) + self.scroll.offset
        visible = bool(board.modes.cursor_visible) and row < board.height
        col = min(int(board.cursor.display_x), board.width - 1)
        return Cursor(row, col, visible, Shape(board.cursor.shape), bool(board.modes.cursor_blinking))

    @property
    def modes(self) -> Modes:
        """The modes in force."""
        board, modes = self._board, self._board.modes
        return Modes(
            alternate=board.blitter.in_alt_screen,
            cursor_keys=modes.cursor_application_mode,
            keypad=not modes.numeric_keypad,
            backarrow=modes.backarrow_key_sends_bs,
            newline=modes.linefeed_newline_mode,
            mouse=_MOUSE_MODES.get(board.mouse.protocol.value, MouseMode.OFF),
            mouse_format=_MOUSE_FORMATS.get(board.mouse.encoding.value, MouseFormat.LEGACY),
            alternate_scroll=modes.alternate_scroll_mode,
            focus=modes.focus_reporting,
            bracketed_paste=modes.bracketed_paste,
            sync=modes.synchronized_output,
            kitty=int(board.keyboard.kitty_flags),
            modify_other_keys=int(board.keyboard.modify_other_keys),
        )

    @property
    def scroll(self) -> Scroll:
        """Where the view stands in the history."""
        above = 0 if self._board.blitter.in_alt_screen else len(self._history.width(self.size[0]))
        return Scroll(above, min(self._offset, above))

    def feed(self, data: bytes) -> None:
        """Takes the next bytes of output."""
        self._board.feed_host_data(data)

    def resize(self, cols: int, rows: int) -> None:
        """Takes a new size."""
        self._board.resize(max(1, cols), max(1, rows))
        self._seen = None

    def take_dirty(self) -> list[int]:
        """Reads the rows that changed."""
        cols, rows = self.size
        view, (above, offset) = self._history.width(cols), self.scroll
        page = self._board.display.page
        key = (id(page), cols, rows, offset, above if offset else 0, self._board.modes.reverse_screen)
        fresh = self._seen is None or self._seen[1] != key or len(self.rows) != rows
        stale = range(rows) if fresh else page.dirty_rows(self._seen[0])
        self._seen = (page.observe(), key)
        if len(self.rows) != rows:
            self.rows = [()] * rows
        changed = []
        for y in stale:
            cells = view[above - offset + y] if y < offset else page.grid[y - offset]
            row = _row(cells, cols)
            if row != self.rows[y]:
                self.rows[y] = row
                changed.append(y)
        return changed

    def row(self, y: int) -> Row:
        """Returns row `y` on view."""
        return self.rows[y]

    def scroll_to(self, offset: int) -> None:
        """Shows the history `offset` rows up."""
        self._offset = max(0, min(offset, self.scroll.above))

    def set_colors(self, fg: tuple[int, int, int], bg: tuple[int, int, int]) -> None:
        """Says what the default colours look like."""
        self._board.palette.foreground, self._board.palette.background = fg, bg

    def drain(self) -> list[Event]:
        """Returns the waiting events."""
        events, self._events = self._events, []
        return events

    def close(self) -> None:
        """Lets the board go."""
        self._board.detach_display()


class _Cable:
    """Stands in for bittty's pty: what the board writes to the program ends in `sink`."""

    closed = False

    def __init__(self, sink: Any) -> None:
        self._sink = sink

    def write(self, data: str) -> int:
        return self.write_bytes(data.encode(errors="replace"))

    def write_bytes(self, data: bytes) -> int:
        self._sink(data)
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""

    def resize(self, rows: int, cols: int) -> None:
        """The pane sizes the pty."""


class _Display:
    """Stands in for bittty's chrome."""

    keeps_scrollback = True

    def __init__(self, engine: BitttyEngine) -> None:
        self._engine = engine

    def present(self, event: Any) -> None:
        self._engine.present(event)


@lru_cache(maxsize=4096)
def _style(style: Any) -> Style:
    return Style(
        fg=_color(style.fg),
        bg=_color(style.bg),
        bold=bool(style.bold),
        dim=bool(style.dim),
        italic=bool(style.italic),
        underline=_UNDERLINES[style.underline_style] if style.underline else Underline.NONE,
        underline_color=_color(style.underline_color),
        blink=bool(style.blink),
        reverse=bool(style.reverse),
        conceal=bool(style.conceal),
        strike=bool(style.strike),
        overline=bool(style.overline),
        link=style.hyperlink if style.hyperlink and style.hyperlink.isprintable() else None,
    )


def _color(color: Any) -> Color:
    return None if color is None or color.mode == "default" else color.value


_safe = lru_cache(maxsize=4096)(cell_text)


def _row(cells: Any, cols: int) -> Row:
    """Joins cells of equal style; a wide character's second cell holds no text."""
    runs: list[Run] = []
    texts: list[str] = []
    last, start, count = None, 0, min(len(cells), cols)
    for x in range(count):
        style, char = cells[x]
        if style is not last and style != last:
            if texts:
                runs.append(Run("".join(texts), x - start, _style(last)))
            texts, start = [], x
        last = style
        texts.append(_safe(str(char)) if char else "")
    if texts:
        runs.append(Run("".join(texts), count - start, _style(last)))
    if count < cols:
        runs.append(Run(" " * (cols - count), cols - count, PLAIN))
    return tuple(runs)
