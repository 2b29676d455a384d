"""The status line and the notices of a session, from what the feed knows. Pure.

Rule: what is really enforced comes first and in words; what is not known is said to be unknown. Colour only repeats.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nd7tui.widgets.bars import Piece

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nd7tui.engine.policy.document import RunRecord
    from nd7tui.screens.feed import Chain


def enforced(record: RunRecord | None, fault: str, *, ended: bool) -> list[Piece]:
    """Returns what the kernel enforces for the run."""
    if record is None:
        if ended:
            return [Piece(" nothing ran ", "bad")]
        return [Piece(" enforcement unknown yet ", "warn")] if not fault else [Piece(" record unreadable ", "bad")]
    real = record.enforced
    if real is None:
        return [Piece(" enforcement not stated yet ", "warn")]
    abi = Piece(f" Landlock {real.landlock_abi}", "ok") if real.landlock_abi else Piece(" NO LANDLOCK", "bad")
    listener = Piece(" + listener", "ok") if real.listener else Piece(" NO LISTENER", "bad")
    mode = Piece("" if real.mode == "default" else f", {real.mode}", "")
    partial = Piece(f" PARTIAL: {', '.join(real.partial)}", "bad") if real.partial else Piece("")
    return [abi, listener, mode, partial]


def chain_state(chain: Chain, *, short: bool = False) -> list[Piece]:
    """Returns the state of the chain as read so far."""
    if chain.damaged:
        return [Piece(f" chain DAMAGED: {chain.damaged}", "bad")]
    if not chain.frames:
        return [Piece(" no frames yet", "dim")]
    head = f" {chain.head[:8]}" if not short else ""
    return [Piece(f" chain ok {chain.frames}{head}" if short else f" chain ok, {chain.frames} frames,{head}", "")]


def run_state(*, running: bool, watched: bool, ending: str, pid: int | None) -> list[Piece]:
    """Returns whether the program runs."""
    if ending:
        return [Piece(f" {ending}", "strong")]
    if running or watched:
        return [Piece(f" {'running' if running else 'watched'}" + (f" (run {pid})" if pid else ""), "")]
    return [Piece(" starting", "dim")]


def unread(number: int, total: int) -> list[Piece]:
    """Returns how many denials nobody has looked at."""
    if number:
        return [Piece(f" {number} unread", "warn", "focus-denials")]
    return [Piece(f" {total} refused" if total else " nothing refused", "dim", "focus-denials")]


def status_line(width: int, parts: Mapping[str, list[Piece]]) -> list[Piece]:
    """Returns the line for `width` cells: the parts in order, those that do not fit left out from the end.

    Args:
        width: Cells.
        parts: In order of importance; each is one group.
    """
    line: list[Piece] = []
    used = 0
    for group in parts.values():
        length = sum(len(piece.text) for piece in group) + (3 if line else 0)
        if line and used + length > width:
            break
        if line:
            line.append(Piece(" │", "dim"))
        line += group
        used += length
    return line


def ending_words(status: int | None, signal: int | None, body: Mapping[str, object] | None) -> str:
    """Returns how the program ended, in words, from the pane's child or else the log's last frame."""
    if body is not None and status is None:
        signal = body["signal"] if isinstance(body.get("signal"), int) else None  # type: ignore[assignment]
        status = body["exit"] if isinstance(body.get("exit"), int) else None  # type: ignore[assignment]
    if signal:
        return f"ended by signal {signal}"
    return "ended" if status is None else f"ended, exit status {status}"


def program_name(argv: tuple[str, ...]) -> str:
    """Returns a program's name for titles."""
    return os.path.basename(argv[0]) if argv else "?"
