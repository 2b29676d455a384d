"""The engine over libghostty-vt (pyghostty 0.1.3).

Rule: nothing the program prints can make the core touch a file or shared memory, or answer for a feature we lack; the
options that would are switched off before the first byte. Unicode mode 2027 is on by default and asserted again before
every frame.

Owns the emulator's life and its callbacks. Rows are read by `ghostty_rows`. pyghostty is loaded only when
an engine is made. What it does not prove: libghostty-vt is native code fed by the program; a fault in it is a fault of
this process, which runs outside the sandbox but decides nothing.
"""

from __future__ import annotations

from typing import Any

from nd7tui.engine.terminal.ghostty_rows import RowReader, check_layout
from nd7tui.engine.terminal.protocol import (
    CELL_PIXELS,
    Bell,
    ClipboardWrite,
    Cursor,
    Event,
    Modes,
    MouseFormat,
    MouseMode,
    Notify,
    Reply,
    Row,
    Scroll,
    Shape,
    Title,
)
from nd7tui.engine.terminal.replies import CLIPBOARD_LIMIT, TEXT_LIMIT, XTVERSION, allowed, is_dark, plain_text

DEFAULT_COLORS = ((229, 229, 229), (0, 0, 0))
"""Foreground and background told to programs until the pane says what it looks like."""

_GRAPHEMES = 2027
_SHAPES = (Shape.BAR, Shape.BLOCK, Shape.UNDERLINE, Shape.BLOCK)
_MOUSE_MODES = (MouseMode.ANY, MouseMode.BUTTON, MouseMode.NORMAL, MouseMode.X10)
_MOUSE_FORMATS = (MouseFormat.SGR_PIXELS, MouseFormat.SGR, MouseFormat.URXVT, MouseFormat.UTF8)


