"""Puts the parts of the session screen where `layout.plan` says.

Rule: the numbers are the plan's alone; a part without a box is not shown. No style sheet decides about places here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.geometry import NULL_OFFSET, Region, Spacing
from textual.layout import Layout, WidgetPlacement
from textual.widget import Widget

from nd7tui.screens.layout import Part, Plan, plan

if TYPE_CHECKING:
    from textual.geometry import Size


class _PlanLayout(Layout):
    """A Textual layout that asks the board."""

    name = "plan"

    def arrange(self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True) -> list[WidgetPlacement]:
        """Returns where each child is."""
        del greedy
        if not isinstance(parent, Board):
            return []
        boxes = parent.plan_for(size).boxes
        placements = []
        for child in children:
            box = boxes.get(Part(child.id)) if child.id in set(Part) else None
            if box is not None:
                region = Region(box.x, box.y, box.width, box.height)
                placements.append(WidgetPlacement(region, NULL_OFFSET, Spacing(), child))
        return placements


class Board(Widget):
    """The container of the session screen's parts; each child's id is a `layout.Part`.

    Attributes:
        pane: There is an agent pane.
        zoom: It is alone on the screen.
        notice: Something must be said.
        part: The part in use.
    """

    DEFAULT_CSS = "Board { width: 1fr; height: 1fr; overflow: hidden hidden; }"

    def __init__(self, *children: Widget, pane: bool) -> None:
        super().__init__(*children)
        self._default_layout = _PlanLayout()  # type: ignore[assignment]
        self.pane = pane
        self.zoom = False
        self.notice = False
        self.part = Part.PANE if pane else Part.DENIALS

    def plan_for(self, size: Size) -> Plan:
        """Returns the plan for a size, in cells."""
        return plan(size.width, size.height, pane=self.pane, zoom=self.zoom, notice=self.notice, focus=self.part)

    def change(self, *, zoom: bool | None = None, notice: bool | None = None, part: Part | None = None) -> None:
        """Changes what the plan depends on, and arranges the parts again if that matters."""
        before = self.plan_for(self.size)
        self.zoom = self.zoom if zoom is None else zoom
        self.notice = self.notice if notice is None else notice
        self.part = self.part if part is None else part
        if self.plan_for(self.size) != before:
            # Textual keeps arrangements by size, and a layout refresh forgets those of the ancestors only.
            self._clear_arrangement_cache()
            self.refresh(layout=True)
