"""Runs a program inside the real sandbox from a test, as root or as an ordinary user, and tells what was refused.

Everything is made below a directory of its own; the policy's home is a directory in there, so that no test touches
the home of whoever runs it.
"""

from __future__ import annotations

import ctypes
import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from nd7tui.engine.policy.defaults import Layout, policy_for
from nd7tui.engine.policy.rules import Access, Effect, PathTarget, Rule, Scope
from nd7tui.engine.run import jobs
from nd7tui.engine.sandbox import launch

if TYPE_CHECKING:
    from collections.abc import Callable

    from nd7tui.engine.policy.rules import Policy
    from nd7tui.engine.sandbox.gate import Gate
    from nd7tui.engine.sandbox.outcome import Request

USER = "nd7attack"
PYTHON = "/usr/bin/python3"


def live(effect: Effect, access: Access, path: os.PathLike[str] | str) -> Rule:
    """Returns a rule as a person makes it while the run goes on."""
    return Rule(effect, access, PathTarget(os.fsencode(path)), Scope.RUN, "test", 0, f"t-{effect}-{access}-{path}")


@dataclass
class Result:
    status: int
    out: str
    err: str
    denials: list[dict[str, str]] = field(default_factory=list)
    seconds: float = 0.0

    def denied(self, target: str) -> bool:
        return any(denial["target"] == target for denial in self.denials)


@dataclass
class Arena:
    """A home, a project in it, and a place outside both."""

    top: Path
    uid: int
    gid: int

    @property
    def home(self) -> Path:
        return self.top / "home"

    @property
    def project(self) -> Path:
        return self.home / "project"

    def write(self, path: str, text: str = "secret\n") -> Path:
        file = self.top / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        for made in (file, *file.parents):
            if made == self.top:
                break
            os.chown(made, self.uid, self.gid)
        return file

    def policy(self) -> Policy:
        layout = Layout(
            home=os.fsencode(self.home),
            project=os.fsencode(self.project),
            tmp=(),
            scratch=(),
            run_dir=os.fsencode(self.home / ".nd7/sessions/1"),
            state_dir=os.fsencode(self.home / ".local/state/nd7"),
            nameservers=(),
            uid=self.uid,
        )
        return policy_for(layout)

    def run(
        self,
        *argv: str,
        policy: Policy | None = None,
        live: tuple[Rule, ...] = (),
        on_denied: Callable[[Gate, Request], bool] | None = None,
        on_start: Callable[[launch.Started], None] | None = None,
        prepare: Callable[[], None] | None = None,
        prepare_as_user: Callable[[], None] | None = None,
        fast: bool = False,
        seconds: float = 60.0,
    ) -> Result:
        """Runs `argv` confined.

        Args:
            argv: The program and its arguments.
            policy: What the floor is made from and what holds; by default the arena's.
            live: Rules that come after the start, so that the floor knows nothing of them: one that refuses what the
                floor grants makes the run strict, which is asserted.
            on_denied: Told of what is refused; returns True when it has answered the call itself.
            on_start: Called in the supervisor once the program is started.
            prepare: Called as root in what becomes the supervisor.
            prepare_as_user: The same, after the change of user.
            fast: See `launch.start`.
            seconds: When it is ended.
        """
        report = self.top / f"report-{time.monotonic_ns()}"
        out, err = os.pipe(), os.pipe()  # small outputs: both fit into a pipe
        for fd in (*out, *err):
            os.fchown(fd, self.uid, self.gid)  # /dev/stdout opens the pipe again, which asks for its owner
        pid = os.fork()
        if pid == 0:
            status = 70
            try:
                os.dup2(out[1], 1)
                os.dup2(err[1], 2)
                os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
                found = os.open(report, os.O_CREAT | os.O_WRONLY, 0o666)
                if prepare:
                    prepare()
                if self.uid != os.getuid():
                    os.setgroups([])
                    os.setgid(self.gid)
                    os.setuid(self.uid)
                    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # as after an exec by this user
                os.umask(0o022)
                if prepare_as_user:
                    prepare_as_user()
                signals = jobs.Signals()  # gives the program the dispositions and the mask that `nd7 run` gives it
                started = self._start(argv, policy or self.policy(), live, fast)
                signals.close()
                status = self._serve(started, on_denied, on_start, found, seconds)
            except BaseException as error:  # noqa: BLE001
                import traceback

                traceback.print_exception(error)
            finally:
                os._exit(status)
        began = time.monotonic()
        os.close(out[1])
        os.close(err[1])
        _, status = os.waitpid(pid, 0)
        denials = [json.loads(line) for line in report.read_text().splitlines()]
        return Result(
            os.waitstatus_to_exitcode(status), _drain(out[0]), _drain(err[0]), denials, time.monotonic() - began
        )

    def _start(self, argv, policy, live, fast) -> launch.Started:
        env = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(self.home), "LC_ALL": "C.UTF-8"}
        jobs.become_subreaper()
        started = launch.start(list(argv), env, str(self.project), policy, fast=fast)
        if live:
            started.gate.set_policy(launch.with_aliases(policy).with_live(live))
            assert started.gate._ground.strict, "these live rules refuse nothing of the floor"
        return started

    def _serve(self, started, on_denied, on_start, found, seconds) -> int:
        if on_start:
            on_start(started)
        wake, _ = os.pipe()
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for request in started.gate.wait(50, wake):
                record = {
                    "op": request.op,
                    "access": str(request.access),
                    "target": os.fsdecode(request.target),
                    "effect": str(request.verdict.effect),
                }
                os.write(found, json.dumps(record).encode() + b"\n")
                if not (on_denied and on_denied(started.gate, request)):
                    started.gate.refuse(request)
            pid, status = os.waitpid(started.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status) & 0xFF
        os.kill(started.pid, signal.SIGKILL)
        print("confine: out of time", flush=True)
        return 99

    def bare(self, code: str) -> str:
        """Runs `code` as the same user without the sandbox and returns its output: shows that the attack is one."""
        done = subprocess.run(
            ["sh", "-c", code], user=self.uid, group=self.gid, extra_groups=[], cwd=self.project, capture_output=True,
            env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(self.home)}, check=False, timeout=60,
        )  # fmt: skip
        return done.stdout.decode(errors="replace")

    def python(self, code: str, **how) -> Result:
        return self.run(PYTHON, "-c", code, **how)

    def sh(self, code: str, **how) -> Result:
        return self.run("sh", "-c", code, **how)

    def c(self, code: str, *args: str, **how) -> Result:
        return self.run(self.build(code), *args, **how)

    def build(self, code: str) -> str:
        program = self.top / f"prog-{time.monotonic_ns()}"
        source = program.with_suffix(".c")
        source.write_text(code)
        subprocess.run(["gcc", "-O1", "-pthread", "-o", str(program), str(source)], check=True, capture_output=True)
        return str(program)


