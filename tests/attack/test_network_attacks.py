"""Attacks by way of sockets: pitfalls 12, 14, 17 and 18, as root and as an ordinary user.

All traffic stays on loopback: the policy here opens one loopback port only, and "outside" is any other.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
from contextlib import contextmanager
from dataclasses import replace

import pytest

from nd7tui.engine.policy.rules import Access, Effect, HostTarget, Rule, Scope
from nd7tui.engine.sandbox import abi

pytestmark = pytest.mark.attack

ROUNDS = 3000


class Counter:
    """A server outside the sandbox that counts who reaches it."""

    def __init__(self, kind, name=("127.0.0.1", 0)):
        family = socket.AF_UNIX if isinstance(name, str) else socket.AF_INET
        self.socket = socket.socket(family, kind)
        self.socket.bind(name)
        self.kind = kind
        self.reached = 0
        if kind == socket.SOCK_STREAM:
            self.socket.listen(512)
        self.socket.settimeout(0.05)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    @property
    def port(self):
        return self.socket.getsockname()[1]

    def _serve(self):
        idle = False
        while not (idle and self._stop.is_set()):
            try:
                if self.kind == socket.SOCK_STREAM:
                    self.socket.accept()[0].close()
                else:
                    self.socket.recv(4096)
                self.reached += 1
            except TimeoutError:
                idle = True

    def close(self):
        self._stop.set()
        self._thread.join()
        self.socket.close()
        return self.reached


@contextmanager
def servers(*kinds):
    made = [Counter(*kind) if isinstance(kind, tuple) else Counter(kind) for kind in kinds]
    try:
        yield made
    finally:
        for one in made:
            one.close()


def only(arena, port, proto=None):
    """The arena's policy with one loopback port as the whole network."""
    policy = arena.policy()
    kept = tuple(rule for rule in policy.default if not isinstance(rule.target, HostTarget))
    rule = Rule(Effect.ALLOW, Access.CONNECT, HostTarget("127.0.0.1", port, proto), Scope.DEFAULT, "test", 0, "t")
    return replace(policy, default=(*kept, rule))


