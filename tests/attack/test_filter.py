"""Attacks on the filter and on emulation: pitfalls 19 to 31 of docs/SECURITY.md."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time

import pytest
from confine import live

from nd7tui.engine.policy.rules import Access, Effect
from nd7tui.engine.run import noise
from nd7tui.engine.sandbox import abi
from nd7tui.engine.sandbox import filter as seccomp_filter
from nd7tui.engine.sandbox.outcome import Request

pytestmark = pytest.mark.attack


def test_pitfall_19_a_caller_that_is_not_dumpable_gains_nothing(arena):
    code = f"""
import ctypes, os
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
for path, flags in (("src/main.c", os.O_RDONLY), ({str(arena.top / "outside/file")!r}, os.O_WRONLY),
                    (os.path.expanduser("~/.ssh/id_ed25519"), os.O_RDONLY)):
    try:
        os.open(path, flags); print("opened")
    except OSError as error:
        print("refused")
try:
    os.chmod({str(arena.top / "outside/file")!r}, 0o777); print("changed")
except OSError:
    print("refused")
"""
    assert arena.python(code).out.split() == ["opened", "refused", "refused", "refused"]
    assert arena.bare(f"python3 - <<'END'\n{code}END").split() == ["opened", "opened", "opened", "changed"]


def test_pitfall_19_not_even_where_nothing_is_passed_on(arena):
    """In strict mode an ordinary user's supervisor refuses what it cannot read; root's reads and decides."""
    code = """
import ctypes, os
for dumpable in (1, 0):
    ctypes.CDLL(None).prctl(4, dumpable, 0, 0, 0)
    try: os.open("src/main.c", os.O_RDONLY); print("opened")
    except OSError: print("refused")
    try: os.open("src/new", os.O_WRONLY | os.O_CREAT); print("opened")
    except OSError: print("refused")
"""
    result = arena.python(code, live=(live(Effect.DENY, Access.WRITE, arena.project / "src"),))
    assert result.out.split() == ["opened", "refused", "refused" if arena.uid else "opened", "refused"], result.err


def test_pitfall_20_proc_self_means_the_caller(arena):
    result = arena.sh(
        "exec 5> kept; echo five > /proc/self/fd/5; cat kept; echo out > /dev/stdout; cat /proc/self/comm;"
        "echo e > /dev/stderr; readlink /proc/self/cwd; cat < /dev/stdin; cat /proc/thread-self/comm;"
        "cat /proc/$$/comm; echo six > /proc/$$/fd/5; cat kept"
    )
    assert result.out.splitlines() == ["five", "out", "cat", str(arena.project), "cat", "sh", "six"], result.err
    assert result.err == "e\n"


@pytest.mark.parametrize("strict", [False, True])
def test_pitfall_20_nobody_outside_is_reached_through_proc(arena, outside, strict):
    at = f"/proc/{outside.pid}"
    code = f"cat {at}/environ; cat {at}/maps; cat {at}/root/etc/passwd; cat {at}/cwd/file; cat {at}/fd/0; cat {at}/exe"
    rules = (live(Effect.DENY, Access.WRITE, arena.project / "src"),) if strict else ()
    assert arena.sh(code, live=rules).out == ""
    found = arena.bare(code)
    assert "SECRET=leak" in found
    assert "root:x:0:0" in found
    assert "outside" in found


def test_pitfall_21_emulated_files_have_the_callers_umask_and_keep_links(arena):
    result = arena.sh(
        "umask 077; echo x > top; umask 002; mkdir dir; stat -c %a top dir; ln -s nowhere l; echo y > l; ls"
    )
    assert result.out.split()[:2] == ["600", "775"], result.err
    assert "nowhere" in result.out.split()


def test_pitfall_21_a_fifo_outside_the_floor_blocks_only_its_caller(arena):
    result = arena.sh("mkfifo p; (sleep 0.3; echo through > p) & echo free > f; cat f; cat p; wait")
    assert result.out == "free\nthrough\n", result.err


def patient(look):
    def later(started):
        time.sleep(0.1)  # until the program has taken the child's place
        look(started)

    return later


def test_pitfall_22_no_process_inside_holds_the_listener(arena):
    def look(started):
        with open(report, "w") as file:
            for pid in ("self", started.pid):
                names = [f"/proc/{pid}/fd/{fd}" for fd in os.listdir(f"/proc/{pid}/fd")]
                links = [os.readlink(name) for name in names if os.path.lexists(name)]
                file.write(f"{sum('seccomp' in link for link in links)}\n")

    report = arena.write("home/report")
    result = arena.sh("sleep 0.3; ls -l /proc/self/fd /proc/$$/fd | grep -c seccomp", on_start=patient(look))
    assert result.out == "0\n"
    assert report.read_text().split() == ["1", "0"]


RESTARTS = """
import errno, os, signal, time
signal.signal(signal.SIGALRM, lambda *_: None)
signal.siginterrupt(signal.SIGALRM, False)  # SA_RESTART
signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
twice = done = 0
end = time.monotonic() + 1.5
while time.monotonic() < end:
    try:
        os.mkdir("d"); os.rmdir("d")
        os.close(os.open("f", os.O_CREAT | os.O_EXCL | os.O_WRONLY)); os.rename("f", "g"); os.unlink("g")
        done += 1
    except OSError as error:
        twice += error.errno in (errno.EEXIST, errno.ENOENT)
        for name in "fg":
            try: os.unlink(name)
            except OSError: pass
        try: os.rmdir("d")
        except OSError: pass
