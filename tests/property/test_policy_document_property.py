"""The rule file: what is written is read back, and nothing else is ever more than an error."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_strategies import PATHS, path_targets

from nd7tui.engine.policy.document import Enforced, RuleFileError, RunRecord, parse, render
from nd7tui.engine.policy.rules import Access, Effect, HostTarget, Rule, Scope, SocketTarget

# No surrogates, save those that stand for a byte: what the system's own strings can hold.
WORDS = st.binary(max_size=8).map(lambda raw: raw.decode("utf-8", "surrogateescape"))
NS = st.integers(0, 2**62)
HOSTS = st.builds(
    HostTarget,
    host=st.one_of(st.sampled_from(["*", "loopback", "10.0.0.0/8", "2001:db8::/32"]), st.ip_addresses().map(str)),
    port=st.none() | st.integers(0, 65535),
    proto=st.sampled_from([None, "tcp", "udp"]),
)
SOCKETS = st.builds(SocketTarget, PATHS | st.binary(max_size=8).map(lambda name: b"@" + name))


@st.composite
def live_rules(draw: st.DrawFn) -> Rule:
    access = draw(st.sampled_from(list(Access)))
    return Rule(
        effect=draw(st.sampled_from([Effect.ALLOW, Effect.DENY])),
        access=access,
        target=draw(HOSTS | SOCKETS if access is Access.CONNECT else path_targets()),
        scope=draw(st.sampled_from([Scope.ONCE, Scope.RUN])),
        by=draw(WORDS),
        at=draw(NS),
        id=draw(WORDS.filter(bool)),
        why=draw(WORDS),
    )


RECORDS = st.builds(
    RunRecord,
    session_id=WORDS,
    pid=st.integers(1, 2**22),
    started=NS,
    argv=st.lists(WORDS, max_size=3).map(tuple),
    project=PATHS,
    home=PATHS,
    tmp=st.lists(PATHS, max_size=2).map(tuple),
    log=WORDS,
    exit=st.none() | st.integers(0, 255),
    enforced=st.none()
    | st.builds(
        Enforced,
        landlock_abi=st.integers(0, 12),
        listener=st.booleans(),
        partial=st.lists(WORDS, max_size=2).map(tuple),
        mode=st.sampled_from(["default", "fast"]),
    ),
    rules=st.lists(live_rules(), max_size=4, unique_by=lambda rule: rule.id).map(tuple),
    hold_seconds=st.floats(0, 86_400),
)


@given(RECORDS)
def test_round_trip(record: RunRecord) -> None:
    data = render(record)
    assert parse(data) == record
    assert render(parse(data)) == data


@given(RECORDS, st.data())
def test_a_changed_byte_is_an_error_or_a_record(record: RunRecord, data: st.DataObject) -> None:
    raw = bytearray(render(record))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(RuleFileError):
        read = parse(bytes(raw))
        assert parse(render(read)) == read


@given(RECORDS, st.data())
def test_a_cut_file_is_an_error(record: RunRecord, data: st.DataObject) -> None:
    raw = render(record)
    cut = raw[: data.draw(st.integers(0, len(raw) - 3))]
    with pytest.raises(RuleFileError, match=r"^record\.json: "):
        parse(cut)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(RECORDS, JSON, st.data())
def test_a_replaced_member_is_an_error_or_a_record(record: RunRecord, value: object, data: st.DataObject) -> None:
    document = json.loads(render(record))
    place = document
    while True:
        key = data.draw(st.sampled_from(list(place) if isinstance(place, dict) else range(len(place))))
        if not place[key] or not isinstance(place[key], dict | list) or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = value
    with contextlib.suppress(RuleFileError):
        read = parse(json.dumps(document).encode())
        assert parse(render(read)) == read


@given(st.binary(max_size=40))
def test_any_bytes_are_an_error(raw: bytes) -> None:
    with pytest.raises(RuleFileError):
        parse(raw)
