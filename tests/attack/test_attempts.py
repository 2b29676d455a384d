"""Attempts that found nothing: kept, so that they go on finding nothing. Each shows that it would work otherwise."""

from __future__ import annotations

import json
import os
import socket
import threading
import time

import pytest
from confine import live

from nd7tui.engine.policy.rules import Access, Effect
from nd7tui.engine.run.hooks import HookServer
from nd7tui.engine.run.wire import Kind, Reply, render_request
from nd7tui.engine.sandbox import abi
from nd7tui.engine.sandbox.outcome import Pending

pytestmark = pytest.mark.attack

TRACE = f"""
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
call = libc.syscall
call.argtypes = [ctypes.c_long] * 7
own = ctypes.create_string_buffer(8)
def vector(at): return (ctypes.c_size_t * 2)(at, 8)
def attempt(pid, at):
    here, there = vector(ctypes.addressof(own)), vector(at)
    pidfd = os.pidfd_open(pid)
    for args in ((101, 0x4206, pid, 0, 0), ({abi.NR["process_vm_readv"]}, pid, ctypes.addressof(here), 1, ctypes.addressof(there), 1),
                 ({abi.NR["process_vm_writev"]}, pid, ctypes.addressof(here), 1, ctypes.addressof(there), 1),
                 ({abi.NR["pidfd_getfd"]}, pidfd, 0, 0), (312, os.getpid(), pid, 0, 1, 0)):
        yield "done" if call(*args, *[0] * (7 - len(args))) >= 0 else errno.errorcode[ctypes.get_errno()]
"""  # noqa: E501 - ptrace(PTRACE_SEIZE), …, kcmp(KCMP_FILE)


def test_nobody_outside_is_traced(arena, outside):
    code = f"""{TRACE}
import time
print(*attempt({outside.pid}, 0x400000), *attempt(os.getppid(), 0x400000))
print(*set(attempt({outside.pid}, ctypes.addressof(own))))
pid = os.fork()
if pid == 0: time.sleep(9)
print(*attempt(pid, ctypes.addressof(own))); os.kill(pid, 9)
"""
    result = arena.python(code)
    assert [set(line.split()) for line in result.out.splitlines()] == [{"EPERM"}, {"EPERM"}, {"done"}], result.err
    assert "done" in arena.bare(f"python3 - <<'END'\n{TRACE}\nprint(*attempt({outside.pid}, 0))\nEND")


def test_other_ways_to_use_a_handle_of_a_secret(arena):
    code = """
import ctypes, errno, mmap, os
libc = ctypes.CDLL(None, use_errno=True)
home = os.path.expanduser("~")
fd = os.open(home + "/.ssh/id_ed25519", os.O_PATH); up = os.open(home, os.O_RDONLY)
handle = ctypes.create_string_buffer(b"\\x80\\0\\0\\0" + bytes(132), 136); mount = ctypes.c_int()
def by_handle():
    number = libc.syscall(303, up, b".ssh/id_ed25519", handle, ctypes.byref(mount), 0)
    if number == 0: number = libc.syscall(304, up, handle, os.O_RDONLY)
    if number < 0: raise OSError(ctypes.get_errno(), "")
    return os.read(number, 99)
def say(*acts):
    for act in acts:
        try: print(act())
        except OSError as e: print(errno.errorcode[e.errno])
say(lambda: os.fchmod(fd, 0o777), lambda: os.read(fd, 1), lambda: os.sendfile(1, fd, 0, 10),
    lambda: os.link(f"/proc/self/fd/{fd}", "k", src_dir_fd=0), lambda: os.execve(fd, ["x"], {}),
    lambda: os.open(f"/proc/self/task/{os.getpid()}/fd/{fd}", os.O_RDONLY),
    lambda: os.open(f"/proc/thread-self/fd/{fd}", os.O_RDONLY), lambda: os.open(f"/dev/fd/{fd}", os.O_RDONLY),
    lambda: os.open(".ssh/id_ed25519", os.O_RDONLY, dir_fd=up), by_handle,
    lambda: os.copy_file_range(fd, os.open("copy", os.O_WRONLY | os.O_CREAT), 9))
readable = os.open("OUT/file", os.O_RDONLY)
say(lambda: mmap.mmap(readable, 4, mmap.MAP_SHARED, mmap.PROT_WRITE), lambda: os.ftruncate(readable, 0),
    lambda: os.posix_fallocate(readable, 0, 99), lambda: os.open(f"/proc/self/fd/{readable}", os.O_RDWR),
    lambda: os.copy_file_range(os.open("src/main.c", os.O_RDONLY), readable, 3))
""".replace("OUT", str(arena.top / "outside"))
    for rules in ((), (live(Effect.DENY, Access.WRITE, arena.project / "src"),)):
        words = arena.python(code, live=rules).out.split()
        assert words[:3] == ["EACCES", "EBADF", "EBADF"]
        assert words[3] in {"EXDEV", "EACCES"}
        assert words[4:11] == [*["EACCES"] * 5, "EPERM", "EBADF"]
        assert words[11:] == ["EACCES", "EINVAL", "EBADF", "EACCES", "EBADF"]
    assert (arena.top / "outside/file").read_text() == "outside\n"
    assert "b'secret\\n'" in arena.bare(f"python3 - <<'END'\n{code}END") or arena.uid


