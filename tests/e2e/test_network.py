"""What programs do with sockets, inside the real sandbox: it works, or it is refused and told of."""

from __future__ import annotations

import os
import socket
import sys
import threading

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), os.pardir, "attack"))

from confine import drop_arena, make_arena

pytestmark = pytest.mark.e2e

# Documentation addresses (RFC 5737, RFC 3849): nothing is ever sent to them, that is what is tested.
OUTSIDE = "198.51.100.1"
OUTSIDE6 = "2001:db8::1"


@pytest.fixture(params=["root", "user"])
def arena(request):
    made = make_arena(request.param)
    yield made
    drop_arena(made)


@pytest.fixture
def greeter():
    """A TCP server outside the sandbox, on loopback, that greets and echoes one message."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(b"hello " + connection.recv(100))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def works(result, out):
    assert (result.out, result.denials, result.status) == (out, [], 0), result.err


def test_a_blocking_connect_and_threads(arena, greeter):
    code = f"""
import socket, threading
def talk(word):
    with socket.create_connection(("127.0.0.1", {greeter})) as s:
        s.sendall(word)
        found.append(s.recv(100))
found = []
threads = [threading.Thread(target=talk, args=(b"t%d" % n,)) for n in range(12)]
[t.start() for t in threads]; [t.join() for t in threads]
print(len(set(found)), b"hello t3" in found)
"""
    works(arena.python(code), "12 True\n")


def test_a_non_blocking_connect_and_select(arena, greeter):
    code = f"""
import errno, select, socket
s = socket.socket(); s.setblocking(False)
print(s.connect_ex(("127.0.0.1", {greeter})) in (0, errno.EINPROGRESS))
select.select([], [s], [], 5)
print(s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), s.connect_ex(("127.0.0.1", {greeter})))
t = socket.socket(); t.setblocking(True)
t.bind(("127.0.0.1", 0)); port = t.getsockname()[1]; t.close()
print(errno.errorcode[socket.socket().connect_ex(("127.0.0.1", port))])
"""
    result = arena.python(code)
    assert result.out in {"True\n0 0\nECONNREFUSED\n", f"True\n0 {106}\nECONNREFUSED\n"}, result.err


def test_asyncio(arena, greeter):
    code = f"""
import asyncio
async def main():
    async def serve(r, w):
        w.writelines([b"a" * 10, b"b" * 10]); await w.drain(); w.close()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    r, w = await asyncio.open_connection(*server.sockets[0].getsockname())
    print(await r.read()); w.close()
    r, w = await asyncio.open_connection("localhost", {greeter})
    w.write(b"x"); print(await r.read()); w.close()
    process = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    print((await process.communicate(b"through cat"))[0])
asyncio.run(main())
"""
    works(arena.python(code), "b'aaaaaaaaaabbbbbbbbbb'\nb'hello x'\nb'through cat'\n")


def test_udp_on_loopback_goes_and_elsewhere_is_refused(arena):
    code = f"""
import errno, socket, struct
a = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); a.bind(("127.0.0.1", 0))
b = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
print(b.sendto(b"one", a.getsockname()), a.recv(9))
print(b.sendmsg([b"t", b"wo"], [], 0, a.getsockname()), a.recv(9))
b.connect(a.getsockname()); b.send(b"three"); print(a.recv(9))
for send in (lambda: b.sendto(b"x", ("{OUTSIDE}", 9)), lambda: b.sendmsg([b"x"], [], 0, ("{OUTSIDE}", 9)),
             lambda: b.connect(("{OUTSIDE}", 9))):
    try: send()
    except OSError as e: print(errno.errorcode[e.errno])
c = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
try: c.sendto(b"x", ("{OUTSIDE6}", 9))
except OSError as e: print(errno.errorcode[e.errno])
try: c.sendto(b"x", ("::ffff:{OUTSIDE}", 9))
except OSError as e: print(errno.errorcode[e.errno])
"""
    result = arena.python(code)
    assert result.out == "3 b'one'\n3 b'two'\nb'three'\n" + "EACCES\n" * 5, result.err
    v4, v6 = f"{OUTSIDE}:9/udp", f"[{OUTSIDE6}]:9/udp"
    assert [denial["target"] for denial in result.denials] == [v4, v4, v4, v6, v4]
    assert [denial["op"] for denial in result.denials] == ["sendto", "sendmsg", "connect", "sendto", "sendto"]


def test_tcp_elsewhere_is_refused_and_told_of(arena):
    code = f"""
import errno, socket
for family, host in ((socket.AF_INET, "{OUTSIDE}"), (socket.AF_INET6, "{OUTSIDE6}"),
                     (socket.AF_INET6, "::ffff:{OUTSIDE}")):
    print(errno.errorcode[socket.socket(family).connect_ex((host, 22))])
"""
    result = arena.python(code)
    assert result.out == "EACCES\n" * 3, result.err
    assert [d["target"] for d in result.denials] == [f"{OUTSIDE}:22/tcp", f"[{OUTSIDE6}]:22/tcp", f"{OUTSIDE}:22/tcp"]


def test_what_the_filter_refuses_programs_can_live_with(arena):
    code = """
import errno, socket
def say(action):
    try: action(); print("works")
    except OSError as e: print(errno.errorcode[e.errno])
