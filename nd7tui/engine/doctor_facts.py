"""Finding out what `doctor.py` judges.

Rule: look without leaving a trace: the kernel is tried in a child that ends at once, nothing is created on disk, and
the only programs started are the agents, for their version.
"""

from __future__ import annotations

import os
import platform
import sys
from contextlib import suppress

from nd7tui.engine import helpers, paths
from nd7tui.engine.doctor import Agent, Facts, Terminal

_VERSION_SECONDS = 5
_UNTRIED = 255


def gather() -> Facts:
    """Returns the facts of this machine, this user and this terminal."""
    system, release, machine = platform.system(), platform.release(), platform.machine()
    linux = system == "Linux"
    engine, notice = terminal_engine()
    abi, partial, loop = _sandbox() if linux else (0, (), "python")
    where = existing(paths.state_dir())
    return Facts(
        system=system,
        release=release,
        machine=machine,
        landlock_abi=abi,
        listener_errno=try_listener() if linux else _UNTRIED,
        partial=partial,
        unix_diag=_unix_diag() if linux else False,
        hot_loop=loop,
        helpers=helpers.find(),
        terminal=terminal(),
        engine=engine,
        engine_notice=notice,
        agents=agents(),
        state_dir=paths.state_dir(),
        state_writable=writable(where),
        free_bytes=free_bytes(where),
    )


def try_listener() -> int:
    """Makes a seccomp listener in a child process; returns 0, or the errno that stopped it."""
    pid = os.fork()
    if pid == 0:
        os._exit(_make_listener())
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else _UNTRIED


def _make_listener() -> int:
    import ctypes

    from nd7tui.engine.sandbox import abi

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    allow_all = ctypes.create_string_buffer(
        (6).to_bytes(2, sys.byteorder) + bytes(2) + abi.SECCOMP_RET_ALLOW.to_bytes(4, sys.byteorder), 8
    )
    program = Program(1, ctypes.addressof(allow_all))
    try:
        abi.syscall(abi.NR["prctl"], abi.PR_SET_NO_NEW_PRIVS, 1)
        flags = abi.SECCOMP_FILTER_FLAG_NEW_LISTENER
        abi.syscall(abi.NR["seccomp"], abi.SECCOMP_SET_MODE_FILTER, flags, ctypes.addressof(program))
    except OSError as error:
        return error.errno or _UNTRIED
    return 0


def _sandbox() -> tuple[int, tuple[str, ...], str]:
    from nd7tui.engine.sandbox.prepare import probe

    found = probe()
    return found.landlock_abi, tuple(found.partial), found.hot_loop


def _unix_diag() -> bool:
    from nd7tui.engine.sandbox.unixdiag import available

    return available()


def terminal() -> Terminal:
    """Returns the terminal of this process, also when some of its streams are pipes."""
    columns = rows = 0
    for fd in (1, 2, 0):
        with suppress(OSError):
            columns, rows = os.get_terminal_size(fd)
            break
    get = os.environ.get
    return Terminal(get("TERM", ""), get("COLORTERM", ""), columns, rows, bool(get("TMUX")))


def terminal_engine() -> tuple[str | None, str]:
    """Returns the terminal engine that loads here and what to tell about it."""
    from nd7tui.engine.terminal.choose import choose
    from nd7tui.engine.terminal.errors import EngineMissingError

    try:
        chosen = choose(80, 24)
    except EngineMissingError as error:
        return None, str(error)
    return chosen.engine.name, chosen.notice or ""


def agents() -> tuple[Agent, ...]:
    """Returns the agents in PATH with the version they report."""
    from nd7tui.engine.agents.registry import AGENTS, find_program

    found = ((name, find_program(name)) for name in AGENTS)
    return tuple(Agent(name, path, agent_version(path)) for name, path in found if path)


def agent_version(path: str) -> str:
    """Returns the first line that `path --version` prints, empty when it does not within a few seconds."""
    import subprocess

    try:
        done = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_VERSION_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = done.stdout.decode(errors="replace").splitlines()
    return "".join(c for c in lines[0] if c.isprintable())[:80] if lines else ""


def existing(path: str) -> str:
    """Returns the nearest ancestor of `path`, or itself, that exists."""
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return path


def writable(path: str) -> bool:
    """Tells whether entries can be made in an existing directory (a guess by its mode; nothing is created)."""
    try:
        read_only = bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False
    return os.path.isdir(path) and not read_only and os.access(path, os.W_OK | os.X_OK)


def free_bytes(path: str) -> int:
    """Returns the bytes an ordinary user can still write on the file system of `path`, 0 when unknown."""
    try:
        space = os.statvfs(path)
    except OSError:
        return 0
    return space.f_bavail * space.f_frsize
