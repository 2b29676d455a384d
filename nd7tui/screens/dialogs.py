"""Questions: they say exactly what would happen, and enter alone changes nothing.

Rule: the button that changes nothing has the focus. Text is shown as it is, never as markup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Static
from textual.widgets.button import ButtonVariant  # noqa: TC002

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType


class Confirm(ModalScreen[bool]):
    """Asks once; dismissed with True only by the button that says what it does."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape", "cancel", "cancel"), ("left", "app.focus_previous", ""), ("right", "app.focus_next", ""),
    ]  # fmt: skip

    DEFAULT_CSS = """
    Confirm { align: center middle; background: $background 60%; }
    Confirm > Vertical {
        width: auto; max-width: 96%; min-width: 36; height: auto; max-height: 96%;
        border: solid $accent; background: $surface; padding: 0 2; overflow-y: auto;
    }
    Confirm > Vertical.-danger { border: heavy $error; }
    Confirm Static { width: auto; max-width: 100%; }
    Confirm Horizontal { height: auto; width: auto; margin-top: 1; }
    Confirm Button { margin-right: 2; min-width: 12; }
    Confirm Button:focus { text-style: bold reverse; }
    """

    def __init__(self, title: str, lines: Sequence[str], yes: str, *, danger: bool = False) -> None:
        super().__init__()
        self._title = title
        self._lines = lines
        self._yes = yes
        self._danger = danger

    def compose(self) -> ComposeResult:
        """Composes the question."""
        with Vertical(classes="-danger" if self._danger else ""):
            yield Static(Content.styled(self._title, "bold"))
            for line in ("", *self._lines):
                yield Static(Content(line))
            with Horizontal():
                yield Button("Cancel", id="cancel", compact=True)
                danger: ButtonVariant = "error" if self._danger else "primary"
                yield Button(Content(self._yes), id="yes", variant=danger, compact=True)

    def on_mount(self) -> None:
        """Enter cancels."""
        self.query_one("#cancel", Button).focus()

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_cancel(self) -> None:
        """Changes nothing."""
        self.dismiss(result=False)
