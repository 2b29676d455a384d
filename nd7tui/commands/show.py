"""`nd7 show`: a session's log, a frame a line.

Rule: what an agent put into the log is made harmless before it reaches the terminal; `--json` prints the frames as they
are in the file, byte for byte. What is damaged is said on standard error, where it is, and the rest is shown.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from nd7tui.engine.log import layout
from nd7tui.engine.log.plain import clip
from nd7tui.engine.log.sessions import find_session, running_sessions
from nd7tui.engine.log.summary import summary
from nd7tui.engine.log.tail import Damaged, Tail

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from nd7tui.engine.log.frame import Frame

_POLL = 0.05


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument("session", metavar="ID", help="a session, the beginning of its id, or `last`")
    follow_options(parser)


def follow_options(parser: argparse.ArgumentParser) -> None:
    """Adds what every reader of a log has."""
    parser.add_argument("--json", action="store_true", help="the frames as they are in the log")
    parser.add_argument("--follow", action="store_true", help="go on with what is appended, until Ctrl-C")


def main(args: argparse.Namespace) -> int:
    """Prints the log."""
    return print_log(find_session(args.session), lambda _frame: True, follow=args.follow, as_json=args.json)


def print_log(session_id: str, wanted: Callable[[Frame], bool], *, follow: bool, as_json: bool) -> int:
    """Prints the wanted frames of a session, and with `follow` those to come; returns the exit status."""
    tail = Tail(layout.events_path(session_id))
    width = os.get_terminal_size(1).columns if not as_json and sys.stdout.isatty() else 0
    try:
        while True:
            while found := tail.poll():
                _print(found, wanted, width, as_json=as_json)
            if not follow:
                _say_torn(tail, session_id)
                return 0
            time.sleep(_POLL)
    except KeyboardInterrupt:
        return 0
    finally:
        tail.close()


def _say_torn(tail: Tail, session_id: str) -> None:
    """Says that the last line was cut short; while the run lives it is just being written."""
    offset = tail.torn_at
    if offset is not None and session_id not in running_sessions():
        print(f"nd7: at byte {offset}: the file ends mid-frame", file=sys.stderr, flush=True)


def _print(found: list[Frame | Damaged], wanted: Callable[[Frame], bool], width: int, *, as_json: bool) -> None:
    """Prints one poll's frames in one write, damage at its place among them."""
    out: list[bytes] = []
    for item in found:
        frame = item.frame if isinstance(item, Damaged) else item
        if isinstance(item, Damaged):
            _write(b"".join(out))
            out.clear()
            print(f"nd7: at byte {item.offset}: {item.fault}", file=sys.stderr, flush=True)
        if frame is not None and wanted(frame):
            out.append(frame.raw if as_json else line(frame, width).encode("utf-8", "replace") + b"\n")
    _write(b"".join(out))


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def line(frame: Frame, width: int = 0) -> str:
    """Returns a frame as one harmless line: local time, what it is, the essential thing.

    Args:
        frame: The frame.
        width: Cells to fit into; 0 for as long as it is.
    """
    seen = summary(frame)
    text = f"{_clock(frame.ts)} {seen.icon} {seen.label:<8} {seen.text}".rstrip()
    return clip(text, width) if width else text


def _clock(ts: int) -> str:
    try:
        return time.strftime("%H:%M:%S", time.localtime(ts // 1_000_000_000)) + f".{ts // 1_000_000 % 1000:03}"
    except (ValueError, OverflowError, OSError):
        return "--:--:--.---"
