"""`msghdr`, its vectors and its control messages, as the kernel reads them.

Rule: every length comes from an untrusted caller and has a bound before anything is allocated for it; what the kernel
would refuse is refused with its errno. Control messages pass only from a list: one that could change where a packet
goes (source routes: IP_RETOPTS, IPV6_RTHDR), or that speaks for another process, does not.
Owns: layout of 64-bit callers (foreign architectures are killed by the filter) and the raw sendmsg(2) of our own.
Source: socket(7), cmsg(3), Linux 6.18 net/socket.c, net/core/scm.c, net/ipv4/ip_sockglue.c, net/ipv6/datagram.c.
"""

from __future__ import annotations

import _socket as socket  # the same calls; `socket` takes 4 ms to make enums of all constants
import ctypes
import errno
import struct

from nd7tui.engine.records import dataclass
from nd7tui.engine.sandbox import abi
from nd7tui.engine.sandbox.sockaddr import STORAGE, invalid

_HEADER = struct.Struct("=QI4xQQQQi4x")
HEADER_SIZE = _HEADER.size  # 56
VECTOR_ENTRY = 64  # struct mmsghdr: a header, msg_len, padding
LENGTH_AT = 56  # msg_len within it
MOST_PARTS = 1024  # UIO_MAXIOV
MOST_CONTROL = 64 * 1024
MOST_RIGHTS = 253  # SCM_MAX_FD
_MOST_BYTES = 0x7FFFF000  # MAX_RW_COUNT
_CMSG = struct.Struct("=Qii")
_SCM_CREDENTIALS = 2

MSG_FASTOPEN = 0x20000000
MSG_ZEROCOPY = 0x04000000
# OOB, DONTROUTE, PROBE, DONTWAIT, EOR, CONFIRM, NOSIGNAL, MORE; the kernel ignores what it does not know.
KNOWN_FLAGS = 0x1 | 0x4 | 0x10 | 0x40 | 0x80 | 0x800 | 0x4000 | 0x8000

_SOL_UDP = 17
_SOL_TLS = 282
_PASS = frozenset(
    {
        (socket.SOL_SOCKET, 37),  # SCM_TIMESTAMPING as SO_TIMESTAMPING
        (socket.SOL_SOCKET, 61),  # SCM_TXTIME
        (socket.IPPROTO_IP, 1),  # IP_TOS
        (socket.IPPROTO_IP, 2),  # IP_TTL
        (socket.IPPROTO_IP, 8),  # IP_PKTINFO: the source address and the interface
        (socket.IPPROTO_IPV6, 50),  # IPV6_PKTINFO
        (socket.IPPROTO_IPV6, 52),  # IPV6_HOPLIMIT
        (socket.IPPROTO_IPV6, 62),  # IPV6_DONTFRAG
        (socket.IPPROTO_IPV6, 67),  # IPV6_TCLASS
        (_SOL_UDP, 103),  # UDP_SEGMENT
        (_SOL_TLS, 1),  # TLS_SET_RECORD_TYPE
    }
)


@dataclass(frozen=True, slots=True)
class Header:
    """A `msghdr`: addresses in the caller's memory, and lengths within their bounds."""

    name: int
    name_size: int
    vector: int
    parts: int
    control: int
    control_size: int


def parse_header(raw: bytes) -> Header:
    """Parses 56 bytes of `msghdr`.

    Raises:
        OSError: EINVAL, EMSGSIZE or ENOBUFS for lengths out of bounds.
    """
    name, name_size, vector, parts, control, control_size, _ = _HEADER.unpack(raw)
    if abi.signed32(name_size) < 0:
        raise invalid()
    if parts > MOST_PARTS:
        raise invalid(errno.EMSGSIZE)
    if control_size > MOST_CONTROL:
        raise invalid(errno.ENOBUFS)
    # The kernel clips a name that is too long, and takes an empty one for none.
    name_size = min(name_size, STORAGE) if name else 0
    return Header(name, name_size, vector, parts, control if control_size else 0, control_size)


