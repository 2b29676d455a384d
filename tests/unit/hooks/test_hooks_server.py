from __future__ import annotations

import array
import gc
import os
import select
import socket
import stat
import threading

import pytest

from nd7tui.engine.run import hooks, wire
from nd7tui.engine.run.hooks import MAX_CLIENTS, STALL_NS, WHOLE_NS, HookServer
from nd7tui.engine.run.wire import Kind, Reply


class Bench:
    """A server whose clock is ours and whose tree is this process."""

    def __init__(self, run_dir):
        self.now = 0
        self.members = {os.getpid()}
        self.seen = []
        self.reply = Reply(0, b"out", b"err")
        self.server = HookServer(
            str(run_dir), lambda pid: pid in self.members, self.hook, lambda text, pid: self.take("exec", text, pid),
            clock=lambda: self.now,
        )  # fmt: skip
        self.links = []

    def hook(self, payload, pid):
        return self.take("hook", payload, pid)

    def take(self, kind, payload, pid):
        self.seen.append((kind, payload, pid))
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply

    def connect(self, data=b""):
        link = socket.socket(socket.AF_UNIX)
        link.settimeout(2)
        link.connect(self.server.path)
        link.sendall(data)
        self.links.append(link)
        return link

    def serve(self, times=3):
        for _ in range(times):
            self.server.serve()

    def receive(self, link):
        """Reads to the end while the server works."""
        data = b""
        link.setblocking(False)
        while True:
            self.server.serve()
            try:
                chunk = link.recv(1 << 20)
            except BlockingIOError:
                continue
            except ConnectionResetError:
                return data
            if not chunk:
                return data
            data += chunk

    def ask(self, data):
        return wire.parse_reply(self.receive(self.connect(data)))


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path)
    yield made
    for link in made.links:
        link.close()
    made.server.close()


HOOK = wire.render_request(Kind.HOOK, b'{"a":1}')


def test_a_hook_is_handed_over_with_its_sender_and_answered(bench):
    assert bench.ask(HOOK) == bench.reply
    assert bench.seen == [("hook", b'{"a":1}', os.getpid())]


def test_an_announcement_goes_to_its_own_handler(bench):
    assert bench.ask(wire.render_request(Kind.ANNOUNCE, b"\xff\nls")) == bench.reply
    assert bench.seen == [("exec", b"\xff\nls", os.getpid())]


def test_one_serve_is_enough_for_a_request_that_is_already_there(bench):
    link = bench.connect(HOOK)
    bench.server.serve()
    assert wire.parse_reply(link.recv(100)) == bench.reply


def test_is_readable_only_when_there_is_something_to_do(bench):
    def ready():
        return select.select([bench.server.fileno()], [], [], 0)[0] != []

    assert not ready()
    link = bench.connect(HOOK[:3])
    assert ready()
    bench.serve()
    assert not ready()
    link.sendall(HOOK[3:])
    assert ready()
    bench.serve()
    assert not ready()


def test_the_socket_is_for_this_user_only(bench):
    status = os.stat(bench.server.path)
    assert stat.S_ISSOCK(status.st_mode)
    assert stat.S_IMODE(status.st_mode) == 0o600


def test_a_directory_path_longer_than_a_socket_address(tmp_path):
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    server = HookServer(str(deep), lambda _: True, lambda *_: Reply(), lambda *_: Reply())
    assert (deep / "hook.sock").is_socket()
    server.close()
    assert not (deep / "hook.sock").exists()


def test_a_socket_that_is_there_already_is_an_error_and_leaks_nothing(tmp_path):
    (tmp_path / "hook.sock").touch()
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="in use"):
        HookServer(str(tmp_path), lambda _: True, lambda *_: Reply(), lambda *_: Reply())
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def test_bytes_one_by_one(bench):
    link = bench.connect()
    for byte in HOOK:
        link.sendall(bytes((byte,)))
        bench.serve(1)
    assert wire.parse_reply(bench.receive(link)) == bench.reply


def test_large_both_ways_without_blocking(bench):
    payload = os.urandom(20) * 500_000
    bench.reply = Reply(1, payload, b"")
    link = bench.connect()
    sender = threading.Thread(target=link.sendall, args=(wire.render_request(Kind.HOOK, payload),))
    link.settimeout(10)
    sender.start()
    while not bench.seen:
        bench.server.serve()
    sender.join()
    assert bench.seen[0][1] == payload
    assert wire.parse_reply(bench.receive(link)) == bench.reply


