"""What the benchmarks share: a place that goes away, runs that take turns, Markdown tables.

Rule: a number is a ratio or a difference to a baseline of the same round. Machines are shared and noisy, so what is
compared takes turns, and medians are told with the middle half of the rounds.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Self

from nd7tui.engine import paths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

BIN = Path(sys.executable).parent
ND7 = str(BIN / "nd7")
ND7_EXEC = str(BIN / "nd7-exec")
MODES: dict[str, tuple[str, ...]] = {
    "unconfined": (),
    "default": (ND7, "run"),
    "fast": (ND7, "run", "--fast"),
}
TIMEOUT_SECONDS = 600


class FailedError(Exception):
    """A program did not do what is to be measured; holds what it said and what nd7 refused it."""


class World:
    """Directories of this benchmark alone, and an environment in which programs see nothing else of the user.

    Args:
        base: An empty directory outside of /tmp, which every run may write.
        tools: Programs whose directories belong into PATH.
    """

    def __init__(self, base: Path, tools: Iterable[str]) -> None:
        self.base = base
        self._output = base / "output"
        for name in ("home", "tmp"):
            (base / name).mkdir()
        found = [os.path.dirname(path) for path in map(shutil.which, tools) if path]
        self.env = {
            "PATH": ":".join(dict.fromkeys([str(BIN), *found, "/usr/bin", "/bin"])),
            "HOME": str(base / "home"),
            "TMPDIR": str(base / "tmp"),
            "XDG_STATE_HOME": str(base / "state"),
            "SHELL": "/bin/sh",
            "LANG": "C.UTF-8",
            "TERM": "dumb",
        }

    def directory(self, name: str) -> Path:
        """Returns a new directory; a run that is started there may write it."""
        path = self.base / name
        path.mkdir()
        return path

    def call(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None) -> str:
        """Runs a program that is not measured and returns its output; raises FailedError unless it ends with 0."""
        done = subprocess.run(
            argv, cwd=cwd, env=env or self.env, check=False, capture_output=True, text=True, timeout=TIMEOUT_SECONDS
        )
        if done.returncode:
            raise FailedError(f"status {done.returncode}: {' '.join(argv)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def seconds(self, argv: Sequence[str], cwd: Path) -> float:
        """Returns how long a program took, from its start to its end; raises FailedError unless it ends with 0."""
        with self._output.open("w+b") as output:
            start = time.perf_counter()
            with subprocess.Popen(
                argv, cwd=cwd, env=self.env, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            ) as process:
                try:
                    _wait(process)
                except BaseException:
                    process.terminate()
                    raise
                took = time.perf_counter() - start
                status = process.wait()
            if status:
                output.seek(0)
                said = output.read().decode(errors="replace")[-2000:]
                raise FailedError(f"status {status}: {' '.join(argv)}\n{said}")
        return took

    def confined_seconds(self, prefix: Sequence[str], argv: Sequence[str], cwd: Path) -> float:
        """Returns the same for a program under `nd7 run` (or nothing); raises FailedError when anything was refused."""
        if not prefix:
            return self.seconds(argv, cwd)
        session = str(uuid.uuid4())
        try:
            took = self.seconds([*prefix, "--session-id", session, *argv], cwd)
        except FailedError as error:
            denied = ""
            with contextlib.suppress(FailedError):  # no log: the run was not started
                denied = self.denials(session)
            raise FailedError(f"{error}\n{denied}") from error
        if denied := self.denials(session):
            raise FailedError(f"refused: {' '.join(argv)}\n{denied}")
        return took

    def denials(self, session: str) -> str:
        """Returns what was refused in a run, noise by rule left out."""
        return self.call([ND7, "denials", session], self.base)


def _wait(process: subprocess.Popen[bytes]) -> None:
    """Waits for a program's end. `Popen.wait` with a timeout looks only every now and then, up to 50 ms late."""
    end = os.pidfd_open(process.pid)
    try:
        if not select.select([end], [], [], TIMEOUT_SECONDS)[0]:
            raise FailedError(f"not ended after {TIMEOUT_SECONDS} s: {process.args}")
    finally:
        os.close(end)


