"""The pane that shows a program's terminal and sends it what the person types.

Rule: the program draws cells and nothing else. Its bell, title, notifications and wish for the clipboard become
messages; whoever listens decides. No byte of it reaches the person's terminal unparsed.

Owns one `TerminalSession`. The last screen stays on view after the program ended. Importing this module puts the paste
guard before Textual's input parser.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rich.style import Style as RichStyle
from textual.geometry import Region
from textual.message import Message
from textual.widget import Widget

from nd7tui.engine.terminal import keys, mouse, paste, protocol
from nd7tui.engine.terminal.choose import choose
from nd7tui.engine.terminal.environment import terminal_environment
from nd7tui.engine.terminal.errors import SpawnError
from nd7tui.engine.terminal.protocol import Modes, MouseMode, Shape
from nd7tui.engine.terminal.pty import Exit, PtyProcess
from nd7tui.engine.terminal.replies import color_scheme
from nd7tui.engine.terminal.session import GRACE, TerminalSession
from nd7tui.widgets.agent_paint import cell_width, label, overlay, regions, strip_of
from nd7tui.widgets.paste_guard import guard_pastes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from textual import events
    from textual.selection import Selection
    from textual.strip import Strip

    from nd7tui.engine.terminal.protocol import Engine

guard_pastes()

WHEEL_ROWS = 3
"""Rows, or cursor keys, one notch of the wheel is worth."""

_SCROLL_KEYS = {"shift+pageup": 1, "shift+pagedown": -1}
_BUTTONS = (mouse.Button.NONE, mouse.Button.LEFT, mouse.Button.MIDDLE, mouse.Button.RIGHT)


class AgentPane(Widget, can_focus=True):
    """A terminal with one program in it.

    The program starts when the pane first has a size. Every key goes to it by `send_key`, which the app calls for each
    key before its own bindings; without such an app, keys that no binding takes arrive by themselves.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "agent-pane--cursor", "agent-pane--cursor-blurred", "agent-pane--scrolled"
    }  # fmt: skip

    DEFAULT_CSS = """
    AgentPane {
        background: $background;
        color: $foreground;
        & > .agent-pane--cursor { text-style: reverse; }
        & > .agent-pane--cursor-blurred { text-style: underline; }
        & > .agent-pane--scrolled { text-style: reverse; }
    }
    """

    @dataclass
    class Ready(Message):
        """The program runs. `notice` tells when the preferred engine could not be used."""

        pane: AgentPane
        engine: str
        notice: str | None

    @dataclass
    class Exited(Message):
        """The program ended: `status` as a shell says it (128 + signal), 127 when it could not be started."""

        pane: AgentPane
        status: int
        signal: int | None = None
        error: str | None = None

    @dataclass
    class TitleChanged(Message):
        """The program set its title (safe to show, but its words)."""

        pane: AgentPane
        title: str

    @dataclass
    class Bell(Message):
        """The program rang the bell."""

        pane: AgentPane

    @dataclass
    class ClipboardAsked(Message):
        """The program wants `text` on the clipboard (OSC 52). Nothing happened yet; ask the person."""

        pane: AgentPane
        text: str

    @dataclass
    class Notification(Message):
        """The program asks for a notification (OSC 9 or 777): its words."""

        pane: AgentPane
        text: str
        title: str = ""

    def __init__(
        self,
        argv: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        *,
        process: PtyProcess | None = None,
        engine: str | None = None,
        name: str | None = None,
        id: str | None = None,  # noqa: A002  # Textual's name for it
        classes: str | None = None,
    ) -> None:
        """Makes a pane for a program that is to be started, or one that already runs on a pty.

        Args:
            argv: The program and its arguments.
            env: Its environment; None for ours. TERM and its relatives are set by the pane.
            cwd: Its working directory; None for ours.
            process: A running program instead of `argv`.
            engine: `ghostty` or `bittty`; None for the best there is.
            name: As for any widget.
            id: As for any widget.
            classes: As for any widget.
        """
        super().__init__(name=name, id=id, classes=classes)
        self._start = (list(argv or ()), env, cwd, process, engine)
        self._session: TerminalSession | None = None
        self._engine: Engine | None = None
        self._strips: dict[int, Strip] = {}
        self._background = (0, 0, 0)
        self._cursor_row = -1
        self._held = mouse.Button.NONE
        self._last_move = (-1, -1)
        self.exit_status: int | None = None

    # --- for the app

    @property
    def modes(self) -> Modes:
        """The program's terminal modes."""
        return self._engine.modes if self._engine else Modes()

    @property
    def program_title(self) -> str:
        """The title the program set, safe to show."""
        return self._engine.title if self._engine else ""

    @property
    def engine_name(self) -> str:
        """Which engine draws, or '' before the program runs."""
        return self._engine.name if self._engine else ""

    @property
    def running(self) -> bool:
        """Whether the program runs."""
        return self._session is not None and not self._session.ended

    @property
    def process(self) -> PtyProcess | None:
        """The program, once started."""
        return self._session.process if self._session else None

    @property
    def scrolled(self) -> int:
        """Rows the view is scrolled up; 0 shows the live screen."""
        return self._engine.scroll.offset if self._engine else 0

    def screen_text(self) -> str:
        """Returns the rows on view, as last painted, as text without trailing blanks."""
        if self._engine is None:
            return ""
        rows = (self._row(y) for y in range(self._engine.size[1]))
        return "\n".join("".join(run.text for run in row).rstrip() for row in rows)

    def send_key(self, event: events.Key) -> bool:
        """Sends a key press to the program, or scrolls the history for it.

        Returns:
            False when the key means nothing here (no program, a modifier alone); it is then anyone's.
        """
        if not self.running:
            return False
        if event.key in _SCROLL_KEYS and not self.modes.alternate:
            self.scroll_history(_SCROLL_KEYS[event.key] * max(1, self.size.height - 1))
            return True
        data = keys.encode(event.key, event.character, self.modes)
        self._send(data)
        return bool(data)

    def send_text(self, text: str) -> None:
        """Sends text as if typed, as it is."""
        self._send(text.encode(errors="replace"))

    def paste(self, text: str) -> None:
        """Sends text as a paste, made safe, in brackets when the program wants them."""
        self._send(paste.encode(text, bracketed=self.modes.bracketed_paste))

    def terminate(self, grace: float = GRACE) -> None:
        """Hangs up on the program, and kills it if it still runs after `grace` seconds."""
        if self._session is not None:
            self._session.terminate(grace)

    def scroll_history(self, rows: int) -> None:
        """Scrolls the view up by `rows` (down when negative); typing returns to the live screen."""
        if self._engine is not None and self._session is not None:
            self._engine.scroll_to(self.scrolled + rows)
            self._strips.pop(0, None)
            self._session.schedule()
            self.refresh(Region(0, 0, self.size.width, 1))

    # --- life

    def on_resize(self) -> None:
        """Starts the program at its first size; passes on later ones."""
        cols, rows = self.size
        if cols < 1 or rows < 1:
            return
        if self._engine is None:
            self._begin(cols, rows)
        elif self._session is not None:
            self._session.resize(cols, rows)
            self._strips.clear()
            self.refresh()

    def _begin(self, cols: int, rows: int) -> None:
        argv, env, cwd, process, only = self._start
        failed = None
        try:
            # First the program: it starts while the engine, which takes half a second to load, does.
            process = process or PtyProcess.spawn(argv, terminal_environment(env), cwd, cols, rows)
        except SpawnError as error:
            failed = error
        engine, notice = choose(cols, rows, only)
        self._engine = engine
        self._tell_colors()
        if process is None:
            self._fail(engine, failed)
            return
        process.resize(cols, rows)
        self._session = TerminalSession(
            engine, process, on_event=self._tell, on_rows=self._rows_changed, on_exit=self._program_exited
        )
        self.post_message(self.Ready(self, engine.name, notice))

    def _fail(self, engine: Engine, error: SpawnError | None) -> None:
        """Says on the pane's own screen why there is no program."""
        self.exit_status = 127
        engine.feed(f"nd7: {error}\r\n".encode(errors="replace"))
        self._rows_changed(set(engine.take_dirty()))
        self.post_message(self.Exited(self, 127, None, str(error)))

    def on_unmount(self) -> None:
        """Leaves nothing behind: hangs up, closes the pty, frees the engine."""
        session, engine = self._session, self._engine
        self._session = self._engine = None
        if session is not None:
            session.close()
        elif engine is not None:
            engine.close()

    # --- what the session says

    def _tell(self, event: protocol.Event) -> None:
        match event:
            case protocol.Bell():
                self.post_message(self.Bell(self))
            case protocol.Title(text):
                self.post_message(self.TitleChanged(self, text))
            case protocol.ClipboardWrite(text):
                self.post_message(self.ClipboardAsked(self, text))
            case protocol.Notify(title, body):
                self.post_message(self.Notification(self, body, title))

    def _rows_changed(self, rows: set[int]) -> None:
        if self._engine is None:
            return
        row = self._engine.cursor.row
        rows |= {self._cursor_row, row}
        self._cursor_row = row
        width, height = self.size
        for y in rows:
            self._strips.pop(y, None)
        if marked := list(regions(sorted(y for y in rows if 0 <= y < height), width)):
            self.refresh(*marked)

    def _program_exited(self, end: Exit) -> None:
        self.exit_status = end.code
        self.refresh()
        self.post_message(self.Exited(self, end.code, end.signal))

    # --- painting

    def _row(self, y: int) -> protocol.Row:
        """Returns a row of the last frame, or nothing for one that a new size added and no frame has read."""
        try:
            return self._engine.row(y) if self._engine else ()
        except IndexError:
            return ()

    def render_line(self, y: int) -> Strip:
        """Returns line `y` of the pane."""
        width = self.size.width
        strip = self._strips.get(y)
        if strip is None or strip.cell_length != width:
            strip = strip_of(self._row(y), width, self.rich_style)
            self._strips[y] = strip
        strip = strip.apply_offsets(0, y)
        return self._with_sign(self._with_cursor(self._with_selection(strip, y), y), y)

    def _with_selection(self, strip: Strip, y: int) -> Strip:
        selection = self.text_selection
        span = selection.get_span(y) if selection is not None else None
        if span is None:
            return strip
        style = self.screen.get_component_rich_style("screen--selection")
        return overlay(strip, span[0], strip.cell_length if span[1] == -1 else span[1], style)

    def _with_cursor(self, strip: Strip, y: int) -> Strip:
        if self._engine is None or not self.running:
            return strip
        cursor = self._engine.cursor
        if not cursor.visible or cursor.row != y:
            return strip
        width = cell_width(self._row(y), cursor.col)
        return overlay(strip, cursor.col, cursor.col + width, self._cursor_style(cursor.shape))

    def _with_sign(self, strip: Strip, y: int) -> Strip:
        """Says in the first line that the history is on view."""
        if y or not self.scrolled:
            return strip
        return label(strip, f" {self.scrolled} rows up ", self.get_component_rich_style("agent-pane--scrolled"))

    def _cursor_style(self, shape: Shape) -> RichStyle:
        if not self.has_focus:
            return self.get_component_rich_style("agent-pane--cursor-blurred", partial=True)
        if shape is Shape.UNDERLINE:
            return RichStyle(underline=True)
        return self.get_component_rich_style("agent-pane--cursor", partial=True)

    def _tell_colors(self) -> None:
        """Lets the program know the pane's colours, so that it can choose a dark or a light theme."""
        if self._engine is None:
            return
        background = self.background_colors[1].rgb
        self._engine.set_colors(self.colors[3].rgb, background)
        if self._session is not None and self.running and self.modes.color_scheme and background != self._background:
            self._session.write(color_scheme(background))
        self._background = background

    def notify_style_update(self) -> None:
        """Takes new colours when the theme changed."""
        super().notify_style_update()
        if self.is_mounted:
            self._strips.clear()
            self._tell_colors()

    # --- selection

    @property
    def allow_select(self) -> bool:
        """Text can be selected unless the program takes the mouse."""
        return self.modes.mouse == MouseMode.OFF

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Returns the selected text of the rows on view."""
        text = self.screen_text()
        return (selection.extract(text), "\n") if text else None

    def selection_updated(self, selection: Selection | None) -> None:  # noqa: ARG002  # Textual's signature
        """Draws the selection anew."""
        self.refresh()

    # --- input

    def _send(self, data: bytes) -> None:
        """Sends what the person did; the view goes back to the live screen."""
        if self._session is None or not self.running or not data:
            return
        if self.scrolled:
            self.scroll_history(-self.scrolled)
        self._session.write(data)

    def on_key(self, event: events.Key) -> None:
        """Takes a key that reached the pane by Textual's own way."""
        if self.send_key(event):
            event.stop()
            event.prevent_default()

    def on_paste(self, event: events.Paste) -> None:
        """Passes a paste on as one."""
        event.stop()
        event.prevent_default()
        self.paste(event.text)

    def on_focus(self) -> None:
        """Reports focus where the program asked for it (mode 1004)."""
        self._report_focus(b"\x1b[I")

    def on_blur(self) -> None:
        """Reports the loss of focus where the program asked for it."""
        self._report_focus(b"\x1b[O")

    def _report_focus(self, report: bytes) -> None:
        if self._session is not None and self.running and self.modes.focus:
            self._session.write(report)
        if self._cursor_row >= 0:
            self.refresh(Region(0, self._cursor_row, self.size.width, 1))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Passes a press on; holds the mouse so that a drag past the edge is still the program's."""
        self._held = _BUTTONS[event.button] if 0 <= event.button < len(_BUTTONS) else mouse.Button.NONE
        if self._mouse(mouse.Kind.PRESS, self._held, event) and self.modes.mouse >= MouseMode.BUTTON:
            self.capture_mouse()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Passes a release on."""
        self._mouse(mouse.Kind.RELEASE, self._held, event)
        self._held = mouse.Button.NONE
        self.release_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Passes a move on, once a cell."""
        cell = (event.screen_x, event.screen_y)
        if cell != self._last_move:
            self._last_move = cell
            self._mouse(mouse.Kind.MOVE, self._held, event)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Takes the wheel."""
        self._wheel(mouse.Button.WHEEL_UP, event)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Takes the wheel."""
        self._wheel(mouse.Button.WHEEL_DOWN, event)

    def _wheel(self, button: mouse.Button, event: events.MouseEvent) -> None:
        """The wheel is the program's when it takes the mouse, arrows on the alternate screen, else the history's."""
        event.stop()
        event.prevent_default()
        up, modes = button is mouse.Button.WHEEL_UP, self.modes
        if modes.mouse != MouseMode.OFF and self.running:
            self._mouse(mouse.Kind.PRESS, button, event)
        elif modes.alternate:
            if modes.alternate_scroll:
                self._send(keys.encode("up" if up else "down", None, modes) * WHEEL_ROWS)
        else:
            self.scroll_history(WHEEL_ROWS if up else -WHEEL_ROWS)

    def _mouse(self, kind: mouse.Kind, button: mouse.Button, event: events.MouseEvent) -> bool:
        """Passes a mouse event on where the program wants it; tells whether it did."""
        if self._session is None or not self.running:
            return False
        offset, (width, height) = event.get_content_offset_capture(self), self.size
        col, row = max(0, min(offset.x, width - 1)), max(0, min(offset.y, height - 1))
        data = mouse.encode(
            kind, button, col, row, self.modes, shift=event.shift, meta=event.meta, ctrl=event.ctrl
        )  # fmt: skip
        if data:
            event.stop()
            self._session.write(data)
        return bool(data)
