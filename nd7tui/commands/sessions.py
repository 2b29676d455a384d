"""`nd7 sessions`: the recorded sessions, newest first.

Rule: shows what the logs say of themselves; `nd7 verify` says whether to believe it.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

from nd7tui.engine import paths
from nd7tui.engine.log.plain import clean
from nd7tui.engine.log.sessions import list_sessions

if TYPE_CHECKING:
    import argparse

    from nd7tui.engine.log.sessions import SessionSummary

_COLUMNS = ("ID", "STARTED", "DURATION", "AGENT", "PROJECT", "FRAMES", "DENIALS", "STATE")
_NUMBERS = frozenset({"DURATION", "FRAMES", "DENIALS"})
_NS = 1_000_000_000


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    parser.add_argument("--json", action="store_true", help="one JSON object a line")


def main(args: argparse.Namespace) -> int:
    """Prints the sessions."""
    found = list_sessions(count_denials=True)
    if args.json:
        for session in found:
            print(json.dumps(_as_json(session)))
        return 0
    if not found:
        print("nd7: no sessions yet\nnd7: hint: start one: nd7 run claude", file=sys.stderr)
        return 0
    print(table([_COLUMNS, *(_row(session) for session in found)]))
    return 0


def _as_json(session: SessionSummary) -> dict[str, object]:
    return {
        "session_id": session.session_id,
        "path": session.path,
        "started": session.first_ts,
        "last": session.last_ts,
        "agent": session.agent,
        "project": session.project,
        "frames": session.frames,
        "denials": session.denials,
        "state": session.state,
        "bytes": session.size,
    }


def _row(session: SessionSummary) -> tuple[str, ...]:
    end = time.time_ns() if session.running else session.last_ts
    return (
        clean(session.session_id),
        moment(session.first_ts),
        span(end - session.first_ts),
        clean(session.agent, 20) or "-",
        _short(clean(session.project, 200)) or "-",
        str(session.frames),
        str(session.denials),
        session.state,
    )


def _short(path: str) -> str:
    home = paths.home()
    return "~" + path[len(home) :] if path == home or path.startswith(home + "/") else path


def moment(ts: int) -> str:
    """Returns a time (Unix ns) as local date and minute, `-` when it is no time."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(ts // _NS)) if ts else "-"
    except (ValueError, OverflowError, OSError):
        return "-"


def span(nanoseconds: int) -> str:
    """Returns a duration (ns) in the two largest units that say something."""
    seconds = max(nanoseconds, 0) // _NS
    if seconds < 60:
        return f"{seconds}s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes}m{seconds:02}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours < 24 else f"{hours // 24}d{hours % 24:02}h"


def table(rows: list[tuple[str, ...]]) -> str:
    """Returns the rows in columns; the first row is the header."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]

    def cell(text: str, column: int) -> str:
        return text.rjust(widths[column]) if rows[0][column] in _NUMBERS else text.ljust(widths[column])

    return "\n".join("  ".join(cell(text, column) for column, text in enumerate(row)).rstrip() for row in rows)
