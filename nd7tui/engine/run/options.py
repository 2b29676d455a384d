"""What `nd7 run` was told on its command line, checked.

Rule: everything that can be wrong with the words is found here, before anything is created.
"""

from __future__ import annotations

import math
import os
from enum import StrEnum

from nd7tui.engine.records import dataclass
from nd7tui.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

HOLD_SECONDS = 20.0
MOST_HOLD_SECONDS = 3600.0
_UUID = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"


class Ask(StrEnum):
    """Which refusals a person is asked about."""

    PROTECTED = "protected"
    ALL = "all"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of one run.

    Attributes:
        argv: The program and its arguments, as given.
        session_id: The id the user named, or a new one.
        session_id_given: Whether the user named it.
        project: The project directory as given, None for the working directory.
        read: Paths to allow reading from the start, as given.
        write: Paths to allow writing from the start, as given.
        connect: `HOST:PORT` to allow from the start, as given.
        hold_seconds: How long a caller may be held; 0 never holds; None: as configured.
        ask: Which refusals a person is asked about.
        fast: Notify opens for writing only: reads are judged by the floor alone.
        allow_partial: Start although this kernel cannot enforce everything.
        log_noise: Known noise goes into the log too.
        quiet: No notices on stderr; errors are still told.
    """

    argv: tuple[str, ...]
    session_id: str
    session_id_given: bool = False
    project: str | None = None
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    connect: tuple[str, ...] = ()
    hold_seconds: float | None = None
    ask: Ask = Ask.PROTECTED
    fast: bool = False
    allow_partial: bool = False
    log_noise: bool = False
    quiet: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options that come before the program."""
    parser.add_argument("--session-id", metavar="UUID", help="keep the log under this id; by default a new one")
    parser.add_argument("--project", metavar="DIR", help="the directory the program may write; by default this one")
    parser.add_argument("--read", metavar="PATH", action="append", default=[], help="allow reading PATH from the start")
    parser.add_argument("--write", metavar="PATH", action="append", default=[], help="allow writing PATH too")
    parser.add_argument("--connect", metavar="HOST:PORT", action="append", default=[], help="allow connecting there")
    parser.add_argument("--hold", metavar="SECONDS", type=float, help="wait for an answer; default 20, 0 never")
    parser.add_argument(
        "--ask",
        choices=[ask.value for ask in Ask],
        default=Ask.PROTECTED.value,
        help="which refusals wait for an answer (default: writes to protected files of the project)",
    )
    parser.add_argument("--fast", action="store_true", help="judge reads by the floor alone: faster, no read grants")
    parser.add_argument("--allow-partial", action="store_true", help="start even if not all can be enforced here")
    parser.add_argument("--log-noise", action="store_true", help="log known noise (name service lookups) too")
    parser.add_argument("--quiet", action="store_true", help="no notices on stderr")


def without_any(argv: list[str]) -> RunOptions:
    """Returns what a command line without an option means; `argv` is the program and its arguments, not empty."""
    return RunOptions(argv=tuple(argv), session_id=new_session_id())


def from_arguments(args: argparse.Namespace) -> RunOptions:
    """Checks the parsed words.

    Raises:
        UsageError: No program, or an option's value makes no sense.
    """
    argv = list(args.program)
    if argv[:1] == ["--"]:
        del argv[0]
    if not argv or not argv[0]:
        raise UsageError("no program to run", hint="nd7 run PROGRAM [ARGS]")
    given = args.session_id
    return RunOptions(
        argv=tuple(argv),
        session_id=new_session_id() if given is None else checked_session_id(given),
        session_id_given=given is not None,
        project=args.project,
        read=tuple(args.read),
        write=tuple(args.write),
        connect=tuple(args.connect),
        hold_seconds=None if args.hold is None else checked_hold(args.hold),
        ask=Ask(args.ask),
        fast=args.fast,
        allow_partial=args.allow_partial,
        log_noise=args.log_noise,
        quiet=args.quiet,
    )


def checked_hold(seconds: float) -> float:
    """Returns `seconds` if a caller may be held so long; raises UsageError otherwise."""
    if not math.isfinite(seconds) or not 0 <= seconds <= MOST_HOLD_SECONDS:
        raise UsageError(f"--hold takes 0 to {MOST_HOLD_SECONDS:.0f} seconds")
    return seconds


def checked_session_id(text: str) -> str:
    """Returns `text` if it is a UUID; raises UsageError otherwise."""
    import re

    if not re.fullmatch(_UUID, text):
        raise UsageError(f"not a session id: {text!a:.80}", hint="a session id is a UUID")
    return text


def new_session_id() -> str:
    """Returns a random UUID, version 4. Importing `uuid` would take 2 ms (Source: RFC 9562, 5.4)."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
