"""Attacks on the filter and on emulation: pitfalls 15 to 31 of docs/SECURITY.md (17 and 18: test_network.py)."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace

import pytest

from nd7tui.engine.policy.rules import Access, Effect, PathTarget, Rule, Scope

pytestmark = pytest.mark.attack

RACE = r"""
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char path[512];
static const char *good, *bad;
static volatile int stop;
static void *flip(void *unused) {
    (void)unused;
    while (!stop) { strcpy(path, bad); strcpy(path, good); }
    return 0;
}
int main(int argc, char **argv) {
    int flags = atoi(argv[4]), escaped = 0, opened = 0;
    good = argv[1]; bad = argv[2];
    strcpy(path, good);
    pthread_t t;
    pthread_create(&t, 0, flip, 0);
    for (int i = 0; i < atoi(argv[3]); i++) {
        int fd = open(path, flags, 0600);
        if (fd < 0) continue;
        opened++;
        char name[64], real[512] = {0};
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        if (readlink(name, real, sizeof real - 1) > 0 && strcmp(real, bad) == 0) escaped++;
        close(fd);
    }
    stop = 1;
    printf("%d %d\n", escaped, opened > 0);
    return 0;
}
"""


def live(effect, access, path):
    return Rule(effect, access, PathTarget(os.fsencode(path)), Scope.RUN, "test", 0, f"t-{effect}-{access}")


@pytest.mark.parametrize(("flags", "bad"), [(os.O_WRONLY, "outside/file"), (os.O_RDONLY, "home/.ssh/id_ed25519")])
def test_pitfall_15_swapping_the_path_never_escapes(arena, flags, bad):
    result = arena.c(RACE, str(arena.project / "src/main.c"), str(arena.top / bad), "4000", str(flags))
    assert result.out == "0 1\n", result.err


def test_pitfall_15_nor_reaches_a_live_denial_inside_the_floor(arena):
    arena.write("home/project/src/private", "x")
    policy = arena.policy()
    policy = policy.with_live([live(Effect.DENY, Access.READ, arena.project / "src/private")])
    result = arena.c(
        RACE, str(arena.project / "src/main.c"), str(arena.project / "src/private"), "4000", "0", policy=policy
    )
    assert result.out == "0 1\n", result.err


def test_pitfall_16_a_directory_swapped_for_a_link_never_escapes(arena):
    code = f"""
import os, threading
stop = False
def swap():
    while not stop:
        os.mkdir("d"); os.rmdir("d"); os.symlink({str(arena.top / "outside")!r}, "d"); os.unlink("d")
thread = threading.Thread(target=swap); thread.start()
for i in range(1500):
    try:
        os.close(os.open("d/escaped", os.O_CREAT | os.O_WRONLY, 0o600)); os.unlink("d/escaped")
    except OSError:
        pass
stop = True; thread.join(); print("done")
"""
    assert arena.python(code).out == "done\n"
    assert os.listdir(arena.top / "outside") == ["file"]


def test_pitfall_17_unix_datagram_sockets_are_refused(arena):
    code = """
import socket
for make in (lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
             lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)):
    try:
        make(); print("made")
    except PermissionError:
        print("refused")
