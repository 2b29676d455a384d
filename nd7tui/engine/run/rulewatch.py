"""The rule file as the supervisor sees it: the only way in to a run.

Rule: the last good rules hold until there are better ones. A file that is broken, unreadable or gone changes nothing
that is enforced; it is told once per distinct content, and so is its repair. Only the rules are taken from the file:
what else it says about the run (its project, its log) is the supervisor's own knowledge.
Owns: what was last seen of the file. The file is somebody else's, save when it is gone: then it is written again, so
that there is something to put rules into.
Does not prove: who wrote a rule. The file lies in a directory that only the user may enter, out of reach of the run.
"""

from __future__ import annotations

import os
import stat
import time

from nd7tui.engine.policy.document import MAX_BYTES
from nd7tui.engine.policy.members import RuleFileError
from nd7tui.engine.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from nd7tui.engine.policy.rules import Rule

# A second change within one tick of the file system's clock leaves the same time on the file; a change that young is
# looked at again. Source: Linux timestamps files with the time of the last timer interrupt, 1 to 10 ms apart.
RACY = 50_000_000
GONE = "the rule file was gone and is written again"

Signature = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """What a look at the file came to.

    Attributes:
        rules: The rules that hold now.
        added: Rules that are new.
        removed: Rules that no longer hold.
        error: Why the file does not count, None when it does.
        digest: BLAKE3 of the file's content, empty when there is none.
    """

    rules: tuple[Rule, ...]
    added: tuple[Rule, ...] = ()
    removed: tuple[Rule, ...] = ()
    error: str | None = None
    digest: str = ""


class RuleWatch:
    """Watches one rule file.

    Args:
        path: The rule file, as it is now, holding `rules`.
        rules: The rules that hold.
        parse: Returns the rules in the file's bytes; raises RuleFileError.
        restore: Writes the file again from the rules given.
        clock: Wall clock, ns, as the file system's.
    """

    def __init__(
        self,
        path: str,
        rules: tuple[Rule, ...],
        parse: Callable[[bytes], tuple[Rule, ...]],
        restore: Callable[[tuple[Rule, ...]], None],
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._path = path
        self._rules = rules
        self._parse = parse
        self._restore = restore
        self._clock = clock
        self._seen: Signature = ()
        self._error: str | None = None
        self._error_of = ""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that hold."""
        return self._rules

    def poll(self) -> Change | None:
        """Looks at the file; returns what there is to tell and to do, None when there is nothing."""
        signature = _signature(self._path)
        if signature == self._seen and not self._is_young(signature):
            return None
        self._seen = signature
        try:
            content = _read(self._path)
        except FileNotFoundError:
            return self._gone()
        except OSError as error:
            return self._broken(f"record.json: {(error.strerror or str(error)).lower()}", f"errno {error.errno}")
        return self._take(content)

    def _take(self, content: bytes) -> Change | None:
        digest = _digest(content)
        try:
            rules = self._parse(content)
        except RuleFileError as error:
            return self._broken(str(error), digest)
        before = {rule.id: rule for rule in self._rules}
        after = {rule.id: rule for rule in rules}
        added = tuple(rule for rule in rules if before.get(rule.id) != rule)
        removed = tuple(rule for rule in self._rules if after.get(rule.id) != rule)
        repaired, self._error, self._error_of = self._error is not None, None, ""
        if not added and not removed and not repaired:
            return None
        self._rules = rules
        return Change(rules, added, removed, None, digest)

    def _gone(self) -> Change | None:
        try:
            self._restore(self._rules)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            return self._broken(f"the rule file is gone and cannot be written again: {reason}", "gone")
        self._seen = _signature(self._path)
        # It is good again at once; that it was gone is still told.
        self._error, self._error_of = None, ""
        return Change(self._rules, error=GONE)

    def _broken(self, error: str, content: str) -> Change | None:
        if self._error is not None and self._error_of == content:
            return None
        self._error, self._error_of = error, content
        return Change(self._rules, error=error, digest=content if len(content) == 64 else "")

    def _is_young(self, signature: Signature) -> bool:
        return bool(signature[3:]) and abs(self._clock() - signature[0]) < RACY


def _signature(path: str) -> Signature:
    """Returns what changes when the file does; shorter when it cannot be looked at."""
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError as error:
        return (error.errno or 0,)
    return (status.st_mtime_ns, status.st_ino, status.st_size, status.st_ctime_ns, status.st_mode)


def _read(path: str) -> bytes:
    """Returns the file's content; raises OSError unless it is a plain file of this user, RuleFileError never."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(fd, "rb", buffering=0) as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(None, "not a plain file")
        if status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise OSError(None, "others may write it")
        parts: list[bytes] = []
        # One byte more than may be: the parser says that it is too long.
        left = MAX_BYTES + 1
        while left and (part := file.read(left)):
            parts.append(part)
            left -= len(part)
    return b"".join(parts)


def _digest(content: bytes) -> str:
    from blake3 import blake3

    return blake3(content).hexdigest()
