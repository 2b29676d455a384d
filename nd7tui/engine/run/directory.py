"""The runs' directories, `~/.nd7/sessions/PID/`: making, finding, sweeping, and changing the rule file in one.

Rule: the rule file is only ever replaced as a whole, under a lock, so that a reader sees the old rules or the new ones
and two writers lose nothing. A directory belongs to one process, known by pid, start time and boot: a later process
with the same pid is another. What is a symbolic link or belongs to somebody else is refused, never followed.
Owns: the files `record.json`, `record.lock` and `process`. The hook socket beside them is the supervisor's.
Does not prove: who wrote the rules. Everything that runs as this user outside a run may.
"""

from __future__ import annotations

import contextlib
import os
import stat

from nd7tui.engine import locks, paths
from nd7tui.engine.policy.document import MAX_BYTES, RunRecord, parse, render
from nd7tui.engine.policy.members import RuleFileError
from nd7tui.engine.policy.rules import Effect
from nd7tui.engine.records import dataclass
from nd7tui.errors import RefusedError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from nd7tui.engine.policy.rules import Access, Rule, Target

RECORD = "record.json"
LOCK = "record.lock"
PROCESS = "process"
_NEW = ".new-"
_INSIDE = "inside a run nothing of this may be changed; run it in a terminal outside"


@dataclass(frozen=True, slots=True)
class Run:
    """One live run.

    Attributes:
        pid: Its supervisor's.
        dir: Its directory.
        record: What its rule file says; None when that cannot be read.
        fault: Why not, empty otherwise.
    """

    pid: int
    dir: str
    record: RunRecord | None
    fault: str = ""

    @property
    def path(self) -> str:
        """The path of the rule file."""
        return os.path.join(self.dir, RECORD)


# ---- Making and removing


def create(pid: int) -> str:
    """Makes the directory of the run whose supervisor is `pid`, mode 0700, in place of one left by a dead process.

    Returns:
        The directory's path.

    Raises:
        RefusedError: `~/.nd7` or its `sessions` is not a directory of this user's own.
    """
    top = paths.runs_dir()
    _own_directory(os.path.dirname(top))
    _own_directory(top)
    final = os.path.join(top, str(pid))
    fresh = os.path.join(top, f"{_NEW}{pid}")
    _remove_tree(fresh)
    os.mkdir(fresh, 0o700)
    # Complete before it has its name: a sweep in between sees no directory that says nothing of its process.
    _write(os.path.join(fresh, PROCESS), _identity(pid).encode())
    _remove_tree(final)
    os.rename(fresh, final)
    return final


def remove(directory: str) -> None:
    """Removes a run's directory; one that is gone already is fine."""
    _remove_tree(directory)


def sweep() -> list[int]:
    """Removes the directories of runs whose process is gone.

    Returns:
        Their pids.
    """
    swept = []
    for name, pid in _entries():
        directory = os.path.join(paths.runs_dir(), name)
        if not _is_alive(directory, pid):
            with contextlib.suppress(OSError):
                _remove_tree(directory)
                swept.append(pid)
    return swept


def _own_directory(path: str) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode):
        raise RefusedError(f"{path}: not a directory", "a symbolic link is not followed here")
    if status.st_uid != os.geteuid():
        raise RefusedError(f"{path}: belongs to somebody else (uid {status.st_uid})")
    if status.st_mode & 0o077:
        os.chmod(path, 0o700)


def _remove_tree(directory: str) -> None:
    if os.path.islink(directory):
        os.unlink(directory)
        return
    for top, _, files in os.walk(directory, topdown=False):
        for name in files:
            os.unlink(os.path.join(top, name))
        for name in os.listdir(top):
            # What is left are directories, empty by now, and links to directories.
            path = os.path.join(top, name)
            (os.unlink if os.path.islink(path) else os.rmdir)(path)
    with contextlib.suppress(FileNotFoundError):
        os.rmdir(directory)


# ---- Which process


def _identity(pid: int) -> str:
    """Returns boot and start time of a process; Source: proc_pid_stat(5), field 22, in clock ticks since boot.

    Wall-clock times would not do: a stepped clock would make every live run look like another's.

    Raises:
        OSError: There is no such process.
    """
    with open(f"/proc/{pid}/stat", "rb") as file:
        # The name, in parentheses, may itself hold spaces and parentheses.
        started = file.read().rpartition(b")")[2].split()[19]
    with open("/proc/sys/kernel/random/boot_id", "rb") as file:
        return f"{file.read().decode().strip()} {started.decode()}"


def _is_alive(directory: str, pid: int) -> bool:
    try:
        now = _identity(pid)
    except (FileNotFoundError, ProcessLookupError):
        return False
    except OSError:
        return True  # it cannot be looked at: never remove what may be in use
    try:
        with open(os.path.join(directory, PROCESS), encoding="ascii") as file:
            return file.read() == now
    except (OSError, UnicodeDecodeError):
        return True


def _entries() -> Iterator[tuple[str, int]]:
    """Yields the names in the runs' directory that stand for a pid, finished or in the making."""
    try:
        names = os.listdir(paths.runs_dir())
    except (FileNotFoundError, NotADirectoryError):
        return
    except PermissionError as error:
        raise UsageError("the runs cannot be listed", _INSIDE) from error
    for name in sorted(names):
        digits = name.removeprefix(_NEW)
        if digits.isascii() and digits.isdigit():
            yield name, int(digits)


