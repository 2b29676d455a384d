"""The members of a document that people may have edited, taken one by one and checked.

Rule: what is missing, left over, or of the wrong type is an error that names the member. Pure; shared by the rule
file and the user's configuration.
"""

from __future__ import annotations

from nd7tui.engine.policy.rules import is_canonical
from nd7tui.errors import Nd7Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RECORD = "record.json"


class RuleFileError(Nd7Error):
    """A file of rules cannot be taken at its word.

    Attributes:
        what: What is wrong.
        where: The member, such as `rules[2].target.port`; empty for the whole document.
        file: The file's name.
    """

    def __init__(self, what: str, where: str, hint: str | None = None, file: str = RECORD) -> None:
        super().__init__(f"{file}: {where}: {what}" if where else f"{file}: {what}", hint)
        self.what = what
        self.where = where
        self.file = file


def to_text(path: bytes) -> str:
    """Returns path bytes as text that gives the same bytes back, in every locale."""
    return path.decode("utf-8", "surrogateescape")


def to_bytes(text: str) -> bytes:
    """Returns the bytes that `to_text` was given.

    Raises:
        UnicodeEncodeError: `text` holds a surrogate that stands for no byte.
    """
    return text.encode("utf-8", "surrogateescape")


class Members:
    """The members of one JSON object, each taken once and checked; `done` refuses the rest."""

    def __init__(self, value: Any, where: str, file: str = RECORD) -> None:
        self.file = file
        if not isinstance(value, dict):
            raise RuleFileError("not an object", where, file=file)
        self._left = dict(value)
        self._where = where

    def _name(self, name: str) -> str:
        return f"{self._where}.{name}" if self._where else name

    def _wrong(self, name: str, wanted: str) -> RuleFileError:
        return RuleFileError(f"not {wanted}", self._name(name), file=self.file)

    def has(self, name: str) -> bool:
        """Tells whether the member is there and not taken yet."""
        return name in self._left

    def get(self, name: str) -> Any:
        """Returns the member without taking it, None when it is not there."""
        return self._left.get(name)

    def names(self) -> tuple[str, ...]:
        """Returns the members not taken yet."""
        return tuple(self._left)

    def take(self, name: str) -> Any:
        """Takes a member of any type; all others below take one of the type they name, or raise RuleFileError."""
        if name not in self._left:
            raise RuleFileError("missing", self._name(name), file=self.file)
        return self._left.pop(name)

    def done(self) -> None:
        """Refuses members that nobody took."""
        for name in self._left:
            raise RuleFileError("no such member", self._name(name), file=self.file)

    def integer(self, name: str, least: int | None = None) -> int:
        """Takes a whole number below 2^63."""
        value = self.take(name)
        if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 1 << 63:
            raise self._wrong(name, "a whole number")
        if least is not None and value < least:
            raise self._wrong(name, f"{least} or more")
        return value

    def integer_or_null(self, name: str) -> int | None:
        """Takes a whole number or null."""
        if name in self._left and self._left[name] is None:
            return self.take(name)  # type: ignore[no-any-return]
        return self.integer(name)

    def seconds(self, name: str) -> float:
        """Takes a number of seconds, not negative, at most a day."""
        value = self.take(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 86_400:
            raise self._wrong(name, "a number of seconds between 0 and 86400")
        return float(value)

    def boolean(self, name: str) -> bool:
        """Takes true or false."""
        value = self.take(name)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def text(self, name: str, least: int = 0) -> str:
        """Takes a string of at least `least` characters."""
        value = self.take(name)
        if not isinstance(value, str) or len(value) < least:
            raise self._wrong(name, "a string" if not least else "a string that is not empty")
        return value

    def one_of(self, name: str, words: tuple[str, ...]) -> str:
        """Takes one of these words."""
        value = self.take(name)
        if not isinstance(value, str) or value not in words:
            raise self._wrong(name, "one of " + ", ".join(str(word) for word in words))
        return value

    def items(self, name: str) -> list[Any]:
        """Takes a list."""
        value = self.take(name)
        if not isinstance(value, list):
            raise self._wrong(name, "a list")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Takes a list of strings."""
        value = self.items(name)
        if not all(isinstance(item, str) for item in value):
            raise self._wrong(name, "a list of strings")
        return tuple(value)

    def path(self, name: str, abstract: bool = False) -> bytes:
        """Takes a canonical absolute path; with `abstract` also `@name`."""
        return path_of(self.text(name), self._name(name), self.file, abstract)

    def paths(self, name: str) -> tuple[bytes, ...]:
        """Takes a list of canonical absolute paths."""
        return tuple(path_of(item, f"{self._name(name)}[{n}]", self.file) for n, item in enumerate(self.texts(name)))


def path_of(text: str, where: str, file: str, abstract: bool = False) -> bytes:
    """Returns the bytes of a canonical absolute path; with `abstract` also of `@name`.

    Raises:
        RuleFileError: It is none.
    """
    try:
        path = to_bytes(text)
    except UnicodeEncodeError as error:
        raise RuleFileError("not a path: a lone surrogate that stands for no byte", where, file=file) from error
    if not is_canonical(path) and not (abstract and path.startswith(b"@")):
        raise RuleFileError("not a canonical absolute path", where, file=file)
    return path
