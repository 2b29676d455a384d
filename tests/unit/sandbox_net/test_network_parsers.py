"""Socket addresses, message headers, control messages, diagnostics: any bytes parse or give an errno."""

from __future__ import annotations

import errno
import os
import socket
import struct
import subprocess
import sys
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nd7tui.engine.sandbox import messages, sockaddr, unixdiag
from nd7tui.engine.sandbox.holders import Holders
from nd7tui.engine.sandbox.patience import Slots

ANY = "0.0.0.0"  # noqa: S104 - an address to connect to, not to bind


def attempt(action, *arguments):
    """Returns what the action returns, or the errno it raises."""
    try:
        return action(*arguments)
    except OSError as error:
        return error.errno


def inet(host="198.51.100.7", port=22, family=socket.AF_INET):
    return struct.pack("=H", family) + struct.pack(">H", port) + socket.inet_aton(host) + bytes(8)


def inet6(host, port=22, scope=0, flow=0):
    head = struct.pack("=H", socket.AF_INET6) + struct.pack(">HI", port, flow)
    return head + socket.inet_pton(socket.AF_INET6, host) + struct.pack("=I", scope)


def unix(name):
    return struct.pack("=H", socket.AF_UNIX) + name


@given(st.binary(max_size=200))
def test_any_bytes_are_an_address_or_einval(raw):
    found = attempt(sockaddr.parse, raw)
    assert found == errno.EINVAL or isinstance(found, sockaddr.Address)


@given(st.sampled_from([0, 1, 2, 10, 16, 40]), st.binary(max_size=126))
def test_what_an_address_parses_to_is_what_the_kernel_is_given(family, rest):
    found = attempt(sockaddr.parse, struct.pack("=H", family) + rest)
    if isinstance(found, sockaddr.Inet):
        again = sockaddr.parse(found.raw)
        assert isinstance(again, sockaddr.Inet)
        assert (again.port, again.family, again.raw) == (found.port, found.family, found.raw)
        assert again.ip == found.ip or (found.ip, again.ip) == (ANY, "127.0.0.1")


def test_internet_addresses():
    v4 = sockaddr.parse(inet())
    assert isinstance(v4, sockaddr.Inet)
    assert v4.target("tcp") == b"198.51.100.7:22/tcp"
    v6 = sockaddr.parse(inet6("2001:db8::1", scope=3, flow=5))
    assert isinstance(v6, sockaddr.Inet)
    assert (v6.target("udp"), v6.raw) == (b"[2001:db8::1]:22/udp", inet6("2001:db8::1", scope=3, flow=5))
    mapped = sockaddr.parse(inet6("::ffff:198.51.100.7"))
    assert isinstance(mapped, sockaddr.Inet)
    assert mapped.target("tcp") == b"198.51.100.7:22/tcp"
    assert sockaddr.parse(inet6("2001:db8::1")[:24]) == sockaddr.Inet("2001:db8::1", 22, 10, inet6("2001:db8::1")[:24])


@pytest.mark.parametrize(
    ("raw", "given"),
    [(inet(ANY), inet("127.0.0.1")), (inet6("::ffff:0.0.0.0"), inet6("::ffff:127.0.0.1"))],
)
def test_the_unspecified_address_is_rewritten_to_loopback(raw, given):
    found = sockaddr.parse(raw)
    assert isinstance(found, sockaddr.Inet)
    assert (found.ip, found.raw) == (ANY, given)


def test_unix_addresses():
    assert sockaddr.parse(unix(b"rel/s\0junk")) == sockaddr.UnixPath(b"rel/s")
    assert sockaddr.parse(unix(b"/" + b"x" * 107)) == sockaddr.UnixPath(b"/" + b"x" * 107)
    abstract = sockaddr.parse(unix(b"\0a\0b"))
    assert isinstance(abstract, sockaddr.UnixAbstract)
    assert (abstract.target, abstract.raw) == (b"@a\0b", unix(b"\0a\0b"))
    for bad in (unix(b""), unix(b"x" * 109)):
        with pytest.raises(OSError, match="Invalid"):
            sockaddr.parse(bad)


