"""Faults of the terminal room.

Rule: output of the program never raises one; these tell of the machine (no pty, no emulator, no program).
"""

from __future__ import annotations

from nd7tui.errors import Nd7Error


class TerminalError(Nd7Error):
    """The root of this family."""


class EngineMissingError(TerminalError):
    """No emulator core can be loaded.

    Attributes:
        tried: Pairs of engine name and why it could not be used.
    """

    def __init__(self, tried: list[tuple[str, str]]) -> None:
        why = "; ".join(f"{name}: {reason}" for name, reason in tried)
        super().__init__(f"no terminal engine can be loaded ({why})", hint="pip install pyghostty==0.1.3 bittty==0.3.0")
        self.tried = tried


class SpawnError(TerminalError):
    """The program could not be started on a pty.

    Attributes:
        argv: What was to be started.
        cause: The system's answer.
    """

    def __init__(self, argv: list[str], cause: OSError) -> None:
        super().__init__(f"cannot start {argv[0] if argv else '(nothing)'}: {cause.strerror or cause}")
        self.argv = argv
        self.cause = cause