RACE = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
static struct sockaddr_in name, good, bad;
static volatile int stop;
static int slot = -1, innocent = -1, victim = -1;
static void *flip_name(void *u) { (void)u; while (!stop) { name = bad; name = good; } return 0; }
static void *flip_port(void *u) {
    (void)u;
    while (!stop) { name.sin_port = bad.sin_port; name.sin_port = good.sin_port; }
    return 0;
}
static void *flip_fd(void *u) { (void)u; while (!stop) { dup2(victim, slot); dup2(innocent, slot); } return 0; }
static struct sockaddr_in at(const char *port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}
int main(int argc, char **argv) {
    const char *how = argv[1];
    int rounds = atoi(argv[4]), done = 0, escaped = 0;
    good = name = at(argv[2]); bad = at(argv[3]);
    pthread_t t;
    if (!strcmp(how, "fd")) {  /* a datagram socket, where only TCP to this port is open */
        slot = dup(socket(AF_INET, SOCK_STREAM, 0));
        name = good;
        for (int i = 0; i < rounds; i++) {
            innocent = socket(AF_INET, SOCK_STREAM, 0); victim = socket(AF_INET, SOCK_DGRAM, 0);
            dup2(innocent, slot); stop = 0;
            pthread_create(&t, 0, flip_fd, 0);
            done += connect(slot, (void *)&name, sizeof name) == 0;
            stop = 1; pthread_join(t, 0);
            struct sockaddr_in p; socklen_t l = sizeof p;
            if (getpeername(victim, (void *)&p, &l) == 0) { escaped++; send(victim, "x", 1, 0); }
            close(innocent); close(victim);
        }
        printf("%d %d\n", escaped, done > 0);
        return 0;
    }
    pthread_create(&t, 0, strchr(how, 'p') ? flip_port : flip_name, 0);
    int udp = socket(AF_INET, SOCK_DGRAM, 0);
    for (int i = 0; i < rounds; i++) {
        struct iovec v = {"x", 1};
        struct msghdr h = {.msg_name = &name, .msg_namelen = sizeof name, .msg_iov = &v, .msg_iovlen = 1};
        struct mmsghdr mm[2] = {{.msg_hdr = h}, {.msg_hdr = h}};
        switch (how[0]) {
        case 'c': { int s = socket(AF_INET, SOCK_STREAM, 0);
            done += connect(s, (void *)&name, sizeof name) == 0; close(s); break; }
        case 'u': { int s = socket(AF_INET, SOCK_DGRAM, 0);
            if (connect(s, (void *)&name, sizeof name) == 0) { done++; send(s, "x", 1, 0); } close(s); break; }
        case 't': done += sendto(udp, "x", 1, 0, (void *)&name, sizeof name) == 1; break;
        case 'm': done += sendmsg(udp, &h, 0) == 1; break;
        case 'v': done += sendmmsg(udp, mm, 2, 0) > 0; break;
        }
    }
    stop = 1;
    printf("%d %d\n", escaped, done > 0);
    return 0;
}
"""


@pytest.mark.parametrize("how", ["connect-", "u-connect", "to", "m", "mp", "v"])
def test_pitfall_18_swapping_the_address_in_memory_reaches_nothing_else(arena, how):
    kind = socket.SOCK_STREAM if how == "connect-" else socket.SOCK_DGRAM
    with servers(kind, kind) as (good, bad):
        ports = good.port, bad.port
        result = arena.c(RACE, how, *map(str, ports), str(ROUNDS), policy=only(arena, good.port))
        assert result.out == "0 1\n", result.err
        assert bad.close() == 0
        assert good.close() > 0
    assert all(not denial["target"].startswith(f"127.0.0.1:{ports[0]}/") for denial in result.denials)


def test_pitfall_18_swapping_the_descriptor_connects_no_other_socket(arena):
    with servers(socket.SOCK_STREAM) as (good,), servers((socket.SOCK_DGRAM, ("127.0.0.1", good.port))) as (bad,):
        policy = only(arena, good.port, "tcp")
        result = arena.c(RACE, "fd", str(good.port), str(good.port), "1500", policy=policy)
        assert result.out == "0 1\n", result.err
        assert bad.close() == 0


def test_pitfall_12_unusual_ways_to_name_a_refused_address(arena):
    with servers(socket.SOCK_STREAM, socket.SOCK_STREAM, socket.SOCK_DGRAM) as (good, bad, datagrams):
        code = f"""
import ctypes, errno, os, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
def raw(call, s, name, *before):
    buffer = ctypes.create_string_buffer(name, len(name))
    r = getattr(libc, call)(s.fileno(), *before, buffer, len(name))
    return errno.errorcode[ctypes.get_errno()] if r < 0 else "done"
def inet(port, family=2, host="127.0.0.1", pad=bytes(8)):
    return struct.pack("=H", family) + struct.pack(">H", port) + socket.inet_aton(host) + pad
T = lambda family=2: socket.socket(family, socket.SOCK_STREAM)
U = lambda family=2: socket.socket(family, socket.SOCK_DGRAM)
bad, dgram, good = {bad.port}, {datagrams.port}, {good.port}
for host in ("127.0.0.1", "0.0.0.0", "127.1.2.3"):
    print(raw("connect", T(), inet(bad, host=host)), end=" ")
for host in ("::ffff:127.0.0.1", "::ffff:0.0.0.0", "::1", "::"):
    print(errno.errorcode[T(10).connect_ex((host, bad))], end=" ")
