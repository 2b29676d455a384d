from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from policy_strategies import DISK, PATHS, POLICIES

from nd7tui.engine.policy import table

if TYPE_CHECKING:
    from nd7tui.engine.policy.rules import Access, Policy


@given(POLICIES, DISK, PATHS)
def test_table_lookup_is_the_decision(policy: Policy, access: Access, path: bytes) -> None:
    assert table.lookup(table.compile(policy), policy, access, path) is policy.decide_path(access, path).effect


@given(POLICIES)
def test_table_is_sorted_without_duplicates_and_starts_at_the_root(policy: Policy) -> None:
    keys = [table.components(node.path) for node in table.compile(policy)]
    assert keys[0] == ()
    assert keys == sorted(set(keys))