signal.setitimer(signal.ITIMER_REAL, 0)
print(twice > 0, done > 20)
"""


def test_pitfall_23_a_signal_carries_nothing_out_twice(arena):
    def without():
        abi.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV = 0  # in the supervisor-to-be only

    result = arena.python(RESTARTS)
    assert result.out == "False True\n", result.err
    assert arena.python(RESTARTS, prepare=without).out.startswith("True"), "nothing to be shown here"


def test_pitfall_24_without_the_supervisor_nothing_opens(arena):
    def die(_gate, _request):
        os.kill(os.getpid(), signal.SIGKILL)
        return True

    mark = arena.project / "src/after"
    code = "echo x > /etc/nd7-outside; sleep 0.3; echo x > src/after; cat src/main.c"
    arena.sh(code, on_denied=die)
    time.sleep(1.0)
    assert not mark.exists()
    assert arena.sh(code).out == "int x;\n"
    assert mark.exists()


def test_pitfall_24_while_the_supervisor_is_stopped_calls_wait(arena):
    number = arena.write("home/number")

    def tell(_):
        number.write_text(str(os.getpid()))

    def stop(_gate, _request):
        os.kill(os.getpid(), signal.SIGSTOP)
        return False

    def go_on():
        while not number.read_text().isdigit():
            time.sleep(0.01)
        pid = int(number.read_text())
        while state(pid) != "T":
            time.sleep(0.01)
        time.sleep(0.7)
        seen.append((arena.project / "src/after").exists())
        os.kill(pid, signal.SIGCONT)

    def state(pid):
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]

    seen = []
    thread = threading.Thread(target=go_on)
    thread.start()
    result = arena.sh("echo x > /etc/nd7-outside; echo x > src/after; cat src/after", on_start=tell, on_denied=stop)
    thread.join()
    assert seen == [False]
    assert result.out == "x\n"
    assert result.seconds > 0.7


def test_pitfall_25_a_held_caller_stalls_nobody(arena):
    held = []

    def hold(_gate, request):
        held.append(request)
        return True

    code = f"(echo x > {arena.top}/outside/new) & for i in 1 2 3 4 5; do echo $i > src/$i; done; ls src | wc -l"
    result = arena.sh(code, on_denied=hold)
    assert result.out == "6\n"
    assert result.denied(str(arena.top / "outside/new"))
    assert not (arena.top / "outside/new").exists()


def test_pitfall_26_a_second_listener_is_refused_and_plain_filters_stack(arena):
    code = r"""
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
    struct sock_filter f[] = {{0x06, 0, 0, 0x7fff0000}};
    struct sock_fprog p = {1, f};
    long r = syscall(SYS_seccomp, 1, 8, &p);
    printf("%d ", r < 0 && errno == EBUSY);
    printf("%ld\n", syscall(SYS_seccomp, 1, 0, &p));
    return 0;
}
"""
    program = arena.build(code)
    assert arena.run(program).out == "1 0\n"
    # Without the sandbox there is room for one: root needs no no_new_privs for it.
    if not arena.uid:
        assert arena.bare(program).startswith("0 ")


def test_pitfall_27_foreign_system_calls_do_not_pass(arena):
    x32 = r"""