def _drain(fd: int) -> str:
    os.set_blocking(fd, False)
    try:
        return os.read(fd, 1 << 20).decode(errors="replace")
    except BlockingIOError:
        return ""
    finally:
        os.close(fd)


def make_arena(kind: str) -> Arena:
    if kind == "root":
        uid = gid = 0
    else:
        try:
            entry = pwd.getpwnam(USER)
        except KeyError:
            subprocess.run(["useradd", "-M", "-s", "/usr/sbin/nologin", USER], check=True)
            entry = pwd.getpwnam(USER)
        uid, gid = entry.pw_uid, entry.pw_gid
    # Not below /tmp/pytest-of-root: an ordinary user must be able to walk there.
    top = Path(tempfile.mkdtemp(prefix="nd7-attack-", dir="/var/tmp"))
    top.chmod(0o777)
    arena = Arena(top, uid, gid)
    for directory in ("home/project/src", "home/.ssh", "outside"):
        (top / directory).mkdir(parents=True)
    for path, names, _ in os.walk(top):
        for name in names:
            os.chown(os.path.join(path, name), uid, gid)
    arena.write("home/.ssh/id_ed25519")
    arena.write("home/project/src/main.c", "int x;\n")
    arena.write("outside/file", "outside\n")
    return arena


def drop_arena(arena: Arena) -> None:
    shutil.rmtree(arena.top, ignore_errors=True)
