from __future__ import annotations

import json
from typing import Any

import pytest

from nd7tui.engine.policy.document import MAX_BYTES, RuleFileError, RunRecord, parse, render
from nd7tui.engine.policy.rules import Access, Effect, HostTarget, PathTarget, Rule, Scope

RULE = Rule(Effect.ALLOW, Access.WRITE, PathTarget(b"/srv/\xff"), Scope.RUN, "tui", 7, "r1")
HOST = Rule(Effect.DENY, Access.CONNECT, HostTarget("192.0.2.1", 22, "tcp"), Scope.ONCE, "tui", 8, "r2")
RECORD = RunRecord("s", 42, 1, ("claude", "-p"), b"/home/ann/app", b"/home/ann", (b"/tmp",), "/log", rules=(RULE, HOST))


def changed(path: str, value: Any) -> bytes:
    document = json.loads(render(RECORD))
    place: Any = document
    *steps, last = [int(step) if step.isdigit() else step for step in path.split("/")]
    for step in steps:
        place = place[step]
    place[last] = value
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        ("v", 2, "v"),
        ("v", True, "v"),
        ("pid", 0, "pid"),
        ("extra", 1, "extra"),
        ("project", "src", "project"),
        ("tmp", ["/a", "/a/../b"], "tmp[1]"),
        ("rules/0/effect", "alow", "rules[0].effect"),
        ("rules/0/effect", "ask", "rules[0].effect"),
        ("rules/0/effect", ["allow"], "rules[0].effect"),
        ("rules/0/scope", "never", "rules[0].scope"),
        ("rules/0/access", "exec", "rules[0].access"),
        ("rules/0/access", "connect", "rules[0]"),
        ("rules/0/expires", 3, "rules[0].expires"),
        ("rules/0/target", {"path": "/a//b"}, "rules[0].target.path"),
        ("rules/0/target", {"path": "/a", "globs": True}, "rules[0].target.globs"),
        ("rules/0/target", {"path": "/a\ud800"}, "rules[0].target.path"),
        ("rules/0/target", {"path": "/a\0b"}, "rules[0].target.path"),
        ("rules/1/target/host", "github.com", "rules[1].target"),
        ("rules/1/target/port", 65536, "rules[1].target"),
        ("rules/1/target/port", "22", "rules[1].target.port"),
        ("rules/1/target/proto", "sctp", "rules[1].target.proto"),
        ("rules/1/id", "r1", "rules[1].id"),
        ("hold_seconds", -1, "hold_seconds"),
        ("enforced", {}, "enforced.landlock_abi"),
    ],
)
def test_each_fault_names_its_member(path: str, value: Any, where: str) -> None:
    with pytest.raises(RuleFileError) as caught:
        parse(changed(path, value))
    assert caught.value.where == where
    assert str(caught.value).startswith(f"record.json: {where}: ")


def test_a_rule_without_a_member_is_refused() -> None:
    for member in ("id", "effect", "access", "target", "scope", "by", "at"):
        document = json.loads(render(RECORD))
        del document["rules"][0][member]
        with pytest.raises(RuleFileError) as caught:
            parse(json.dumps(document).encode())
        assert caught.value.where == f"rules[0].{member}"
        assert caught.value.what == "missing"


@pytest.mark.parametrize(
    "raw",
    [b"", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"v":1,"v":1}', b'{"v":NaN}', b'{"v":' + b"9" * 5000 + b"}"],
)
def test_what_is_no_record_at_all(raw: bytes) -> None:
    with pytest.raises(RuleFileError):
        parse(raw)


def test_a_huge_file_is_not_even_decoded() -> None:
    with pytest.raises(RuleFileError, match="more than"):
        parse(b" " * (MAX_BYTES + 1))


def test_bytes_that_are_not_utf8_survive() -> None:
    assert b"\\udcff" in render(RECORD)
    assert parse(render(RECORD)) == RECORD
