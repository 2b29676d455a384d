"""Random policies over a small alphabet, so that rules meet often."""

from __future__ import annotations

from hypothesis import strategies as st

from nd7tui.engine.policy.rules import Access, Effect, PathTarget, Policy, Rule, Scope, split

NAMES = st.sampled_from([b"a", b"b", b"ab", b"a.b", b".git", b"\xff", b"a b"])
PATTERNS = st.sampled_from([b"a*", b"*", b"?", b"[ab]", b"a.?", b"[!a]*", b"\xff*"])
PATHS = st.lists(NAMES, max_size=4).map(lambda parts: b"/" + b"/".join(parts))
DISK = st.sampled_from([Access.READ, Access.WRITE])


@st.composite
def path_targets(draw: st.DrawFn) -> PathTarget:
    path = draw(PATHS)
    if path != b"/" and draw(st.integers(0, 3)) == 0:
        parent, _ = split(path)
        return PathTarget(parent.rstrip(b"/") + b"/" + draw(PATTERNS), glob=True)
    return PathTarget(path)


def path_rules(scope: Scope, effects: list[Effect]) -> st.SearchStrategy[tuple[Rule, ...]]:
    rule = st.builds(
        Rule,
        effect=st.sampled_from(effects),
        access=DISK,
        target=path_targets(),
        scope=st.just(scope),
        by=st.just("test"),
        at=st.just(0),
        id=st.uuids().map(str),
    )
    return st.lists(rule, max_size=6).map(tuple)


POLICIES = st.builds(
    Policy,
    default=path_rules(Scope.DEFAULT, list(Effect)),
    live=path_rules(Scope.RUN, [Effect.ALLOW, Effect.DENY]),
    never=path_rules(Scope.NEVER, [Effect.ALLOW, Effect.DENY]),
)
