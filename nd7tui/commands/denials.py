"""`nd7 denials`: what was refused in a session, and what became of what was held.

Rule: the same frames as the text UI's list, from the same file; noise (refusals harmless by rule) only with `--all`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nd7tui.commands.show import follow_options, print_log
from nd7tui.engine.log.sessions import find_session, running_sessions
from nd7tui.engine.log.summary import summary

if TYPE_CHECKING:
    import argparse

    from nd7tui.engine.log.frame import Frame


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument("session", metavar="ID", nargs="?", help="default: the one that runs, else the last")
    parser.add_argument("--all", action="store_true", help="also what is noise by rule")
    follow_options(parser)


def main(args: argparse.Namespace) -> int:
    """Prints the denials."""
    return print_log(_session(args.session), _Wanted(noise=args.all), follow=args.follow, as_json=args.json)


def _session(word: str | None) -> str:
    """Returns the session asked for, or the only one that runs, or the last."""
    running = running_sessions() if word is None else set()
    return find_session(word or (running.pop() if len(running) == 1 else "last"))


class _Wanted:
    """Chooses denials and the ends of those it chose.

    Args:
        noise: Also what is noise by rule.
    """

    def __init__(self, *, noise: bool) -> None:
        self._noise = noise
        self._left_out: set[object] = set()

    def __call__(self, frame: Frame) -> bool:
        seen = summary(frame)
        if seen.is_denial and seen.is_noise and not self._noise:
            self._left_out.add(str(frame.body.get("id")))
            return False
        return seen.is_denial or (frame.kind == "denial_end" and str(frame.body.get("id")) not in self._left_out)
