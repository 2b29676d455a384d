"""Starts a program inside the sandbox.

Rule: the program is confined before its first instruction. The child keeps no descriptor but 0, 1 and 2; the listener
reaches the supervisor by pidfd_getfd and stays in no process of the tree. The child builds its floor and confines
itself while the supervisor gets ready; it becomes the program when it is told to, and ends when it is not.
Source: seccomp(2), landlock_restrict_self(2), pidfd_getfd(2), capabilities(7).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import marshal
import os
import resource
import signal
import stat
import struct

from nd7tui.engine.policy.rules import Effect, PathTarget, Policy, Rule
from nd7tui.engine.records import dataclass, replace
from nd7tui.engine.sandbox import abi, mounts
from nd7tui.errors import RefusedError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from nd7tui.engine.sandbox.entries import Entry
    from nd7tui.engine.sandbox.gate import Gate
    from nd7tui.engine.sandbox.landlock import Ruleset
    from nd7tui.engine.sandbox.tree import Tree

# What root keeps: files, ids and its own processes. Gone: mounts, devices, raw sockets, modules, tracing, the clock.
_KEPT_CAPABILITIES = frozenset({0, 1, 2, 3, 4, 5, 6, 7, 8, 10})
_LAST_CAPABILITY = 63


@dataclass(frozen=True, slots=True)
class Started:
    """A confined program: its pid, its gate, its processes."""

    pid: int
    gate: Gate
    tree: Tree


def find_program(name: str, path: str, cwd: str) -> str:
    """Returns the absolute path of a program, looked up as execvp does.

    Raises:
        RefusedError: There is none, or it cannot be run.
    """
    candidates = (
        [os.path.join(cwd, name)] if "/" in name else [os.path.join(cwd, part or ".", name) for part in path.split(":")]
    )
    denied = None
    for candidate in candidates:
        if os.path.isfile(candidate):
            if os.access(candidate, os.X_OK):
                return os.path.normpath(candidate)
            denied = candidate
    if denied:
        raise RefusedError(f"{denied} is not executable", f"chmod +x {denied}")
    raise RefusedError(f"no program {name!r}", "give a path, or check $PATH")


def with_aliases(policy: Policy) -> Policy:
    """Returns the policy with every refused path refused under its other mount names too."""
    table = mounts.read()

    def others(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
        found = list(rules)
        for rule in rules:
            if rule.effect is not Effect.ALLOW and isinstance(rule.target, PathTarget):
                for number, alias in enumerate(table.aliases(rule.target.path)):
                    target = PathTarget(alias, rule.target.glob)
                    found.append(replace(rule, target=target, id=f"{rule.id}~{number}"))
        return tuple(found)

    return replace(policy, default=others(policy.default), never=others(policy.never))


def start(
    argv: list[str],
    env: dict[str, str],
    cwd: str,
    policy: Policy,
    *,
    rules_path: str | None = None,
    fast: bool = False,
    floor_policy: Policy | None = None,
) -> Started:
    """Starts `argv` confined: `begin` and `Beginning.finish` in one.

    Raises:
        RefusedError: The program cannot be found or run, or the kernel refused a step.
    """
    return begin(argv, env, cwd, with_aliases(policy), fast=fast, floor_policy=floor_policy).finish(rules_path)


def begin(
    argv: list[str],
    env: dict[str, str],
    cwd: str,
    policy: Policy,
    *,
    fast: bool = False,
    floor_policy: Policy | None = None,
) -> Beginning:
    """Makes the child that is going to be `argv`, and lets it confine itself.

    Args:
        argv: The program and its arguments.
        env: Its environment.
        cwd: Its working directory, the project.
        policy: What holds at the start, with the other names of `with_aliases`; the floor is made from it.
        fast: Opens that only read are not asked about.
        floor_policy: What the floor is made from when it is not `policy` itself.

    Raises:
        RefusedError: The program cannot be found.
    """
    program = find_program(argv[0], env.get("PATH", os.defpath), cwd)
    up_read, up_write = os.pipe()
    down_read, down_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.chdir(cwd)
            _confine(policy, floor_policy or policy, os.fsencode(cwd), fast, up_write, down_read)
            _exec(program, argv, env)
        except BaseException as error:  # noqa: BLE001 - the boundary of the child: say it and end
            number = error.errno if isinstance(error, OSError) else None
            _give_up(up_write, number or errno.EINVAL)
    os.close(up_write)
    os.close(down_read)
    _allow_more_descriptors()
    return Beginning(pid, policy, up_read, down_write, same_floor=floor_policy is None)


def _allow_more_descriptors() -> None:
    """Lets this process, not the program, have as many as it may: calls that wait hold some of them."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Beginning:
    """A child on its way to being the program; nothing of the program has run.

    Args:
        pid: The child.
        policy: What holds at the start.
        up: What the child tells.
        down: What it waits on.
        same_floor: The floor is made from `policy`.
    """

    def __init__(self, pid: int, policy: Policy, up: int, down: int, *, same_floor: bool) -> None:
        self.pid = pid
        self._policy = policy
        self._pipes = (up, down)
        self._same_floor = same_floor
        self._over = False

    def finish(self, rules_path: str | None = None) -> Started:
        """Waits until the child is confined and makes it the program.

        Args:
            rules_path: See `Gate`.

        Raises:
            RefusedError: The kernel refused a step, or the child was ended.
        """
        # Before the program begins: what is imported later could be a file that it has written.
        from nd7tui.engine.sandbox.coverage import unpacked
        from nd7tui.engine.sandbox.gate import Gate
        from nd7tui.engine.sandbox.ground import Ground
        from nd7tui.engine.sandbox.hotloop import open_listener
        from nd7tui.engine.sandbox.tree import Tree

        listener, granted, made = self._confined()
        tree = Tree(os.getpid(), self.pid)
        ground = Ground(self._policy, unpacked(granted), tree)
        if not self._same_floor:  # a floor made from the policy itself grants nothing that it refuses
            ground.set_policy(self._policy)
        gate = Gate(open_listener(listener, rules_path, (self._policy, made)), ground, rules_path)
        os.write(self._pipes[1], b"\0")
        self._close()
        return Started(self.pid, gate, tree)

    def cancel(self) -> None:
        """Ends the child, unless it has become the program; may be called at any time."""
        if not self._over:
            self._close()
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)

    def _close(self) -> None:
        self._over = True
        for fd in self._pipes:
            os.close(fd)

    def _confined(self) -> tuple[int, bytes, list[Entry]]:
        """Returns the listener, what the floor grants, and the entries for the compiled loop."""
        kind, number, told = _hear(self._pipes[0])
        if kind != 0:
            self._close()
            os.waitpid(self.pid, 0)  # it ends by itself, and says why
            raise RefusedError(f"cannot confine the program: {os.strerror(number)}", "nd7 doctor")
        try:
            # From our own child, before it is anybody else's.
            granted, made = marshal.loads(told)  # noqa: S302
            return _take(self.pid, number), granted, made
        except OSError as error:
            self.cancel()
            raise RefusedError(f"cannot take the listener: {error.strerror}", "nd7 doctor") from error


