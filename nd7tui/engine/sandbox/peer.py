"""The caller's socket, copied into this process.

Rule: what a socket is, the kernel says of the copy; nothing is taken from what the caller passed. The copy is the same
socket whatever the caller does to its descriptor table meanwhile.
Source: socket(7) (SO_DOMAIN, SO_TYPE, SO_PROTOCOL), pidfd_getfd(2).
"""

from __future__ import annotations

import _socket as socket  # the same calls; `socket` takes 4 ms to make enums of all constants
import fcntl
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from nd7tui.engine.sandbox.call import Call

_SO_ZEROCOPY = 60
_PROTOCOLS: dict[tuple[int, int], str] = {
    (socket.SOCK_STREAM, socket.IPPROTO_TCP): "tcp",
    (socket.SOCK_DGRAM, socket.IPPROTO_UDP): "udp",
}


class Peer:
    """A copy of one socket of the caller; closed when the block that uses it ends.

    Attributes:
        fd: Our descriptor.
        domain: Address family, by the kernel.
        type: SOCK_STREAM and the like, by the kernel.
        protocol: IP protocol number, by the kernel.
    """

    def __init__(self, copy: socket.socket) -> None:
        self._socket = copy
        self.fd = copy.fileno()
        option = copy.getsockopt
        self.domain = option(socket.SOL_SOCKET, socket.SO_DOMAIN)
        self.type = option(socket.SOL_SOCKET, socket.SO_TYPE)
        self.protocol = option(socket.SOL_SOCKET, socket.SO_PROTOCOL)

    @classmethod
    def of(cls, call: Call, fd: int) -> Peer:
        """Copies the caller's descriptor `fd`; raises OSError EBADF, ENOTSOCK or EPERM."""
        copy = call.dup_fd(fd)
        try:
            ours = socket.socket(fileno=copy)
        except OSError:
            os.close(copy)
            raise
        return cls(ours)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._socket.close()

    @property
    def nonblocking(self) -> bool:
        """Whether the open description has O_NONBLOCK now (it is shared, and can change at any time)."""
        return bool(fcntl.fcntl(self.fd, fcntl.F_GETFL) & os.O_NONBLOCK)

    @property
    def is_inet(self) -> bool:
        """It is an IPv4 or IPv6 socket."""
        return self.domain in {socket.AF_INET, socket.AF_INET6}

    @property
    def transport(self) -> str | None:
        """`tcp` or `udp`, None for what has no rules: MPTCP, SCTP, ICMP, raw."""
        return _PROTOCOLS.get((self.type, self.protocol))

    @property
    def is_unix_stream(self) -> bool:
        """It is a unix socket that speaks only to whom it is connected."""
        return self.domain == socket.AF_UNIX and self.type in {socket.SOCK_STREAM, socket.SOCK_SEQPACKET}

    @property
    def is_connected(self) -> bool:
        """It has a peer."""
        try:
            self._socket.getpeername()
        except OSError:
            return False
        return True

    @property
    def send_timeout(self) -> float | None:
        """SO_SNDTIMEO in seconds, None for none."""
        raw = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, 16)
        seconds, micros = struct.unpack("@ll", raw)
        return seconds + micros / 1e6 if seconds or micros else None

    @property
    def zero_copy(self) -> bool:
        """Whether MSG_ZEROCOPY would be honoured (SO_ZEROCOPY)."""
        return bool(self._socket.getsockopt(socket.SOL_SOCKET, _SO_ZEROCOPY))