print()
print(raw("sendto", U(), inet(dgram, family=0), b"x", 1, 0), end=" ")          # AF_UNSPEC is AF_INET here
print(raw("sendto", U(10), inet(dgram), b"x", 1, 0), end=" ")                  # IPv4 on an IPv6 socket
print(raw("sendto", U(10), inet(dgram, family=0), b"x", 1, 0), end=" ")        # and AF_UNSPEC is no address there
print(raw("connect", U(10), inet(dgram)), raw("connect", T(10), inet(bad)), end=" ")
print(raw("connect", T(), inet(bad, family=1)), raw("connect", T(), inet(bad, family=16)), end=" ")
print(raw("connect", T(), inet(bad, pad=bytes(112))), raw("connect", T(), inet(bad, pad=b"")))
s = T(); s.setsockopt(6, 30, 1)                                                # TCP_FASTOPEN_CONNECT
print(errno.errorcode[s.connect_ex(("127.0.0.1", bad))], end=" ")
s = T(); s.setsockopt(6, 30, 1); s.connect(("127.0.0.1", good))
print(raw("sendto", s, inet(bad), b"x", 1, 0), end=" ")
s = T(); s.connect(("127.0.0.1", good)); raw("connect", s, inet(0, family=0))
print(errno.errorcode[s.connect_ex(("127.0.0.1", bad))], end=" ")
u = U(); u.connect(("127.0.0.1", good)); print(raw("sendto", u, inet(dgram), b"x", 1, 0))
"""
        result = arena.python(code, policy=only(arena, good.port))
        assert result.err == ""
        assert [line.rstrip() for line in result.out.splitlines()] == [
            "EACCES EACCES EACCES EACCES EACCES EACCES EACCES",
            "EACCES EACCES EDESTADDRREQ EACCES EAFNOSUPPORT EAFNOSUPPORT EAFNOSUPPORT EACCES EINVAL",
            "EACCES done EACCES EACCES",
        ]
        assert bad.close() == 0
        assert datagrams.close() == 0


def test_control_messages_cannot_reroute_or_speak_for_others(arena):
    with servers(socket.SOCK_DGRAM) as (good,):
        code = f"""
import errno, os, socket, struct
def say(action):
    try: print(action())
    except OSError as e: print(errno.errorcode[e.errno])
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
route = bytes([131, 7, 4]) + socket.inet_aton("127.0.0.1") + bytes(1)
to = ("127.0.0.1", {good.port})
say(lambda: u.sendmsg([b"x"], [(0, 7, route)], 0, to))          # IP_RETOPTS
say(lambda: u.sendmsg([b"x"], [(41, 57, bytes(24))], 0, to))    # IPV6_RTHDR
say(lambda: u.sendmsg([b"x"], [(0, 1, struct.pack("=i", 8))], 0, to))
a, b = socket.socketpair()
say(lambda: a.sendmsg([b"x"], [(1, 2, struct.pack("=3i", 1, 0, 0))]))
say(lambda: a.sendmsg([b"x"], [(1, 2, struct.pack("=3i", os.getpid(), os.getuid(), os.getgid()))]))
"""
        result = arena.python(code, policy=only(arena, good.port))
        assert result.out == "EINVAL\nEINVAL\n1\nEPERM\n1\n", result.err


UNIX = """
import ctypes, errno, os, socket
def try_(path):
    s = socket.socket(socket.AF_UNIX)
    return errno.errorcode.get(s.connect_ex(path), "CONNECTED")
"""


def open_to_all(path):
    os.chmod(path, 0o777)  # noqa: S103 - the sandbox, not the mode, is under test
    return path


def test_pitfall_14_a_foreign_unix_socket_under_another_name(arena):
    outside = str(arena.project / "out.sock")  # where the session can rename it
    with servers((socket.SOCK_STREAM, outside)) as (server,):
        os.chown(open_to_all(outside), arena.uid, arena.gid)
        code = f"""{UNIX}
outside = {outside!r}
mine = socket.socket(socket.AF_UNIX); mine.bind("mine"); mine.listen()
names = [outside, "out.sock", "./src/../out.sock", "/proc/self/cwd/out.sock", "/proc/self/root" + outside]
os.symlink("out.sock", "sym"); names.append("sym")
try: os.link("out.sock", "hard"); names.append("hard")
except OSError: pass
fd = os.open(".", os.O_RDONLY); names.append(f"/proc/self/fd/{{fd}}/out.sock")
print({{try_(name) for name in names}}, try_("mine"))
os.unlink("mine"); os.rename("out.sock", "mine")   # bound here, renamed from there: the same string for the kernel
print(try_("mine"))
"""
        result = arena.python(code)
        assert result.out == "{'EACCES'} CONNECTED\nEACCES\n", result.err
        assert server.close() == 0


UNIX_RACE = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
static volatile int stop;
static struct sockaddr_un name;
static void *swap(void *u) {
    (void)u;
    while (!stop) syscall(SYS_renameat2, AT_FDCWD, "a", AT_FDCWD, "out.sock", 2);
    return 0;
}
static void *flip(void *u) {
    (void)u;
    while (!stop) { memcpy(name.sun_path, "out.sock", 9); memcpy(name.sun_path, "a\0\0\0\0\0\0\0", 9); }
    return 0;
}
static void *drain(void *u) { for (;;) close(accept(*(int *)u, 0, 0)); }
int main(int argc, char **argv) {
    struct sockaddr_un a = {AF_UNIX, "a"};
    int done = 0, l = socket(AF_UNIX, SOCK_STREAM, 0);
    bind(l, (void *)&a, sizeof a); listen(l, 512);
    name = a;
    pthread_t t, d;
    pthread_create(&d, 0, drain, &l);
    pthread_create(&t, 0, argv[1][0] == 's' ? swap : flip, 0);
    for (int i = 0; i < atoi(argv[2]); i++) {
        int s = socket(AF_UNIX, SOCK_STREAM, 0);
        done += connect(s, (void *)&name, sizeof name) == 0;
        close(s);
    }
    stop = 1;
    printf("%d\n", done > 0);
    return 0;
}
"""


