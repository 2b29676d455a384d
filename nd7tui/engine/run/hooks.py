"""The run's hook socket: hook payloads and announced commands come in, replies go out.

Rule: everything that arrives is untrusted. The kernel names the sender with every message, and only processes of the
run's tree are answered; lengths, the number of clients, the bytes held for them and their time are bounded; nothing
blocks. A handler that fails answers with status 2, which blocks the agent's tool call, and does not end the run.
Owns: `hook.sock` in the run's directory, and the connections to it.
Does not prove: that the sender is the agent, or tells the truth: any process of the tree may send any payload.
"""

from __future__ import annotations

import _socket as socket  # the same sockets; `socket` takes 4 ms to make enums of all constants
import contextlib
import os
import select
import struct
import time

from nd7tui.engine.run.wire import Kind, Reply, RequestParser, WireError, render_reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SOCKET_NAME = "hook.sock"
MAX_CLIENTS = 64
# Bytes held for all clients together: two payloads of the largest size.
MAX_HELD = 128 << 20
STALL_NS = 5_000_000_000
WHOLE_NS = 30_000_000_000
BLOCK = 2

# Bytes taken from one client before the next one has its turn.
_CHUNK = 256 << 10
_CREDENTIALS = struct.Struct("3i")
# Room for credentials and nothing else: descriptors that a client sends do not fit and are closed by the kernel.
_ANCILLARY = socket.CMSG_SPACE(_CREDENTIALS.size)


class _Client:
    """One connection: reads one request, then writes one reply."""

    def __init__(self, link: socket.socket, now: int) -> None:
        self.link = link
        self.pid = 0
        self.parser = RequestParser()
        self.outgoing: memoryview | None = None
        self.began = self.moved = now

    def expired(self, now: int) -> bool:
        return now - self.moved > STALL_NS or now - self.began > WHOLE_NS

    def send(self) -> bool:
        """Writes what the socket takes; returns whether the reply is out."""
        assert self.outgoing is not None  # noqa: S101 - only called once there is a reply
        with contextlib.suppress(BlockingIOError):
            while self.outgoing:
                self.outgoing = self.outgoing[self.link.send(self.outgoing, socket.MSG_NOSIGNAL) :]
        return not self.outgoing


def _sender(ancillary: list[tuple[int, int, bytes]]) -> int:
    """Returns the pid that the kernel attests, 0 when there is none."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS and len(data) >= _CREDENTIALS.size:
            return int(_CREDENTIALS.unpack_from(data)[0])
    return 0


def _listen(run_dir: str) -> socket.socket:
    """Binds the socket, for this user only; a path of any length, by way of its directory's descriptor."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    directory = os.open(run_dir, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Before bind, so that it is never there with another mode. bind() takes the socket's mode.
        # Source: Linux net/unix/af_unix.c, unix_bind_bsd().
        os.fchmod(listener.fileno(), 0o600)
        listener.bind(f"/proc/self/fd/{directory}/{SOCKET_NAME}")
        # Before listen: what a client sends before it is accepted carries its credentials too.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        listener.listen(MAX_CLIENTS)
    except BaseException:
        listener.close()
        raise
    finally:
        os.close(directory)
    return listener