say(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
say(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
say(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262))
say(lambda: socket.socket().sendto(b"x", 0x20000000, ("127.0.0.1", 9)))
say(lambda: socket.socket().sendmsg([b"x"], [], 0x20000000, ("127.0.0.1", 9)))
say(lambda: socket.socketpair())
"""
    works(arena.python(code), "EACCES\nEACCES\nEPROTONOSUPPORT\nENOTSUP\nENOTSUP\nworks\n")


SERVER = """
import os, socket, sys, time
s = socket.socket(socket.AF_UNIX, getattr(socket, sys.argv[2])); s.bind(sys.argv[1].replace("@", chr(0))); s.listen()
open("ready", "w").close()
c, _ = s.accept(); c.sendall(b"inside " + c.recv(99)); c.close()
"""
CLIENT = """
import socket, sys
s = socket.socket(socket.AF_UNIX, getattr(socket, sys.argv[2])); s.connect(sys.argv[1].replace("@", chr(0)))
s.sendall(b"x"); print(s.recv(99))
"""


@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_SEQPACKET"])
@pytest.mark.parametrize("name", ["src/s.sock", "@nd7-test-inside", "{project}/s.sock"])
def test_a_unix_socket_of_the_session_is_open_to_it(arena, name, kind):
    (arena.project / "server.py").write_text(SERVER)
    (arena.project / "client.py").write_text(CLIENT)
    name = name.format(project=arena.project)
    script = f"""
python3 server.py '{name}' {kind} & while [ ! -e ready ]; do sleep 0.02; done
python3 client.py '{name}' {kind}; wait
"""
    works(arena.sh(script), "b'inside x'\n")


def test_a_stale_unix_socket_is_connection_refused_not_a_denial(arena):
    code = """
import errno, socket
s = socket.socket(socket.AF_UNIX); s.bind("old"); s.listen(); s.close()
for name in ("old", "never", "src", "src/main.c", "src/main.c/x", "\\0nd7-nobody", "/run/nscd/none", "/var/run/nscd/x"):
    print(errno.errorcode[socket.socket(socket.AF_UNIX).connect_ex(name)], end=" ")
"""
    expected = "ECONNREFUSED ENOENT ECONNREFUSED ECONNREFUSED ENOTDIR ECONNREFUSED ENOENT ENOENT "
    works(arena.python(code), expected)


@pytest.mark.parametrize("abstract", [False, True])
def test_a_unix_socket_outside_is_refused(arena, abstract):
    name = f"\0nd7-outside-{os.getpid()}" if abstract else str(arena.top / "outside/s.sock")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        if not abstract:
            os.chmod(name, 0o777)  # noqa: S103 - the sandbox, not the mode, is under test
        result = arena.python(f"""
import errno, socket
print(errno.errorcode[socket.socket(socket.AF_UNIX).connect_ex({name!r})])
""")
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert result.out == "EACCES\n", result.err
    assert [d["target"] for d in result.denials] == [name.replace("\0", "@")]


def test_descriptors_pass_between_two_confined_processes(arena):
    code = """
import array, os, socket
a, b = socket.socketpair()
if os.fork() == 0:
    r, w = os.pipe()
    socket.send_fds(a, [b"take"], [r, w]); os.close(r)
    os.write(w, b"through the pipe"); os._exit(0)
data, fds, _, _ = socket.recv_fds(b, 99, 4)
os.wait(); print(data, len(fds), os.read(fds[0], 99))
try: socket.send_fds(a, [b"x"], [fds[0], 9999])
except OSError as e: print(e.strerror)
"""
    works(arena.python(code), "b'take' 2 b'through the pipe'\nBad file descriptor\n")


def test_multiprocessing(arena):
    code = """
import multiprocessing, os
os.environ["TMPDIR"] = os.path.abspath("src")
if __name__ == "__main__":
    context = multiprocessing.get_context("forkserver")
    with context.Pool(2) as pool: print(pool.map(abs, [-1, -2]))
    manager = context.Manager(); d = manager.dict(); d["a"] = 1; print(d["a"])
"""
    (arena.project / "m.py").write_text(code)
    works(arena.run("python3", "m.py"), "[1, 2]\n1\n")


def test_sendmmsg(arena):
    code = """
import ctypes, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
a = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); a.bind(("127.0.0.1", 0)); a.settimeout(2)
b = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def vector(hosts):
    keep, out = [], b""
    for n, host in enumerate(hosts):
        name = ctypes.create_string_buffer(struct.pack("=H", 2) + struct.pack(">H", a.getsockname()[1])
                                           + socket.inet_aton(host) + bytes(8), 16)
        data = ctypes.create_string_buffer(b"m%d" % n, 2)
        iov = ctypes.create_string_buffer(struct.pack("=QQ", ctypes.addressof(data), 2), 16)
        keep += [name, data, iov]
        out += struct.pack("=QI4xQQQQi4xI4x", ctypes.addressof(name), 16, ctypes.addressof(iov), 1, 0, 0, 0, 99)
    buffer = ctypes.create_string_buffer(out, len(out))
    return buffer, keep
v, keep = vector(["127.0.0.1"] * 3)
print(libc.sendmmsg(b.fileno(), v, 3, 0), [v.raw[64 * n + 56] for n in range(3)], [a.recv(9) for n in range(3)])
v, keep = vector(["127.0.0.1", "198.51.100.1", "127.0.0.1"])
print(libc.sendmmsg(b.fileno(), v, 3, 0), [v.raw[64 * n + 56] for n in range(3)], a.recv(9))
v, keep = vector(["198.51.100.1"])
print(libc.sendmmsg(b.fileno(), v, 1, 0), ctypes.get_errno())
"""
    result = arena.python(code)
    assert result.out == "3 [2, 2, 2] [b'm0', b'm1', b'm2']\n1 [2, 99, 99] b'm0'\n-1 13\n", result.err
    assert len(result.denials) == 1


def test_a_blocking_stream_takes_everything(arena):
    code = """
import os, signal, socket, threading, errno, hashlib
a, b = socket.socketpair()
data = os.urandom(5 << 20)
got = hashlib.sha256()
def drain():
    left = len(data)
    while left:
        part = b.recv(1 << 16); got.update(part); left -= len(part)
