"""Socket addresses as the kernel reads them.

Rule: any bytes either parse or raise the errno that the kernel gives for them, and what an address parses to is what
the kernel will act on. Where the kernel reads one address in two ways (an unspecified host, a family of AF_UNSPEC in
a datagram), `raw` is rewritten to the form that has one meaning, so that what was decided is what is done.
Owns: bytes only; what may be reached is decided elsewhere.
Source: Linux 6.18 net/ipv4/{af_inet,udp}.c, net/ipv6/datagram.c, net/unix/af_unix.c, net/netlink/af_netlink.c.
"""

from __future__ import annotations

import _socket as socket  # the same calls; `socket` takes 4 ms to make enums of all constants
import errno
import os
import struct

from nd7tui.engine.records import dataclass

STORAGE = 128  # sizeof(struct sockaddr_storage)
_UNIX_MOST = 110  # sizeof(struct sockaddr_un)
_IN_SIZE = 16
_IN6_LEAST = 24  # SIN6_LEN_RFC2133: without a scope id
_IN6_SIZE = 28
_NETLINK_SIZE = 12
_MAPPED = bytes(10) + b"\xff\xff"
_LOOPBACK = b"\x7f\0\0\1"


@dataclass(frozen=True, slots=True)
class Unspec:
    """AF_UNSPEC: in `connect` it dissolves an association."""

    raw: bytes


@dataclass(frozen=True, slots=True)
class Inet:
    """An internet address.

    Attributes:
        ip: Text as inet_ntop(3) writes it; an IPv4-mapped IPv6 address is its IPv4 address. No scope id.
        port: Port number.
        family: AF_INET or AF_INET6, as the caller gave it.
        raw: The bytes to hand to the kernel.
    """

    ip: str
    port: int
    family: int
    raw: bytes

    def target(self, proto: str) -> bytes:
        """Returns the address as denials show it: `1.2.3.4:22/tcp`, `[2001:db8::1]:22/tcp`."""
        host = f"[{self.ip}]" if ":" in self.ip else self.ip
        return f"{host}:{self.port}/{proto}".encode()


@dataclass(frozen=True, slots=True)
class UnixPath:
    """A unix socket in the file system; `path` is the caller's, absolute or relative to its working directory."""

    path: bytes


@dataclass(frozen=True, slots=True)
class UnixAbstract:
    """A unix socket by abstract name; `name` lacks the leading NUL and may hold others."""

    name: bytes

    @property
    def target(self) -> bytes:
        """The name as rules and denials write it, `@name`."""
        return b"@" + self.name

    @property
    def raw(self) -> bytes:
        """The bytes to hand to the kernel."""
        return struct.pack("=H", socket.AF_UNIX) + b"\0" + self.name


@dataclass(frozen=True, slots=True)
class Netlink:
    """A netlink port; the kernel itself is port 0, group 0."""

    port: int
    groups: int
    raw: bytes


@dataclass(frozen=True, slots=True)
class Other:
    """A family that nothing here speaks."""

    family: int


Address = Unspec | Inet | UnixPath | UnixAbstract | Netlink | Other


def invalid(number: int = errno.EINVAL) -> OSError:
    """Returns the error to raise for an address or message that the kernel would refuse."""
    return OSError(number, os.strerror(number))


def family_of(raw: bytes) -> int:
    """Returns the address family; raises OSError EINVAL when there is not even that."""
    if len(raw) < 2:
        raise invalid()
    family: int = struct.unpack_from("=H", raw)[0]
    return family


def parse(raw: bytes) -> Address:
    """Parses one socket address.

    Args:
        raw: Exactly the bytes the caller counted, 128 at most.

    Raises:
        OSError: EINVAL for what is too short or too long for its family.
    """
    family = family_of(raw)
    if len(raw) > STORAGE:
        raise invalid()
    if family == socket.AF_UNSPEC:
        return Unspec(raw)
    if family == socket.AF_INET:
        return parse_inet(raw)
    if family == socket.AF_INET6:
        return _parse_inet6(raw)
    if family == socket.AF_UNIX:
        return _parse_unix(raw)
    if family == socket.AF_NETLINK:
        return _parse_netlink(raw)
    return Other(family)


def parse_inet(raw: bytes) -> Inet:
    """Parses a `sockaddr_in`, whatever family it names: a datagram's AF_UNSPEC is an IPv4 address to the kernel.

    Raises:
        OSError: EINVAL for what is too short.
    """
    if len(raw) < _IN_SIZE:
        raise invalid()
    port, host = struct.unpack_from(">2xH4s", raw)
    family = struct.pack("=H", socket.AF_INET)
    rewritten = family + raw[2:4] + (_LOOPBACK if host == bytes(4) else host) + bytes(8)
    return Inet(socket.inet_ntop(socket.AF_INET, host), port, socket.AF_INET, rewritten)


def _parse_inet6(raw: bytes) -> Inet:
    if len(raw) < _IN6_LEAST:
        raise invalid()
    port, host = struct.unpack_from(">2xH4x16s", raw)
    if host.startswith(_MAPPED):
        tail = host[12:]
        host = _MAPPED + (_LOOPBACK if tail == bytes(4) else tail)
        text = socket.inet_ntop(socket.AF_INET, tail)
    else:
        # `::` stays: the kernel makes it ::1, or the mapped loopback for a socket bound to IPv4.
        text = socket.inet_ntop(socket.AF_INET6, host)
    rewritten = raw[:8] + host + raw[24:_IN6_SIZE]
    return Inet(text, port, socket.AF_INET6, rewritten)


def _parse_unix(raw: bytes) -> UnixPath | UnixAbstract:
    # A bare family is the "unnamed" address; nobody can be reached by it.
    if not 2 < len(raw) <= _UNIX_MOST:
        raise invalid()
    if raw[2] == 0:
        return UnixAbstract(raw[3:])
    return UnixPath(raw[2:].partition(b"\0")[0])


def _parse_netlink(raw: bytes) -> Netlink:
    if len(raw) < _NETLINK_SIZE:
        raise invalid()
    port, groups = struct.unpack_from("=4xII", raw)
    return Netlink(port, groups, raw[:_NETLINK_SIZE])
