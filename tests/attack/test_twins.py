"""The compiled loop and its Python twin answer alike: the same program sees the same, and the same is told of it."""

from __future__ import annotations

import json
import os
import re

import pytest

from nd7tui.engine.policy.rules import Access, Effect, PathTarget, Rule, Scope
from nd7tui.engine.sandbox import hotloop, launch

PROGRAM = r"""
import errno, os, stat

home = os.environ["HOME"]
top = os.path.dirname(home)
out = []

def tell(what, action):
    try:
        result = action()
    except OSError as error:
        result = errno.errorcode[error.errno]
    if isinstance(result, int) and what.startswith("open"):
        text = oct(stat.S_IMODE(os.fstat(result).st_mode)), os.get_inheritable(result)
        flags = __import__("fcntl").fcntl(result, 3)
        os.close(result)
        result = "fd", *text, flags & (os.O_ACCMODE | os.O_NONBLOCK | os.O_APPEND)
    print(what.replace(top, "TOP"), result)

os.umask(0o027)
os.mkdir("d"); os.mkdir("d/e")
open("plain", "w").write("plain")
os.symlink("plain", "link"); os.symlink("gone", "dangling"); os.symlink(top + "/outside/file", "out")
os.symlink("/proc/self/fd/1", "mine"); os.symlink("loop", "loop"); os.symlink(top + "/outside", "outdir")
os.mkfifo("fifo")
directory = os.open(".", os.O_RDONLY)
handle = os.open("d", os.O_PATH)

names = ["plain", "link", "dangling", "out", "loop", "d", "d/", "plain/", "plain/x", "", ".", "..", "/", "gone",
         "gone/x", "x" * 300, "outdir/file", "outdir/new", "d/../plain", "./plain", home + "/.ssh/id_ed25519",
         "/proc/self/stat", "/proc/self/nothing", "/proc/1/mem", "/dev/null", "/dev/fd/0", "/etc/hostname",
         top + "/outside/file", top + "/outside/granted/f", top + "/outside/granted/new", ".git/hooks/x", "/usr/new",
         "/nonexistent", "mine/x", "/etc/shadow"]
kinds = {"r": os.O_RDONLY, "w": os.O_WRONLY, "rw": os.O_RDWR, "c": os.O_WRONLY | os.O_CREAT,
         "x": os.O_WRONLY | os.O_CREAT | os.O_EXCL, "t": os.O_WRONLY | os.O_TRUNC, "n": os.O_RDONLY | os.O_NOFOLLOW,
         "D": os.O_RDONLY | os.O_DIRECTORY, "a": os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK,
         "rc": os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW}
for kind, flags in kinds.items():
    for name in names:
        tell(f"open {kind} {name[:40]}", lambda: os.open(name, flags, 0o666))
        if "c" in kind or kind == "x":
            for made in ("gone", "d/../gone", top + "/outside/granted/new"):
                try: os.unlink(made)
                except OSError: pass
    tell(f"open {kind} at", lambda: os.open("plain", flags & ~os.O_CREAT, dir_fd=directory))
    tell(f"open {kind} at handle", lambda: os.open("e", flags & ~os.O_CREAT, dir_fd=handle))
    tell(f"open {kind} at none", lambda: os.open("plain", flags, dir_fd=999))
tell("open tmpfile", lambda: os.open("d", os.O_TMPFILE | os.O_RDWR, 0o666))
tell("read own comm", lambda: open("/proc/self/comm").read())
tell("write own comm", lambda: open("/proc/self/comm", "w").write("twin"))
r, w = os.pipe()
os.dup2(r, 77)
tell("open pipe again", lambda: os.open("/dev/fd/77", os.O_RDONLY | os.O_NONBLOCK))

for place in ("", top + "/outside/", top + "/outside/granted/"):
    def p(name): return place + name
    tell(f"mkdir {place}", lambda: os.mkdir(p("m"), 0o777))
    tell(f"mode {place}", lambda: oct(os.stat(p("m")).st_mode))
    tell(f"mkdir again {place}", lambda: os.mkdir(p("m")))
    tell(f"mkdir slash {place}", lambda: os.mkdir(p("m2/")))
    tell(f"symlink {place}", lambda: os.symlink("x", p("s")))
    tell(f"symlink again {place}", lambda: os.symlink("x", p("s")))
    tell(f"unlink dir {place}", lambda: os.unlink(p("m")))
    tell(f"rmdir link {place}", lambda: os.rmdir(p("s")))
    tell(f"rename {place}", lambda: os.rename(p("m"), p("n")))
    tell(f"rename gone {place}", lambda: os.rename(p("m"), p("n")))
    tell(f"rename to {place}", lambda: os.rename("plain", p("plain2")))
    tell(f"rename from {place}", lambda: os.rename(p("plain2"), "plain"))
    tell(f"rmdir {place}", lambda: os.rmdir(p("n")))
    tell(f"unlink {place}", lambda: os.unlink(p("s")))
    tell(f"unlink gone {place}", lambda: os.unlink(p("s")))
tell("rename secret", lambda: os.rename(home + "/.ssh", "ssh"))
tell("rename hooks", lambda: os.rename(".git", "git"))
tell("mkdir .", lambda: os.mkdir("."))
tell("rmdir /", lambda: os.rmdir("/"))
tell("unlink ..", lambda: os.unlink(".."))

for name in ("plain", "link", "d", "out", top + "/outside/granted/f", "/etc/passwd", "gone", "dangling", "fifo"):
    tell(f"chmod {name}", lambda: os.chmod(name, 0o640))
    tell(f"mode {name}", lambda: oct(os.stat(name).st_mode))
    tell(f"utime {name}", lambda: os.utime(name, ns=(10**9, 2 * 10**9)))
    tell(f"time {name}", lambda: os.stat(name).st_mtime_ns if name[0] != "/" else 0)
    tell(f"lutime {name}", lambda: os.utime(name, ns=(10**9, 2 * 10**9), follow_symlinks=False))
    tell(f"chown {name}", lambda: os.chown(name, os.getuid(), os.getgid()))
    tell(f"lchown {name}", lambda: os.chown(name, -1, os.getgid(), follow_symlinks=False))
    tell(f"give away {name}", lambda: os.chown(name, 1, 1))
held = os.open("plain", os.O_RDONLY)
tell("fchmod", lambda: os.fchmod(held, 0o604))
tell("fchown", lambda: os.fchown(held, os.getuid(), -1))
tell("futime", lambda: os.utime(held, ns=(3, 4)))
tell("fchmod none", lambda: os.fchmod(999, 0o600))
tell("fstat", lambda: (oct(os.fstat(held).st_mode), os.fstat(held).st_mtime_ns))
os.unlink("plain")
tell("fchmod unlinked", lambda: os.fchmod(held, 0o600))
tell("open the end", lambda: os.open("/the/end", os.O_RDONLY))
tell("open the end", lambda: os.open(home + "/.ssh/end", os.O_RDONLY | os.O_CREAT))
"""