def parse_vector(raw: bytes) -> list[tuple[int, int]]:
    """Parses an array of `iovec` into (address, size) pairs, cut off where the kernel stops to count.

    Raises:
        OSError: EINVAL for a negative size.
    """
    parts: list[tuple[int, int]] = []
    left = _MOST_BYTES
    for base, size in struct.iter_unpack("=QQ", raw):
        if size >> 63:
            raise invalid()
        counted = min(size, left)
        left -= counted
        if counted:
            parts.append((base, counted))
    return parts


@dataclass(frozen=True, slots=True)
class Control:
    """One control message."""

    level: int
    kind: int
    data: bytes

    @property
    def is_rights(self) -> bool:
        """It carries file descriptors."""
        return (self.level, self.kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)

    @property
    def is_credentials(self) -> bool:
        """It says which process sends."""
        return (self.level, self.kind) == (socket.SOL_SOCKET, _SCM_CREDENTIALS)

    @property
    def passes(self) -> bool:
        """It cannot change where a message goes or whom it is from."""
        return (self.level, self.kind) in _PASS


def parse_control(raw: bytes) -> list[Control]:
    """Parses a control buffer.

    Raises:
        OSError: EINVAL for a message that ends beyond the buffer or is shorter than its own header.
    """
    found: list[Control] = []
    at = 0
    while len(raw) - at >= _CMSG.size:
        size, level, kind = _CMSG.unpack_from(raw, at)
        if not _CMSG.size <= size <= len(raw) - at:
            raise invalid()
        found.append(Control(level, kind, raw[at + _CMSG.size : at + size]))
        at += (size + 7) & ~7
    return found


def build_control(messages: list[Control]) -> bytes:
    """Returns the control buffer holding `messages`."""
    out = b""
    for message in messages:
        size = _CMSG.size + len(message.data)
        out += _CMSG.pack(size, message.level, message.kind) + message.data + bytes(-size % 8)
    return out


def rights_of(message: Control) -> list[int]:
    """Returns the descriptors that an SCM_RIGHTS message carries, by the caller's numbers.

    Raises:
        OSError: EINVAL for too many.
    """
    count = len(message.data) // 4
    if count > MOST_RIGHTS:
        raise invalid()
    return list(struct.unpack_from(f"={count}i", message.data))


def rights(fds: list[int]) -> Control:
    """Returns the SCM_RIGHTS message that carries `fds` of this process."""
    return Control(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack(f"={len(fds)}i", *fds))


def credentials_pid(message: Control) -> int:
    """Returns the pid that an SCM_CREDENTIALS message claims; raises OSError EINVAL for one of the wrong size."""
    if len(message.data) != 12:
        raise invalid()
    pid: int = struct.unpack_from("=i", message.data)[0]
    return pid


def send(fd: int, name: bytes, payload: bytes, control: bytes, flags: int) -> int:
    """Sends on our descriptor `fd`, sendmsg(2), and returns the number of bytes taken; raises OSError."""
    name_buffer = ctypes.create_string_buffer(name, len(name)) if name else None
    data_buffer = ctypes.create_string_buffer(payload, len(payload)) if payload else None
    control_buffer = ctypes.create_string_buffer(control, len(control)) if control else None
    vector = (ctypes.c_size_t * 2)(_address(data_buffer), len(payload))
    parts = 1 if payload else 0
    raw = _HEADER.pack(
        *(_address(name_buffer), len(name), ctypes.addressof(vector), parts),
        *(_address(control_buffer), len(control), 0),
    )
    header = ctypes.create_string_buffer(raw, len(raw))
    return abi.syscall(abi.NR["sendmsg"], fd, ctypes.addressof(header), flags)


def connect(fd: int, name: bytes) -> None:
    """Makes the connection of our descriptor `fd` to the socket address `name`; raises OSError."""
    buffer = ctypes.create_string_buffer(name, len(name))
    abi.syscall(abi.NR["connect"], fd, ctypes.addressof(buffer), len(name))


def _address(buffer: ctypes.Array[ctypes.c_char] | None) -> int:
    return ctypes.addressof(buffer) if buffer is not None else 0
