"""Ways out that were found by attacking, each closed: the regression tests, as root and as an ordinary user."""

from __future__ import annotations

import fcntl
import os
import resource
import struct
import threading
import time

import pytest
from confine import live

from nd7tui.engine.policy.rules import Access, Effect
from nd7tui.engine.sandbox import launch

pytestmark = pytest.mark.attack

TRACERS_ONLY = "cat /proc/{pid}/environ; head -c 0 /proc/{pid}/mem && echo MEM; head -c 9 /proc/{pid}/maps"


@pytest.mark.parametrize("strict", [False, True])
def test_memory_and_environment_of_processes_outside(arena, outside, strict):
    """In strict mode the supervisor opened them itself, which may trace what the run may not."""
    rules = (live(Effect.DENY, Access.WRITE, arena.project / "src"),) if strict else ()
    code = TRACERS_ONLY.format(pid=outside.pid)
    assert arena.bare(code).startswith("SECRET=leak\0MEM\n")
    result = arena.sh(f"{code}; cat /proc/{outside.pid}/comm; cat /proc/self/environ | wc -c", live=rules)
    name, size = result.out.split()
    assert name == "sleep"
    assert int(size) > 10


@pytest.mark.parametrize("strict", [False, True])
def test_memory_of_the_supervisor(arena, strict):
    rules = (live(Effect.DENY, Access.WRITE, arena.project / "src"),) if strict else ()
    code = (
        TRACERS_ONLY.format(pid="$PPID") + "; readlink /proc/$PPID/fd/3; cat /proc/$PPID/fdinfo/3; cat /proc/$PPID/comm"
    )
    assert len(arena.sh(code, live=rules).out.splitlines()) == 1


def test_a_handle_of_a_secret_that_is_replaced(arena):
    """An O_PATH handle is had for the asking; opening it again once the file was deleted gave its content."""
    code = """
import os, sys, time
path = os.path.expanduser(sys.argv[1])
fd = os.open(path, os.O_PATH)
print("held", file=sys.stderr, flush=True)
while os.fstat(fd).st_nlink: time.sleep(0.01)
for name in (f"/proc/self/fd/{fd}", f"/dev/fd/{fd}"):
    try: print(os.read(os.open(name, os.O_RDONLY), 99))
    except PermissionError: print("refused")
"""
    for path, expected in (("home/.ssh/id_ed25519", ["refused"] * 2), ("outside/readable", ["b'secret\\n'"] * 2)):
        file = arena.write(path)

        def replace(file=file, path=path):
            time.sleep(0.6)
            os.replace(arena.write(f"{path}.new", "renewed\n"), file)

        thread = threading.Thread(target=replace)
        thread.start()
        result = arena.run("/usr/bin/python3", "-c", code, str(file))
        thread.join()
        assert result.out.splitlines() == expected, result.err


def test_what_is_nobodys_but_the_callers_can_be_opened_again(arena):
    code = """
import os
fd = os.memfd_create("mine"); os.write(fd, b"memory")
print(os.read(os.open(f"/proc/self/fd/{fd}", os.O_RDWR), 9))
r, w = os.pipe(); os.write(os.open(f"/proc/self/fd/{w}", os.O_WRONLY), b"pipe"); print(os.read(r, 9))
fd = os.open("gone", os.O_CREAT | os.O_RDWR); os.write(fd, b"gone"); os.unlink("gone")
print(os.read(os.open(f"/proc/self/fd/{fd}", os.O_RDWR), 9))
fd = os.open(".", os.O_TMPFILE | os.O_RDWR); os.write(fd, b"named")
os.link(f"/proc/self/fd/{fd}", "named", src_dir_fd=r)
print(open("named").read())
"""
    for rules in ((), (live(Effect.DENY, Access.WRITE, arena.project / "src"),)):
        result = arena.python(code + "os.unlink('named')", live=rules)
        assert result.out.split() == ["b'memory'", "b'pipe'", "b'gone'", "named"], result.err


def test_a_new_name_makes_nothing_readable(arena):
    """A live refusal to read did not keep a file, or what lies above it, from being renamed."""
    arena.write("home/project/src/private")
    arena.write("home/project/src/other", "other\n")
    rules = (live(Effect.DENY, Access.READ, arena.project / "src/private"),)
    exchange = f'python3 -c \'import ctypes; ctypes.CDLL(None).syscall(316, -100, b"{arena.project}/%s", -100,'
    exchange += f' b"{arena.project}/src/private", 2)\''
    code = (
        "mv src/private src/x; cat src/x; mv src s; cat s/private; ln src/private y; cat y;"
        f"{exchange % 'src/other'}; cat src/other; mv src/other src/free && cat src/free"
    )
    result = arena.sh(code, live=rules)
    assert result.out == "other\nother\n", result.err
    assert result.denied(str(arena.project / "src/private"))


