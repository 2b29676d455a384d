"""The system calls that reach other programs: connect, sendto, sendmsg, sendmmsg.

Rule: none of them is ever continued. The caller's socket is copied, the address is read once, policy decides about
what was read, and the call is made here, on the copy, with what was read. Whatever the caller changes meanwhile, its
memory or its descriptors, changes nothing (Source: seccomp_unotify(2), NOTES; pitfalls of `connect` through Landlock:
MPTCP, MSG_FASTOPEN, UDP and unix sockets are not among its rules).
Owns: connect and the decisions; `sending` owns the sends.
Does not prove: whom the server sees. It sees the supervisor's pid and ids (SO_PEERCRED), not the caller's.
`as_caller` sets the rights of one thread, so it holds in workers as it does in the main thread.
"""

from __future__ import annotations

import _socket as socket  # the same calls; `socket` takes 4 ms to make enums of all constants
import errno
import os
import stat
import struct
from contextlib import ExitStack
from functools import partial

from nd7tui.engine.policy.rules import Access, Effect
from nd7tui.engine.sandbox import abi, messages, patience, sockaddr, unixdiag
from nd7tui.engine.sandbox.holders import Holders
from nd7tui.engine.sandbox.outcome import Errno, Outcome, Pending, Refused, Value
from nd7tui.engine.sandbox.peer import Peer
from nd7tui.engine.sandbox.resolve import Resolver
from nd7tui.engine.sandbox.sending import Sender

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from nd7tui.engine.policy.rules import Policy
    from nd7tui.engine.sandbox.call import Call
    from nd7tui.engine.sandbox.tree import Tree

# The bytes to hand to the kernel; empty for no address.
_Judged = bytes | Refused | Errno


class Network:
    """Answers the network calls of one run.

    Args:
        tree: The run's processes.
        policy: Returns the policy that holds now.
        always: Canonical paths of unix sockets that are open whatever policy says: the run's own hook socket.
    """

    def __init__(self, tree: Tree, policy: Callable[[], Policy], always: Collection[bytes] = ()) -> None:
        self._policy = policy
        self._always = frozenset(always)
        self._resolver = Resolver(tree)
        self._holders = Holders(tree)
        self._slots = patience.Slots()
        sender = Sender(self._judge_send, self._slots)
        self._handlers: dict[str, Callable[[Call], Outcome]] = {
            "connect": self._connect,
            "sendto": sender.sendto,
            "sendmsg": sender.sendmsg,
            "sendmmsg": sender.sendmmsg,
        }

    def handle(self, call: Call) -> Outcome:
        """Returns the outcome of one call; never `Continue`, never an exception for what the caller did."""
        try:
            return self._handlers[call.name](call)
        except OSError as error:
            return Errno(error.errno or errno.EIO)

    # ---- connect

    def _connect(self, call: Call) -> Outcome:
        with ExitStack() as kept:
            peer = kept.enter_context(Peer.of(call, call.args[0]))
            raw = read_address(call, call.args[1], call.args[2])
            judged = self._judge_connect(call, peer, raw, kept)
            if not isinstance(judged, bytes):
                return judged
            # After everything was read, and before anything is done with it: was it this caller's?
            if not call.still_waiting():
                return Errno(errno.EINTR)
            if peer.type == socket.SOCK_STREAM or peer.domain == socket.AF_UNIX:
                if not self._slots.take(kept):
                    return Errno(errno.EAGAIN)
                return Pending(partial(_connect_in_worker, call, peer, judged, kept.pop_all()))
            _connect_now(call, peer, judged)  # datagram sockets only note the address
            return Value(0)

    def _judge_connect(self, call: Call, peer: Peer, raw: bytes, kept: ExitStack) -> _Judged:
        if peer.is_inet and sockaddr.family_of(raw) == socket.AF_UNSPEC and peer.transport:
            return struct.pack("=H14x", socket.AF_UNSPEC)  # disconnects, reaches nobody
        address = sockaddr.parse(raw)
        if isinstance(address, sockaddr.Inet) and peer.is_inet:
            return self._judge_inet(call, peer, address)
        if isinstance(address, sockaddr.UnixPath) and peer.is_unix_stream:
            return self._judge_path(call, address.path, kept)
        if isinstance(address, sockaddr.UnixAbstract) and peer.is_unix_stream:
            return self._judge_abstract(call, address)
        if isinstance(address, sockaddr.Netlink) and peer.domain == socket.AF_NETLINK:
            return _judge_netlink(address)
        return _misfit(peer)

    def _judge_inet(self, call: Call, peer: Peer, address: sockaddr.Inet) -> _Judged:
        if peer.transport is None:
            return Errno(errno.EACCES)
        # An IPv6 datagram socket also takes IPv4 addresses; no other mixture is known to the kernel.
        if address.family != peer.domain and not (peer.domain == socket.AF_INET6 and peer.transport == "udp"):
            return Errno(errno.EAFNOSUPPORT)
        verdict = self._policy().decide_host(address.ip, address.port, peer.transport)
        if verdict.effect is not Effect.ALLOW:
            return call.refuse(Access.CONNECT, "host", address.target(peer.transport), verdict)
        return address.raw

    def _judge_path(self, call: Call, path: bytes, kept: ExitStack) -> _Judged:
        place = self._resolver.object(call, abi.AT_FDCWD, path)
        kept.callback(place.close)
        # The inode is held: this name leads to it and to nothing else, and is short enough for any path.
        pinned = struct.pack("=H", socket.AF_UNIX) + os.fsencode(place.magic) + b"\0"
        info = os.fstat(place.fd)
        if not stat.S_ISSOCK(info.st_mode):
            return Errno(errno.ECONNREFUSED)
        if place.path in self._always:
            return pinned
        verdict = self._policy().decide_socket(place.path)
        if verdict.effect is Effect.ALLOW:
            return pinned
        if verdict.rule is None:
            # Paths cannot tell whose socket this is: a process may bind one, unlink it and rename another to its
            # place. What listens at this very inode can.
            listening = _listening(lambda: unixdiag.at_inode(unixdiag.superblock_device(place.fd), info.st_ino))
            if listening is not None and not listening:
                return Errno(errno.ECONNREFUSED)
            if listening and self._holders.all_held(one.ino for one in listening):
                return pinned
        return call.refuse(Access.CONNECT, "socket", place.path, verdict)

    def _judge_abstract(self, call: Call, address: sockaddr.UnixAbstract) -> _Judged:
        verdict = self._policy().decide_socket(address.target)
        if verdict.effect is Effect.ALLOW:
            return address.raw
        if verdict.rule is None:
            # Unlike an inode a name can change hands between this and the connect; that needs a server outside
            # that takes over a name which a process inside held a moment before.
            listening = _listening(lambda: unixdiag.at_name(address.name))
            if listening is not None and not listening:
                return Errno(errno.ECONNREFUSED)
            if listening and self._holders.all_held(one.ino for one in listening):
                return address.raw
        return call.refuse(Access.CONNECT, "socket", address.target, verdict)

    # ---- the address of a message

    def _judge_send(self, call: Call, peer: Peer, raw: bytes) -> _Judged:
        """Decides about the address of a message; `raw` is empty when there is none."""
        if peer.domain == socket.AF_UNIX:
            return _judge_unix_send(peer, raw)
        if peer.is_inet and peer.transport == "tcp":
            return b""  # Linux ignores the address of a stream
        if peer.is_inet and peer.transport == "udp":
            return self._judge_datagram(call, peer, raw)
        if peer.domain == socket.AF_NETLINK:
            address = sockaddr.parse(raw) if raw else None
            if address is None:
                return b""
            return _judge_netlink(address) if isinstance(address, sockaddr.Netlink) else Errno(errno.EINVAL)
        return _misfit(peer)

    def _judge_datagram(self, call: Call, peer: Peer, raw: bytes) -> _Judged:
        if not raw:
            return b""
        if sockaddr.family_of(raw) == socket.AF_UNSPEC:
            if peer.domain == socket.AF_INET6:
                return b""  # udpv6_sendmsg takes it for no address
            return self._judge_inet(call, peer, sockaddr.parse_inet(raw))  # udp_sendmsg takes it for AF_INET
        address = sockaddr.parse(raw)
        if isinstance(address, sockaddr.Inet):
            return self._judge_inet(call, peer, address)
        return Errno(errno.EAFNOSUPPORT)