def test_exchanging_what_is_protected_and_whiteouts(arena):
    arena.write("home/project/.git/hooks/x.sample", "")
    arena.write("home/project/evil/hooks/pre-commit", "")
    code = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
def rename(old, new, flags):
    r = libc.syscall(316, -100, old.encode(), -100, new.encode(), flags)
    print("done" if r == 0 else errno.errorcode[ctypes.get_errno()])
for flags in (0, 2, 4, 6):
    for old, new in (("evil", ".git"), (".git", "evil"), ("evil/hooks", ".git/hooks"), (".git/hooks", "evil/hooks")):
        rename(old, new, flags)
rename("src/main.c", "src/n.c", 4); rename("src/main.c", "src/n.c", 1); rename("src/n.c", "src", 2)
rename("evil", "src", 2)
"""
    result = arena.python(code)
    words = result.out.split()
    assert set(words[:8]) == {"EACCES"}
    assert set(words[8:17]) == {"EINVAL"}
    assert words[17:] == ["done", "EINVAL", "done"]
    assert os.listdir(arena.project / ".git/hooks") == ["x.sample"]


def test_openat2_with_restrictions(arena):
    code = f"""
import ctypes, errno, os, struct
libc = ctypes.CDLL(None, use_errno=True)
def o2(path, flags, resolve, d=-100):
    how = struct.pack("QQQ", flags, 0o600 if flags & os.O_CREAT else 0, resolve)
    r = libc.syscall(437, d, path.encode(), how, 24)
    return "opened" if r >= 0 else errno.errorcode[ctypes.get_errno()]
root = os.open("/", os.O_PATH)
secret, out = "{arena.home}/.ssh/id_ed25519", "{arena.top}/outside/new"
for n in (0, 1, 2, 4, 8, 16, 32):
    print(o2(secret, 0, n), o2(secret[1:], 0, n, root), o2(out, os.O_CREAT | os.O_WRONLY, n), o2("src/main.c", 0, n))
"""
    lines = [line.split() for line in arena.python(code).out.splitlines()]
    assert len(lines) == 7
    assert all("opened" not in line[:3] and line[3] == "opened" for line in lines)
    strict = arena.python(code, live=(live(Effect.DENY, Access.WRITE, arena.project / "src"),)).out.splitlines()
    assert all("opened" not in line.split()[:3] for line in strict)
    assert strict[0].endswith("opened")
    assert arena.bare(f"python3 - <<'END'\n{code}END").count("opened") > 20


def test_abstract_sockets_descriptors_from_outside_and_netlink(arena):
    name = f"\0nd7-attack-{os.getpid()}"
    server = socket.socket(socket.AF_UNIX)
    server.bind(name)
    server.listen()
    code = f"""
import errno, os, socket
def say(act):
    try: print(act())
    except OSError as e: print(errno.errorcode[e.errno])
say(lambda: socket.socket(socket.AF_UNIX).connect({name!r}))
mine = socket.socket(socket.AF_UNIX); mine.bind("\\0mine-%d" % os.getpid()); mine.listen()
say(lambda: socket.socket(socket.AF_UNIX).connect("\\0mine-%d" % os.getpid()))
n = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
say(lambda: n.sendto(bytes(16), (1, 0))); say(lambda: n.sendto(bytes(16), (0, 1))); say(lambda: n.connect((1, 0)))
"""
    assert arena.python(code).out.split() == ["EACCES", "None", "EPERM", "EPERM", "EPERM"]
    name = name.replace("\0", "\\0")
    assert arena.bare(f"python3 -c \"import socket; print(socket.socket(1).connect('{name}'))\"") == "None\n"
    server.close()


def test_kernel_settings_are_out_of_reach(arena):
    """What root could write: sysctl, sysrq, cgroups, id maps."""
    code = (
        "echo 1 > /proc/sys/vm/drop_caches && echo W; echo h > /proc/sysrq-trigger && echo W;"
        "mkdir /sys/fs/cgroup/nd7x && echo W; echo '0 0 1' > /proc/self/uid_map && echo W; hostname nd7x && echo W;"
        "nice -n 1 true && echo 0 > /proc/self/oom_score_adj && echo fine"
    )
    assert arena.sh(code).out == "fine\n"
    if not arena.uid:
        assert "W" in arena.bare("echo 1 > /proc/sys/vm/drop_caches && echo W")


def test_the_hook_socket_under_garbage(arena):
    """Hooks are served after a flood, and the run is served during it."""

    def serve(started):
        directory = str(arena.home / ".nd7/sessions/1")
        server = HookServer(directory, started.tree.contains, lambda p, _: Reply(0, p), lambda *_: Reply(1))

        def loop():
            while True:
                server.serve()
                time.sleep(0.001)

        threading.Thread(target=loop, daemon=True).start()

    request = render_request(Kind.HOOK, b"honest")
    code = f"""
