"""Which unix sockets listen, and at which inode or abstract name, told by the kernel.

Rule: a listening socket is known by what the kernel holds, never by the path it was bound to: a process can bind,
unlink the name and rename another socket there, and `/proc/net/unix` still shows the old string. NETLINK_SOCK_DIAG
gives the inode that the socket is bound to; a socket pins its inode, so (device, inode) names one socket at most.
Owns: the question and its answer, for our own network namespace. A socket it does not list is not known not to exist.
Source: sock_diag(7); Linux 6.18 net/unix/diag.c (udiag_vfs_ino is 32 bits; udiag_vfs_dev is the superblock's device in
the kernel's own encoding, major << 20 | minor).
"""

from __future__ import annotations

import _socket as socket  # the same calls; `socket` takes 4 ms to make enums of all constants
import errno
import os
import struct
from contextlib import closing

from nd7tui.engine.records import dataclass

_SOCK_DIAG = 4  # NETLINK_SOCK_DIAG
_BY_FAMILY = 20  # SOCK_DIAG_BY_FAMILY
_REQUEST = 0x301  # NLM_F_REQUEST | NLM_F_ROOT | NLM_F_MATCH (a dump)
_INTERRUPTED = 0x10  # NLM_F_DUMP_INTR: the table changed meanwhile
_ERROR, _DONE = 2, 3
_LISTEN = 1 << 10  # TCP_LISTEN
_SHOW = 0x1 | 0x2  # UDIAG_SHOW_NAME | UDIAG_SHOW_VFS
_NAME, _VFS = 0, 1
_HEADER = struct.Struct("=IHHII")
_MESSAGE = struct.Struct("=BBBxIII")
_ATTRIBUTE = struct.Struct("=HH")
_TRIES = 4
_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Listening:
    """One listening unix socket.

    Attributes:
        ino: Its number, as `/proc/<pid>/fd` shows it (`socket:[ino]`).
        name: What it was bound to; abstract names begin with NUL; empty for none.
        device: The superblock's device number (major << 20 | minor), None for an abstract name.
        inode: The low 32 bits of the inode it is bound to, None for an abstract name.
    """

    ino: int
    name: bytes
    device: int | None = None
    inode: int | None = None


@dataclass(slots=True)
class Dump:
    """What has been understood so far of the answer to one question."""

    found: list[Listening]
    done: bool = False
    interrupted: bool = False

    def feed(self, datagram: bytes) -> None:
        """Takes one datagram of the answer.

        Raises:
            OSError: The kernel's error, or EPROTO for what is no answer.
        """
        at = 0
        while len(datagram) - at >= _HEADER.size:
            size, kind, flags, _, _ = _HEADER.unpack_from(datagram, at)
            if not _HEADER.size <= size <= len(datagram) - at:
                raise OSError(errno.EPROTO, os.strerror(errno.EPROTO))
            self.interrupted |= bool(flags & _INTERRUPTED)
            self._take(kind, datagram[at + _HEADER.size : at + size])
            at += (size + 3) & ~3

    def _take(self, kind: int, body: bytes) -> None:
        if kind == _DONE:
            self.done = True
        elif kind == _ERROR:
            number = -struct.unpack_from("=i", body)[0] if len(body) >= 4 else errno.EPROTO
            raise OSError(number, os.strerror(number))
        elif kind == _BY_FAMILY and len(body) >= _MESSAGE.size:
            self.found.append(_listening(_MESSAGE.unpack_from(body)[3], body[_MESSAGE.size :]))


def _listening(ino: int, attributes: bytes) -> Listening:
    name, device, inode = b"", None, None
    at = 0
    while len(attributes) - at >= _ATTRIBUTE.size:
        size, kind = _ATTRIBUTE.unpack_from(attributes, at)
        if not _ATTRIBUTE.size <= size <= len(attributes) - at:
            break
        value = attributes[at + _ATTRIBUTE.size : at + size]
        if kind == _NAME:
            name = value
        elif kind == _VFS and len(value) >= 8:
            inode, device = struct.unpack_from("=II", value)
        at += (size + 3) & ~3
    return Listening(ino, name, device, inode)


def listening() -> list[Listening]:
    """Returns every listening unix socket of our network namespace.

    Raises:
        OSError: The kernel cannot tell (no unix_diag), or the answer stayed incomplete.
    """
    for _ in range(_TRIES):
        dump = _ask()
        if not dump.interrupted:
            return dump.found
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))


def _ask() -> Dump:
    query = struct.pack("=BBxxIIIII", socket.AF_UNIX, 0, _LISTEN, 0, _SHOW, 0, 0)
    request = _HEADER.pack(_HEADER.size + len(query), _BY_FAMILY, _REQUEST, 1, 0) + query
    dump = Dump([])
    with closing(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG)) as link:
        link.settimeout(_SECONDS)
        link.sendto(request, (0, 0))
        while not dump.done:
            datagram, _, flags, sender = link.recvmsg(1 << 17)
            if sender[0] == 0:  # Anybody may write to a netlink socket; only port 0 is the kernel.
                if flags & socket.MSG_TRUNC:
                    raise OSError(errno.EMSGSIZE, os.strerror(errno.EMSGSIZE))
                dump.feed(datagram)
    return dump


def available() -> bool:
    """Tells whether the kernel answers; where it does not, sockets of the session cannot be told from others."""
    try:
        listening()
    except OSError:
        return False
    return True


def at_inode(device: int, inode: int) -> list[Listening]:
    """Returns the sockets that listen at an inode.

    Args:
        device: As `superblock_device` gives it.
        inode: `st_ino`; only its low 32 bits can be compared, so more may be returned, never fewer.

    Raises:
        OSError: As for `listening`.
    """
    return [one for one in listening() if (one.device, one.inode) == (device, inode & 0xFFFFFFFF)]


def at_name(name: bytes) -> list[Listening]:
    """Returns the sockets that listen at an abstract name (without its leading NUL); raises OSError likewise."""
    return [one for one in listening() if one.name == b"\0" + name]


def superblock_device(fd: int) -> int:
    """Returns the device of the file system that `fd` (O_PATH will do) is on, in the kernel's encoding.

    `st_dev` will not do: btrfs and overlayfs answer stat(2) with other numbers than the superblock's.

    Raises:
        OSError: ENOENT when its mount is not ours to see.

    Source: proc_pid_mountinfo(5), proc_pid_fdinfo(5).
    """
    with open(f"/proc/self/fdinfo/{fd}", "rb") as file:
        mount = next((line.split()[1] for line in file if line.startswith(b"mnt_id:")), b"")
    with open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            fields = line.split(None, 3)
            if fields[0] == mount:
                major, minor = fields[2].split(b":")
                return int(major) << 20 | int(minor)
    raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