@pytest.mark.parametrize("how", ["swap", "flip"])
def test_pitfall_14_swapping_the_name_of_a_unix_socket_reaches_nothing_outside(arena, how):
    outside = str(arena.project / "out.sock")
    with servers((socket.SOCK_STREAM, outside)) as (server,):
        os.chown(open_to_all(outside), arena.uid, arena.gid)
        result = arena.c(UNIX_RACE, how, "1500")
        assert result.out == "1\n", (result.out, result.err)
        assert server.close() == 0


def test_pitfall_17_no_datagram_reaches_a_unix_socket(arena):
    outside = str(arena.top / "outside/d.sock")
    with servers((socket.SOCK_DGRAM, outside)) as (server,):
        open_to_all(outside)
        code = f"""{UNIX}
def say(action):
    try: print(action(), end=" ")
    except OSError as e: print(errno.errorcode[e.errno], end=" ")
say(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
say(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
c, d = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
say(lambda: c.sendto(b"x", {outside!r}))
say(lambda: a.sendto(b"to its peer", {outside!r})); print(b.recv(99))
"""
        result = arena.python(code)
        assert result.out == "EACCES EACCES EISCONN 11 b'to its peer'\n", result.err
        assert server.close() == 0


THREADS = """
import ctypes, errno, os, socket, threading
libc = ctypes.CDLL(None, use_errno=True)
def inside():
    libc.unshare(0x400)  # CLONE_FILES: descriptors of its own
    libc.unshare(0x200)  # CLONE_FS: a working directory of its own
    os.chdir("src")
    s = socket.socket(); t = socket.socket()
    os.dup2(s.fileno(), 200)
    one = socket.socket(fileno=200)
    print(errno.errorcode.get(one.connect_ex(("127.0.0.1", PORT)), "CONNECTED"), one.getpeername()[1] == PORT)
    print(errno.errorcode[t.connect_ex(("127.0.0.1", PORT + 1))])
    u = socket.socket(socket.AF_UNIX)
    print(u.connect_ex("here"), flush=True)
    os._exit(0)
l = socket.socket(socket.AF_UNIX); l.bind("src/here"); l.listen()
socket.socket(socket.AF_UNIX); os.dup2(0, 200)
threading.Thread(target=inside).start()
threading.Event().wait(20)
"""


def test_pitfall_18_a_thread_with_descriptors_and_a_directory_of_its_own(arena):
    with servers(socket.SOCK_STREAM) as (good,):
        result = arena.python(THREADS.replace("PORT", str(good.port)), policy=only(arena, good.port))
        assert result.out == "CONNECTED True\nEACCES\n0\n", result.err


def test_pitfall_19_a_caller_that_cannot_be_read_reaches_nothing(arena):
    with servers(socket.SOCK_STREAM, socket.SOCK_STREAM) as (good, bad):
        code = f"""
import ctypes, socket
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
print(socket.socket().connect_ex(("127.0.0.1", {bad.port})))
"""
        result = arena.python(code, policy=only(arena, good.port))
        assert result.out in {"1\n", "13\n"}, result.err
        assert bad.close() == 0