class GhosttyEngine:
    """A terminal of libghostty-vt; see `protocol.Engine`."""

    name = "ghostty"

    def __init__(self, cols: int, rows: int, scrollback: int = 10_000) -> None:
        """Makes an emulator.

        Args:
            cols: Width in cells.
            rows: Height in cells.
            scrollback: Lines of history kept.

        Raises:
            ImportError: There is no wheel for this machine.
            OSError: The library cannot be loaded.
        """
        from pyghostty import _ffi, core

        check_layout(_ffi, core)
        self._ffi, self._lib = _ffi.ffi, _ffi.lib
        self._terminal = core.Terminal(cols, rows, scrollback=scrollback)
        self._handle: Any = self._terminal._t[0]  # noqa: SLF001  # the binding has no public handle
        self._events: list[Event] = []
        self._modes: Modes | None = None
        self._callbacks: list[object] = []
        self._dark = True
        self._scroll = core.union_fn("ghostty_terminal_scroll_viewport", "void(*)(GhosttyTerminal, GhosttyPointS)")
        self._harden()
        self._listen()
        self._probe = _KeyProbe(_ffi, self._handle)
        self._rows = RowReader(_ffi, self._handle)

    # --- set-up

    def _set(self, option: str, ctype: str, value: object) -> None:
        self._option(option, self._ffi.new(f"{ctype}*", value))

    def _option(self, option: str, pointer: object) -> None:
        self._lib.ghostty_terminal_set(self._handle, getattr(self._lib, f"GHOSTTY_TERMINAL_OPT_{option}"), pointer)

    def _harden(self) -> None:
        """Switches off what could reach outside the core, and bounds what it keeps."""
        self._set("KITTY_IMAGE_STORAGE_LIMIT", "uint64_t", 0)
        for medium in ("FILE", "SHARED_MEM"):
            self._set(f"KITTY_IMAGE_MEDIUM_{medium}", "bool", False)
        self._option("KITTY_IMAGE_MEDIUM_TEMP_FILE", self._ffi.NULL)  # takes a directory, not a flag
        self._set("GLYPH_PROTOCOL", "bool", False)
        self._set("TITLE_REPORT", "bool", False)
        self._set("APC_MAX_BYTES", "size_t", 1 << 16)
        self._set("CLIPBOARD_WRITE_MAX_BYTES", "size_t", CLIPBOARD_LIMIT)
        self._set("MODE_DEFAULT", "GhosttyTerminalModeConfig", {"mode": _GRAPHEMES, "value": True})
        self._assert_graphemes()
        self.set_colors(*DEFAULT_COLORS)
        self._terminal.resize(*self._terminal.size, *CELL_PIXELS)

    def _assert_graphemes(self) -> None:
        self._set("MODE", "GhosttyTerminalModeConfig", {"mode": _GRAPHEMES, "value": True})

    def _callback(self, option: str, ctype: str, function: object) -> None:
        """Registers `function`; the object is kept alive as long as the engine."""
        callback = self._ffi.callback(ctype, function)
        self._callbacks.append(callback)
        self._option(option, callback)

    def _listen(self) -> None:
        self._version = self._ffi.new("uint8_t[]", XTVERSION)
        self._callback("WRITE_PTY", "GhosttyTerminalWritePtyFn", self._on_reply)
        self._callback("BELL", "GhosttyTerminalBellFn", lambda _t, _u: self._events.append(Bell()))
        self._callback("TITLE_CHANGED", "GhosttyTerminalTitleChangedFn", self._on_title)
        self._callback("CLIPBOARD_WRITE", "GhosttyTerminalClipboardWriteFn", self._on_clipboard)
        self._callback("DESKTOP_NOTIFICATION", "GhosttyTerminalDesktopNotificationFn", self._on_notification)
        self._callback("XTVERSION", "GhosttyTerminalXtversionFn", self._on_xtversion)
        self._callback("SIZE", "GhosttyTerminalSizeFn", self._on_size)
        self._callback("COLOR_SCHEME", "GhosttyTerminalColorSchemeFn", self._on_color_scheme)
        self._callback("DEVICE_ATTRIBUTES", "GhosttyTerminalDeviceAttributesFn", self._on_attributes)

    # --- what the core calls during feed()

    def _text(self, string: Any, limit: int) -> str:
        data = bytes(self._ffi.buffer(string.ptr, min(string.len, limit * 4))) if string.len else b""
        return data.decode(errors="replace")

    def _on_reply(self, _terminal: object, _user: object, data: Any, size: int) -> None:
        answer = allowed(bytes(self._ffi.buffer(data, size)))
        if answer:
            self._events.append(Reply(answer))

    def _on_title(self, _terminal: object, _user: object) -> None:
        self._events.append(Title(self.title))

    def _on_clipboard(self, _terminal: object, _user: object, write: Any) -> None:
        for index in range(write.contents_len):
            content = write.contents[index]
            if self._text(content.mime, 64).startswith("text/plain"):
                self._events.append(ClipboardWrite(self._text(content.data, CLIPBOARD_LIMIT)))
                break

    def _on_notification(self, _terminal: object, _user: object, note: Any) -> None:
        title, body = self._text(note.title, TEXT_LIMIT), self._text(note.body, TEXT_LIMIT)
        self._events.append(Notify(plain_text(title), plain_text(body)))

    def _on_xtversion(self, _terminal: object, _user: object) -> object:
        return {"ptr": self._version, "len": len(XTVERSION)}

    def _on_size(self, _terminal: object, _user: object, out: Any) -> bool:
        out.columns, out.rows = self._terminal.size
        out.cell_width, out.cell_height = CELL_PIXELS
        return True

    def _on_color_scheme(self, _terminal: object, _user: object, out: Any) -> bool:
        out[0] = self._lib.GHOSTTY_COLOR_SCHEME_DARK if self._dark else self._lib.GHOSTTY_COLOR_SCHEME_LIGHT
        return True

    def _on_attributes(self, _terminal: object, _user: object, out: Any) -> bool:
        """Says VT220 with colour (22), as xterm's DA1 does; no sixel, no clipboard.

        Source: https://vt100.net/docs/vt510-rm/DA1.html
        """
        out.primary.conformance_level = 62
        out.primary.num_features = 1
        out.primary.features[0] = 22
        out.secondary.device_type, out.secondary.firmware_version = 1, 10
        return True

    # --- Engine

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        cols, rows = self._terminal.size
        return int(cols), int(rows)

    @property
    def title(self) -> str:
        """The title, safe to show."""
        return plain_text(self._text(self._terminal.get("title", "GhosttyString"), TEXT_LIMIT))

    @property
    def cursor(self) -> Cursor:
        """The cursor as of the last `take_dirty()`."""
        state = self._rows.cursor()
        return Cursor(state.viewport_y, state.viewport_x, state.viewport_has_value and state.visible,
                      _SHAPES[state.visual_style & 3], bool(state.blinking))  # fmt: skip

    @property
    def modes(self) -> Modes:
        """The modes in force."""
        if self._modes is None:
            self._modes = self._read_modes()
        return self._modes

    def _read_modes(self) -> Modes:
        mode, get = self._terminal.mode, self._terminal.get
        tracking = next((m for m in _MOUSE_MODES if mode(m)), MouseMode.OFF)
        return Modes(
            alternate=get("active_screen", "int") == self._lib.GHOSTTY_TERMINAL_SCREEN_ALTERNATE,
            cursor_keys=mode(1),
            keypad=mode(66),
            backarrow=mode(67),
            newline=mode(20, ansi=True),
            mouse=tracking,
            mouse_format=next((f for f in _MOUSE_FORMATS if mode(f)), MouseFormat.LEGACY),
            alternate_scroll=mode(1007),
            focus=mode(1004),
            bracketed_paste=mode(2004),
            sync=mode(2026),
            color_scheme=mode(2031),
            kitty=int(get("kitty_keyboard_flags", "uint8_t")),
            modify_other_keys=self._probe.modify_other_keys(),
        )

    @property
    def scroll(self) -> Scroll:
        """Where the view stands in the history."""
        bar = self._terminal.get("scrollbar", "GhosttyTerminalScrollbar")
        return Scroll(int(bar.total - bar.len), int(bar.total - bar.len - bar.offset))

    def feed(self, data: bytes) -> None:
        """Takes the next bytes of output."""
        self._modes = None
        if b"\x7f" in data:  # DEL is padding (ECMA-48); this core would print it
            data = data.replace(b"\x7f", b"")
        self._lib.ghostty_terminal_vt_write(self._handle, data, len(data))

    def resize(self, cols: int, rows: int) -> None:
        """Takes a new size, reflowing the primary screen."""
        self._modes = None
        self._terminal.resize(max(1, cols), max(1, rows), *CELL_PIXELS)

    def take_dirty(self) -> list[int]:
        """Reads the rows that changed."""
        self._assert_graphemes()
        return self._rows.update()

    def row(self, y: int) -> Row:
        """Returns row `y` on view."""
        return self._rows.rows[y]

    def scroll_to(self, offset: int) -> None:
        """Shows the history `offset` rows up."""
        target = self._ffi.new("GhosttyPointS*")
        above = self.scroll.above
        offset = max(0, min(offset, above))
        target.tag = self._lib.GHOSTTY_SCROLL_VIEWPORT_ROW if offset else self._lib.GHOSTTY_SCROLL_VIEWPORT_BOTTOM
        self._ffi.cast("size_t*", self._ffi.addressof(target, "value"))[0] = above - offset
        self._scroll(self._handle, target[0])

    def set_colors(self, fg: tuple[int, int, int], bg: tuple[int, int, int]) -> None:
        """Says what the default colours look like."""
        self._dark = is_dark(bg)
        self._set("COLOR_FOREGROUND", "GhosttyColorRgb", fg)
        self._set("COLOR_BACKGROUND", "GhosttyColorRgb", bg)

    def drain(self) -> list[Event]:
        """Returns the waiting events."""
        events, self._events = self._events, []
        return events

    def close(self) -> None:
        """Frees the native memory."""
        self._rows.close()
        self._probe.close()
        self._terminal.close()


