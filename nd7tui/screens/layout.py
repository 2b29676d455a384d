"""Where the parts of the session screen are, as a pure function of the terminal's size.

Rule: the denials and the status line are on the screen at every size that shows anything; what is given up first is
the log, then the lists' height, never the fact that something was refused. Below 40x10 nothing fits, and that is said.

Owns: the numbers. Knows no widget; `draw` is for tests and for people changing the numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

LEAST = (40, 10)
WIDE_COLUMNS = 120
STACKED_COLUMNS = 80
STACKED_LINES = 18
PANE_SHARE = 0.62


class Shape(StrEnum):
    """How the screen is divided."""

    WIDE = "wide"
    STACKED = "stacked"
    NARROW = "narrow"
    ZOOMED = "zoomed"
    TOO_SMALL = "too small"


class Part(StrEnum):
    """The parts, by the id of their widget."""

    PANE = "pane"
    DENIALS = "denials"
    LOG = "log"
    NOTICE = "notice"
    STATUS = "status"
    HINTS = "hints"
    TOO_SMALL = "too-small"


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle of cells."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The division of one screen; a part that is missing is not shown."""

    shape: Shape
    boxes: dict[Part, Box]


def plan(
    width: int, height: int, *, pane: bool = True, zoom: bool = False, notice: bool = False, focus: Part = Part.PANE
) -> Plan:
    """Divides `width` x `height` cells.

    Args:
        width: Columns.
        height: Lines.
        pane: Whether there is an agent pane (a watched session has none).
        zoom: The pane alone.
        notice: Whether a line is needed for something that must not be missed.
        focus: The part in use; where there is no room for all, it gets the room.
    """
    if width < LEAST[0] or height < LEAST[1]:
        return Plan(Shape.TOO_SMALL, {Part.TOO_SMALL: Box(0, 0, width, height)})
    top = 1 if notice else 0
    boxes = {Part.STATUS: Box(0, height - 2, width, 1), Part.HINTS: Box(0, height - 1, width, 1)}
    if notice:
        boxes[Part.NOTICE] = Box(0, 0, width, 1)
    body = Box(0, top, width, height - 2 - top)
    shape, divided = _divide(body, pane=pane, zoom=zoom, focus=focus)
    return Plan(shape, boxes | divided)


def _divide(body: Box, *, pane: bool, zoom: bool, focus: Part) -> tuple[Shape, dict[Part, Box]]:
    if zoom and pane:
        return Shape.ZOOMED, {Part.PANE: body}
    if body.width >= WIDE_COLUMNS:
        return Shape.WIDE, _wide(body) if pane else _beside(body, 0.5)
    if body.width >= STACKED_COLUMNS and body.height + 2 >= STACKED_LINES:
        return Shape.STACKED, _stacked(body, focus) if pane else _over(body, body.height // 2)
    return Shape.NARROW, _narrow(body, focus) if pane else _over(body, (body.height + 1) // 2)


def _wide(body: Box) -> dict[Part, Box]:
    pane = max(80, round(body.width * PANE_SHARE))
    right = Box(body.x + pane, body.y, body.width - pane, body.height)
    return {Part.PANE: Box(body.x, body.y, pane, body.height), **_over(right, (body.height + 1) // 2)}


def _stacked(body: Box, focus: Part) -> dict[Part, Box]:
    # In use, a list gets a third of the screen; otherwise the program gets all but five lines of it.
    below = max(5, body.height // 4) if focus is Part.PANE else max(7, body.height // 2)
    pane = Box(body.x, body.y, body.width, body.height - below)
    share = 0.4 if focus is Part.LOG else 0.6
    return {Part.PANE: pane, **_beside(Box(body.x, pane.y + pane.height, body.width, below), share)}


def _narrow(body: Box, focus: Part) -> dict[Part, Box]:
    strip = min(3, max(1, (body.height - 6) // 4)) + 1
    if focus is Part.LOG:
        return {Part.LOG: _top(body, body.height - strip), Part.DENIALS: _bottom(body, strip)}
    if focus is Part.DENIALS:
        strip = max(strip, body.height * 2 // 3)
    return {Part.PANE: _top(body, body.height - strip), Part.DENIALS: _bottom(body, strip)}


def _over(box: Box, above: int) -> dict[Part, Box]:
    return {Part.DENIALS: _top(box, above), Part.LOG: _bottom(box, box.height - above)}


def _beside(box: Box, share: float) -> dict[Part, Box]:
    left = round(box.width * share)
    return {
        Part.DENIALS: Box(box.x, box.y, left, box.height),
        Part.LOG: Box(box.x + left, box.y, box.width - left, box.height),
    }


def _top(box: Box, height: int) -> Box:
    return Box(box.x, box.y, box.width, height)


def _bottom(box: Box, height: int) -> Box:
    return Box(box.x, box.y + box.height - height, box.width, height)


def draw(wanted: Plan, width: int, height: int) -> str:
    """Returns the plan as text, one letter a cell: the part's first letter, or `.` where nothing is."""
    cells = [["."] * width for _ in range(height)]
    for part, box in wanted.boxes.items():
        for y in range(box.y, box.y + box.height):
            for x in range(box.x, box.x + box.width):
                if cells[y][x] != ".":
                    raise ValueError(f"{part} overlaps {cells[y][x]} at {x},{y}")
                cells[y][x] = part.value[0].upper() if part is not Part.HINTS else "K"
    return "\n".join("".join(line) for line in cells)