def read_address(call: Call, at: int, size: int) -> bytes:
    """Returns the socket address in the caller's memory.

    Raises:
        OSError: EINVAL or EFAULT, as Linux does (Source: net/socket.c, move_addr_to_kernel).
    """
    size = abi.signed32(size)
    if not 0 <= size <= sockaddr.STORAGE:
        raise sockaddr.invalid()
    return call.read(at, size)


def _listening(ask: Callable[[], list[unixdiag.Listening]]) -> list[unixdiag.Listening] | None:
    """Returns the listening sockets, None where the kernel cannot tell: such a socket counts as foreign."""
    try:
        return ask()
    except OSError:
        return None


def _judge_netlink(address: sockaddr.Netlink) -> _Judged:
    # Port 0 is the kernel; every other port is some process, and a group is all of its listeners.
    return address.raw if address.port == 0 and address.groups == 0 else Errno(errno.EPERM)


def _judge_unix_send(peer: Peer, raw: bytes) -> _Judged:
    if not peer.is_unix_stream:
        return Errno(errno.EACCES)
    if raw and peer.type == socket.SOCK_STREAM:
        return Errno(errno.EISCONN if peer.is_connected else errno.EOPNOTSUPP)
    return b""  # SOCK_SEQPACKET ignores it


def _misfit(peer: Peer) -> Errno:
    """Returns the answer to an address that does not go with its socket, or a socket that nothing here speaks."""
    if peer.is_unix_stream or peer.domain == socket.AF_NETLINK:
        return Errno(errno.EINVAL)
    return Errno(errno.EAFNOSUPPORT if peer.is_inet and peer.transport else errno.EACCES)


def _connect_now(call: Call, peer: Peer, name: bytes) -> None:
    with call.as_caller():
        messages.connect(peer.fd, name)


def _connect_in_worker(call: Call, peer: Peer, name: bytes, kept: ExitStack, waiting: Callable[[], bool]) -> Outcome:
    """Connects a socket that may block; always in a worker, for O_NONBLOCK is the caller's to change at any time."""

    def action() -> None:
        with kept:
            _connect_now(call, peer, name)

    try:
        if not peer.nonblocking:
            return patience.in_thread(action, call, peer, waiting)
        action()
    except OSError:
        kept.close()
        raise
    return Value(0)