#include <errno.h>
#include <stdio.h>
#include <unistd.h>
int main(void) { long r = syscall(0x40000000 + 39); printf("%d\n", r < 0 && errno == ENOSYS); return 0; }
"""
    assert arena.c(x32).out == "1\n"
    i386 = 'int main(void){int r;__asm__ volatile("int $0x80":"=a"(r):"a"(20));return r>0?7:8;}'
    program = arena.build(i386)
    assert arena.run(program).status in {-signal.SIGSYS & 0xFF, -signal.SIGSEGV & 0xFF}
    assert arena.run(arena.build("int main(void) { return 7; }")).status == 7
    # A kernel without 32-bit emulation has no such gate at all; with it, the program would have gone on.
    assert int(arena.bare(f"{program}; echo $?").split()[-1]) in {7, 128 + signal.SIGSEGV}


def test_pitfall_28_clone3_is_not_there_and_threads_work(arena):
    code = """
import ctypes, errno, threading
libc = ctypes.CDLL(None, use_errno=True)
print(libc.syscall(435, 0, 0), errno.errorcode[ctypes.get_errno()])
t = threading.Thread(target=print, args=("thread",)); t.start(); t.join()
"""
    assert arena.python(code).out == "-1 ENOSYS\nthread\n"
    assert "ENOSYS" not in arena.bare(f"python3 - <<'END'\n{code}END")


@pytest.mark.parametrize("flag", [0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000, 0x00020000])
def test_pitfall_28_no_new_namespace_by_clone_or_unshare(arena, flag):
    """The upper half of a register is ignored by the kernel, so it must not hide what stands in the lower half."""
    code = f"""
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
call = libc.syscall
call.argtypes = [ctypes.c_long] + [ctypes.c_ulong] * 5
def say(result):
    if result == 0 and os.getpid() != me: os._exit(0)
    print(errno.errorcode[ctypes.get_errno()] if result < 0 else "made")
me = os.getpid()
print("start", flush=True)
for high in (0, 1 << 32, 1 << 63):
    say(call({abi.NR["clone"]}, high | {flag} | 17, 0, 0, 0, 0))
    say(call({abi.NR["unshare"]}, high | {flag}, 0, 0, 0, 0))
"""
    assert arena.python(code).out.split() == ["start"] + ["EPERM"] * 6
    if not arena.uid:
        assert "made" in arena.bare(f"python3 - <<'END'\n{code}END")


def test_pitfall_29_threads_forks_and_many_files(arena):
    code = """
import os, threading
def work(n):
    for i in range(50):
        with open(f"src/t{n}-{i}", "w") as f: f.write("x")
threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
[t.start() for t in threads]; [t.join() for t in threads]
for i in range(200):
    pid = os.fork()
    if pid == 0: os._exit(0 if os.path.exists("src/t0-0") else 1)
    assert os.waitpid(pid, 0)[1] == 0
print(len(os.listdir("src")))
"""
    result = arena.python(code)
    assert result.out == "801\n", result.err


def test_pitfall_29_forks_vforks_a_tracer_and_terminals(arena):
    code = f"""
import os, pty, subprocess, sys
for _ in range(300):
    pid = os.fork()
    if pid == 0: os._exit(0 if open("src/main.c").read() else 1)
    assert os.waitpid(pid, 0)[1] == 0
print("forks", flush=True)
for _ in range(100):
    pid = os.posix_spawn("/bin/true", ["true"], os.environ)  # vfork, in effect
    assert os.waitpid(pid, 0)[1] == 0