@contextlib.contextmanager
def world(*tools: str) -> Iterator[World]:
    """Makes a World beneath the user's home, as projects are, and takes it away again."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    base = Path(tempfile.mkdtemp(prefix=".nd7-bench-", dir=paths.home()))
    try:
        made = World(base, tools)
        made.call([ND7, "run", "true"], made.directory("warm-up"))  # bytecode, page cache
        yield made
    finally:
        shutil.rmtree(base)


class Waiting:
    """A program that has said `ready` and goes on when told, so that the rules of its run can be changed before.

    Args:
        world: Where it runs.
        prefix: One of MODES.
        argv: The program.
        cwd: Its working directory, the project.
    """

    def __init__(self, world: World, prefix: Sequence[str], argv: Sequence[str], cwd: Path) -> None:
        self._world, self._cwd = world, cwd
        self._process = subprocess.Popen(
            [*prefix, *argv], cwd=cwd, env=world.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        if self._process.stdout is None or self._process.stdout.readline() != "ready\n":
            self.__exit__()
            raise FailedError("the program did not start, see above")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()

    def nd7(self, *argv: str) -> None:
        """Runs an nd7 command about this run."""
        self._world.call([ND7, *argv, "--session", str(self._process.pid)], self._cwd)

    def go(self) -> str:
        """Lets the program go on; returns the rest of its output."""
        output, _ = self._process.communicate("\n", TIMEOUT_SECONDS)
        if self._process.returncode:
            raise FailedError(f"status {self._process.returncode}, see above\n{output}")
        return output


def take_turns(measures: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Calls each measure once a round, each round beginning with another one."""
    found: dict[str, list[float]] = {name: [] for name in measures}
    names = list(measures)
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            found[name].append(measures[name]())
    return found


def spread(values: Sequence[float], digits: int) -> str:
    """Returns the median and, in brackets, the middle half."""
    middle = f"{statistics.median(values):.{digits}f}"
    if len(values) < 4:
        return middle
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle} ({low:.{digits}f}–{high:.{digits}f})"  # noqa: RUF001


def ratios(values: Sequence[float], baseline: Sequence[float]) -> list[float]:
    """Returns each round's ratio to the same round's baseline."""
    return [value / base for value, base in zip(values, baseline, strict=True)]


def differences(values: Sequence[float], baseline: Sequence[float]) -> list[float]:
    """Returns each round's difference to the same round's baseline."""
    return [value - base for value, base in zip(values, baseline, strict=True)]


class Table:
    """A Markdown table that is printed row by row, so that a long benchmark shows how far it is.

    Args:
        columns: The heads of the columns.
    """

    def __init__(self, *columns: str) -> None:
        self._columns = len(columns)
        self._failed: list[str] = []
        self._print(*columns)
        print("|" + "---|" * self._columns, flush=True)

    def _print(self, *cells: str) -> None:
        padding = [""] * (self._columns - len(cells))
        print(f"| {' | '.join([*cells, *padding])} |", flush=True)

    def row(self, name: str, measure: Callable[[], Sequence[str]]) -> None:
        """Measures and prints a row; a failure is a row too, and is told at the end."""
        try:
            self._print(name, *measure())
        except FailedError as error:
            self._print(name, "failed")
            self._failed.append(f"{name}: {error}")

    def end(self) -> int:
        """Tells of failures; returns the exit status."""
        for text in self._failed:
            print(f"\n{text}", file=sys.stderr)
        return 1 if self._failed else 0


def about(rounds: int) -> None:
    """Prints what the numbers were measured on."""
    loop = "C loop" if importlib.util.find_spec("nd7tui.engine.sandbox._hotloop") else "Python loop"
    python = sys.version.split()[0]
    where = f"Linux {os.uname().release.split('-')[0]} {os.uname().machine}, {os.cpu_count()} cores, Python {python}"
    print(f"{time.strftime('%Y-%m-%d')}, {loop}, {where}, {rounds} rounds\n", flush=True)
