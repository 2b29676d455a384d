"""The bodies of the frames that a run writes itself.

Rule: members come in the documented order and absent ones are left out, never null. Paths are written as text; one
that is not UTF-8 shows its bytes escaped and is given in hex beside it, so that the log says exactly what was meant.
Pure: who asked and when is the caller's to find out.
"""

from __future__ import annotations

import errno

from nd7tui.engine.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from nd7tui.engine.policy.rules import Policy
    from nd7tui.engine.run.denials import Ended, Tell
    from nd7tui.engine.sandbox.outcome import Fault

    Body = dict[str, Any]

SUPERVISOR = "nd7:supervisor"
SECCOMP = "effect:seccomp"


@dataclass(frozen=True, slots=True)
class Origin:
    """Who a frame is about.

    Attributes:
        pid: The process.
        ancestors: Its ancestors up to the agent, nearest first.
        comm: Its thread's name.
        tool_use_id: The tool call it works for, if known.
    """

    pid: int
    ancestors: Sequence[int] = ()
    comm: str = ""
    tool_use_id: str | None = None

    def members(self) -> Body:
        """Returns the common members of a frame."""
        return compact(
            {
                "pid": self.pid,
                "ancestors": list(self.ancestors),
                "comm": self.comm or None,
                "tool_use_id": self.tool_use_id,
            }
        )


def compact(members: Body) -> Body:
    """Returns the members that are there."""
    return {name: value for name, value in members.items() if value is not None}


def shown(raw: bytes) -> str:
    r"""Returns a path as text; bytes that are not UTF-8 become `\xNN`."""
    return raw.decode("utf-8", "backslashreplace")


def exact(name: str, raw: bytes | None) -> Body:
    """Returns the path as member `name`, with `<name>_hex` when text cannot say it exactly."""
    if raw is None:
        return {}
    text = shown(raw)
    return {name: text} if text.encode() == raw else {name: text, f"{name}_hex": raw.hex()}


def denial(tell: Tell, origin: Origin, now: int) -> Body:
    """Returns the body of a `denial` frame; `now` is the wall clock, ns."""
    request = tell.request
    return (
        origin.members()
        | {"id": tell.id, "op": request.op, "access": str(request.access)}
        | exact("target", request.target)
        | exact("second", request.second)
        | compact(
            {
                "exe": request.exe or None,
                "reason": request.verdict.reason,
                "errno": errno.errorcode.get(request.errno, str(request.errno)),
                "count": tell.count,
                "repeat_of": tell.repeat_of,
                "held": True if tell.hold is not None else None,
                "deadline": now + tell.hold if tell.hold is not None else None,
                "noise": True if tell.noise else None,
            }
        )
    )


def denial_end(ended: Ended, origin: Origin) -> Body:
    """Returns the body of a `denial_end` frame."""
    return origin.members() | {"id": ended.id, "outcome": str(ended.outcome)}


def call_fault(fault: Fault, origin: Origin) -> Body:
    """Returns the body of a `call_fault` frame: a call that was refused because nd7 failed, not because of a rule."""
    return origin.members() | {"op": fault.op, "error": fault.error}


def policy_summary(policy: Policy) -> Body:
    """Returns the floor in short: what may be written, what may not be read, and how many rules there are."""
    rules = [*policy.default, *policy.never]
    return {
        "write": _paths(policy.default, "allow", "write"),
        "no_read": _paths(policy.default, "deny", "read"),
        "ask": _paths(policy.default, "ask", "write"),
        "never": _paths(policy.never, "deny", "write"),
        "rules": len(rules),
    }


def _paths(rules: Sequence[Any], effect: str, access: str) -> list[str]:
    return [
        shown(rule.target.path)
        for rule in rules
        if rule.effect == effect and rule.access == access and hasattr(rule.target, "path")
    ]


def run_end(pid: int, code: int | None, signal: int | None, duration_ms: int, left_behind: int) -> Body:
    """Returns the body of a `run_end` frame: how the program ended, and how many processes had to be ended."""
    ending = compact({"exit": code, "signal": signal})
    return {"pid": pid} | ending | {"duration_ms": duration_ms, "left_behind": left_behind}
