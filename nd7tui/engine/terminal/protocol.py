"""What the rest of nd7tui may ask of a terminal emulator.

Rule: an engine is fed the program's bytes and is then only read; it never touches a file, a clock or the pty. What it
wants to say (replies, bell, title, clipboard, notification) waits in `drain()`, so whoever owns the pty decides what
becomes of it. Rows are immutable values: an unchanged row is the same value.

Owns the vocabulary: `Style`, `Run`, `Row`, `Cursor`, `Modes` and the events. Proves nothing about what the program
meant: every text here comes from the program and is untrusted.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple, Protocol

Color = int | tuple[int, int, int] | None
"""A palette index 0..255, an (r, g, b) triple, or None for the pane's default."""


CELL_PIXELS = (8, 16)
"""Width and height of a cell told to programs that ask, in pixels; nothing here draws pixels."""


class Underline(enum.IntEnum):
    """How a cell is underlined (SGR 4:n).

    Source: https://sw.kovidgoyal.net/kitty/underlines/
    """

    NONE = 0
    SINGLE = 1
    DOUBLE = 2
    CURLY = 3
    DOTTED = 4
    DASHED = 5


@dataclass(frozen=True, slots=True)
class Style:
    """How the cells of a run look. Reverse is not applied to the colours; the painter does that."""

    fg: Color = None
    bg: Color = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: Underline = Underline.NONE
    underline_color: Color = None
    blink: bool = False
    reverse: bool = False
    conceal: bool = False
    strike: bool = False
    overline: bool = False
    link: str | None = None


PLAIN = Style()


class Run(NamedTuple):
    """Neighbouring cells of one style.

    Attributes:
        text: Printable text only; blank cells are spaces. A wide character counts once here.
        width: Cells covered.
        style: Their style.
    """

    text: str
    width: int
    style: Style


Row = tuple[Run, ...]
"""One line of the screen, exactly as many cells as the screen has columns."""


class Shape(enum.StrEnum):
    """The cursor's shape (DECSCUSR)."""

    BLOCK = "block"
    UNDERLINE = "underline"
    BAR = "bar"


class Cursor(NamedTuple):
    """Where the cursor stands, in cells from the top left of the rows on view.

    `visible` is False when the program hid it (DECTCEM) or when it is outside the rows on view.
    """

    row: int
    col: int
    visible: bool
    shape: Shape = Shape.BLOCK
    blink: bool = False


class MouseMode(enum.IntEnum):
    """Which mouse events the program asked for, by DEC private mode number."""

    OFF = 0
    X10 = 9
    NORMAL = 1000
    BUTTON = 1002
    ANY = 1003


class MouseFormat(enum.IntEnum):
    """How mouse events are written, by DEC private mode number; LEGACY is the default."""

    LEGACY = 0
    UTF8 = 1005
    SGR = 1006
    URXVT = 1015
    SGR_PIXELS = 1016


@dataclass(frozen=True, slots=True)
class Modes:
    """The modes of the program that decide how input is encoded and when to paint.

    Attributes:
        alternate: The alternate screen is shown.
        cursor_keys: DECCKM, application cursor keys.
        keypad: DECNKM, application keypad.
        backarrow: DECBKM, backspace sends BS instead of DEL.
        newline: LNM, enter sends CR LF.
        mouse: Mouse events wanted.
        mouse_format: Their encoding.
        alternate_scroll: Wheel sends cursor keys on the alternate screen (1007).
        focus: Focus reports wanted (1004).
        bracketed_paste: Mode 2004.
        sync: A synchronised update is open (2026).
        color_scheme: Reports of dark or light wanted (2031).
        kitty: Kitty keyboard flags in force.
        modify_other_keys: XTMODKEYS resource 4: 0, 1 or 2.
    """

    alternate: bool = False
    cursor_keys: bool = False
    keypad: bool = False
    backarrow: bool = False
    newline: bool = False
    mouse: MouseMode = MouseMode.OFF
    mouse_format: MouseFormat = MouseFormat.LEGACY
    alternate_scroll: bool = True
    focus: bool = False
    bracketed_paste: bool = False
    sync: bool = False
    color_scheme: bool = False
    kitty: int = 0
    modify_other_keys: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """Bytes that answer a query of the program; to be written to the pty."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Bell:
    """BEL outside a string."""


@dataclass(frozen=True, slots=True)
class Title:
    """OSC 0 or 2 set the title."""

    text: str


@dataclass(frozen=True, slots=True)
class ClipboardWrite:
    """OSC 52 wants text on the clipboard. Nothing is written until a person says so."""

    text: str


@dataclass(frozen=True, slots=True)
class Notify:
    """OSC 9 or 777 asks for a desktop notification."""

    title: str
    body: str


Event = Reply | Bell | Title | ClipboardWrite | Notify


class Scroll(NamedTuple):
    """Where the view stands in the history, in rows.

    Attributes:
        above: Rows of history above the screen.
        offset: Rows the view is scrolled up; 0 shows the live screen.
    """

    above: int
    offset: int


class Engine(Protocol):
    """A headless terminal. Not thread-safe; one owner calls it."""

    name: str

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows, in cells."""

    @property
    def title(self) -> str:
        """The title last set, control characters removed."""

    @property
    def cursor(self) -> Cursor:
        """The cursor as of the last `take_dirty()`."""

    @property
    def modes(self) -> Modes:
        """The modes as of the last `feed()`."""

    @property
    def scroll(self) -> Scroll:
        """Where the view stands in the history."""

    def feed(self, data: bytes) -> None:
        """Takes the next bytes of the program's output, cut anywhere. Never raises for what they say."""

    def resize(self, cols: int, rows: int) -> None:
        """Takes a new size in cells, each at least 1."""

    def take_dirty(self) -> list[int]:
        """Reads the screen anew and returns the rows on view that changed since the last call."""

    def row(self, y: int) -> Row:
        """Returns row `y` on view, as of the last `take_dirty()`."""

    def scroll_to(self, offset: int) -> None:
        """Shows the history `offset` rows up (clamped); 0 returns to the live screen."""

    def set_colors(self, fg: tuple[int, int, int], bg: tuple[int, int, int]) -> None:
        """Says what the default colours look like, for queries of them and of dark or light."""

    def drain(self) -> list[Event]:
        """Returns what the engine has to say since the last call, oldest first."""

    def close(self) -> None:
        """Frees the emulator. The engine must not be used afterwards."""
