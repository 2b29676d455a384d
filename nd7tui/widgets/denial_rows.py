"""How a denial looks in a given width. Pure.

Rule: access and state are words beside their marks; the target gives up its middle last of all, since it is what a
person decides about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nd7tui.widgets.cells import Row, clean, clock, cut, cut_middle, tilde, width
from nd7tui.widgets.denials import SECOND, DenialRow, State

if TYPE_CHECKING:
    from nd7tui.engine.policy.rules import Access

ACCESS_MARKS = {"read": "◉", "write": "✎", "connect": "⇄"}
ONE_LINE = 70
WHO = 10
TIMES = "\N{MULTIPLICATION SIGN}"


def access_text(access: Access) -> str:
    """Returns mark and word for what was wanted."""
    return f"{ACCESS_MARKS[access.value]} {'connect' if access.value == 'connect' else access.value}"


def state_text(state: State, deadline: int, now: int) -> str:
    """Returns mark and word; an open question with the seconds left."""
    if state is State.ASK:
        return f"{state.mark} {state.word} {max(0, (deadline - now + SECOND - 1) // SECOND)}s"
    return f"{state.mark} {state.word}"


def times(count: int) -> str:
    """Returns how often, nothing for once."""
    return f"{TIMES}{count}" if count > 1 else ""


def one_line(row: DenialRow, state: State, now: int, cells: int, home: str) -> Row:
    """Returns a row on one line: state, access, target, program, count, time, as there is room."""
    verdict = state_text(state, row.deadline, now)
    head: Row = [
        ("● " if row.unread else "  ", "warn"),
        (f"{verdict:<12} ", state.role),
        (f"{access_text(row.access):<9} ", ""),
    ]
    tail: Row = []
    if cells >= ONE_LINE:
        who, how_often = cut(clean(row.comm), 12), times(row.count)
        tail = [(f" {who}", "accent"), (f" {how_often}", ""), (f" {clock(row.last_ts)}", "dim")]
    elif times(row.count):
        tail = [(f" {times(row.count)}", "")]
    taken = sum(width(text) for text, _ in head + tail)
    target = cut_middle(tilde(clean(row.target), home), max(4, cells - taken))
    gap = max(0, cells - taken - width(target))
    return [*head, (target, "strong"), (" " * gap, ""), *tail]


def two_lines(row: DenialRow, state: State, now: int, cells: int, home: str) -> list[Row]:
    """Returns a row on two lines: what became of it and who; below, the target."""
    verdict = state_text(state, row.deadline, now)
    left: Row = [
        ("● " if row.unread else "  ", "warn"),
        (f"{verdict:<12} ", state.role),
        (access_text(row.access), ""),
    ]
    below: Row = [("    ", ""), (cut_middle(tilde(clean(row.target), home), max(4, cells - 6 - WHO)), "strong")]
    when: Row = [(f"{times(row.count)}  ", ""), (clock(row.last_ts), "dim")]
    return [_apart(left, when, cells), _apart(below, [(cut(clean(row.comm), WHO), "accent")], cells)]


def _apart(left: Row, right: Row, cells: int) -> Row:
    gap = cells - sum(width(text) for text, _ in left + right)
    return [*left, (" " * max(1, gap), ""), *right]