def test_malformed_calls_give_errnos_and_nothing_leaks(arena):
    seen = str(arena.top / "descriptors")
    with servers(socket.SOCK_STREAM, socket.SOCK_DGRAM) as (good, bad):
        code = f"""
import ctypes, os, random, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
random.seed(7)
mark = lambda: socket.socket().connect_ex(("127.0.0.1", {bad.port}))
mark()
sockets = [socket.socket(f, t) for f in (2, 10) for t in (1, 2)] + [*socket.socketpair(), socket.socket(16, 3, 0)]
for s in sockets: s.setblocking(False)
def number(): return random.choice([0, 1, 16, 28, 110, 128, 129, 1025, 2**31, 2**32 - 1, 2**64 - 1, 253])
for n in range(1500):
    s = random.choice(sockets).fileno() if n % 50 else random.choice([0, 999, -1])
    family = random.choice([0, 1, 2, 10, 16, 40])
    name = ctypes.create_string_buffer(struct.pack("=H", family) + os.urandom(126), 128)
    name = random.choice([name, None, ctypes.c_void_p(8)])
    data = ctypes.create_string_buffer(64)
    control = ctypes.create_string_buffer(struct.pack("=Qii", random.choice([0, 16, 20, 24, 64, 2**63]),
        random.choice([0, 1, 41]), random.choice([1, 2, 7, 8]))
        + struct.pack("=12i", *random.choices([0, 1, 2, -1, 77], k=12)), 64)
    iov = ctypes.create_string_buffer(struct.pack("=QQ", ctypes.addressof(data), random.choice([0, 8, 64, 2**63])), 16)
    header = ctypes.create_string_buffer(struct.pack("=QIxxxxQQQQi4xI4x",
        ctypes.addressof(name) if isinstance(name, ctypes.Array) else 0, number() & 0xFFFFFFFF,
        random.choice([ctypes.addressof(iov), 8]), random.choice([0, 1, 1, 2000]),
        random.choice([ctypes.addressof(control), 0, 8]), random.choice([0, 15, 64, 64, 2**40]), 0, 0), 64)
    size = ctypes.c_uint(number() & 0xFFFFFFFF)
    flags = random.choice([0x40, 0x4040, 0x40 | 1, 0x40000040, 0x4000040])
    libc.connect(s, name, size) if family in (0, 40) else None
    libc.sendto(s, data, 8, flags, name, size) if family != 2 and family != 10 else None
    libc.sendmsg(s, random.choice([header, None, ctypes.c_void_p(8)]), flags)
    libc.sendmmsg(s, header, random.choice([0, 1]), flags)
mark()
print("alive")
"""

        def count(gate, request):
            if request.target.endswith(b"/tcp"):
                with open(seen, "a") as file:
                    file.write(f"{len(os.listdir('/proc/self/fd'))}\n")
            return False

        result = arena.python(code, policy=only(arena, good.port), on_denied=count)
        assert result.out == "alive\n", (result.out, result.err)
        with open(seen) as file:
            first, *_, last = map(int, file.read().split())
        assert last <= first


def test_pitfall_18_killed_while_its_connect_is_pending(arena):
    code = """
import os, signal, socket, time
l = socket.socket(socket.AF_UNIX); l.bind("l"); l.listen(0)
def child():
    pid = os.fork()
    if pid == 0:
        s = socket.socket(socket.AF_UNIX); s.connect("l"); time.sleep(9)
    return pid
pids = [child() for _ in range(6)]   # all but one or two block: the backlog is full
time.sleep(0.6)
for pid in pids: os.kill(pid, signal.SIGKILL)
print([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids])
l.close(); s, t = socket.socketpair(); print(s.sendmsg([b"still served"]))
"""
    result = arena.python(code)
    assert result.out == f"{[-9] * 6}\n12\n", result.err


