"""One frame as one line of plain text, for every reader: `nd7 show`, the log pane, the review screen.

Rule: pure, never raises whatever the body holds (the chain carries what agents say), and everything it returns is safe
to print. A summary shows the essential thing; `details` lists the rest.
"""

from __future__ import annotations

import json
import os
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from nd7tui.engine.log.plain import LIMIT, clean
from nd7tui.engine.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from nd7tui.engine.log.frame import Body, Frame


class Tone(StrEnum):
    """What a frame means to a reader; a theme gives it a colour, the icon says it without one."""

    MARK = "mark"
    PROMPT = "prompt"
    TOOL = "tool"
    ANSWER = "answer"
    QUIET = "quiet"
    DENIAL = "denial"
    GRANT = "grant"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Summary:
    """A frame in a line.

    Attributes:
        icon: One cell.
        label: A word for the kind, at most 8 cells for the kinds we know.
        text: The essential thing; one line.
        tone: What it means.
        is_denial: Whether something was refused or is held.
        is_noise: A refusal that is harmless by rule and hidden by default.
    """

    icon: str
    label: str
    text: str
    tone: Tone
    is_denial: bool = False
    is_noise: bool = False


def _string(value: Any, limit: int = LIMIT) -> str:
    """Returns any JSON value as clean text."""
    if isinstance(value, str):
        return clean(value, limit)
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return clean(" ".join(value), limit)
    try:
        return clean(json.dumps(value, ensure_ascii=False, default=str), limit)
    except (ValueError, RecursionError):
        return "…"


def _get(body: Body, name: str) -> str:
    return _string(body.get(name))


def _join(*parts: str) -> str:
    return "  ".join(part for part in parts if part)


def _duration(milliseconds: object) -> str:
    if not isinstance(milliseconds, (int, float)) or isinstance(milliseconds, bool):
        return ""
    return f"{milliseconds:.0f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"


def _run_start(body: Body) -> Summary:
    mode = _get(body, "mode")
    where = _get(body, "cwd")
    return Summary("▶", "run", _join(_get(body, "argv"), where and f"in {where}", mode and f"[{mode}]"), Tone.MARK)


def _run_end(body: Body) -> Summary:
    signal = _get(body, "signal")
    how = f"signal {signal}" if signal else f"exit {_get(body, 'exit')}"
    took = _duration(body.get("duration_ms"))
    left = body.get("left_behind")
    killed = f"{left} left behind, killed" if isinstance(left, int) and left else ""
    return Summary("■", "end", _join(how, took and f"after {took}", killed), Tone.MARK)


def _session_start(body: Body) -> Summary:
    return Summary("▷", "session", _join(f"started: {_get(body, 'reason')}", _get(body, "cwd")), Tone.MARK)


def _session_end(body: Body) -> Summary:
    return Summary("□", "session", f"ended: {_get(body, 'reason')}", Tone.MARK)


def _prompt(body: Body) -> Summary:
    return Summary(">", "prompt", _get(body, "text"), Tone.PROMPT)


def _given(body: Body) -> str:
    """Returns what a tool was called for: its command, its paths, else its whole input."""
    given = body.get("tool_input")
    if isinstance(given, dict):
        for name in ("command", "file_path", "notebook_path", "path", "pattern", "url", "query", "description"):
            if isinstance(given.get(name), str):
                return _string(given[name])
    return _string(given)


def _tool_call(body: Body) -> Summary:
    return Summary("→", "call", f"{_get(body, 'tool_name')}: {_given(body)}", Tone.TOOL)


def _response(value: Any) -> str:
    """Returns what a tool answered: what it printed, else the whole answer."""
    if isinstance(value, dict) and isinstance(value.get("stdout"), str):
        return _string(value["stdout"]) or _string(value.get("stderr")) or "(no output)"
    return _string(value) or "(no output)"


def _tool_result(body: Body) -> Summary:
    failed = body.get("ok") is False
    text = _join(
        f"{_get(body, 'tool_name')}: {_response(body.get('tool_response'))}", _duration(body.get("duration_ms"))
    )
    return Summary("✗", "failed", text, Tone.ERROR) if failed else Summary("←", "result", text, Tone.QUIET)


def _turn_end(body: Body) -> Summary:
    return Summary("●", "answer", _get(body, "last_assistant_message"), Tone.ANSWER)


def _hook(body: Body) -> Summary:
    raw = body.get("raw")
    if not isinstance(raw, dict):
        kept = body.get("raw_text", body.get("raw_base64", ""))
        return Summary("·", "hook", _join("unreadable payload:", _string(kept)), Tone.ERROR)
    said = next((_get(raw, name) for name in ("message", "tool_name", "reason", "error") if raw.get(name)), "")
    return Summary("·", "hook", _join(_get(raw, "hook_event_name") or "unnamed", said), Tone.QUIET)


def _who(body: Body) -> str:
    program = _get(body, "comm") or clean(os.path.basename(_get(body, "exe")))
    pid = body.get("pid")
    return f"by {program or '?'}" + (f" ({pid})" if isinstance(pid, int) else "")


