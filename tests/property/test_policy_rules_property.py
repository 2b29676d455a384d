"""The rules' order, checked against a second, naive telling of it."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from policy_strategies import DISK, NAMES, PATHS, POLICIES, path_targets

from nd7tui.engine.policy import address
from nd7tui.engine.policy.rules import (
    STRICTNESS,
    Access,
    Effect,
    HostTarget,
    PathTarget,
    Policy,
    Rule,
    Scope,
    is_canonical,
    split,
)


def naive_winner(rules: tuple[Rule, ...], access: Access, path: bytes) -> tuple[int, Effect] | None:
    covering = [r for r in rules if r.access is access and r.target.covers(path)]
    best = max(covering, key=lambda r: (r.target.depth, STRICTNESS[r.effect]), default=None)
    return None if best is None else (best.target.depth, best.effect)


def naive(policy: Policy, access: Access, path: bytes) -> Effect:
    never, live, default = (naive_winner(rules, access, path) for rules in (policy.never, policy.live, policy.default))
    if never and never[1] is not Effect.ALLOW:
        return Effect.DENY
    if live and live[1] is Effect.ALLOW:
        if default and default[1] is not Effect.ALLOW and default[0] > live[0]:
            return default[1]
        return Effect.ALLOW
    if live:
        return live[1]
    return default[1] if default else Effect.DENY


@given(POLICIES, DISK, PATHS)
def test_indexed_decision_is_the_naive_one(policy: Policy, access: Access, path: bytes) -> None:
    verdict = policy.decide_path(access, path)
    assert verdict.effect is naive(policy, access, path)
    assert verdict.reason


@given(path_targets(), PATHS, NAMES)
def test_covering_is_by_component_and_reaches_down(target: PathTarget, path: bytes, name: bytes) -> None:
    child = path.rstrip(b"/") + b"/" + name
    if target.covers(path):
        assert target.covers(child)
    if not target.glob and path != b"/":
        assert not PathTarget(path).covers(path + name)
        assert not PathTarget(path).covers(split(path)[0])


@given(POLICIES, PATHS, DISK, path_targets())
def test_an_allow_never_takes_away_and_a_deny_never_gives(
    policy: Policy, path: bytes, access: Access, target: PathTarget
) -> None:
    before = STRICTNESS[policy.decide_path(access, path).effect]
    for effect in (Effect.ALLOW, Effect.DENY):
        extra = Rule(effect, access, target, Scope.RUN, "test", 0, "extra")
        after = STRICTNESS[policy.with_live((*policy.live, extra)).decide_path(access, path).effect]
        assert after <= before if effect is Effect.ALLOW else after >= before


@given(POLICIES, DISK, PATHS, st.lists(NAMES, max_size=2), path_targets())
def test_nothing_beats_the_never_list(
    policy: Policy, access: Access, top: bytes, below: list[bytes], target: PathTarget
) -> None:
    path = b"/".join([top.rstrip(b"/"), *below]) if below else top
    never = Rule(Effect.DENY, access, PathTarget(top), Scope.NEVER, "test", 0, "never")
    extra = Rule(Effect.ALLOW, access, target, Scope.RUN, "test", 0, "extra")
    exact = Rule(Effect.ALLOW, access, PathTarget(path), Scope.ONCE, "test", 0, "exact")
    sealed = Policy(policy.default, (*policy.live, extra, exact), (never,))
    assert sealed.decide_path(access, path).effect is Effect.DENY


@given(POLICIES, DISK, PATHS, st.lists(NAMES, max_size=2))
def test_a_tree_is_as_strict_as_everything_in_it(
    policy: Policy, access: Access, path: bytes, below: list[bytes]
) -> None:
    inner = b"/".join([path.rstrip(b"/"), *below]) if below else path
    tree = STRICTNESS[policy.decide_tree(access, path).effect]
    assert tree >= STRICTNESS[policy.decide_path(access, inner).effect]


@given(POLICIES, DISK, st.binary(max_size=12))
def test_what_is_not_canonical_is_refused(policy: Policy, access: Access, path: bytes) -> None:
    assume(not is_canonical(path))
    assert policy.decide_path(access, path).effect is Effect.DENY
    assert policy.decide_tree(access, path).effect is Effect.DENY
    with pytest.raises(ValueError, match="canonical"):
        PathTarget(path)


@given(st.ip_addresses())
def test_addresses_agree_with_the_standard_library(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    parsed = address.parse(str(ip))
    plain = getattr(ip, "ipv4_mapped", None) or ip
    assert parsed.v4 == (plain.version == 4)
    assert parsed.is_loopback == (plain.is_loopback or plain.is_unspecified)
    if not plain.is_unspecified:
        assert ipaddress.ip_address(address.canonical(str(ip))) == plain


@given(st.ip_addresses(v=4), st.ip_addresses(v=4), st.integers(0, 32))
def test_networks_agree_with_the_standard_library(
    ip: ipaddress.IPv4Address, other: ipaddress.IPv4Address, bits: int
) -> None:
    assume(int(ip) != 0)
    network = ipaddress.ip_network(f"{other}/{bits}", strict=False)
    assert HostTarget(str(network), None).covers(address.parse(str(ip)), 1, "tcp") == (ip in network)
    assert HostTarget(str(network), None).covers(address.parse(f"::ffff:{ip}"), 1, "tcp") == (ip in network)


@given(st.text(max_size=30))
def test_any_text_is_a_network_or_a_value_error(text: str) -> None:
    try:
        HostTarget(text, 1)
    except ValueError:
        return
    assert text in {"*", "loopback"} or address.parse_network(text)
