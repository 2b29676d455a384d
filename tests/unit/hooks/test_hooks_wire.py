from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nd7tui.engine.run import wire
from nd7tui.engine.run.wire import Kind, Reply, Request, RequestParser, WireError

KINDS = st.sampled_from(list(Kind))


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    """Chunks of these sizes, then the rest."""
    chunks = []
    for size in sizes:
        chunks.append(data[:size])
        data = data[size:]
    return [chunk for chunk in [*chunks, data] if chunk]


def outcome(chunks: list[bytes]) -> Request | str | None:
    parser, request = RequestParser(), None
    try:
        for chunk in chunks:
            request = parser.feed(chunk)
    except WireError:
        return "fault"
    return request


def test_a_request_is_these_bytes():
    assert wire.render_request(Kind.ANNOUNCE, b"ls") == b"ND7\x01\x02\x00\x00\x00\x02ls"


def test_a_reply_is_these_bytes():
    assert wire.render_reply(Reply(2, b"out", b"e")) == b"\x02\x00\x00\x00\x03out\x00\x00\x00\x01e"


@given(KINDS, st.binary(max_size=300), st.lists(st.integers(1, 40), max_size=20))
def test_any_chunking_gives_the_request(kind, payload, sizes):
    data = wire.render_request(kind, payload)
    assert outcome(cut(data, sizes)) == Request(kind, payload)


@given(st.binary(max_size=60), st.lists(st.integers(1, 12), max_size=12))
def test_any_chunking_of_any_bytes_comes_out_the_same(data, sizes):
    # Magic first in half of the cases, so that more than the first bytes is reached.
    for whole in (data, wire.MAGIC + data):
        at_once, in_parts = outcome([whole] if whole else []), outcome(cut(whole, sizes))
        assert in_parts == at_once


@given(KINDS, st.binary(max_size=40), st.data())
def test_a_flipped_byte_of_the_head_is_caught_or_changes_only_kind_or_length(kind, payload, data):
    good = bytearray(wire.render_request(kind, payload))
    at = data.draw(st.integers(0, 8))
    good[at] ^= data.draw(st.integers(1, 255))
    result = outcome([bytes(good)])
    if at < len(wire.MAGIC):
        assert result == "fault"
    elif at == len(wire.MAGIC):
        assert result == "fault" or (isinstance(result, Request) and result.kind != kind)
    else:
        assert result in {"fault", None}


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n",
        b"ND7\x02\x01\x00\x00\x00\x00",
        b"ND7\x01\x00",
        b"ND7\x01\x03",
        b"ND7\x01\x01" + struct.pack(">I", wire.MAX_PAYLOAD + 1),
        b"ND7\x01\x01\x00\x00\x00\x01ab",
    ],
)
def test_what_is_no_request_is_a_fault(data):
    with pytest.raises(WireError) as caught:
        RequestParser().feed(data)
    assert caught.value.evidence == data[:9]


def test_a_fault_is_final():
    parser = RequestParser()
    for data in (b"X", b"ND7\x01\x01\x00\x00\x00\x00"):
        with pytest.raises(WireError):
            parser.feed(data)


def test_nothing_follows_a_whole_request():
    parser = RequestParser()
    assert parser.feed(wire.render_request(Kind.HOOK, b"{}")) is not None
    with pytest.raises(WireError):
        parser.feed(b"x")


@given(st.integers(0, 255), st.binary(max_size=50), st.binary(max_size=50))
def test_a_reply_comes_back(status, out, err):
    reply = Reply(status, out, err)
    assert wire.parse_reply(wire.render_reply(reply)) == reply


@given(st.binary(min_size=9, max_size=40))
def test_a_cut_or_extended_reply_is_a_fault(data):
    whole = wire.render_reply(Reply(0, data, b"x"))
    for wrong in (whole[:-1], whole + b"x", whole[:4], b""):
        with pytest.raises(WireError):
            wire.parse_reply(wrong)


def test_too_much_is_not_sent():
    big = bytes(wire.MAX_PAYLOAD + 1)
    with pytest.raises(WireError):
        wire.render_request(Kind.HOOK, big)
    with pytest.raises(WireError):
        wire.render_reply(Reply(0, b"", big))


def test_denies_are_tagged_and_ended():
    assert wire.render_denies((b"/a",), (b"/b", b"/\xff")) == b"r:/a\0w:/b\0w:/\xff\0"