# ---- Finding


def list_runs() -> list[Run]:
    """Returns the live runs by pid; one whose rule file cannot be read is among them, with the fault.

    Raises:
        UsageError: Called inside a run.
    """
    found = []
    for name, pid in _entries():
        directory = os.path.join(paths.runs_dir(), name)
        if not name.startswith(_NEW) and _is_alive(directory, pid):
            found.append(load(directory, pid))
    return sorted(found, key=lambda run: run.pid)


def load(directory: str, pid: int) -> Run:
    """Returns the run in `directory` as its rule file now describes it."""
    try:
        return Run(pid, directory, read_record(directory))
    except RuleFileError as error:
        return Run(pid, directory, None, str(error))
    except OSError as error:
        return Run(pid, directory, None, f"{RECORD}: {(error.strerror or str(error)).lower()}")


def find_run(session_pid: int | None) -> Run:
    """Returns the run meant: the one with this pid, or the only one.

    Raises:
        UsageError: There is none, or more than one and none was named.
    """
    runs = list_runs()
    if session_pid is not None:
        named = [run for run in runs if run.pid == session_pid]
        if not named:
            raise UsageError(f"no run has the pid {session_pid}", _known(runs))
        return named[0]
    if not runs:
        raise UsageError("no run is going", "start one with nd7 tui PROGRAM or nd7 run PROGRAM")
    if len(runs) > 1:
        raise UsageError(f"{len(runs)} runs are going; say which", _known(runs))
    return runs[0]


def _known(runs: list[Run]) -> str:
    if not runs:
        return "no run is going"
    return "; ".join(f"--session {run.pid} is {describe(run)}" for run in runs)


def describe(run: Run) -> str:
    """Returns the run's program and project in words."""
    if run.record is None:
        return run.fault
    program = os.path.basename(run.record.argv[0]) if run.record.argv else "?"
    return f"{program} in {os.fsdecode(run.record.project)}"


# ---- The rule file


def read_record(directory: str) -> RunRecord:
    """Reads a run's rule file.

    Raises:
        RuleFileError: It makes no sense, or is no plain file of this user's own.
        OSError: It cannot be read.
    """
    fd = os.open(os.path.join(directory, RECORD), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise RuleFileError("not a plain file of yours", "")
        return parse(file.read(MAX_BYTES + 1))


def record_of(run: Run) -> RunRecord:
    """Returns what the run's rule file says.

    Raises:
        UsageError: It cannot be read or makes no sense.
    """
    if run.record is None:
        raise UsageError(run.fault, f"the run keeps its last good rules; repair {run.path}")
    return run.record


def write_record(directory: str, record: RunRecord) -> None:
    """Replaces a run's rule file, under the lock."""
    with _locked(directory):
        _replace(directory, record)


def update(run: Run, change: Callable[[RunRecord], RunRecord]) -> RunRecord:
    """Reads the rule file, changes it and puts it back, all under the lock.

    Returns:
        The record as written.

    Raises:
        UsageError: The run has ended.
        RuleFileError: The file, edited by hand perhaps, makes no sense; it is left as it is.
    """
    try:
        with _locked(run.dir):
            record = change(read_record(run.dir))
            _replace(run.dir, record)
            return record
    except FileNotFoundError as error:
        raise UsageError(f"the run {run.pid} has ended") from error
    except PermissionError as error:
        raise UsageError(f"the rules of run {run.pid} cannot be changed", _INSIDE) from error
    except RuleFileError as error:
        error.hint = error.hint or f"the run keeps its last good rules; repair {run.path}"
        raise


def add_rule(run: Run, rule: Rule) -> RunRecord:
    """Adds a live rule; one with the same id is replaced. Raises as `update`."""
    return update(run, lambda record: record.with_rules((*_without(record, {rule.id}), rule)))


def remove_rule(run: Run, rule_id: str) -> bool:
    """Removes a live rule; returns whether it was there. Raises as `update`."""
    gone: list[Rule] = []

    def change(record: RunRecord) -> RunRecord:
        gone.extend(rule for rule in record.rules if rule.id == rule_id)
        return record.with_rules(_without(record, {rule_id}))

    update(run, change)
    return bool(gone)


def take_back(run: Run, target: Target, access: Access, effect: Effect = Effect.ALLOW) -> tuple[Rule, ...]:
    """Removes the live rules with this effect, for exactly this target and access.

    Returns:
        The rules removed.

    Raises:
        UsageError, RuleFileError: As `update`.
    """
    gone: list[Rule] = []

    def change(record: RunRecord) -> RunRecord:
        gone.extend(r for r in record.rules if (r.effect, r.target, r.access) == (effect, target, access))
        return record.with_rules(_without(record, {rule.id for rule in gone}))

    update(run, change)
    return tuple(gone)


def _without(record: RunRecord, ids: set[str]) -> tuple[Rule, ...]:
    return tuple(rule for rule in record.rules if rule.id not in ids)


def _locked(directory: str) -> AbstractContextManager[None]:
    return locks.locked(os.path.join(directory, LOCK), f"the rules in {directory}")


def _replace(directory: str, record: RunRecord) -> None:
    fresh = os.path.join(directory, f"{RECORD}.new")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(fresh)
    _write(fresh, render(record))
    os.rename(fresh, os.path.join(directory, RECORD))


def _write(path: str, content: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with open(fd, "wb") as file:
        file.write(content)