def run(arena, *, compiled, strict):
    granted = arena.top / "outside/granted"
    granted.mkdir(exist_ok=True)
    for name in ("f", "new", "m", "n", "s", "m2"):
        path = granted / name
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        elif path.is_symlink() or path.exists():
            path.unlink()
    (granted / "f").write_text("f")
    for path in (granted, granted / "f"):
        os.chown(path, arena.uid, arena.gid)
        path.chmod(0o755 if path == granted else 0o600)
    live = [Rule(Effect.ALLOW, access, PathTarget(os.fsencode(granted)), Scope.RUN, "test", 1, str(access))
            for access in (Access.READ, Access.WRITE)]  # fmt: skip
    if strict:
        secret = PathTarget(os.fsencode(arena.project / "src"))
        live.append(Rule(Effect.DENY, Access.WRITE, secret, Scope.RUN, "test", 1, "strict"))
    served = arena.top / "served"

    def count(gate, request):
        if request.target.endswith(b"/.ssh/end"):
            served.write_text(json.dumps(gate._listener.served()))
            served.chmod(0o666)
        return False

    def without():
        if not compiled:
            hotloop.LOOP = None

    served.unlink(missing_ok=True)

    def decide(started):  # before the first call of the program is answered
        started.gate.set_policy(launch.with_aliases(arena.policy()).with_live(live))

    result = arena.python(PROGRAM, on_start=decide, on_denied=count, prepare=without)
    for denial in result.denials:
        denial["target"] = re.sub("^/proc/[0-9]{2,}/", "/proc/self/", denial["target"])
    return result, json.loads(served.read_text())


@pytest.mark.parametrize("strict", [False, True])
def test_the_loop_and_its_twin_answer_alike(arena, strict):
    assert hotloop.LOOP is not None, "the compiled loop is not built: ND7_REQUIRE_NATIVE=1 pip install ."
    seen = []
    for compiled in (True, False):
        place = arena.project
        for path in sorted(place.rglob("*"), reverse=True):
            if "src" not in path.parts:
                path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        (place / ".git").mkdir(exist_ok=True)
        os.chown(place / ".git", arena.uid, arena.gid)
        seen.append(run(arena, compiled=compiled, strict=strict))
    (result, served), (twin, none) = seen
    assert result.status == twin.status == 0, result.err + twin.err
    assert result.out.splitlines() == twin.out.splitlines()
    assert result.denials == twin.denials
    assert none == [0, 0]
    assert sum(served) > 300, served  # most of it was the loop's
    assert (served[0] == 0) == strict  # nothing is continued in strict mode
