"""Reading an agent's own command line without being that agent.

Rule: find the few options nd7 must merge with, pass everything else through untouched and in order. Where a word could
be read in two ways the harmless reading wins; the caller says which one that is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nd7tui.engine.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence


@dataclass(frozen=True, slots=True)
class Word:
    """One option or operand.

    Attributes:
        start: Index of its first argument.
        end: Index after its last argument.
        name: The option's name (`--settings`, `-c`), empty for an operand.
        value: The option's value, None when it has none.
    """

    start: int
    end: int
    name: str
    value: str | None


def words(args: Sequence[str], valued: Container[str]) -> Iterator[Word]:
    """Yields options and operands up to `--`; options named in `valued` take the next argument as their value."""
    at = 0
    while at < len(args) and args[at] != "--":
        word = _word(args, at, valued)
        yield word
        at = word.end


def without(args: Sequence[str], taken: Sequence[Word]) -> list[str]:
    """Returns the arguments that belong to none of the words."""
    gone = {at for word in taken for at in range(word.start, word.end)}
    return [arg for at, arg in enumerate(args) if at not in gone]


def _word(args: Sequence[str], at: int, valued: Container[str]) -> Word:
    arg = args[at]
    if arg == "-" or not arg.startswith("-"):
        return Word(at, at + 1, "", arg)
    name, equals, value = arg.partition("=")
    if equals:
        return Word(at, at + 1, name, value)
    if arg in valued and at + 1 < len(args):
        return Word(at, at + 2, arg, args[at + 1])
    return Word(at, at + 1, arg, None)
