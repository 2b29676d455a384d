"""The root of every error a person may see.

Rule: an error says what, where and what to do. `str(error)` is one lower-case line without a final period;
`hint` is what to do about it. Each area of the engine has its own family below `Nd7Error`, with typed fields for
the raw evidence.
"""

from __future__ import annotations


class Nd7Error(Exception):
    """A fault that a person can act on; the command line prints it as `nd7: …`.

    Attributes:
        hint: What to do about it, one line, or None.
        exit_code: The status the command ends with (1: the answer is no).
    """

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(Nd7Error):
    """The words on the command line, or the state they ask for, make no sense (exit status 2)."""

    exit_code = 2


class RefusedError(Nd7Error):
    """nd7 would not start the program (exit status 126)."""

    exit_code = 126