import array, os, random, socket, struct
path = os.path.expanduser("~/.nd7/sessions/1/hook.sock")
def link():
    s = socket.socket(socket.AF_UNIX); s.connect(path); return s
def ask():
    s = link(); s.sendall({request!r}); text = b""
    while part := s.recv(99): text += part
    return b"honest" in text
print(ask())
kept = []
for n in range(400):
    try:
        s = link(); s.setblocking(False)
        junk = [b"", b"GET / HTTP", b"ND7\\x01", b"ND7\\x01\\x09", b"ND7\\x01\\x01\\xff\\xff\\xff\\xff", os.urandom(99),
                {request!r} + b"more", b"ND7\\x01\\x01\\x03\\xff\\xff\\xff" + bytes(60000)][n % 8]
        s.send(junk) if junk else None
        if n % 16 == 3: s.sendmsg([b"x"], [(1, 1, array.array("i", [0] * 5))])
        kept.append(s) if n % 2 else s.close()
    except (BlockingIOError, ConnectionError, BrokenPipeError): pass
print(open("src/main.c").read(), end=""); print(ask())
"""
    arena.write("home/.nd7/sessions/1/process", "")
    result = arena.python(code, on_start=serve)
    assert result.out == "True\nint x;\nTrue\n", (result.out, result.err)


def test_a_childs_end_signals_nobody_outside(arena):
    """CLONE_PARENT makes the supervisor the parent; an orphan has it for a parent too.

    The signal at the end of a child is chosen by who makes it.
    """
    code = f"""
import ctypes, os, time
libc = ctypes.CDLL(None)
libc.syscall.argtypes = [ctypes.c_long] * 6
for signal in (9, 15, 19):
    if libc.syscall({abi.NR["clone"]}, 0x8000 | signal, 0, 0, 0, 0) == 0: os._exit(0)
    middle = os.fork()
    if middle == 0:
        if libc.syscall({abi.NR["clone"]}, signal, 0, 0, 0, 0) == 0: time.sleep(0.1); os._exit(0)
        os._exit(0)
    os.waitpid(middle, 0)
time.sleep(0.4); print(open("src/main.c").read())
"""
    assert arena.python(code).out.startswith("int x;")


def test_a_call_that_nd7_fails_on_is_refused_and_told(arena):
    """A handler or a worker that breaks lets nothing through, keeps nobody waiting, and is told of."""
    faults = arena.top / "faults"

    def broken(_):
        raise KeyError("made to fail")

    def later(_):
        return Pending(broken)

    def tell(gate, request):
        assert request.target.endswith(b"/.ssh/end")
        faults.write_text(json.dumps([[fault.op, fault.error, fault.comm] for fault in gate.take_faults()]))
        faults.chmod(0o666)
        return False

    def breaks(started):
        started.gate._handlers |= {"connect": broken, "sendto": later}

    faults.unlink(missing_ok=True)
    code = """
import errno, os, socket
with socket.socket() as one, socket.socket(type=socket.SOCK_DGRAM) as two:
    for action in (lambda: one.connect(("127.0.0.1", 9)), lambda: two.sendto(b"x", ("127.0.0.1", 9))):
        try:
            action()
            print("done")
        except OSError as error:
            print(errno.errorcode[error.errno])
try:
    os.mkdir(os.path.expanduser("~/.ssh/end"))
except OSError:
    pass
"""
    result = arena.python(code, on_start=breaks, on_denied=tell)
    assert result.out.split() == ["EACCES", "EIO"], result.err
    assert not result.err
    assert json.loads(faults.read_text()) == [
        ["connect", "KeyError: 'made to fail'", "python3"],
        ["sendto", "KeyError: 'made to fail'", "python3"],
    ]
