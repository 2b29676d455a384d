"""What this machine can enforce, and what nd7 misses here.

Rule: facts are gathered in one place (`gather`) and judged in another (`judge`, pure), one check per fact; a fact that
could not be found out is never ok. What a clean result does not prove: that a run is confined now. It says what the
kernel offers; what a run really got stands in its log's `run_start` and on the UI's status line.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nd7tui.engine.helpers import Helper


class State(StrEnum):
    """How a check came out; the value is the word printed."""

    OK = "ok"
    WARN = "warn"
    MISSING = "MISSING"


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report.

    Attributes:
        name: What was looked at.
        state: How it is.
        text: What was found.
        todo: What to do about it, empty when nothing needs doing.
    """

    name: str
    state: State
    text: str
    todo: str = ""


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent that was found; `version` is empty when it did not say."""

    name: str
    path: str
    version: str


@dataclass(frozen=True, slots=True)
class Terminal:
    """The terminal nd7 would draw on; `columns` and `rows` are 0 when there is none."""

    term: str
    colorterm: str
    columns: int
    rows: int
    tmux: bool


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything the checks judge.

    Attributes:
        system: `Linux` or another.
        release: The kernel's release.
        machine: The machine's architecture.
        landlock_abi: Landlock's version, 0 when there is none.
        listener_errno: 0 when a seccomp listener could be made, else the error's number.
        partial: What a run here could not enforce, in words.
        unix_diag: Whether the kernel tells who listens on unix sockets.
        hot_loop: `c` or `python`.
        helpers: nd7's own programs.
        terminal: The terminal.
        engine: The terminal engine's name, None when none loads.
        engine_notice: Why it is not the first choice, or why there is none.
        agents: The agents found.
        state_dir: Where logs go.
        state_writable: Whether logs can be written there.
        free_bytes: Free space there.
    """

    system: str
    release: str
    machine: str
    landlock_abi: int
    listener_errno: int
    partial: tuple[str, ...]
    unix_diag: bool
    hot_loop: str
    helpers: tuple[Helper, ...]
    terminal: Terminal
    engine: str | None
    engine_notice: str
    agents: tuple[Agent, ...]
    state_dir: str
    state_writable: bool
    free_bytes: int


# Source: landlock(7) and Documentation/userspace-api/landlock.rst, "Previous limitations".
LANDLOCK: tuple[tuple[int, str], ...] = (
    (1, "files and directories"),
    (2, "renames between directories"),
    (3, "truncation"),
    (4, "tcp connections"),
    (5, "device ioctls"),
    (6, "signals and abstract sockets"),
    (7, "audit log"),
)
_FULL_LANDLOCK = 6
_OLDEST = (5, 14)  # SECCOMP_ADDFD_FLAG_SEND
_MACHINES = frozenset({"x86_64", "aarch64"})
_LOW_SPACE = 100 << 20
_SMALL = (80, 24)


def judge(facts: Facts) -> list[Check]:
    """Returns the checks in the order they are printed."""
    return [
        _kernel(facts),
        _landlock(facts),
        _listener(facts.listener_errno),
        *_partial(facts.partial),
        _unix_diag(ok=facts.unix_diag),
        _hot_loop(facts.hot_loop),
        *map(_helper, facts.helpers),
        _terminal(facts.terminal),
        _engine(facts),
        *_agents(facts.agents),
        _state(facts),
    ]


def _kernel(facts: Facts) -> Check:
    text = f"{facts.system} {facts.release} {facts.machine}"
    if facts.system != "Linux":
        return Check("kernel", State.MISSING, text, "nd7 confines programs on Linux only")
    if facts.machine not in _MACHINES:
        return Check("kernel", State.MISSING, text, "nd7 knows the system calls of x86_64 and aarch64 only")
    if kernel_version(facts.release) < _OLDEST:
        return Check("kernel", State.MISSING, text, "nd7 needs Linux 5.14, and 6.12 to enforce everything")
    return Check("kernel", State.OK, text)