def test_netlink_and_others():
    raw = struct.pack("=HHII", socket.AF_NETLINK, 0, 7, 1)
    assert sockaddr.parse(raw + b"more") == sockaddr.Netlink(7, 1, raw)
    assert sockaddr.parse(struct.pack("=H", 40) + bytes(14)) == sockaddr.Other(40)
    assert isinstance(sockaddr.parse(bytes(2)), sockaddr.Unspec)


@given(st.binary(min_size=56, max_size=56))
def test_any_header_parses_within_bounds_or_gives_an_errno(raw):
    header = attempt(messages.parse_header, raw)
    if isinstance(header, int):
        assert header in {errno.EINVAL, errno.EMSGSIZE, errno.ENOBUFS}
    else:
        assert header.name_size <= 128
        assert header.parts <= 1024
        assert header.control_size <= 65536


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)), max_size=8))
def test_vectors_count_no_more_than_the_kernel_does(parts):
    raw = b"".join(struct.pack("=QQ", *part) for part in parts)
    found = attempt(messages.parse_vector, raw)
    if found == errno.EINVAL:
        assert any(size >> 63 for _, size in parts)
    else:
        assert sum(size for _, size in found) <= 0x7FFFF000


@given(st.binary(max_size=300))
def test_any_control_buffer_parses_or_gives_einval(raw):
    found = attempt(messages.parse_control, raw)
    assert found == errno.EINVAL or isinstance(found, list)


@given(st.lists(st.builds(messages.Control, st.integers(0, 300), st.integers(0, 300), st.binary(max_size=40))))
def test_control_messages_survive_the_round_trip(found):
    assert messages.parse_control(messages.build_control(found)) == found


def test_control_messages_that_may_not_pass():
    for level, kind in ((0, 7), (0, 4), (41, 57), (41, 5), (41, 54), (1, 36)):
        assert not messages.Control(level, kind, b"").passes
    assert messages.Control(0, 1, b"").passes
    with pytest.raises(OSError, match="Invalid"):
        messages.rights_of(messages.Control(1, 1, bytes(254 * 4)))


@given(st.binary(max_size=400))
def test_any_diagnostics_parse_or_give_an_errno(raw):
    assert attempt(unixdiag.Dump([]).feed, raw) != 0


def test_a_listening_socket_is_found_by_inode_after_its_name_is_gone(tmp_path):
    assert unixdiag.available()
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as other:
        server.bind(str(tmp_path / "s"))
        held = os.open(tmp_path / "s", os.O_PATH)
        device, inode = unixdiag.superblock_device(held), os.fstat(held).st_ino
        assert unixdiag.at_inode(device, inode) == []  # bound, but nobody listens
        server.listen()
        os.rename(tmp_path / "s", tmp_path / "moved")
        other.bind(str(tmp_path / "s"))  # the same string
        other.listen()
        assert [one.ino for one in unixdiag.at_inode(device, inode)] == [os.fstat(server.fileno()).st_ino]
        os.close(held)


def test_a_listening_socket_is_found_by_abstract_name():
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0nd7-unit-{os.getpid()}\0tail")
        server.listen()
        found = unixdiag.at_name(f"nd7-unit-{os.getpid()}\0tail".encode())
        assert [one.ino for one in found] == [os.fstat(server.fileno()).st_ino]
        assert unixdiag.at_name(f"nd7-unit-{os.getpid()}".encode()) == []


class FakeTree:
    def __init__(self, *pids):
        self.members = list(pids)

    def contains(self, pid):
        return pid in self.members

    def pids(self):
        return self.members


def test_a_socket_belongs_when_a_member_holds_it_and_no_longer():
    with socket.socket(socket.AF_UNIX) as server:
        number = os.fstat(server.fileno()).st_ino
        tree = FakeTree(os.getpid())
        holders = Holders(tree)
        assert holders.all_held([number])
        assert holders.all_held([number])
        assert not holders.all_held([number, 1])
        tree.members = [1]
        assert not holders.all_held([number])
    assert not Holders(FakeTree(os.getpid())).all_held([number])


def test_nothing_heavy_is_imported_at_start():
    code = "import sys, nd7tui.engine.sandbox.network; print([m for m in ('asyncio', 'ipaddress') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_slots_are_bounded_and_given_back():
    slots = Slots(1)
    with ExitStack() as first, ExitStack() as second:
        assert slots.take(first)
        assert not slots.take(second)
    with ExitStack() as third:
        assert slots.take(third)