class HookServer:
    """Serves one run's hook socket from the supervisor's own loop.

    `fileno()` is readable when there is something to do; `serve()` does it without waiting. Time limits are looked at
    in `serve()`, which costs two microseconds when there is nothing to do.

    Args:
        run_dir: The run's directory; `hook.sock` is made in it.
        tree_contains: Tells whether a pid belongs to the run.
        on_hook: Takes a hook's payload and the sender's pid; returns the reply.
        on_exec: Takes a command's text and the pid that is about to become it; its reply's stdout is `render_denies`.
        clock: Monotonic, ns.

    Raises:
        OSError: The socket cannot be made.
    """

    def __init__(
        self,
        run_dir: str,
        tree_contains: Callable[[int], bool],
        on_hook: Callable[[bytes, int], Reply],
        on_exec: Callable[[bytes, int], Reply],
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.path = os.path.join(run_dir, SOCKET_NAME)
        self._contains = tree_contains
        self._handlers = {Kind.HOOK: on_hook, Kind.ANNOUNCE: on_exec}
        self._clock = clock
        self._clients: dict[int, _Client] = {}
        self._listener = _listen(run_dir)
        self._epoll = select.epoll()
        self._epoll.register(self._listener, select.EPOLLIN)
        self.refused = 0
        """Connections that were answered with a refusal or dropped."""

    def fileno(self) -> int:
        """Returns a descriptor that is readable when there is something to serve."""
        return self._epoll.fileno()

    def serve(self) -> None:
        """Serves what is ready, without waiting, and drops clients that have used up their time."""
        now = self._clock()
        for stuck in [client for client in self._clients.values() if client.expired(now)]:
            self._drop(stuck)
        for fd, _ in self._epoll.poll(0):
            if fd == self._listener.fileno():
                self._accept(now)
            elif (client := self._clients.get(fd)) is not None:
                self._move(client, now)

    def close(self) -> None:
        """Drops every client and removes the socket."""
        for client in list(self._clients.values()):
            self._drop(client)
        self._epoll.close()
        self._listener.close()
        with contextlib.suppress(OSError):
            os.unlink(self.path)

    # ---- One connection

    def _accept(self, now: int) -> None:
        try:
            fd, _ = self._listener._accept()  # type: ignore[attr-defined]  # noqa: SLF001 - socket.accept's
        except OSError:
            return  # the client went away again, or this process has no descriptor left
        link = socket.socket(fileno=fd)
        link.setblocking(False)
        if len(self._clients) >= MAX_CLIENTS:
            # An honest client is served within milliseconds: who has waited longest is stuck, or wants us to be.
            self._drop(min(self._clients.values(), key=lambda client: client.moved))
        client = self._clients[link.fileno()] = _Client(link, now)
        self._epoll.register(link, select.EPOLLIN)
        self._move(client, now)  # what it sent is usually there already

    def _move(self, client: _Client, now: int) -> None:
        try:
            if client.outgoing is None:
                self._receive(client)
            elif client.send():
                self._drop(client, refused=False)
            client.moved = now
        except BlockingIOError:
            return
        except OSError:
            self._drop(client)

    def _receive(self, client: _Client) -> None:
        data, ancillary, flags, _ = client.link.recvmsg(_CHUNK, _ANCILLARY, socket.MSG_CMSG_CLOEXEC)
        if not data:
            self._drop(client)
            return
        try:
            self._check_sender(client, _sender(ancillary), flags)
            request = client.parser.feed(data)
            self._check_held()
        except WireError as error:
            self.refused += 1
            self._answer(client, Reply(BLOCK, b"", f"nd7: {error}\n".encode()))
            return
        if request is not None:
            self._answer(client, self._handle(request.kind, request.payload, client.pid))

    def _check_sender(self, client: _Client, pid: int, flags: int) -> None:
        if flags & socket.MSG_CTRUNC:
            raise WireError("descriptors are not taken")
        if pid != client.pid:
            if client.pid or not pid or not self._contains(pid):
                raise WireError("the sender is not of this run")
            client.pid = pid

    def _check_held(self) -> None:
        if sum(client.parser.size for client in self._clients.values()) > MAX_HELD:
            raise WireError("too many bytes from too many clients at once")

    def _handle(self, kind: Kind, payload: bytes, pid: int) -> Reply:
        try:
            return self._handlers[kind](payload, pid)
        # The boundary to what came from inside: one payload that a handler trips over must not end the run's
        # supervisor, and with it everything the run may do. It blocks that one call.
        except Exception as error:  # noqa: BLE001
            self.refused += 1
            text = f"nd7: hook not served: {type(error).__name__}: {error}\n"
            return Reply(BLOCK, b"", text.encode(errors="replace"))

    def _answer(self, client: _Client, reply: Reply) -> None:
        client.parser = RequestParser()  # gives the payload's memory back
        client.outgoing = memoryview(render_reply(reply))
        if client.send():
            self._drop(client, refused=False)
        else:
            self._epoll.modify(client.link, select.EPOLLOUT)

    def _drop(self, client: _Client, *, refused: bool = True) -> None:
        self.refused += refused
        del self._clients[client.link.fileno()]
        client.link.close()  # leaves the epoll set by itself