print("vforks", flush=True)
subprocess.run(["strace", "-f", "-o", "trace", "sh", "-c", "cat src/main.c; echo x > {arena.top}/outside/new"])
print("cat" in open("trace").read(), flush=True)
print(pty.spawn(["sh", "-c", "tty; test -t 0 && echo terminal > /dev/tty"]))
"""
    result = arena.python(code)
    words = result.out.split()
    assert words[:5] == ["forks", "vforks", "int", "x;", "True"], result.err
    assert words[5].startswith("/dev/pts/"), result.err
    assert words[6:] == ["terminal", "0"], result.err
    assert result.denied(str(arena.top / "outside/new"))
    assert not (arena.top / "outside/new").exists()


def test_pitfall_30_noise_is_refused_all_the_same_and_known_as_noise(arena):
    seen = arena.write("home/seen", "")

    def note(_gate, request):
        assert isinstance(request, Request)
        with open(seen, "a") as file:
            file.write(f"{noise.is_noise(request)} {os.fsdecode(request.target)}\n")
        return False

    arena.write("outside/lib/module.py", "x = 1\n")
    lookup = f"/run/systemd/userdb/io.nd7.test.{os.getpid()}"
    os.makedirs(os.path.dirname(lookup), exist_ok=True)
    server = socket.socket(socket.AF_UNIX)
    server.bind(lookup)
    os.chmod(lookup, 0o777)  # noqa: S103 - the sandbox, not the mode, is under test
    server.listen()
    program = "import socket\n"
    program += f"try: socket.socket(socket.AF_UNIX).connect({lookup!r}); print('CONNECTED')\n"
    program += "except PermissionError: pass\n"
    program += f"import sys; sys.path.insert(0, {str(arena.top / 'outside/lib')!r}); import module; print(module.x)\n"
    program += f"open({str(arena.top / 'outside/lib/new.pyc')!r}, 'w')"
    try:
        result = arena.python(program, on_denied=note)
        assert arena.bare(f"python3 -c \"import socket; socket.socket(1).connect('{lookup}'); print(1)\"") == "1\n"
    finally:
        server.close()
        os.unlink(lookup)
    assert result.out == "1\n", result.err
    lines = seen.read_text().splitlines()
    assert f"True {lookup}" in lines
    assert f"True {arena.top}/outside/lib/__pycache__" in lines
    assert f"False {arena.top}/outside/lib/new.pyc" in lines
    assert not (arena.top / "outside/lib/__pycache__").exists()


def test_pitfall_31_a_descriptor_that_is_open_already_keeps_working(arena):
    """Stated in docs/SECURITY.md: what is taken back holds for what is opened from then on."""
    code = f"""
import os
kept = os.open("src/main.c", os.O_RDWR)
try: os.open({str(arena.top / "outside/file")!r}, os.O_WRONLY)   # the sign to take it back
except PermissionError: print("taken back")
print(os.read(kept, 99), os.pwrite(kept, b"int y;", 0))
for name in ("src/main.c", f"/proc/self/fd/{{kept}}"):
    try: os.open(name, os.O_RDONLY); print("opened")
    except PermissionError: print("refused")
"""
    path = arena.project / "src/main.c"

    def take_back(gate, request):
        if request.target != os.fsencode(path):
            gate.set_policy(arena.policy().with_live([live(Effect.DENY, access, path) for access in list(Access)[:2]]))
        return False

    result = arena.python(code, on_denied=take_back)
    assert result.out.splitlines() == ["taken back", "b'int x;\\n' 6", "refused", "refused"], result.err
    assert path.read_text() == "int y;\n"


def test_refused_calls(arena):
    """Every one, with arguments that alone would give another error, and with the upper half of the number set."""
    numbers = [(name, abi.NR[name], error) for name, error in seccomp_filter.REFUSED.items() if name in abi.NR]
    assert len(numbers) > 30
    code = f"""
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
for name, number, error in {numbers!r}:
    libc.syscall(number, -1, -1, -1, -1, -1)
    if ctypes.get_errno() != error: print(name, errno.errorcode[ctypes.get_errno()])
print("done")
"""
    assert arena.python(code).out == "done\n"
    if not arena.uid:
        assert len(arena.bare(f"python3 - <<'END'\n{code}END").splitlines()) > 15


def test_refused_ioctls(arena):
    commands = list(seccomp_filter._REFUSED_IOCTLS)
    code = f"""
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p]
fd = os.open(".", os.O_RDONLY)
for command in {commands!r}:
    for high in (0, 1 << 32, 1 << 63):
        libc.ioctl(fd, high | command, None); print(errno.errorcode[ctypes.get_errno()], end=" ")
