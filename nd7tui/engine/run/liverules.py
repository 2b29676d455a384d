"""The policy as it stands: the floor, the live rules, and the ones that were for a single use.

Rule: a rule for one use opens for exactly one call. So it is never part of what the gate answers by itself: the call is
refused to us, we see that the rule covers it, let that one through, and the rule is spent. A *deny* for one use is part
of what the gate enforces until it has refused one call. What is spent stays spent for the run, whatever the file says.
Owns: which rules are spent. Pure.
"""

from __future__ import annotations

from nd7tui.engine.policy.rules import STRICTNESS, Effect, PathTarget, Policy, Scope, Verdict
from nd7tui.engine.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from nd7tui.engine.policy.rules import Rule
    from nd7tui.engine.sandbox.outcome import Request


class LiveRules:
    """The policy of a run.

    Args:
        floor: The policy it starts with: default and never-list, and standing rules in `live`.
        rules: The rules of the rule file.
    """

    def __init__(self, floor: Policy, rules: tuple[Rule, ...]) -> None:
        self._floor = floor
        self._rules = rules
        self._spent: set[str] = set()

    def change(self, rules: tuple[Rule, ...]) -> None:
        """Takes in the rules of a changed file."""
        self._rules = rules

    def spend(self, rule: Rule) -> None:
        """Marks a rule for one use as used."""
        self._spent.add(rule.id)

    def is_spent(self, rule: Rule) -> bool:
        """Tells whether a rule for one use has been used."""
        return rule.id in self._spent

    def for_gate(self) -> Policy:
        """Returns what the gate decides by: all but grants for one use."""
        return self._with(
            rule for rule in self._rules if rule.scope is not Scope.ONCE or rule.effect is not Effect.ALLOW
        )

    def whole(self) -> Policy:
        """Returns the policy with every rule that is not spent."""
        return self._with(self._rules)

    @property
    def has_single_grants(self) -> bool:
        """Whether there is a grant for one use that is not spent."""
        return any(
            rule.scope is Scope.ONCE and rule.effect is Effect.ALLOW and rule.id not in self._spent
            for rule in self._rules
        )

    def denied_paths(self) -> list[Rule]:
        """Returns the rules that deny paths now, for a process to narrow itself by."""
        return [
            rule
            for rule in self.for_gate().live
            if rule.effect is Effect.DENY and isinstance(rule.target, PathTarget) and not rule.target.glob
        ]

    def _with(self, rules: Iterable[Rule]) -> Policy:
        live = tuple(rule for rule in rules if rule.id not in self._spent)
        return replace(self._floor, live=self._floor.live + live)


def judge(policy: Policy, request: Request) -> Verdict:
    """Returns what `policy` says of a call; of both sides of a rename the stricter."""
    if request.kind == "host":
        address, _, proto = request.target.decode().rpartition("/")
        host, _, port = address.rpartition(":")
        return policy.decide_host(host.strip("[]"), int(port), proto)
    if request.kind == "socket":
        return policy.decide_socket(request.target)
    # What moves a whole tree at once is judged by everything in it (see Policy.decide_tree).
    decide = policy.decide_path if request.second is None else policy.decide_tree
    verdict = decide(request.access, request.target)
    if request.second is None:
        return verdict
    other = decide(request.access, request.second)
    return max((verdict, other), key=lambda one: STRICTNESS[one.effect])