_TOLD = struct.Struct("=IiI")  # 0 or not, the listener's number or an errno, how many bytes follow


def _tell(up: int, kind: int, number: int, told: bytes = b"") -> None:
    left = memoryview(_TOLD.pack(kind, number, len(told)) + told)
    while left:
        left = left[os.write(up, left) :]


def _hear(up: int) -> tuple[int, int, bytes]:
    with os.fdopen(up, "rb", closefd=False) as file:
        head = file.read(_TOLD.size)
        kind, number, size = _TOLD.unpack(head) if len(head) == _TOLD.size else (1, errno.EIO, 0)
        told = file.read(size)
        return (kind, number, told) if len(told) == size else (1, errno.EIO, b"")


def _take(pid: int, number: int) -> int:
    """Copies the listener from the child; raises OSError."""
    pidfd = os.pidfd_open(pid)
    try:
        return abi.syscall(abi.NR["pidfd_getfd"], pidfd, number, 0)
    finally:
        os.close(pidfd)


def _confine(policy: Policy, floor_policy: Policy, cwd: bytes, fast: bool, up: int, down: int) -> None:
    """Confines this process, the child, and waits for leave to become the program."""
    # Only the child needs them: they are imported while the supervisor imports what only it needs.
    from nd7tui.engine.sandbox import filter as seccomp_filter
    from nd7tui.engine.sandbox import floor
    from nd7tui.engine.sandbox.entries import entries

    ruleset, coverage = floor.build(floor_policy, cwd)
    told = marshal.dumps((coverage.packed(), entries(policy, coverage)))
    listener = _restrict(ruleset, seccomp_filter.assemble(fast=fast), up, down)
    _tell(up, 0, listener, told)
    if os.read(down, 1) != b"\0":
        os._exit(126)


