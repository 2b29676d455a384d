"""What all screens have in common: keys by the registry, the line of hints, the view for a terminal too small.

Rule: a key is looked up in the registry before any widget sees it, save while text is being typed; an action that
cannot run says why on the hint line. A fault of ours that a person can act on is said there too, never a traceback.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

from nd7tui.actions import REGISTRY, Action, Context, Facts, Keymap, default_keymap
from nd7tui.errors import Nd7Error
from nd7tui.screens.layout import LEAST
from nd7tui.widgets.bars import Bar, Piece

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from textual import events
    from textual.app import ComposeResult

MESSAGE_SECONDS = 6.0


class TooSmall(Widget):
    """Says that the terminal is too small, in as few words as fit."""

    DEFAULT_CSS = """
    TooSmall { width: 1fr; height: 1fr; display: none; content-align: center middle; text-align: center; }
    """

    def render(self) -> str:
        """Returns the words."""
        size = self.screen.size
        return f"too small\nnd7 needs {LEAST[0]}x{LEAST[1]}\nthis is {size.width}x{size.height}"


class Nd7Screen(Screen[None], inherit_bindings=False):
    """A screen of nd7."""

    DEFAULT_CSS = """
    Nd7Screen.-too-small > * { display: none; }
    Nd7Screen.-too-small > TooSmall { display: block; }
    Nd7Screen > #hints { dock: bottom; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._message: tuple[str, str] = ("", "")
        self._message_until = 0.0
        self.hints = Bar(id="hints")

    # --- what a subclass says

    def body(self) -> ComposeResult:
        """Yields the screen's own widgets."""
        yield from ()

    def contexts(self) -> list[Context]:
        """Returns where keys are looked up, first hit first."""
        return [Context.BACK]

    def facts(self, action: Action) -> Facts:
        """Returns what decides whether `action` can run."""
        del action
        return Facts()

    def resized(self) -> None:
        """The screen has another size."""

    # --- common

    @property
    def keymap(self) -> Keymap:
        """The keys in force."""
        found = getattr(self.app, "keymap_in_force", None)
        return found if isinstance(found, Keymap) else default_keymap()

    @property
    def too_small(self) -> bool:
        """Whether nothing but that fits."""
        return self.size.width < LEAST[0] or self.size.height < LEAST[1]

    def compose(self) -> ComposeResult:
        """Composes the body, the hints and the view for a terminal too small."""
        yield from self.body()
        yield self.hints
        yield TooSmall(id="too-small")

    def on_mount(self) -> None:
        """Keeps the hint line current."""
        self.set_interval(0.5, self.show_hints)

    def on_screen_resume(self) -> None:
        """Shows the hints of this screen."""
        self.show_hints()

    def on_resize(self, event: events.Resize) -> None:
        """Says so when the terminal is too small."""
        width, height = event.size
        self.set_class(width < LEAST[0] or height < LEAST[1], "-too-small")
        self.resized()
        self.call_after_refresh(self.show_hints)

    def take_key(self, event: events.Key) -> bool:
        """Takes a key before the widgets; returns whether it was ours."""
        if self.too_small and event.key != "escape":
            return True
        if isinstance(self.focused, Input) and (event.is_printable or event.key in {"enter", "slash", "minus"}):
            return False
        action = self.keymap.find(self.contexts(), event.key)
        if action is None:
            self.call_after_refresh(self.show_hints)
            return False
        self.perform(action)
        return True

    def perform(self, action: Action) -> None:
        """Runs an action, or says why it cannot run."""
        reason = action.why_disabled(self.facts(action))
        if reason is not None:
            self.say(f"{action.label}: {reason}", "warn")
            return
        method: Callable[[], None] | None = getattr(self, f"do_{action.id.replace('-', '_')}", None)
        if method is None:
            self.say(f"{action.label}: not on this screen", "warn")
            return
        try:
            method()
        except (Nd7Error, OSError) as error:
            self.say_error(error)
        self.call_after_refresh(self.show_hints)

    def perform_clicked(self, action: Action) -> None:
        """Runs an action whose key was clicked."""
        self.perform(action)

    def say(self, text: str, role: str = "strong", seconds: float = MESSAGE_SECONDS) -> None:
        """Says something on the hint line for a while."""
        self._message, self._message_until = (text, role), time.monotonic() + seconds
        self.show_hints()

    def say_error(self, error: Exception) -> None:
        """Says what went wrong, and what to do about it."""
        hint = getattr(error, "hint", None)
        self.say(f"nd7: {error}" + (f" ({hint})" if hint else ""), "bad", 12.0)

    @property
    def message(self) -> str:
        """What the hint line says just now, "" when it shows keys."""
        return self._message[0] if time.monotonic() < self._message_until else ""

    def show_hints(self) -> None:
        """Writes the hint line."""
        if not self.is_mounted:
            return
        if self.message:
            text, role = self._message
            self.hints.show([Piece(f" {text}", role)])
        else:
            self.hints.show(self.hint_pieces())

    def hint_pieces(self) -> list[Piece]:
        """Returns what the hint line shows when there is nothing to say."""
        return self.key_pieces(self.contexts())

    def key_pieces(self, contexts: Iterable[Context], *, chord: bool = False) -> list[Piece]:
        """Returns keys and labels of the actions of `contexts`; what cannot run now is dim."""
        pieces = [Piece(" ")]
        for context in contexts:
            for action in REGISTRY:
                if action.context is context and action.footer:
                    off = action.why_disabled(self.facts(action)) is not None
                    key = self.keymap.chord(action.id) if chord else self.keymap.shown(action.id)
                    pieces.append(Piece(f"{key} ", "dim" if off else "key", action.id))
                    pieces.append(Piece(f"{action.label}  ", "dim" if off else "", action.id))
        return pieces

    # --- actions that every screen knows

    def do_back(self) -> None:
        """Back to the screen below."""
        self.app.pop_screen()

    def do_help(self) -> None:
        """All keys."""
        from nd7tui.screens.help import HelpScreen

        if not isinstance(self, HelpScreen):
            self.app.push_screen(HelpScreen())

    do_home_help = do_back_help = do_ended_help = do_denials_help = do_log_help = do_help

    def do_quit(self) -> None:
        """Leaves; the app asks when a program still runs."""
        self.app.call_later(self.app.run_action, "leave")

    def do_mouse(self) -> None:
        """Mouse capture on or off."""
        self.app.call_later(self.app.run_action, "mouse")

    do_home_quit = do_ended_quit = do_quit