f, g = os.open("src/main.c", os.O_RDONLY), os.open("copy", os.O_RDWR | os.O_CREAT)
libc.ioctl(g, 0x40049409, ctypes.c_void_p(f)); print(errno.errorcode[ctypes.get_errno()])  # FICLONE
"""
    words = arena.python(code).out.split()
    assert set(words[:-1]) == {"EPERM"}
    assert len(words) == 3 * len(commands) + 1
    assert words[-1] != "EPERM"
    assert set(arena.bare(f"python3 - <<'END'\n{code}END").split()) - {"EPERM", "EACCES"}


def test_signals_do_not_leave(arena, outside):
    code = f"""
import errno, os, signal
def say(act):
    try: act(); print("sent")
    except OSError as error: print(errno.errorcode[error.errno])
for pid in ({outside.pid}, os.getppid()):
    say(lambda: os.kill(pid, 0)); say(lambda: os.kill(pid, signal.SIGSTOP))
    say(lambda: signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGKILL))
say(lambda: os.kill(os.getpid(), 0))
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.kill(0, signal.SIGTERM)  # the supervisor is of the same group
"""
    assert arena.python(code).out.split() == ["EPERM"] * 6 + ["sent"]
    assert outside.poll() is None
    assert arena.bare(f"kill -0 {outside.pid} && echo sent") == "sent\n"


def test_the_program_starts_with_plain_signals(arena):
    """Python ignores SIGPIPE and SIGXFSZ, and the supervisor blocks what it hands on: neither is for the program."""
    result = arena.sh("grep -E 'SigBlk|SigIgn' /proc/self/status; yes | head -1")
    assert result.out.split() == ["SigBlk:", "0" * 16, "SigIgn:", "0" * 16, "y"]
    assert result.err == ""


def test_a_live_grant_works_for_the_very_next_call_and_is_taken_back(arena):
    target = arena.home / "granted"

    def answer(gate, request):
        if not target.exists():
            policy = arena.policy().with_live([live(Effect.ALLOW, Access.WRITE, target)])
            gate.set_policy(policy)
            return gate.retry(request)
        return False

    result = arena.sh("echo one > ~/granted; cat ~/granted; echo two > ~/other || echo refused", on_denied=answer)
    assert result.out == "one\nrefused\n"


def test_fast_mode_still_refuses(arena):
    result = arena.sh(f"cat ~/.ssh/id_ed25519; echo x > {arena.top}/outside/new; echo y > src/y; cat src/y", fast=True)
    assert result.out == "y\n"
    assert result.denied(str(arena.top / "outside/new"))
    assert not result.denied(str(arena.home / ".ssh/id_ed25519"))


def test_fast_mode_reads_what_processes_are_there_and_no_memory(arena):
    """What the floor grants must hold for processes that begin later; /proc/kcore takes CAP_SYS_RAWIO."""
    result = arena.sh(
        "cat /proc/self/comm; sleep 5 & grep -c Name /proc/$!/status; kill $!;"
        "grep CapBnd /proc/self/status; head -c 1 /proc/kcore",
        fast=True,
    )
    own, later, _, bounding = result.out.split()
    assert (own, later) == ("cat", "1"), result.err
    assert not int(bounding, 16) >> 17 & 1 or arena.uid


def test_strict_mode_works_as_usual(arena):
    rules = (live(Effect.DENY, Access.WRITE, arena.project / "src"),)
    result = arena.sh(
        "echo x > a; cat a; cat src/main.c; echo y > src/y; ls src; echo z > /dev/null; head -c 1 /dev/zero | wc -c;"
        "mkdir d && mv a d/ && cat d/a; cat /proc/self/comm; python3 -c 'print(1)'",
        live=rules,
    )
    assert result.out.split() == ["x", "int", "x;", "main.c", "1", "x", "cat", "1"], result.err
    assert result.denied(str(arena.project / "src/y"))
