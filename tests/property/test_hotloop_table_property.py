from __future__ import annotations

import os

from hypothesis import given
from policy_strategies import PATHS, POLICIES

from nd7tui.engine.policy.rules import Access, Effect, Policy
from nd7tui.engine.sandbox._hotloop import Loop
from nd7tui.engine.sandbox.coverage import Coverage, Root
from nd7tui.engine.sandbox.entries import entries


def loop_of(policy: Policy, coverage: Coverage) -> Loop:
    loop = Loop(os.open("/dev/null", os.O_RDONLY), None)
    loop.use(entries(policy, coverage), False)
    return loop


@given(POLICIES, PATHS)
def test_what_the_loop_knows_is_the_decision(policy: Policy, path: bytes) -> None:
    found = loop_of(policy, Coverage()).find(path)
    if found is None:
        # Handed on, which is always right, and only where a pattern may speak.
        assert any(rule.target.glob for rule in policy.never + policy.live + policy.default)
        return
    for number, access in enumerate((Access.READ, Access.WRITE)):
        allowed = policy.decide_path(access, path).effect is Effect.ALLOW
        assert found[number] is allowed
        assert (allowed and not found[2] & 1 << number) == (policy.decide_tree(access, path).effect is Effect.ALLOW)


def test_a_path_that_no_pattern_can_mean_is_answered():
    from nd7tui.engine.policy.rules import PathTarget, Rule, Scope

    target = PathTarget(b"/p/.claude*.json", glob=True)
    rules = (
        Rule(Effect.ALLOW, Access.WRITE, PathTarget(b"/p"), Scope.DEFAULT, "test", 0, "1"),
        Rule(Effect.ASK, Access.WRITE, target, Scope.DEFAULT, "test", 0, "2"),
    )
    loop = loop_of(Policy(default=rules), Coverage())
    assert loop.find(b"/p/src/main.c")[1] is True
    assert loop.find(b"/p")[1] is True
    assert loop.find(b"/p/.clau") is not None  # shorter than any match
    assert loop.find(b"/p/.claude-x.json") is None
    assert loop.find(b"/p/.claude.json/x") is None
    assert loop.find(b"/q")[1] is False


@given(PATHS)
def test_cover_ends_with_the_inode(path: bytes) -> None:
    """A root whose directory was replaced covers nothing; one directly below / cannot be replaced."""
    root, own = os.stat("/usr/bin"), Coverage()
    inside = b"/usr/bin" + path.rstrip(b"/")
    for inode, covered in ((root.st_ino, True), (root.st_ino + 1, False)):
        own.roots[Access.READ] = {b"/usr/bin": Root(b"/usr/bin", root.st_dev, inode)}
        assert loop_of(Policy(), own).find(inside)[3] is (inode == root.st_ino) is covered
        assert own.covers(Access.READ, inside) is covered
        assert loop_of(Policy(), own).find(inside)[4] is False
    own.roots[Access.READ] = {b"/usr": Root(b"/usr", 0, 0)}
    assert loop_of(Policy(), own).find(inside)[3] is True is own.covers(Access.READ, inside)
