"""What the parts of the UI tell each other.

Rule: small, frozen, about what happened; who listens decides. They carry view facts only, never the truth about a run
(that is its log and its rule file).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from nd7tui.screens.feed import News


@dataclass
class Polled(Message):
    """A session's log or rule file has news."""

    news: News


@dataclass
class VerifyProgress(Message):
    """A chain is being checked: bytes done of bytes there are."""

    session_id: str
    done: int
    size: int


@dataclass
class VerifyDone(Message):
    """A chain was checked.

    Attributes:
        fault: The first thing that is wrong, in words, or "".
    """

    session_id: str
    frames: int
    head: str
    fault: str = ""
