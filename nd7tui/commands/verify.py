"""`nd7 verify`: is a session's log as it was written?

Rule: a result never comes without the caveat that says what it proves. Exit status 0 when every log asked for is
clean, 1 when one is not, 2 when a name means no session.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from nd7tui.engine import paths
from nd7tui.engine.log import layout, sessions
from nd7tui.engine.log.chain import CAVEAT
from nd7tui.engine.log.faults import ChainError, LogError
from nd7tui.engine.log.plain import clean
from nd7tui.engine.log.verify import verify
from nd7tui.errors import Nd7Error, UsageError

if TYPE_CHECKING:
    import argparse

    from nd7tui.engine.log.verify import Verified

_TOLD_EVERY = 0.1


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument("sessions", nargs="*", metavar="ID", help="a session, the beginning of its id, or `last`")
    parser.add_argument("--all", action="store_true", help="every session")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")


def main(args: argparse.Namespace) -> int:
    """Verifies, prints, and returns the exit status."""
    if bool(args.sessions) == args.all:
        raise UsageError("verify which session?", hint="nd7 verify ID…, or nd7 verify --all")
    root = paths.sessions_dir()
    ids = [session.session_id for session in sessions.list_sessions(root)] if args.all else args.sessions
    broken = 0
    for session_id in [word if args.all else sessions.find_session(word, root) for word in ids]:
        broken += not _one(os.path.join(root, session_id), as_json=args.json)
    if not args.json:
        if not ids:
            print("no sessions")
        print(f"note: {CAVEAT}")
    return 1 if broken else 0


def _one(directory: str, *, as_json: bool) -> bool:
    """Verifies one session and prints the result; returns whether it is clean."""
    progress = _Progress(os.path.basename(directory)) if sys.stderr.isatty() and not as_json else None
    result: Verified | None = None
    fault: Nd7Error | None = None
    try:
        result = verify(directory, progress)
    except Nd7Error as error:
        fault = error
    except OSError as error:
        fault = LogError(f"cannot be read: {error.strerror}")
    if progress is not None:
        progress.clear()
    session_id = os.path.basename(directory)
    if as_json:
        print(json.dumps({"session_id": session_id} | _as_json(result, fault) | {"caveat": CAVEAT}))
    else:
        _print(session_id, result, fault)
    if not as_json and os.path.exists(os.path.join(directory, layout.REFUSED)):
        print(f"nd7: hint: {clean(session_id)}: some frames were refused, see refused.ndjson", file=sys.stderr)
    return result is not None


def _as_json(result: Verified | None, fault: Nd7Error | None) -> dict[str, Any]:
    if result is not None:
        head = None if result.head is None else {"seq": result.head.seq, "hash": result.head.hash}
        return {"ok": True, "frames": result.frames, "head": head, "bytes": result.size}
    known = isinstance(fault, ChainError)
    code, frame = (fault.code, fault.frame) if isinstance(fault, ChainError) else ("unreadable", None)
    return {"ok": False, "broken": known, "fault": code, "frame": frame, "message": str(fault)}


def _print(session_id: str, result: Verified | None, fault: Nd7Error | None) -> None:
    name = clean(session_id)
    if result is None:
        sys.stdout.flush()
        print(f"nd7: {name}: {fault}", file=sys.stderr)
        if fault is not None and fault.hint:
            print(f"nd7: hint: {fault.hint}", file=sys.stderr)
        return
    head = "no head" if result.head is None else f"head {result.head.seq} {result.head.hash}"
    print(f"{name}: unchanged, {result.frames} {'frame' if result.frames == 1 else 'frames'}, {head}")


class _Progress:
    """A line on the terminal that is written over and then removed."""

    def __init__(self, session_id: str) -> None:
        self._name = clean(session_id, 40)
        self._next = time.monotonic() + _TOLD_EVERY
        self._shown = False

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next, self._shown = now + _TOLD_EVERY, True
        share = 100 * done // max(total, 1)
        print(f"\r{self._name}: {share:3} % of {total >> 20} MiB", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Removes the line."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