def test_a_file_in_the_place_of_a_protected_directory(arena):
    """`.git` as a file names another directory, whose hooks and configuration nobody would have been asked about."""
    code = (
        "mkdir -p evil; echo 'gitdir: evil' > .git; cat .git; ln src/main.c .git; mknod .git p; ln -s evil .git;"
        "mv src/main.c .git; cp src/main.c src/.git && cat src/.git; ls -a"
    )
    result = arena.sh(code)
    assert result.out.split() == ["int", "x;", ".", "..", "evil", "src"], result.err
    assert {denial["effect"] for denial in result.denials} == {"ask"}


def test_limits_of_processes_outside(arena, outside):
    """With no room for files or file sizes the supervisor could write no log and see no rule."""
    code = f"""
import os, resource
def take(pid, kind=resource.RLIMIT_FSIZE):
    try: resource.prlimit(pid, kind, (0, 0)); print("taken")
    except PermissionError: print("refused")
take({outside.pid}); take(os.getppid()); take(0, resource.RLIMIT_CORE)
print(resource.prlimit({outside.pid}, resource.RLIMIT_CORE) is not None)
"""

    def limit():
        with open(f"/proc/{outside.pid}/limits") as file:
            return next(line.split()[3:5] for line in file if line.startswith("Max file size"))

    before = limit()
    result = arena.python(code)
    assert result.out.split() == ["refused", "refused", "taken", "True"], result.err
    assert limit() == before != ["0", "0"]
    arena.bare(f"prlimit --pid {outside.pid} --fsize=0")
    assert limit() == ["0", "0"]


def test_other_terminals(arena):
    """What reads another terminal takes away what is typed there."""
    master, slave = os.openpty()
    os.fchown(slave, arena.uid, arena.gid)
    name = os.ttyname(slave)
    os.write(master, b"password\n")
    code = f"echo spoof > {name}; timeout 1 head -1 {name}; timeout 1 dd if={name} iflag=nonblock"
    result = arena.sh(code)
    assert result.out == ""
    assert result.denied(name)
    os.set_blocking(master, False)
    assert b"spoof" not in os.read(master, 99)
    assert arena.bare(f"head -1 {name}") == "password\n"
    os.close(slave)
    os.close(master)


@pytest.mark.parametrize("strict", [False, True])
def test_terminals_of_the_run(arena, strict):
    rules = (live(Effect.DENY, Access.WRITE, arena.project / "src"),) if strict else ()
    code = """
import os, pty
master, slave = os.openpty()
again = os.open(os.ttyname(slave), os.O_RDWR | os.O_NOCTTY)
os.write(again, b"through"); print(os.read(master, 99))
os.close(slave); os.close(again)
again = os.open(f"/dev/pts/{os.ptsname(master).rpartition('/')[2]}" if hasattr(os, "ptsname") else
                "/dev/pts/" + next(l.split()[1] for l in open(f"/proc/self/fdinfo/{master}") if "tty-index" in l),
                os.O_RDWR | os.O_NOCTTY)
os.fchmod(again, 0o600); print(os.isatty(again))
pid, fd = pty.fork()
if pid == 0:
    os.write(os.open("/dev/tty", os.O_RDWR), b"controlled"); os.write(os.open(os.ttyname(0), os.O_RDWR), b"+named")
    import time; time.sleep(9)
text = b""
while b"named" not in text: text += os.read(fd, 99)
print(text); os.kill(pid, 9)
"""
    result = arena.python(code, live=rules)
    assert result.out.split() == ["b'through'", "True", "b'controlled+named'"], result.err


def test_inherited_capabilities(arena):
    """Sets that survive exec gave back to root what had been dropped."""
    raised = []

    def inheritable():
        header = ctypes_buffer(struct.pack("=Ii", 0x20080522, 0))
        data = ctypes_buffer(bytes(24))
        libc.capget(header, data)
        words = list(struct.unpack("=6I", data.raw))
        words[2], words[5] = words[1], words[4]
        if not arena.uid:
            assert libc.capset(header, ctypes_buffer(struct.pack("=6I", *words))) == 0
            raised.append(libc.prctl(47, 2, 21, 0, 0))
            assert raised == [0]

    result = arena.sh("grep Cap /proc/self/status; sleep 0.01", prepare=inheritable)
    found = {name: int(value, 16) for name, value in (line.split(":\t") for line in result.out.splitlines())}
    kept = sum(1 << number for number in launch._KEPT_CAPABILITIES) if not arena.uid else 0
    assert found["CapEff"] == found["CapPrm"] == kept
    assert found["CapInh"] == found["CapAmb"] == 0


def ctypes_buffer(data):
    import ctypes

    return ctypes.create_string_buffer(data, len(data))


def _libc():
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


libc = _libc()