a, b = socket.socketpair(); a.send(b"x"); print(b.recv(1))
"""
    assert arena.python(code).out == "refused\nrefused\nb'x'\n"


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


def test_pitfall_20_proc_self_means_the_caller(arena):
    result = arena.sh(
        "exec 5> kept; echo five > /proc/self/fd/5; cat kept; echo out > /dev/stdout; cat /proc/self/comm;"
        "echo e > /dev/stderr; readlink /proc/self/cwd; cat < /dev/stdin"
    )
    assert result.out.splitlines() == ["five", "out", "cat", str(arena.project)], result.err


def test_pitfall_20_nobody_outside_is_reached_through_proc(arena):
    outside = os.getpid()
    result = arena.sh(f"cat /proc/{outside}/environ; cat /proc/{outside}/root/etc/hostname; cat /proc/{outside}/maps")
    assert result.out == ""


def test_pitfall_21_emulated_files_have_the_callers_umask_and_keep_links(arena):
    result = arena.sh(
        "umask 077; echo x > top; umask 002; mkdir dir; stat -c %a top dir; ln -s nowhere l; echo y > l; ls"
    )
    assert result.out.split()[:2] == ["600", "775"], result.err
    assert "nowhere" in result.out.split()


def test_pitfall_21_a_fifo_outside_the_floor_blocks_only_its_caller(arena):
    result = arena.sh("mkfifo p; (sleep 0.3; echo through > p) & echo free > f; cat f; cat p; wait")
    assert result.out == "free\nthrough\n", result.err


def test_pitfall_22_no_process_inside_holds_the_listener(arena):
    result = arena.sh("ls -l /proc/self/fd /proc/$$/fd | grep -c seccomp")
    assert result.out == "0\n"


def test_pitfall_24_without_the_supervisor_nothing_opens(arena):
    def die(_gate, _request):
        os.kill(os.getpid(), signal.SIGKILL)
        return True

    mark = arena.project / "src/after"
    code = "echo x > /etc/nd7-outside; sleep 0.3; echo x > src/after; cat src/main.c"
    arena.sh(code, on_denied=die)
    time.sleep(1.0)
    assert not mark.exists()


def test_pitfall_25_a_held_caller_stalls_nobody(arena):
    held = []

    def hold(_gate, request):
        held.append(request)
        return True

    code = f"(echo x > {arena.top}/outside/new) & for i in 1 2 3 4 5; do echo $i > src/$i; done; ls src | wc -l"
    result = arena.sh(code, on_denied=hold)
    assert result.out == "6\n"
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
    assert arena.c(code).out == "1 0\n"


def test_pitfall_27_foreign_system_calls_do_not_pass(arena):
    x32 = r"""
#include <errno.h>
#include <stdio.h>
#include <unistd.h>
int main(void) { long r = syscall(0x40000000 + 39); printf("%d\n", r < 0 && errno == ENOSYS); return 0; }
"""
    assert arena.c(x32).out == "1\n"
    i386 = 'int main(void){int r;__asm__ volatile("int $0x80":"=a"(r):"a"(20));return r>0?7:8;}'
    assert arena.c(i386).status in {-signal.SIGSYS & 0xFF, -signal.SIGSEGV & 0xFF}


def test_pitfall_28_clone3_is_not_there_and_threads_work(arena):
    code = """
import ctypes, errno, threading
libc = ctypes.CDLL(None, use_errno=True)
print(libc.syscall(435, 0, 0), errno.errorcode[ctypes.get_errno()])
t = threading.Thread(target=print, args=("thread",)); t.start(); t.join()
"""
    assert arena.python(code).out == "-1 ENOSYS\nthread\n"


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


@pytest.mark.parametrize(
    "call", ["io_uring_setup", "keyctl", "bpf", "unshare", "setns", "mount", "chroot", "userfaultfd"]
)
def test_refused_calls(arena, call):
    from nd7tui.engine.sandbox import abi

    argument = 0x10000000 if call == "unshare" else 0
    code = f"import ctypes; print(ctypes.CDLL(None).syscall({abi.NR[call]}, {argument}, 0, 0, 0, 0))"
    assert arena.python(code).out == "-1\n"


def test_signals_do_not_leave(arena):
    assert "no" in arena.sh(f"kill -0 {os.getppid()} && echo yes || echo no").out


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


def test_strict_mode_works_as_usual(arena):
    policy = replace(arena.policy(), live=(live(Effect.DENY, Access.WRITE, arena.project / "src"),))
    result = arena.sh(
        "echo x > a; cat a; cat src/main.c; echo y > src/y; ls src; echo z > /dev/null; head -c 1 /dev/zero | wc -c;"
        "mkdir d && mv a d/ && cat d/a; cat /proc/self/comm; python3 -c 'print(1)'",
        policy=policy,
    )
    assert result.out.split() == ["x", "int", "x;", "main.c", "1", "x", "cat", "1"], result.err
    assert result.denied(str(arena.project / "src/y"))
