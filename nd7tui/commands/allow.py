"""`nd7 allow`: opens a path or an address to a running program.

Rule: the words become rules in the run's rule file, nothing else; what was done is one line a rule on stdout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nd7tui.engine.policy.rules import Access, Scope
from nd7tui.engine.run import directory, grants
from nd7tui.errors import UsageError

if TYPE_CHECKING:
    import argparse

BY = "nd7 allow"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that `allow` and `deny` share, and `--yes`."""
    add_words(parser)
    parser.add_argument("--yes", action="store_true", help="also a whole home directory, or the whole network")


def add_words(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that name targets and the run."""
    parser.add_argument("path", nargs="*", metavar="PATH", help="a file, or a directory and everything beneath it")
    parser.add_argument("--read", action="store_true", help="reading only, unless --write is there too")
    parser.add_argument("--write", action="store_true", help="writing only, unless --read is there too")
    parser.add_argument(
        "--connect",
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="a host or address and port (either may be *), /tcp or /udp after it, or unix:PATH",
    )
    parser.add_argument("--session", type=int, metavar="PID", help="the run meant, when several are going")
    parser.add_argument("--once", action="store_true", help="for one use only")


def accesses(args: argparse.Namespace) -> list[Access]:
    """Returns what the flags name; nothing when there is no flag."""
    flags = {Access.READ: args.read, Access.WRITE: args.write}
    return [access for access, given in flags.items() if given]


def check(args: argparse.Namespace) -> None:
    """Raises UsageError when no target was named."""
    if not args.path and not args.connect:
        raise UsageError("nothing named", "nd7 allow PATH, or nd7 allow --connect HOST:PORT")


def main(args: argparse.Namespace) -> int:
    """Runs the command."""
    check(args)
    run = directory.find_run(args.session)
    record = directory.record_of(run)
    wishes = []
    for word in args.path:
        for access in accesses(args) or grants.wanted_access(run, word):
            wish = grants.path_wish(word, access, must_exist=True)
            grants.check_words(word, wish, record, sure=args.yes)
            wishes.append(wish)
    for word in args.connect:
        for wish in grants.connect_wishes(word, must_exist=True, proto="tcp"):
            grants.check_words(word, wish, record, sure=args.yes)
            wishes.append(wish)
    for line in grants.allow(run, wishes, Scope.ONCE if args.once else Scope.RUN, BY):
        print(f"nd7: {line}")
    return 0
