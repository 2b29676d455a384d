"""What the agent says of itself: hooks become frames, announced commands are matched with tool calls.

Rule: what is said inside the run is recorded and answered, never believed: it decides nothing about what is allowed.
A payload that cannot be recorded blocks its tool call. A command that announces itself hears what live rules deny, to
narrow itself; from then on the gate continues nothing, since it cannot see that narrowing.
Owns: the replies.
"""

from __future__ import annotations

import json
import os
import time

from nd7tui.engine.log.bodies import read_payload, session_id_of
from nd7tui.engine.policy.rules import Access, PathTarget
from nd7tui.engine.run.wire import Reply, render_denies
from nd7tui.engine.sandbox.tree import parent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from nd7tui.engine.agents.adapter import Adapter
    from nd7tui.engine.run.chains import Chains
    from nd7tui.engine.run.liverules import LiveRules
    from nd7tui.engine.run.toolcalls import ToolCalls

BLOCK = Reply(2, b"", b"nd7: the log cannot be written; nothing is allowed until it can\n")


class Intents:
    """Answers the run's hook socket.

    Args:
        chains: The logs.
        toolcalls: Where tool calls and processes are matched.
        rules: The policy.
        look_at_rules: Takes in a changed rule file.
        narrowed: Called when a command was told to narrow itself.
        adapter: The agent's, None for a program that is no known agent.
        exec_program: Path of `nd7-exec`.
    """

    def __init__(
        self,
        *,
        chains: Chains,
        toolcalls: ToolCalls,
        rules: LiveRules,
        look_at_rules: Callable[[], None],
        narrowed: Callable[[], None],
        adapter: Adapter | None,
        exec_program: str,
    ) -> None:
        self._chains = chains
        self._toolcalls = toolcalls
        self._rules = rules
        self._look_at_rules = look_at_rules
        self._narrowed = narrowed
        self._adapter = adapter
        self._exec_program = exec_program

    def hook(self, payload: bytes, pid: int) -> Reply:
        """Records a hook's payload and answers it as the agent's hook should."""
        now = time.time_ns()
        if self._chains.full:
            return BLOCK
        source = None if self._adapter is None else self._adapter.source
        self._chains.record_hook(payload, session_id_of(payload), source, now, parent(pid) or None)
        members = read_payload(payload)
        if members is None:
            return Reply()
        self._toolcalls.hook(members)
        if self._adapter is None or not self._exec_program:
            return Reply()
        from nd7tui.engine.agents.rewrite import hook_reply

        answer = hook_reply(members, self._adapter, self._exec_program)
        return Reply() if answer is None else Reply(0, json.dumps(answer, separators=(",", ":")).encode() + b"\n")

    def announce(self, command: bytes, pid: int) -> Reply:
        """Notes which tool call a process works for; tells it what live rules deny."""
        self._toolcalls.announce(pid, os.fsdecode(command))
        self._look_at_rules()
        denied: dict[Access, list[bytes]] = {Access.READ: [], Access.WRITE: []}
        for rule in self._rules.denied_paths():
            if isinstance(rule.target, PathTarget):
                denied[rule.access].append(rule.target.path)
        if any(denied.values()):
            self._narrowed()
        return Reply(0, render_denies(tuple(denied[Access.READ]), tuple(denied[Access.WRITE])))
