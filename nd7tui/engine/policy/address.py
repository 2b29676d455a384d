"""Internet addresses as rules compare them.

Rule: one address has one form. IPv4-mapped IPv6 (`::ffff:1.2.3.4`) is the IPv4 address; the unspecified address is
the loopback address, because connecting to it reaches this machine (Source: ip(7), INADDR_ANY; ipv6 connect in Linux
`net/ipv6/af_inet6.c` maps `::` to `::1`). A scope id (`%eth0`) is dropped.
Owns: parsing. `ipaddress` would do the same for 3 ms at start; `inet_pton` costs nothing.
"""

from __future__ import annotations

import _socket as socket  # the same functions; `socket` takes 4 ms to make enums of all constants
from functools import lru_cache

from nd7tui.engine.records import dataclass

_MAPPED = bytes(10) + b"\xff\xff"
_ALL = (1 << 128) - 1


@dataclass(frozen=True, slots=True)
class Address:
    """An address as 128 bits; IPv4 is kept in its mapped form, `v4` tells.

    Attributes:
        value: The 128 bits as a number.
        v4: It is an IPv4 address.
    """

    value: int
    v4: bool

    @property
    def is_loopback(self) -> bool:
        """127.0.0.0/8 or ::1."""
        return (self.value >> 24) & 0xFF == 127 if self.v4 else self.value == 1


@dataclass(frozen=True, slots=True)
class Network:
    """A prefix of `bits` bits (0 to 128, IPv4 counted from 96)."""

    first: Address
    bits: int

    def contains(self, ip: Address) -> bool:
        """Tells whether `ip` has the prefix; an IPv6 network never contains an IPv4 address."""
        return ip.v4 == self.first.v4 and (ip.value ^ self.first.value) >> (128 - self.bits) == 0


def _packed(text: str) -> bytes:
    try:
        if ":" in text:
            return socket.inet_pton(socket.AF_INET6, text.split("%", 1)[0])
        return _MAPPED + socket.inet_pton(socket.AF_INET, text)
    except (OSError, UnicodeError, ValueError) as error:
        raise ValueError(f"not an internet address: {text!r}") from error


@lru_cache(maxsize=1024)
def parse(text: str) -> Address:
    """Parses an IPv4 or IPv6 address.

    Raises:
        ValueError: It is neither.
    """
    packed = _packed(text)
    v4 = packed.startswith(_MAPPED)
    value = int.from_bytes(packed, "big")
    if v4 and value & 0xFFFFFFFF == 0:
        value |= 0x7F000001
    return Address(value or 1, v4)


@lru_cache(maxsize=256)
def parse_network(text: str) -> Network:
    """Parses an address (a network of one) or `address/bits`.

    Raises:
        ValueError: It is neither, the length is out of range, or bits are set beyond it (`10.1.1.1/8` is a slip).
    """
    head, slash, tail = text.partition("/")
    if not slash:
        return Network(parse(head), 128)
    packed = _packed(head)
    v4 = ":" not in head
    width = 32 if v4 else 128
    # str.isdigit alone takes digits that int() would read from other scripts.
    if not (tail.isascii() and tail.isdigit()) or int(tail) > width:
        raise ValueError(f"not a network: {text!r}")
    bits = int(tail) + (128 - width)
    value = int.from_bytes(packed, "big")
    if value & (_ALL >> bits):
        raise ValueError(f"not a network: {text!r} has bits beyond its length")
    # A mapped network (::ffff:10.0.0.0/104) means the IPv4 one.
    return Network(Address(value, packed.startswith(_MAPPED) and bits >= 96), bits)


def canonical(text: str) -> str:
    """Returns the address in the one form that rules use.

    Raises:
        ValueError: It is no address.
    """
    ip = parse(text)
    if ip.v4:
        return socket.inet_ntop(socket.AF_INET, (ip.value & 0xFFFFFFFF).to_bytes(4, "big"))
    return socket.inet_ntop(socket.AF_INET6, ip.value.to_bytes(16, "big"))