def test_pitfall_25_a_crowd_of_blocked_calls_does_not_starve_the_supervisor(arena):
    code = """
import errno, os, socket, threading, time
l = socket.socket(socket.AF_UNIX); l.bind("l"); l.listen(0)
seen = []
def one():
    seen.append(errno.errorcode.get(socket.socket(socket.AF_UNIX).connect_ex("l"), "CONNECTED"))
for _ in range(300): threading.Thread(target=one, daemon=True).start()
deadline = time.monotonic() + 20
while len(seen) < 300 - 256 and time.monotonic() < deadline: time.sleep(0.05)
a, b = socket.socketpair()
print(set(seen) - {"CONNECTED"}, a.sendmsg([b"x"]), open("src/main.c").read(), end="", flush=True)
os._exit(0)
"""
    result = arena.python(code)
    assert result.out == "{'EAGAIN'} 1 int x;\n", result.err


SEGMENT = socket.inet_pton(socket.AF_INET6, "2001:db8::1")
ROUTES = [
    (socket.AF_INET, 0, 4, bytes([131, 7, 4]) + socket.inet_aton("127.0.0.1") + bytes(1)),  # IP_OPTIONS, loose route
    (socket.AF_INET6, 41, 57, bytes([0, 4, 4, 1, 1, 0, 0, 0]) + bytes(16) + SEGMENT),  # IPV6_RTHDR, segment routing
    (socket.AF_INET6, 41, 5, bytes(24)),  # IPV6_2292RTHDR
    (socket.AF_INET6, 41, 6, bytes(24)),  # IPV6_2292PKTOPTIONS, which can hold one
]


@pytest.mark.parametrize("route", ROUTES)
def test_pitfall_12_source_routes_are_refused(arena, route):
    """A source route sends what is addressed to loopback to another machine first; setsockopt is the filter's.

    The kernel reads level and option from the lower half of a register, so the upper half must hide nothing. An IPv6
    socket has IPv4 options too.
    """
    _, level, name, value = route
    code = f"""
import ctypes, errno, socket
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.argtypes = [ctypes.c_long] + [ctypes.c_ulong] * 3 + [ctypes.c_char_p, ctypes.c_ulong]
def say(s, level, name, value):
    r = libc.syscall({abi.NR["setsockopt"]}, s.fileno(), level, name, value, len(value))
    print("set" if r == 0 else errno.errorcode[ctypes.get_errno()])
for family in (socket.AF_INET, socket.AF_INET6):
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        for high in (0, 1 << 32, 1 << 63):
            s = socket.socket(family, kind)
            say(s, high | {level}, {name}, {value!r}); say(s, {level}, high | {name}, {value!r})
s = socket.socket(); say(s, 0, 2, bytes([64, 0, 0, 0])); say(s, 6, 1, bytes([1, 0, 0, 0]))
s = socket.socket(socket.AF_INET6); say(s, 41, 26, bytes([1, 0, 0, 0]))
"""
    result = arena.python(code)
    assert result.out.split() == ["EPERM"] * 24 + ["set"] * 3, result.err
    if (level, name) == (41, 57) or ((level, name) == (0, 4) and not arena.uid):
        assert "set" in arena.bare(f"python3 - <<'END'\n{code}END").split()[:24]


def test_pitfall_12_the_upper_half_of_a_register_hides_nothing(arena):
    """The kernel takes ints: what stands above them makes no other call of a refused one."""
    code = f"""
import ctypes, errno, socket
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.argtypes = [ctypes.c_long] + [ctypes.c_ulong] * 6
def say(name, *args):
    r = libc.syscall(name, *args, *[0] * (6 - len(args)))
    print("made" if r >= 0 else errno.errorcode[ctypes.get_errno()])
s = socket.socket()
for high in (1 << 32, 1 << 63):
    say({abi.NR["socket"]}, high | 2, 1, 262); say({abi.NR["socket"]}, 2, high | 1, high | 262)
    say({abi.NR["socket"]}, high | 1, high | 2, 0); say({abi.NR["socketpair"]}, high | 1, high | 2, 0, 0)
    say({abi.NR["sendto"]}, s.fileno(), 0, 0, high | 0x20000000, 0, 0)
say({abi.NR["socket"]}, 1 << 32 | 2, 1 << 32 | 1, 1 << 32 | 6)
"""
    result = arena.python(code)
    refused = ["EPROTONOSUPPORT"] * 2 + ["EACCES"] * 2 + ["ENOTSUP"]
    assert result.out.split() == refused * 2 + ["made"], result.err


def test_the_kernel_numbers_used_here():
    assert struct.calcsize("=QI4xQQQQi4xI4x") == 64