def _denial(body: Body) -> Summary:
    noise = body.get("noise") is True
    held = body.get("held") is True
    count = body.get("count")
    times = f"x{count}" if isinstance(count, int) and count > 1 else ""
    second = _get(body, "second")
    what = f"{_get(body, 'access')} {_get(body, 'target')}".strip() + (second and f" → {second}")
    text = _join(what, times, _who(body), _get(body, "reason"))
    icon, label = ("?", "held") if held else ("✖", "denied")
    return Summary(icon, label, text, Tone.QUIET if noise else Tone.DENIAL, is_denial=True, is_noise=noise)


def _denial_end(body: Body) -> Summary:
    outcome = _get(body, "outcome")
    return Summary(
        "✓" if outcome == "allowed" else "✖",
        "answered",
        _join(_get(body, "id"), outcome),
        Tone.GRANT if outcome == "allowed" else Tone.DENIAL,
    )


def _rule(value: Any) -> str:
    """Returns a rule of record.json in words."""
    if not isinstance(value, dict):
        return _string(value)
    target = value.get("target")
    where = _string(target)
    if isinstance(target, dict):
        port = _get(target, "port")
        where = _get(target, "path") or _get(target, "socket") or _get(target, "host") + (port and f":{port}")
    by = _get(value, "by")
    return _join(f"{_get(value, 'effect')} {_get(value, 'access')} {where}", _get(value, "scope"), by and f"by {by}")


def _grant(body: Body) -> Summary:
    rule = body.get("rule")
    denies = isinstance(rule, dict) and rule.get("effect") == "deny"
    icon, tone = ("-", Tone.DENIAL) if denies else ("+", Tone.GRANT)
    return Summary(icon, "rule", _rule(rule), tone)


def _revoke(body: Body) -> Summary:
    return Summary("-", "revoked", _rule(body.get("rule")), Tone.GRANT)


def _rules_changed(body: Body) -> Summary:
    if fault := _get(body, "error"):
        return Summary("!", "rules", f"unreadable, the last good ones stay: {fault}", Tone.ERROR)
    added, removed = _get(body, "added"), _get(body, "removed")
    return Summary("~", "rules", _join(added and f"added {added}", removed and f"removed {removed}"), Tone.QUIET)


def _log_torn(body: Body) -> Summary:
    text = f"a torn last line of {_get(body, 'bytes')} bytes was moved to {_get(body, 'file')}"
    return Summary("!", "torn", text, Tone.ERROR)


def _call_fault(body: Body) -> Summary:
    return Summary("!", "defect", _join(f"{_get(body, 'op')} refused: {_get(body, 'error')}", _who(body)), Tone.ERROR)


def _link(body: Body) -> Summary:
    return Summary("=", "link", f"the same run also writes session {_get(body, 'session_id')}", Tone.QUIET)


def _log_gap(body: Body) -> Summary:
    return Summary("!", "gap", f"{_get(body, 'lost')} frames could not be kept", Tone.ERROR)


def _effect(icon: str, label: str, *names: str) -> Callable[[Body], Summary]:
    """Returns a summary of an effect the kernel reported: the first of the members that is there, and who did it."""

    def summarise(body: Body) -> Summary:
        what = next((text for name in names if (text := _get(body, name))), "")
        return Summary(icon, label, _join(what, _who(body)), Tone.QUIET)

    return summarise


_KINDS: dict[str, Callable[[Body], Summary]] = {
    "run_start": _run_start,
    "run_end": _run_end,
    "session_start": _session_start,
    "session_end": _session_end,
    "prompt": _prompt,
    "tool_call": _tool_call,
    "tool_result": _tool_result,
    "turn_end": _turn_end,
    "hook": _hook,
    "denial": _denial,
    "denial_end": _denial_end,
    "grant": _grant,
    "revoke": _revoke,
    "rules_changed": _rules_changed,
    "log_torn": _log_torn,
    "log_gap": _log_gap,
    "call_fault": _call_fault,
    "process_exec": _effect("$", "exec", "argv", "command", "exe", "target"),
    "file_write": _effect("w", "write", "target", "path"),
    "file_remove": _effect("d", "remove", "target", "path"),
    "net_connect": _effect("@", "connect", "target", "host"),
    "run_link": _link,
}


def summary(frame: Frame) -> Summary:
    """Returns the frame in a line; a kind we do not know shows its name and its body."""
    known = _KINDS.get(frame.kind)
    if known is None:
        return Summary("·", clean(frame.kind, 40), _string(frame.body), Tone.QUIET)
    return known(frame.body)


def details(frame: Frame, limit: int = 4000) -> list[tuple[str, str]]:
    """Returns every member of the frame by name, each as one clean line of at most `limit` characters."""
    envelope = [("seq", str(frame.seq)), ("source", _string(frame.source)), ("kind", _string(frame.kind))]
    body = [(clean(name, 80), _string(value, limit)) for name, value in frame.body.items()]
    return [*envelope, *body, ("prev", _string(frame.prev)), ("hash", _string(frame.hash))]
