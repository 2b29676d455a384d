r"""The framing of the run's hook socket, without any I/O.

Rule: every length is checked before a byte of it is taken in; what does not fit the format is an error, never skipped.
One request per connection: `ND7\x01`, kind (1 byte), length (4, big-endian), payload. The reply: exit status (1 byte),
length, stdout bytes, length, stderr bytes.
Owns: the format; `exec_helper/wire.c` is its other speaker.
Does not prove: who sent the request, or that a payload is what its kind says.
"""

from __future__ import annotations

import struct
from enum import IntEnum

from nd7tui.engine.records import dataclass
from nd7tui.errors import Nd7Error

MAGIC = b"ND7\x01"
MAX_PAYLOAD = 64 << 20

_HEAD = struct.Struct(">4sBI")
_LENGTH = struct.Struct(">I")


class Kind(IntEnum):
    """What a request's payload is."""

    HOOK = 1
    """An agent's hook payload, JSON."""
    ANNOUNCE = 2
    """The text of a command that the sender is about to become."""


class WireError(Nd7Error):
    """A peer's bytes do not follow the format.

    Attributes:
        evidence: The bytes at fault, at most a head's worth.
    """

    def __init__(self, message: str, evidence: bytes = b"") -> None:
        super().__init__(message)
        self.evidence = evidence[: _HEAD.size]


@dataclass(frozen=True, slots=True)
class Request:
    """One whole request."""

    kind: Kind
    payload: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """What the client prints and the status it ends with.

    Attributes:
        status: 0 to 255; for an announcement anything but 0 means that the command must not run.
        stdout: Printed as it is; for an announcement the denied paths, see `render_denies`.
        stderr: Printed as it is; for an announcement the reason of a refusal, one line.
    """

    status: int = 0
    stdout: bytes = b""
    stderr: bytes = b""


def render_request(kind: Kind, payload: bytes) -> bytes:
    """Returns a request's bytes; raises WireError when the payload is too long."""
    if len(payload) > MAX_PAYLOAD:
        raise WireError(f"a payload of {len(payload)} bytes is too long")
    return _HEAD.pack(MAGIC, kind, len(payload)) + payload


def render_reply(reply: Reply) -> bytes:
    """Returns a reply's bytes; raises WireError when a part is too long."""
    if len(reply.stdout) > MAX_PAYLOAD or len(reply.stderr) > MAX_PAYLOAD:
        raise WireError("a reply is too long")
    out, err = (_LENGTH.pack(len(part)) + part for part in (reply.stdout, reply.stderr))
    return bytes((reply.status & 0xFF,)) + out + err


def parse_reply(data: bytes) -> Reply:
    """Reads a whole reply; raises WireError when it is cut short, too long or has more behind it."""
    parts, at = [], 1
    for _ in range(2):
        if len(data) < at + _LENGTH.size:
            raise WireError("a reply is cut short", data)
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        parts.append(data[at : at + length])
        at += length
    if len(data) != at:
        raise WireError("a reply's lengths do not fit its bytes", data)
    return Reply(data[0], parts[0], parts[1])


def render_denies(reads: tuple[bytes, ...], writes: tuple[bytes, ...]) -> bytes:
    """Returns the stdout of an announcement's reply: the paths that the command must deny itself.

    Args:
        reads: Canonical absolute paths that must not be read, with everything beneath.
        writes: The same for writing.
    """
    return b"".join([b"r:" + path + b"\0" for path in reads] + [b"w:" + path + b"\0" for path in writes])


class RequestParser:
    """Takes in a request's bytes as they come; any chunking gives the same result.

    Attributes:
        size: Bytes taken in so far.
    """

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._failed = False

    @property
    def size(self) -> int:
        """Bytes held."""
        return len(self._bytes)

    def feed(self, data: bytes) -> Request | None:
        """Takes in bytes; returns the request once it is whole.

        Raises:
            WireError: The bytes are no request, or more follow it. Every later call raises too.
        """
        if self._failed:
            raise WireError("bytes after a fault")
        self._failed = True  # until this call has gone well
        self._bytes += data
        request = self._read()
        self._failed = request is not None
        return request

    def _read(self) -> Request | None:
        held = self._bytes
        if not MAGIC.startswith(held[: len(MAGIC)]):
            raise WireError("not a request of nd7", bytes(held[: _HEAD.size]))
        if len(held) > len(MAGIC) and held[len(MAGIC)] not in set(Kind):
            raise WireError(f"a request of an unknown kind {held[len(MAGIC)]}", bytes(held[: _HEAD.size]))
        if len(held) < _HEAD.size:
            return None
        _, kind, length = _HEAD.unpack_from(held)
        if length > MAX_PAYLOAD:
            raise WireError(f"a request of {length} bytes is too long", bytes(held[: _HEAD.size]))
        if len(held) > _HEAD.size + length:
            raise WireError("more bytes than one request", bytes(held[: _HEAD.size]))
        if len(held) < _HEAD.size + length:
            return None
        return Request(Kind(kind), bytes(memoryview(held)[_HEAD.size :]))