def _restrict(ruleset: Ruleset, code: bytes, up: int, down: int) -> int:
    _close_all_but(up, down, ruleset.fd)
    abi.syscall(abi.NR["prctl"], abi.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if os.geteuid() == 0:
        _drop_capabilities()
    _inherit_no_capabilities()
    ruleset.restrict()
    os.close(ruleset.fd)
    return _install(code)


def _close_all_but(*kept: int) -> None:
    at = 3
    for fd in sorted(kept):
        if fd > at:
            os.closerange(at, fd)
        at = fd + 1
    abi.syscall(abi.NR["close_range"], at, 0xFFFFFFFF, 0)


def _drop_capabilities() -> None:
    for capability in range(_LAST_CAPABILITY + 1):
        if capability not in _KEPT_CAPABILITIES:
            try:
                abi.syscall(abi.NR["prctl"], abi.PR_CAPBSET_DROP, capability, 0, 0, 0)
            except OSError:
                break  # beyond the kernel's last one


def _inherit_no_capabilities() -> None:
    """Empties the sets that pass what was dropped on to the program: its exec adds them to what is bounded."""
    abi.syscall(abi.NR["prctl"], abi.PR_CAP_AMBIENT, abi.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = ctypes.create_string_buffer(struct.pack("=Ii", abi.LINUX_CAPABILITY_VERSION_3, 0), 8)
    data = ctypes.create_string_buffer(24)
    abi.syscall(abi.NR["capget"], ctypes.addressof(header), ctypes.addressof(data))
    words = list(struct.unpack("=6I", data.raw))
    words[2] = words[5] = 0
    data = ctypes.create_string_buffer(struct.pack("=6I", *words), 24)
    abi.syscall(abi.NR["capset"], ctypes.addressof(header), ctypes.addressof(data))


def _install(code: bytes) -> int:
    buffer = ctypes.create_string_buffer(code, len(code))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer)), 16)
    flags = abi.SECCOMP_FILTER_FLAG_NEW_LISTENER | abi.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
    args = (abi.NR["seccomp"], abi.SECCOMP_SET_MODE_FILTER)
    try:
        return abi.syscall(*args, flags, ctypes.addressof(program))
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return abi.syscall(*args, abi.SECCOMP_FILTER_FLAG_NEW_LISTENER, ctypes.addressof(program))


def _exec(program: str, argv: list[str], env: dict[str, str]) -> NoReturn:
    try:
        os.execve(program, argv, env)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
    os.execve("/bin/sh", ["sh", program, *argv[1:]], env)


def _give_up(up: int, number: int) -> NoReturn:
    text = f"nd7: cannot run the program: {os.strerror(number)}\n"
    with contextlib.suppress(OSError):
        _tell(up, 1, number)
    os.write(2, text.encode())
    os._exit(126)


def check_project(project: str) -> None:
    """Refuses a project directory that is not one, or cannot be written.

    Raises:
        UsageError: With what is wrong and where.
    """
    try:
        info = os.stat(project)
    except OSError as error:
        raise UsageError(f"project {project}: {error.strerror}", "start nd7 in an existing directory") from error
    if not stat.S_ISDIR(info.st_mode):
        raise UsageError(f"project {project}: not a directory", "start nd7 in a directory")
    if not os.access(project, os.W_OK | os.X_OK):
        raise UsageError(f"project {project}: not writable", "start nd7 in a directory of yours")