def test_a_sender_outside_the_tree_is_refused_and_not_heard(bench):
    bench.members = set()
    reply = bench.ask(HOOK)
    assert (reply.status, bench.seen) == (2, [])
    assert b"not of this run" in reply.stderr


def test_a_connection_does_not_change_hands(bench):
    link = bench.connect(HOOK[:4])
    bench.serve()
    pid = os.fork()
    if pid == 0:
        link.sendall(HOOK[4:])
        os._exit(0)
    bench.members.add(pid)
    os.waitpid(pid, 0)
    assert wire.parse_reply(bench.receive(link)).status == 2
    assert bench.seen == []


@pytest.mark.parametrize("data", [b"GET /", b"ND7\x01\x09", HOOK + b"more", b"ND7\x01\x01\xff\xff\xff\xff"])
def test_what_is_no_request_is_refused(bench, data):
    reply = bench.ask(data)
    assert (reply.status, bench.seen, bench.server.refused) == (2, [], 1)
    assert reply.stderr.startswith(b"nd7: ")


def test_a_client_that_leaves_early_is_forgotten(bench):
    for data in (b"", HOOK[:5]):
        bench.connect(data).close()
        bench.serve()
    bench.connect(HOOK).close()
    bench.serve()
    assert bench.ask(HOOK) == bench.reply
    assert bench.server._clients == {}


@pytest.mark.parametrize("fault", [ValueError("bad json"), RecursionError("deep"), OSError(28, "No space left")])
def test_a_handler_that_fails_blocks_that_one_call(bench, fault):
    bench.reply = fault
    reply = bench.ask(HOOK)
    assert (reply.status, reply.stdout) == (2, b"")
    assert reply.stderr.endswith(b"\n")
    bench.reply = Reply(0)
    assert bench.ask(HOOK).status == 0


def test_descriptors_that_a_client_sends_are_refused_and_closed(bench):
    before = len(os.listdir("/proc/self/fd"))
    link = bench.connect()
    fds = array.array("i", [0, 1, 2])
    link.sendmsg([HOOK], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
    assert wire.parse_reply(bench.receive(link)).status == 2
    assert bench.seen == []
    assert len(os.listdir("/proc/self/fd")) == before + 1  # our own end


def test_a_stalled_client_is_dropped(bench):
    link = bench.connect(HOOK[:5])
    bench.serve()
    bench.now = STALL_NS
    bench.serve()
    assert bench.server._clients
    bench.now += 1
    bench.serve()
    assert link.recv(1) == b""


def test_a_client_that_drips_is_dropped_too(bench):
    link = bench.connect(b"ND7\x01\x01\x00\x00\xff\x00")
    bench.serve()
    while bench.now <= WHOLE_NS:
        link.sendall(b"x")
        bench.serve()
        bench.now += STALL_NS
    bench.serve()
    assert bench.server._clients == {}


def test_a_client_that_does_not_read_its_reply_is_dropped(bench):
    bench.reply = Reply(0, bytes(8 << 20))
    bench.connect(HOOK)
    bench.serve()
    assert bench.server._clients
    bench.now = STALL_NS + 1
    bench.serve()
    assert bench.server._clients == {}


def test_stuck_clients_do_not_keep_an_honest_one_out(bench):
    for _ in range(MAX_CLIENTS + 10):
        bench.connect(HOOK[:1])
        bench.now += 1
        bench.serve(1)
    assert len(bench.server._clients) == MAX_CLIENTS
    assert bench.ask(HOOK) == bench.reply


def test_the_bytes_of_all_clients_together_are_bounded(bench, monkeypatch):
    monkeypatch.setattr(hooks, "MAX_HELD", 1000)
    head = b"ND7\x01\x01\x00\x00\xff\x00"
    first = bench.connect(head + bytes(600))
    bench.serve()
    second = bench.connect(head + bytes(600))
    assert wire.parse_reply(bench.receive(second)).status == 2
    first.sendall(b"x")
    bench.serve()
    assert len(bench.server._clients) == 1


def test_close_drops_everybody(tmp_path):
    made = Bench(tmp_path)
    link = made.connect(HOOK[:5])
    made.serve()
    made.server.close()
    assert link.recv(1) == b""
    assert not (tmp_path / "hook.sock").exists()
    link.close()
