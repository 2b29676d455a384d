"""`nd7 record`: one hook's payload, from standard input into its session's log.

Rule: it never prints on standard output (the agent would take that for an answer), never ends with another status
than 0 (the agent would take that for a fault of the tool), and says at most one line on standard error. What cannot be
appended is kept in a `refused.ndjson`. Everything but the clock is imported after the clock was read.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

# Under the shortest timeout agents give a hook (1 s for SessionEnd): better refused and kept than killed and lost.
_PATIENCE = 0.8


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the options; a mistake in them costs neither the payload nor the exit status."""
    parser.add_argument(
        "--source", help="who sends the payload (default: intent:claude-code, or intent:codex if it is)"
    )
    parser.add_argument("ignored", nargs="*", help="whatever else an agent passes is ignored")

    def ignore(message: str) -> None:
        del message

    parser.error = ignore  # type: ignore[method-assign, assignment]


def main(args: argparse.Namespace) -> int:
    """Records the payload; always returns 0."""
    ts = time.time_ns()
    try:
        _record(getattr(args, "source", None), ts)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the boundary: a hook must not fail its agent
        _say(f"{error or type(error).__name__}")
    return 0


def _record(source: str | None, ts: int) -> None:
    payload = _read()
    from nd7tui.engine.log import bodies, files, layout, store

    source = source or bodies.source_of(bodies.read_payload(payload))
    try:
        session_id = layout.check_session_id(bodies.session_id_of(payload))
        log = store.SessionLog(session_id, writer="nd7:record", patience=_PATIENCE)
    except (layout.SessionIdError, OSError) as error:
        kept = files.refuse_payload(payload, str(error), source, ts)
        _say(f"{error}; the payload {'is in refused.ndjson' if kept else 'could not be kept'}")
        return
    with log:
        log.record_hook(payload, source, ts, os.getppid())


def _read() -> bytes:
    """Returns all of standard input."""
    parts = []
    while part := os.read(0, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def _say(message: str) -> None:
    """Says one line on standard error, if there is one."""
    line = " ".join(message.split())
    try:
        os.write(2, f"nd7: {line}\n".encode("utf-8", "backslashreplace"))
    except OSError:
        return
