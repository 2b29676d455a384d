"""The answer to a hook: a shell command is run through `nd7-exec`.

Rule: the whole tool input is echoed with only `command` replaced, the command inside single quotes so that the outer
shell expands nothing; doing it twice changes nothing. Pure: the supervisor sends what this returns.

What it does not prove: that the command runs through nd7-exec. Agents ignore a hook that fails, and an agent can start
programs without any hook. nd7-exec names the tool call in the log and narrows itself by live denials; the boundary is
the kernel's and does not depend on it. `cd` inside a rewritten command does not persist to the agent's next command
(it happens in a child): that is issue 4's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nd7tui.engine.agents.adapter import Adapter

# One argument of execve is at most 128 KiB. Source: execve(2), MAX_ARG_STRLEN. The rest is room for the agent's own
# `source … && eval '…'` around the command.
_LIMIT_BYTES = 120 * 1024
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./-_")


def hook_reply(payload: Mapping[str, Any], adapter: Adapter, exec_program: str) -> dict[str, Any] | None:
    """Returns what to answer a hook payload with, as an object to be written as JSON, or None for no answer.

    Args:
        payload: The payload as the agent sent it; untrusted, any shape.
        adapter: The agent of the run. Commands of Claude Code are not rewritten: its user's own permission rules would
            judge the rewritten text (see claude.py). Codex gets `allow`, without which it ignores a rewrite.
        exec_program: Absolute path of `nd7-exec`, empty when it is not installed.
    """
    tool_input = payload.get("tool_input")
    if not adapter.rewrites or not exec_program:
        return None
    if payload.get("hook_event_name") != "PreToolUse" or payload.get("tool_name") != "Bash":
        return None
    if not isinstance(tool_input, dict) or not isinstance(tool_input.get("command"), str):
        return None
    command = wrap(tool_input["command"], exec_program)
    if command is None:
        return None
    output: dict[str, Any] = {"hookEventName": "PreToolUse"}
    if adapter.decision is not None:
        output["permissionDecision"] = adapter.decision
        output["permissionDecisionReason"] = "nd7 runs this command inside its own boundary"
    output["updatedInput"] = {**tool_input, "command": command}
    return {"hookSpecificOutput": output}


def wrap(command: str, exec_program: str) -> str | None:
    """Returns the command that runs `command` through nd7-exec; None when it does already or is too long for that."""
    wrapped = f"{quote(exec_program)} -c {quote(command, always=True)}"
    if "\0" in command or unwrap(command, exec_program) is not None or _quoted_size(wrapped) > _LIMIT_BYTES:
        return None
    return wrapped


def unwrap(command: str, exec_program: str) -> str | None:
    """Returns the inner command when `command` is exactly one that `wrap` made, else None.

    Exactly: `nd7-exec -c 'true'; rm -rf x` merely begins like one.
    """
    start = f"{quote(exec_program)} -c '"
    if not command.startswith(start) or not command.endswith("'"):
        return None
    inner = command[len(start) : -1].replace("'\\''", "'")
    return inner if f"{quote(exec_program)} -c {quote(inner, always=True)}" == command else None


def quote(text: str, *, always: bool = False) -> str:
    """Returns `text` as one word for a POSIX shell, in single quotes unless every character is harmless."""
    if text and not always and _PLAIN.issuperset(text):
        return text
    return "'" + text.replace("'", "'\\''") + "'"


def _quoted_size(text: str) -> int:
    """Bytes that `text` takes once the agent has put it in single quotes again (`'` becomes at most five)."""
    return len(text.encode("utf-8", "surrogatepass")) + 4 * text.count("'")
