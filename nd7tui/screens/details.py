"""Everything about one denial or one frame, over the screen it belongs to.

Rule: the whole payload, pretty, folded to the width, with nothing in it that could steer the terminal.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, ClassVar

from textual.screen import ModalScreen

from nd7tui.engine.log.faults import FrameError
from nd7tui.engine.log.frame import parse
from nd7tui.widgets.cells import Row, clean, clock, date
from nd7tui.widgets.row_view import TextView

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from nd7tui.engine.log.frame import Frame
    from nd7tui.engine.policy.rules import Verdict
    from nd7tui.widgets.denials import DenialRow

MOST_LINES = 20_000
MOST_FIND = 64 << 20


def fold(text: str, width: int, role: str = "", indent: int = 0) -> list[Row]:
    """Returns a text, its line breaks kept, as rows of at most `width` characters."""
    rows: list[Row] = []
    room = max(8, width - indent)
    for line in text.splitlines() or [""]:
        safe = clean(line)
        starts = range(0, max(1, len(safe)), room)
        rows += [[(" " * (indent if start else 0) + safe[start : start + room], role)] for start in starts]
    return rows


def _value(value: Any, width: int) -> list[Row]:
    """Returns a JSON value; long text is shown as text, not as one endless JSON string."""
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    return [[("  ", ""), *row] for row in fold(text, width - 2)]


def frame_rows(frame: Frame, width: int) -> list[Row]:
    """Returns a frame for the details pane: envelope, then each member of the body."""
    rows: list[Row] = [
        [(f"frame {frame.seq}  ", "strong"), (clean(frame.kind), "accent"), (f"  from {clean(frame.source)}", "")],
        [(f"{date(frame.ts)}:{clock(frame.ts)[-2:]}  on {clean(frame.host)}", "dim")],
        [],
    ]
    for name, value in frame.body.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if "\n" not in text and len(text) + len(name) < width - 4:
            rows.append([(f"{clean(name)}: ", "accent"), (clean(text), "")])
            continue
        rows += [[(f"{clean(name)}:", "accent")], *_value(value, width)]
        if len(rows) > MOST_LINES:
            rows = [*rows[:MOST_LINES], [("… cut here; nd7 show --json has all of it", "warn")]]
            break
    return [*rows, [], [(f"prev {frame.prev}", "dim")], [(f"hash {frame.hash}", "dim")]]


def denial_rows(row: DenialRow, verdict: Verdict, width: int) -> list[Row]:
    """Returns everything known about a denial."""
    body = row.body
    ancestors = body.get("ancestors")
    chain = " ← ".join(str(pid) for pid in ancestors) if isinstance(ancestors, list) else ""
    by = f" (rule {verdict.rule.id}, {verdict.rule.scope.value})" if verdict.rule else ""
    facts = [
        ("refused", f"{row.access.value} {row.target}"),
        ("how often", f"{row.count}, first {clock(row.first_ts)}, last {clock(row.last_ts)}"),
        ("by", f"{row.comm} (pid {body.get('pid', '?')}), {body.get('exe', 'program unknown')}"),
        ("ancestors", chain or "unknown"),
        ("system call", f"{body.get('op', '?')}, answered {body.get('errno', '?')}"),
        ("reason then", str(body.get("reason", ""))),
        ("policy now", f"{verdict.effect.value}: {verdict.reason}{by}"),
    ]
    if body.get("tool_use_id"):
        facts.append(("tool call", str(body["tool_use_id"])))
    rows: list[Row] = []
    for name, text in facts:
        first, *rest = fold(text, width - 14)
        rows.append([(f"{name:<13} ", "accent"), *first])
        rows += [[(" " * 14, ""), *more] for more in rest]
    rows += [[], [("the newest frame about it:", "dim")], []]
    return rows + frame_rows(row.frames[-1], width)


def read_frame(events: str, seq: int) -> Frame | None:
    """Returns one frame of a log by its position, looked for from the end; None when it is not near."""
    try:
        with open(events, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - MOST_FIND))
            lines = file.read().splitlines(keepends=True)
    except OSError:
        return None
    last = _frame(lines[-1]) if lines else None
    index = None if last is None else len(lines) - 1 - (last.seq - seq)
    if index is None or not 0 <= index < len(lines):
        return None
    found = _frame(lines[index])
    return found if found is not None and found.seq == seq else None


def _frame(line: bytes) -> Frame | None:
    try:
        return parse(line)
    except FrameError:
        return None


class Details(ModalScreen[None]):
    """A text over the screen; any of its keys closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape", "close", "close"), ("enter", "close", "close"), ("q", "close", "close"),
    ]  # fmt: skip

    DEFAULT_CSS = """
    Details { align: center middle; background: $background 60%; }
    Details > TextView { width: 92%; height: 90%; border: solid $accent; padding: 0 1; background: $surface; }
    """

    heading = "details"

    def compose(self) -> ComposeResult:
        """Composes the text."""
        view = TextView()
        view.border_title = self.heading
        view.border_subtitle = "esc closes, arrows scroll"
        yield view

    def on_mount(self) -> None:
        """Writes the text once the width is known."""
        self.call_after_refresh(self._fill)

    def on_resize(self) -> None:
        """Folds again."""
        self.call_after_refresh(self._fill)

    def _fill(self) -> None:
        view = self.query_one(TextView)
        view.show(self.rows(max(20, view.scrollable_content_region.width)))
        view.focus()

    def rows(self, width: int) -> list[Row]:
        """Returns the text."""
        raise NotImplementedError

    def action_close(self) -> None:
        """Back."""
        self.dismiss(None)


class FrameDetails(Details):
    """One frame."""

    heading = "frame"

    def __init__(self, frame: Frame) -> None:
        super().__init__()
        self.frame = frame

    def rows(self, width: int) -> list[Row]:
        """Returns the frame."""
        return frame_rows(self.frame, width)


class DenialDetails(Details):
    """One denial."""

    heading = "denial"

    def __init__(self, row: DenialRow, verdict: Verdict) -> None:
        super().__init__()
        self.row = row
        self.verdict = verdict

    def rows(self, width: int) -> list[Row]:
        """Returns the denial."""
        return denial_rows(self.row, self.verdict, width)