def test_a_lease_does_not_stop_the_supervisor(arena):
    """An open that breaks a lease waits for its holder, 45 s; the supervisor must not be the one that waits."""
    code = """
import fcntl, os, signal, threading, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
f = os.open("leased", os.O_RDWR | os.O_CREAT)
fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)
done = []
def other(act):
    pid = os.fork()
    if pid == 0:
        try: act()
        except BlockingIOError: os._exit(3)
        os._exit(7)
    return pid
pids = [other(lambda: open("leased", "r+")), other(lambda: os.open("leased", os.O_WRONLY | os.O_NONBLOCK)),
        other(lambda: os.truncate("leased", 0))]
time.sleep(0.3)
began = time.monotonic(); open("free", "w").close(); print(time.monotonic() - began < 1)
print(os.waitpid(pids[0], os.WNOHANG)[0] == 0)
print(os.waitstatus_to_exitcode(os.waitpid(pids[1], 0)[1]), os.waitstatus_to_exitcode(os.waitpid(pids[2], 0)[1]))
fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_UNLCK)
print(os.waitstatus_to_exitcode(os.waitpid(pids[0], 0)[1]))
"""
    result = arena.python(code, seconds=20)
    assert result.out.split() == ["True", "True", "3", "3", "7"], (result.out, result.err)


def test_a_fifo_made_where_a_file_was_to_be_does_not_stop_the_supervisor(arena):
    code = """
import os, threading, time
stop = False
def swap():
    while not stop:
        try: os.mkfifo("f"); os.unlink("f")
        except OSError: pass
thread = threading.Thread(target=swap); thread.start()
end = time.monotonic() + 1.5
while time.monotonic() < end:
    try: os.close(os.open("f", os.O_CREAT | os.O_WRONLY | os.O_NONBLOCK, 0o600)); os.unlink("f")
    except OSError: pass
stop = True; thread.join(); print("done")
"""
    blocking = code.replace(" | os.O_NONBLOCK", "").replace(
        "end = time", "threading.Timer(2, lambda: (print('done', flush=True), os._exit(0))).start()\nend = time"
    )
    assert arena.python(code, seconds=20).out == "done\n"
    assert arena.python(blocking, seconds=20).out.startswith("done\n")


def test_a_crowd_at_fifos_leaves_the_supervisor_its_descriptors(arena):
    code = """
import errno, os, threading, time
os.mkfifo("p")
seen = []
def one():
    try: os.open("p", os.O_WRONLY)
    except OSError as error: seen.append(errno.errorcode[error.errno])
for _ in range(200): threading.Thread(target=one, daemon=True).start()
deadline = time.monotonic() + 20
while len(seen) < 200 - 128 and time.monotonic() < deadline: time.sleep(0.05)
print(set(seen), len(seen), open("src/main.c").read(), end=""); open("new", "w").write("x")
print(open("new").read(), flush=True); os._exit(0)
"""

    def few():
        most = len(os.listdir("/proc/self/fd")) + 270  # two for each that waits, and some for itself
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

    result = arena.python(code, prepare=few)
    assert result.out == "{'EMFILE'} 72 int x;\nx\n", result.err


def test_a_low_soft_limit_is_the_programs_and_not_the_supervisors(arena):
    code = """
import os, resource, threading, time
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0], flush=True)
os.mkfifo("p")
seen = []
def one():
    try: os.open("p", os.O_WRONLY)
    except OSError as error: seen.append(error)
for _ in range(60): threading.Thread(target=one, daemon=True).start()
time.sleep(1)
print(seen, open("src/main.c").read(), flush=True); os._exit(0)
"""

    def few():
        most = len(os.listdir("/proc/self/fd")) + 60
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        os.write(1, b"%d\n" % most)

    given, seen, text = arena.python(code, prepare=few).out.split("\n", 2)
    assert (seen, text) == (given, "[] int x;\n\n")


LOCKS = """
import fcntl, os, sys
for path in sys.argv[1:]:
    try: fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB); print("locked")
    except PermissionError: print("refused")
"""


def test_nd7s_own_locks_cannot_be_held(arena):
    """Whoever can open a lock can hold it: no rule could be changed, no frame appended."""
    names = (
        "home/.nd7/sessions/1/record.lock",
        "home/.config/nd7/config.toml.lock",
        "home/.local/state/nd7/sessions/s/lock",
        "home/.local/state/nd7/sessions/s/head",
    )
    paths = [str(arena.write(name, "")) for name in names]
    readable = str(arena.write("home/.nd7/sessions/1/record.json", "{}"))
    for rules in ((), (live(Effect.DENY, Access.WRITE, arena.project / "src"),)):
        result = arena.run("/usr/bin/python3", "-c", LOCKS, *paths, readable, live=rules)
        assert result.out.split() == ["refused"] * len(paths) + ["locked"], result.err
    for path in paths:
        with open(path) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