class _KeyProbe:
    """Asks the core's own key encoder what modifyOtherKeys is, which it keeps but does not tell."""

    def __init__(self, ffi_module: Any, terminal: Any) -> None:
        self._ffi, self._lib, self._terminal = ffi_module.ffi, ffi_module.lib, terminal
        self._encoder = self._ffi.new("GhosttyKeyEncoder*")
        self._event = self._ffi.new("GhosttyKeyEvent*")
        ffi_module.check(self._lib.ghostty_key_encoder_new(self._ffi.NULL, self._encoder), "key_encoder_new")
        ffi_module.check(self._lib.ghostty_key_event_new(self._ffi.NULL, self._event), "key_event_new")
        lib, event = self._lib, self._event[0]
        lib.ghostty_key_event_set_action(event, lib.GHOSTTY_KEY_ACTION_PRESS)
        lib.ghostty_key_event_set_key(event, lib.GHOSTTY_KEY_H)
        lib.ghostty_key_event_set_mods(event, 0b11)  # shift and ctrl
        lib.ghostty_key_event_set_unshifted_codepoint(event, ord("h"))
        self._utf8 = self._ffi.new("char[]", b"H")
        lib.ghostty_key_event_set_utf8(event, self._utf8, 1)
        self._buffer, self._length = self._ffi.new("char[64]"), self._ffi.new("size_t*")

    def modify_other_keys(self) -> int:
        """Returns 2 when the core would send `CSI 27 ; …` for ctrl+shift+h, else 0."""
        lib, encoder = self._lib, self._encoder[0]
        lib.ghostty_key_encoder_setopt_from_terminal(encoder, self._terminal)
        none = self._ffi.new("uint8_t*", 0)
        lib.ghostty_key_encoder_setopt(encoder, lib.GHOSTTY_KEY_ENCODER_OPT_KITTY_FLAGS, none)
        lib.ghostty_key_encoder_encode(encoder, self._event[0], self._buffer, 64, self._length)
        return 2 if bytes(self._ffi.buffer(self._buffer, self._length[0])).startswith(b"\x1b[27;") else 0

    def close(self) -> None:
        self._lib.ghostty_key_encoder_free(self._encoder[0])
        self._lib.ghostty_key_event_free(self._event[0])