t = threading.Thread(target=drain); t.start()
print(a.sendmsg([data[: 1 << 20], data[1 << 20 :]]) == len(data)); t.join()
print(got.digest() == hashlib.sha256(data).digest())
a.setblocking(False); n = a.sendmsg([data]); print(0 < n < len(data))
try: a.sendmsg([b"x"])
except BlockingIOError: print("EAGAIN")
a.settimeout(None); a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, bytes(8) + (200000).to_bytes(8, "little"))
try: a.sendmsg([b"x"])
except BlockingIOError: print("timed out")
b.close()
try: a.sendmsg([b"x"], [], socket.MSG_NOSIGNAL)
except BrokenPipeError: print("EPIPE")
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
pid = os.fork()
if pid == 0:
    a.sendmsg([b"x"]); os._exit(1)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    works(arena.python(code), "True\nTrue\nTrue\nEAGAIN\ntimed out\nEPIPE\n-13\n")


def test_a_signal_interrupts_what_blocks(arena):
    code = """
import errno, os, signal, socket, time, ctypes
libc = ctypes.CDLL(None, use_errno=True)
class Interrupt(Exception): pass
def ring(*_): raise Interrupt
signal.signal(signal.SIGALRM, ring)
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(0)
address = s.getsockname()
full = [socket.socket() for _ in range(4)]
for one in full: one.setblocking(False); one.connect_ex(address)
time.sleep(0.2)
began = time.monotonic(); signal.setitimer(signal.ITIMER_REAL, 0.5)
try: socket.socket().connect(address); print("connected")
except Interrupt: print("interrupted", time.monotonic() - began < 3)
a, b = socket.socketpair(); a.setblocking(False)
try:
    while True: a.send(b"x" * 65536)
except BlockingIOError: pass
a.setblocking(True); signal.setitimer(signal.ITIMER_REAL, 0.3)
try: a.sendmsg([b"x" * 65536])
except Interrupt: print("interrupted", time.monotonic() - began < 5)
"""
    works(arena.python(code), "interrupted True\ninterrupted True\n")


def test_names_can_be_looked_up_without_a_denial(arena):
    works(arena.python("import socket; print(socket.getaddrinfo('localhost', 80)[0][1])"), "1\n")


def test_interfaces_are_listed_through_netlink(arena):
    code = """
import socket
print("lo" in [name for _, name in socket.if_nameindex()])
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
s.bind((0, 0)); s.connect((0, 0)); print(s.sendto(bytes(16), (0, 0)))
for target in ((77, 0), (0, 1)):
    try: s.sendto(bytes(16), target)
    except OSError as e: print(e.strerror)
"""
    works(arena.python(code), "True\n16\nOperation not permitted\nOperation not permitted\n")


def test_curl(arena, greeter):
    result = arena.run("curl", "-s", "--http0.9", f"http://127.0.0.1:{greeter}/x")
    assert result.out.startswith("hello GET /x"), result.err


NODE = """
const cluster = require("cluster"), http = require("http"), cp = require("child_process");
if (cluster.isPrimary) {
  const worker = cluster.fork();
  worker.on("message", (port) => {
    http.get({port, host: "127.0.0.1"}, (res) => {
      res.on("data", (d) => { console.log("cluster", String(d)); worker.kill();
        const child = cp.fork(__filename, ["child"], {env: {...process.env, CHILD: "1"}});
        child.on("message", (m) => { console.log("ipc", m); child.disconnect(); });
        child.send({ask: 1});
      });
    });
  });
} else {
  http.createServer((q, s) => s.end("from worker")).listen(0, "127.0.0.1", function () {
    process.send(this.address().port);
  });
}
"""


def test_node(arena):
    child = 'if (process.env.CHILD) { process.on("message", (m) => process.send("got " + m.ask)); } else {' + NODE + "}"
    (arena.project / "n.js").write_text(child)
    works(arena.run("node", "n.js"), "cluster from worker\nipc got 1\n")
