"""Reads the rows of a libghostty-vt render state, only those that changed.

Rule: a row is read whole, as the packed 64-bit cells the core keeps, and turned into runs here; one call a cell would
cost ten times as much. The packing is the library's private layout, so it is compared with the library's own accessor
on known cells when the first reader is made, and a mismatch refuses the engine rather than showing a wrong screen.

Source: ghostty src/terminal/page.zig `Cell` (packed struct: 2 bits tag, 24 content, 16 style, 2 wide, 1 protected,
1 hyperlink), as of the commit pyghostty 0.1.3 bundles.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from nd7tui.engine.terminal.cells import cell_text
from nd7tui.engine.terminal.protocol import PLAIN, Color, Row, Run, Style, Underline

_STYLE_SHIFT, _WIDE_SHIFT = 26, 42
_LINK = 1 << 45
_STYLE_BITS = 0xFFFF << _STYLE_SHIFT
_LAYOUT = (("CONTENT_TAG", 0, 3), ("CODEPOINT", 2, 0x1FFFFF), ("STYLE_ID", _STYLE_SHIFT, 0xFFFF),
           ("WIDE", _WIDE_SHIFT, 3), ("HAS_HYPERLINK", 45, 1))  # fmt: skip
_LOOK = _STYLE_BITS | _LINK
_CACHE_LIMIT = 1 << 14
_LINK_LIMIT = 2048
_TAIL = 2


class RowReader:
    """Keeps the rows on view of one terminal.

    Attributes:
        rows: The rows as of the last `update()`.
    """

    def __init__(self, ffi_module: Any, terminal: Any) -> None:
        self._ffi, self._lib, self._terminal = ffi_module.ffi, ffi_module.lib, terminal
        ffi, check = self._ffi, ffi_module.check
        self._state = ffi.new("GhosttyRenderState*")
        self._iterator = ffi.new("GhosttyRenderStateRowIterator*")
        self._cells = ffi.new("GhosttyRenderStateRowCells*")
        check(self._lib.ghostty_render_state_new(ffi.NULL, self._state), "render_state_new")
        check(self._lib.ghostty_render_state_row_iterator_new(ffi.NULL, self._iterator), "row_iterator_new")
        check(self._lib.ghostty_render_state_row_cells_new(ffi.NULL, self._cells), "row_cells_new")
        self._grid_ref = ffi_module.union_fn(
            "ghostty_terminal_grid_ref", "GhosttyResult(*)(GhosttyTerminal, GhosttyPointS, GhosttyGridRef*)"
        )
        self._view, self._y = ffi.new("GhosttyCellsView*"), ffi.new("uint16_t*")
        self._style, self._cursor = ffi.new("GhosttyStyle*"), ffi.new("GhosttyRenderStateCursor*")
        self._style.size, self._cursor.size = ffi.sizeof("GhosttyStyle"), ffi.sizeof("GhosttyRenderStateCursor")
        self._clean = ffi.new("int*", self._lib.GHOSTTY_RENDER_STATE_DIRTY_FALSE)
        self._dirty = ffi.new("bool*", False)  # a C initialiser
        self._chars: dict[int, str] = {}
        self._styles: dict[bytes, Style] = {}
        self.rows: list[Row] = []

    def update(self) -> list[int]:
        """Brings `rows` up to date and returns the numbers of those that changed."""
        lib, state = self._lib, self._state[0]
        lib.ghostty_render_state_update(state, self._terminal)
        lib.ghostty_render_state_get(state, lib.GHOSTTY_RENDER_STATE_DATA_ROWS, self._y)
        changed = self._fit(self._y[0])
        lib.ghostty_render_state_get(state, lib.GHOSTTY_RENDER_STATE_DATA_ROW_ITERATOR, self._iterator)
        iterator, y = self._iterator[0], self._y
        while lib.ghostty_render_state_row_iterator_next_dirty(iterator, y):
            row = self._read(iterator, y[0])
            if y[0] < len(self.rows) and row != self.rows[y[0]]:
                self.rows[y[0]] = row
                changed.add(y[0])
            lib.ghostty_render_state_row_set(iterator, lib.GHOSTTY_RENDER_STATE_ROW_OPTION_DIRTY, self._dirty)
        lib.ghostty_render_state_set(state, lib.GHOSTTY_RENDER_STATE_OPTION_DIRTY, self._clean)
        return sorted(changed)

    def cursor(self) -> Any:
        """Returns the `GhosttyRenderStateCursor` of the last update."""
        self._lib.ghostty_render_state_get(self._state[0], self._lib.GHOSTTY_RENDER_STATE_DATA_CURSOR, self._cursor)
        return self._cursor

    def close(self) -> None:
        """Frees the native memory."""
        self._lib.ghostty_render_state_row_cells_free(self._cells[0])
        self._lib.ghostty_render_state_row_iterator_free(self._iterator[0])
        self._lib.ghostty_render_state_free(self._state[0])

    def _fit(self, count: int) -> set[int]:
        """Makes `rows` `count` long; all of them changed if it was not."""
        if len(self.rows) == count:
            return set()
        self.rows = [()] * count
        return set(range(count))

    def _read(self, iterator: Any, y: int) -> Row:
        lib = self._lib
        lib.ghostty_render_state_row_get(iterator, lib.GHOSTTY_RENDER_STATE_ROW_DATA_CELLS_RAW, self._view)
        cells: list[int] = self._ffi.unpack(self._view.ptr, self._view.len)
        if len(set(cells)) == 1 and not cells[0]:
            return (Run(" " * len(cells), len(cells), PLAIN),)
        lib.ghostty_render_state_row_get(iterator, lib.GHOSTTY_RENDER_STATE_ROW_DATA_CELLS, self._cells)
        return tuple(self._runs(cells, y))

    def _runs(self, cells: list[int], y: int) -> list[Run]:
        """Splits the cells where the look changes."""
        runs: list[Run] = []
        chars, texts = self._chars, list[str]()
        style, look, start = PLAIN, -1, 0
        looks: dict[int, Style] = {}
        for x, cell in enumerate(cells):
            # A cell of tag 2 or 3 keeps a background colour where others keep their character.
            here = cell & (_LOOK | 0x3FFFFFF) if cell & 2 else cell & _LOOK
            if here != look or cell & _LINK:
                found = looks.get(here) if not cell & _LINK else None
                if found is None:
                    found = looks[here] = self._look(cell, x, y)
                if found != style and texts:
                    runs.append(Run("".join(texts), x - start, style))
                    texts, start = [], x
                style, look = found, here
            text = chars.get(cell)
            if text is None:
                text = self._char(cell, x)
            texts.append(text)
        if texts:
            runs.append(Run("".join(texts), len(cells) - start, style))
        return runs

    def _char(self, cell: int, x: int) -> str:
        """Returns the text of a cell; clusters, which the cell does not hold, are not remembered."""
        if cell & 3 == 1:
            return cell_text(self._cluster(x))
        code = 0 if cell & 2 else (cell >> 2) & 0x1FFFFF
        tail = (cell >> _WIDE_SHIFT) & 3 == _TAIL
        text = "" if tail else " " if code == 0 else cell_text(chr(code))
        if len(self._chars) >= _CACHE_LIMIT:
            self._chars.clear()
        self._chars[cell] = text
        return text

    def _cluster(self, x: int) -> str:
        lib, cells, ffi = self._lib, self._cells[0], self._ffi
        length = ffi.new("uint32_t*")
        lib.ghostty_render_state_row_cells_select(cells, x)
        lib.ghostty_render_state_row_cells_get(cells, lib.GHOSTTY_RENDER_STATE_ROW_CELLS_DATA_GRAPHEMES_LEN, length)
        codes = ffi.new("uint32_t[]", max(1, length[0]))
        lib.ghostty_render_state_row_cells_get(cells, lib.GHOSTTY_RENDER_STATE_ROW_CELLS_DATA_GRAPHEMES_BUF, codes)
        return "".join(map(chr, codes[0 : length[0]]))

    def _look(self, cell: int, x: int, y: int) -> Style:
        style = self._styled(x) if cell & _STYLE_BITS else PLAIN
        if cell & 2:
            return _with_background(style, cell)
        if cell & _LINK and (link := self._link(x, y)):
            return dataclasses.replace(style, link=link)
        return style

    def _styled(self, x: int) -> Style:
        lib, cells = self._lib, self._cells[0]
        lib.ghostty_render_state_row_cells_select(cells, x)
        lib.ghostty_render_state_row_cells_get(cells, lib.GHOSTTY_RENDER_STATE_ROW_CELLS_DATA_STYLE, self._style)
        key = bytes(self._ffi.buffer(self._style))
        style = self._styles.get(key)
        if style is None:
            if len(self._styles) >= _CACHE_LIMIT:
                self._styles.clear()
            style = self._styles[key] = self._convert(self._style)
        return style

    def _convert(self, raw: Any) -> Style:
        return Style(
            fg=self._color(raw.fg_color),
            bg=self._color(raw.bg_color),
            bold=raw.bold,
            dim=raw.faint,
            italic=raw.italic,
            underline=Underline(raw.underline),
            underline_color=self._color(raw.underline_color),
            blink=raw.blink,
            reverse=raw.inverse,
            conceal=raw.invisible,
            strike=raw.strikethrough,
            overline=raw.overline,
        )

    def _color(self, raw: Any) -> Color:
        if raw.tag == self._lib.GHOSTTY_STYLE_COLOR_RGB:
            return (raw.value.rgb.r, raw.value.rgb.g, raw.value.rgb.b)
        if raw.tag == self._lib.GHOSTTY_STYLE_COLOR_PALETTE:
            return int(raw.value.palette)
        return None

    def _link(self, x: int, y: int) -> str | None:
        ffi, lib = self._ffi, self._lib
        point, ref = ffi.new("GhosttyPointS*"), ffi.new("GhosttyGridRef*")
        point.tag, point.value.x, point.value.y = lib.GHOSTTY_POINT_TAG_VIEWPORT, x, y
        ref.size = ffi.sizeof("GhosttyGridRef")
        buffer, length = ffi.new("uint8_t[]", _LINK_LIMIT), ffi.new("size_t*")
        if self._grid_ref(self._terminal, point[0], ref):
            return None
        if lib.ghostty_grid_ref_hyperlink_uri(ref, buffer, _LINK_LIMIT, length):
            return None
        text = bytes(ffi.buffer(buffer, length[0])).decode(errors="replace")
        return text if text.isprintable() else None


def _with_background(style: Style, cell: int) -> Style:
    content = (cell >> 2) & 0xFFFFFF
    if cell & 3 == 2:
        return dataclasses.replace(style, bg=content & 0xFF)
    return dataclasses.replace(style, bg=(content & 0xFF, (content >> 8) & 0xFF, (content >> 16) & 0xFF))


def check_layout(ffi_module: Any, core: Any) -> None:
    """Compares the packing assumed here with the library's own accessor.

    Raises:
        ImportError: They differ; this build of the library cannot be used.
    """
    ffi, lib = ffi_module.ffi, ffi_module.lib
    with core.Terminal(8, 1, scrollback=0) as terminal:
        terminal.feed("a\x1b[1m中\x1b[4me\u0301\x1b[m\x1b]8;;x:y\x07L\x1b[48;5;9m\x1b[K")
        cell, out = ffi.new("GhosttyCell*"), ffi.new("uint64_t*")
        for x in range(8):
            ffi_module.check(lib.ghostty_grid_ref_cell(terminal.ref(x, 0), cell), "grid_ref_cell")
            for key, shift, mask in _LAYOUT:
                if key == "CODEPOINT" and cell[0] & 2:
                    continue  # a background colour is kept there
                out[0] = 0
                wanted = lib.ghostty_cell_get(cell[0], getattr(lib, f"GHOSTTY_CELL_DATA_{key}"), out)
                if wanted == 0 and out[0] != (cell[0] >> shift) & mask:
                    msg = f"libghostty-vt packs cells in a way this version does not know ({key.lower()})"
                    raise ImportError(msg)
