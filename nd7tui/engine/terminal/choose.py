"""Which emulator runs, and why.

Rule: the fast core first, the pure one where it cannot load, and never silently: the choice carries a sentence for the
person whenever it is not the first one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nd7tui.engine.terminal.errors import EngineMissingError

if TYPE_CHECKING:
    from nd7tui.engine.terminal.protocol import Engine

ENGINES = ("ghostty", "bittty")


class Choice(NamedTuple):
    """The emulator that was made.

    Attributes:
        engine: It.
        notice: Why it is not the preferred one, one line for the person; None when it is.
    """

    engine: Engine
    notice: str | None


def make(name: str, cols: int, rows: int) -> Engine:
    """Makes the engine of that name.

    Raises:
        ImportError: Its package is missing or does not fit.
        OSError: Its library cannot be loaded.
        ValueError: There is no engine of that name.
    """
    if name == "ghostty":
        from nd7tui.engine.terminal.ghostty import GhosttyEngine

        return GhosttyEngine(cols, rows)
    if name == "bittty":
        from nd7tui.engine.terminal.bittty import BitttyEngine

        return BitttyEngine(cols, rows)
    raise ValueError(name)


def choose(cols: int, rows: int, only: str | None = None) -> Choice:
    """Makes the best engine this machine has.

    Args:
        cols: Width in cells.
        rows: Height in cells.
        only: The one engine to try, or None for all in order.

    Raises:
        EngineMissingError: None can be made; tells each reason.
    """
    failed: list[tuple[str, str]] = []
    for name in (only,) if only else ENGINES:
        try:
            engine = make(name, cols, rows)
        except (ImportError, OSError, ValueError) as error:
            failed.append((name, str(error)))
            continue
        slow = "; ".join(f"{other}: {reason}" for other, reason in failed)
        return Choice(engine, f"terminal engine is {name} ({slow})" if failed else None)
    raise EngineMissingError(failed)