def kernel_version(release: str) -> tuple[int, int]:
    """Returns major and minor of a kernel release such as `6.18.44-generic`; (0, 0) when it has none."""
    found = re.match(r"(\d+)\.(\d+)", release)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _landlock(facts: Facts) -> Check:
    abi = facts.landlock_abi
    if abi < 1:
        todo = "boot with landlock among the kernel parameter lsm=… (a kernel of 5.13 or newer)"
        return Check("landlock", State.MISSING, "not available: there is no floor to enforce the policy", todo)
    has = ", ".join(what for level, what in LANDLOCK if level <= abi)
    if abi < _FULL_LANDLOCK:
        return Check("landlock", State.WARN, f"ABI {abi}: {has}", "Linux 6.12 has all that nd7 uses")
    return Check("landlock", State.OK, f"ABI {abi}: {has}")


def _listener(error: int) -> Check:
    import errno

    if not error:
        return Check("listener", State.OK, "seccomp user notification works")
    if error == errno.EBUSY:
        todo = "this shell is inside a sandbox that has a listener already; start nd7 outside of it"
        return Check("listener", State.MISSING, "taken: the kernel allows one per process tree", todo)
    todo = "a kernel with CONFIG_SECCOMP_FILTER; in a container, a seccomp profile that allows seccomp(2)"
    return Check("listener", State.MISSING, f"cannot be made: {os.strerror(error)}", todo)


def _partial(partial: tuple[str, ...]) -> Iterator[Check]:
    for what in partial:
        yield Check("not enforced", State.WARN, what, "nd7 run refuses to start here without --allow-partial")


def _unix_diag(*, ok: bool) -> Check:
    if ok:
        return Check("unix_diag", State.OK, "the kernel tells whose a listening unix socket is")
    todo = "modprobe unix_diag"
    return Check("unix_diag", State.WARN, "unix sockets of the session itself are refused too", todo)


def _hot_loop(kind: str) -> Check:
    if kind == "c":
        return Check("hot loop", State.OK, "compiled")
    todo = "install a C compiler and Python's headers, then install nd7 again"
    return Check("hot loop", State.WARN, "the Python fallback: opens cost about twice as much", todo)


def _helper(helper: Helper) -> Check:
    if helper.path is None:
        return Check(helper.name, State.MISSING, helper.fault or "not found", "install nd7 again: it is built with it")
    if helper.fault:
        return Check(helper.name, State.MISSING, f"{helper.path}: {helper.fault}", "nd7 run refuses to start with it")
    return Check(helper.name, State.OK, helper.path)


def _terminal(terminal: Terminal) -> Check:
    if not terminal.columns:
        return Check("terminal", State.WARN, "none: nd7 run works, nd7 tui needs one")
    colours = "24-bit colour" if terminal.colorterm in {"truecolor", "24bit"} else "256 colours or fewer"
    text = f"{terminal.term or 'TERM is not set'}, {terminal.columns}x{terminal.rows}, {colours}"
    text += ", inside tmux" * terminal.tmux
    if terminal.term in {"", "dumb"}:
        return Check("terminal", State.WARN, text, "set TERM to what your terminal is")
    if terminal.columns < _SMALL[0] or terminal.rows < _SMALL[1]:
        return Check("terminal", State.WARN, text, f"at {_SMALL[0]}x{_SMALL[1]} pane and denials fit side by side")
    return Check("terminal", State.OK, text)


def _engine(facts: Facts) -> Check:
    if facts.engine is None:
        return Check("terminal engine", State.MISSING, facts.engine_notice or "none loads", "pip install bittty")
    state = State.WARN if facts.engine_notice else State.OK
    return Check("terminal engine", state, facts.engine_notice or facts.engine)


def _agents(agents: tuple[Agent, ...]) -> Iterator[Check]:
    if not agents:
        yield Check("agents", State.WARN, "neither claude nor codex found", "nd7 tui demo works without one")
    for agent in agents:
        state = State.OK if agent.version else State.WARN
        yield Check(agent.name, state, f"{agent.path}: {agent.version or 'did not say its version'}")


def _state(facts: Facts) -> Check:
    text = f"{facts.state_dir}, {facts.free_bytes >> 20} MiB free"
    if not facts.state_writable:
        return Check("logs", State.MISSING, f"{text}, not writable", "nd7 records every run there; make it writable")
    if facts.free_bytes < _LOW_SPACE:
        return Check("logs", State.WARN, text, "a run stops recording when the disk is full")
    return Check("logs", State.OK, text)


def healthy(checks: list[Check]) -> bool:
    """Tells whether nothing that nd7 needs is missing."""
    return all(check.state is not State.MISSING for check in checks)
