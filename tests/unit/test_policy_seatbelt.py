"""The profile as text. The golden copy is small on purpose: every line of it can be read."""

from __future__ import annotations

import pytest

from nd7tui.engine.policy import seatbelt
from nd7tui.engine.policy.defaults import Layout, policy_for
from nd7tui.engine.policy.rules import Access, Effect, HostTarget, PathTarget, Policy, Rule, Scope, SocketTarget
from nd7tui.errors import RefusedError


def rule(effect: Effect, access: Access, target, scope: Scope = Scope.DEFAULT) -> Rule:
    return Rule(effect, access, target, scope, "test", 0, repr(target) + access)


A, D, Q = Effect.ALLOW, Effect.DENY, Effect.ASK
R, W, C = Access.READ, Access.WRITE, Access.CONNECT
POLICY = Policy(
    default=(
        rule(A, R, PathTarget(b"/")),
        rule(D, R, PathTarget(b"/Users/ann/.ssh")),
        rule(A, W, PathTarget(b"/Users/ann/app")),
        rule(Q, W, PathTarget(b"/Users/ann/app/.git/hooks")),
        rule(A, W, PathTarget(b"/Users/ann/.claude.json*", glob=True)),
        rule(A, C, HostTarget("*", 443, "tcp")),
        rule(A, C, HostTarget("loopback", None)),
        rule(A, C, HostTarget("192.0.2.53", 53)),
        rule(A, C, SocketTarget(b"/Users/ann/hook.sock")),
    ),
    live=(
        rule(A, W, PathTarget(b'/Volumes/a "b"\\c'), Scope.RUN),
        rule(D, C, HostTarget("192.0.2.1", 443, "tcp"), Scope.RUN),
    ),
    never=(rule(D, W, PathTarget(b"/Users/ann/.nd7"), Scope.NEVER),),
)

GOLDEN = r"""(allow file-read* (subpath "/"))
(deny file-write* (subpath "/"))
(allow file-read* (subpath "/Users/ann"))
(deny file-write* (subpath "/Users/ann"))
(allow file-write* (regex #"^/Users/ann/\.claude\.json[^/]*(/|$)"))
(allow file-read* (subpath "/Users/ann/.nd7"))
(deny file-write* (subpath "/Users/ann/.nd7"))
(deny file-read* (subpath "/Users/ann/.ssh"))
(deny file-write* (subpath "/Users/ann/.ssh"))
(allow file-read* (subpath "/Users/ann/app"))
(allow file-write* (subpath "/Users/ann/app"))
(allow file-read* (subpath "/Users/ann/app/.git/hooks"))
(deny file-write* (subpath "/Users/ann/app/.git/hooks"))
(allow file-read* (subpath "/Volumes/a \"b\"\\c"))
(allow file-write* (subpath "/Volumes/a \"b\"\\c"))
(deny file-write-unlink (literal "/Users/ann/app"))
(deny file-write-unlink (literal "/Users/ann/app/.git"))
(allow network-outbound (remote tcp "*:443"))
(allow network-outbound (remote ip "localhost:*"))
(allow network-outbound (subpath "/Users/ann/hook.sock"))
(deny network-outbound (remote tcp "*:443"))
"""


def test_golden_text() -> None:
    assert seatbelt.render(POLICY) == seatbelt.HEADER + GOLDEN


def test_the_default_policy_renders() -> None:
    layout = Layout(b"/Users/ann", b"/Users/ann/app", (b"/private/tmp",), (), b"/Users/ann/.nd7/s/1", b"/s", (), 501)
    text = seatbelt.render(policy_for(layout))
    assert text.count("(") == text.count(")")
    assert '(deny file-read* (subpath "/Users/ann/.ssh"))' in text


@pytest.mark.parametrize("target", [PathTarget(b"/\xff"), PathTarget(b'/a"*', glob=True)])
def test_what_cannot_be_written_is_refused(target) -> None:
    with pytest.raises(RefusedError):
        seatbelt.render(Policy(default=(rule(D, R, target),)))


@pytest.mark.parametrize(
    ("pattern", "regex"), [("*", "[^/]*"), ("a.?", r"a\.[^/]"), ("[!ab]x", "[^ab]x"), ("[", r"\[")]
)
def test_patterns(pattern: str, regex: str) -> None:
    assert seatbelt._translated(pattern) == regex
