"""Which tool call a process works for.

Rule: the agent's hooks say which tool calls are open, `nd7-exec` says which command it is about to become, and the two
are the same when the command's text is. What both say is untrusted: it labels frames and decides nothing.
Owns: the open tool calls and the processes that announced themselves. Pure.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

MOST = 1024


class ToolCalls:
    """The tool calls of a run.

    Args:
        unwrap: Returns the command inside a command that was rewritten to run through nd7-exec, or the command.
    """

    def __init__(self, unwrap: Callable[[str], str] = str) -> None:
        self._unwrap = unwrap
        self._open: dict[str, str] = {}
        self._of_pid: dict[int, str] = {}

    def hook(self, payload: Mapping[str, Any]) -> None:
        """Takes in a hook's payload."""
        name, call = payload.get("tool_use_id"), payload.get("hook_event_name")
        if not isinstance(name, str) or not name:
            return
        if call in {"PostToolUse", "PostToolUseFailure"}:
            self._open.pop(name, None)
        elif call == "PreToolUse":
            tool_input = payload.get("tool_input")
            command = tool_input.get("command") if isinstance(tool_input, dict) else None
            if isinstance(command, str):
                _put(self._open, name, self._unwrap(command))

    def announce(self, pid: int, command: str) -> str | None:
        """Takes in that `pid` is about to run `command`; returns the tool call it belongs to, if known."""
        found = next((name for name, text in reversed(self._open.items()) if text == command), None)
        if found is None:
            self._of_pid.pop(pid, None)
        else:
            _put(self._of_pid, pid, found)
        return found

    def of(self, pids: Iterable[int]) -> str | None:
        """Returns the tool call of the first of these processes that has one: a process, then its ancestors."""
        if not self._of_pid:
            return None
        return next((self._of_pid[pid] for pid in pids if pid in self._of_pid), None)

    def gone(self, pid: int) -> None:
        """Forgets a process that has ended: its pid may come again."""
        self._of_pid.pop(pid, None)


def _put(table: dict[Any, str], key: Any, value: str) -> None:
    table.pop(key, None)
    while len(table) >= MOST:
        del table[next(iter(table))]
    table[key] = value
