"""From a hook's payload to a frame's kind and body.

Rule: no payload is lost. What is understood is written in the members the format lists; an event that is not, or
whose own fields are not what they should be, is kept whole as `hook` with `raw`; bytes that are not JSON, or JSON that
Python would read as something else (NaN, a number beyond a float, a name twice), are kept as text. Pure.

Source: Claude Code's and Codex's hook payloads, as captured in tests/vectors and described in docs.
"""

from __future__ import annotations

import binascii
import json
import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    Payload = dict[str, Any]
    Body = dict[str, Any]


CLAUDE = "intent:claude-code"
CODEX = "intent:codex"

# The format's order. `hook_ppid` follows them; it is the recorder's, not the payload's.
_COMMON = (
    "cwd", "transcript_path", "hook_event_name", "permission_mode", "prompt_id", "agent_id", "agent_type",
)  # fmt: skip
_SHELLS = frozenset({"Bash", "PowerShell"})
_PATHS = ("file_path", "notebook_path")


class _NotFaithfulError(ValueError):
    """JSON that a Python reader would not keep as it is."""


class _MalformedError(Exception):
    """A field of a known event that is missing or of another type."""


def _members(pairs: list[tuple[str, Any]]) -> Payload:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _NotFaithfulError("a name twice")
    return members


def _constant(name: str) -> NoReturn:
    raise _NotFaithfulError(name)


def _number(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise _NotFaithfulError(digits)
    return number


def read_payload(data: bytes) -> Payload | None:
    """Returns the payload, or None when it is not a JSON object that can be kept exactly."""
    try:
        payload = json.loads(data, object_pairs_hook=_members, parse_constant=_constant, parse_float=_number)
    except (ValueError, RecursionError):
        return None
    return payload if isinstance(payload, dict) else None


def as_text(data: bytes) -> Body:
    """Returns the body that keeps `data` as it is: `raw_text`, or `raw_base64` when it is not UTF-8."""
    try:
        return {"raw_text": data.decode()}
    except UnicodeDecodeError:
        return {"raw_base64": binascii.b2a_base64(data, newline=False).decode()}


def session_id_of(data: bytes) -> object:
    """Returns the session id a payload names, read as leniently as can be; None when there is none."""
    try:
        payload = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return payload.get("session_id") if isinstance(payload, dict) else None


def source_of(payload: Payload | None, default: str = CLAUDE) -> str:
    """Returns which agent sent the payload.

    Source: Codex's payloads have a `turn_id`, those of SessionStart and SessionEnd only its transcript's name.
    """
    if payload is None:
        return default
    transcript = payload.get("transcript_path")
    name = transcript.rpartition("/")[2] if isinstance(transcript, str) else ""
    return CODEX if "turn_id" in payload or name.startswith("rollout-") else default


def _sorted(value: Any) -> Any:
    """Returns the same value with the names of every object in it in order."""
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [_sorted(item) for item in value]
    return value


def _need(payload: Payload, name: str, kind: type) -> Any:
    value = payload.get(name)
    if type(value) is not kind:
        raise _MalformedError(name)
    return value


def _optional(payload: Payload, **kinds: type) -> Body:
    """Returns those members that are there and not null."""
    return {name: _need(payload, name, kind) for name, kind in kinds.items() if payload.get(name) is not None}


def _any(payload: Payload, name: str) -> Any:
    if name not in payload:
        raise _MalformedError(name)
    return _sorted(payload[name])


def _tool(payload: Payload) -> Body:
    head = _optional(payload, tool_use_id=str)
    return head | {"tool_name": _need(payload, "tool_name", str), "tool_input": _any(payload, "tool_input")}


def _session_start(payload: Payload) -> Body:
    return {"reason": _need(payload, "source", str)}


def _prompt(payload: Payload) -> Body:
    return {"text": _need(payload, "prompt", str)}


def _tool_call(payload: Payload) -> Body:
    body = _tool(payload)
    given = body["tool_input"] if isinstance(body["tool_input"], dict) else {}
    command = given.get("command")
    if body["tool_name"] in _SHELLS and isinstance(command, str):
        body["argv"] = command
    if paths := [given[name] for name in _PATHS if isinstance(given.get(name), str)]:
        body["paths"] = paths
    return body


def _tool_result(payload: Payload) -> Body:
    return _tool(payload) | {"tool_response": _any(payload, "tool_response"), "ok": True} | _duration(payload)


def _tool_failure(payload: Payload) -> Body:
    return _tool(payload) | {"tool_response": _need(payload, "error", str), "ok": False} | _duration(payload)


def _duration(payload: Payload) -> Body:
    return _optional(payload, duration_ms=int)


def _turn_end(payload: Payload) -> Body:
    return _optional(payload, stop_hook_active=bool, last_assistant_message=str)


def _session_end(payload: Payload) -> Body:
    return {"reason": _need(payload, "reason", str)}


_EVENTS: dict[str, tuple[str, Callable[[Payload], Body]]] = {
    "SessionStart": ("session_start", _session_start),
    "UserPromptSubmit": ("prompt", _prompt),
    "PreToolUse": ("tool_call", _tool_call),
    "PostToolUse": ("tool_result", _tool_result),
    "PostToolUseFailure": ("tool_result", _tool_failure),
    "Stop": ("turn_end", _turn_end),
    "SessionEnd": ("session_end", _session_end),
}


def _common(payload: Payload) -> tuple[Body, bool]:
    """Returns the common members, and whether all of them were what they should be."""
    body, sound = {}, True
    for name in _COMMON:
        value = payload.get(name)
        if isinstance(value, str) or (value is None and name == "transcript_path" and name in payload):
            body[name] = value
        elif value is not None:
            sound = False
    return body, sound


def from_hook(payload: Payload, hook_ppid: int | None = None) -> tuple[str, Body]:
    """Returns the kind and the body of the frame for one hook's payload.

    Args:
        payload: The payload, as `read_payload` returns it.
        hook_ppid: Parent pid of the recorder; None leaves it out.
    """
    body, sound = _common(payload)
    if hook_ppid is not None:
        body["hook_ppid"] = hook_ppid
    event = payload.get("hook_event_name")
    kind, own = _EVENTS.get(event, ("hook", None)) if isinstance(event, str) else ("hook", None)
    if own is not None and sound:
        try:
            return kind, body | own(payload)
        except _MalformedError:
            pass
    return "hook", body | {"raw": _sorted(payload)}


def from_bytes(data: bytes, hook_ppid: int | None = None) -> tuple[str, Body]:
    """Returns the kind and the body for a payload as received, whatever it is."""
    payload = read_payload(data)
    if payload is not None:
        try:
            return from_hook(payload, hook_ppid)
        except RecursionError:
            pass  # Deeper than it can be sorted: kept as text.
    return "hook", ({} if hook_ppid is None else {"hook_ppid": hook_ppid}) | as_text(data)
