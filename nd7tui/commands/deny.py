"""`nd7 deny`: takes a grant back, or closes a path or an address that was open from the start.

Rule: the words become a change of the run's rule file, nothing else. Descriptors and connections that are open already
stay open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nd7tui.commands import allow
from nd7tui.engine.policy.rules import Access, Scope
from nd7tui.engine.run import directory, grants

if TYPE_CHECKING:
    import argparse

BY = "nd7 deny"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    allow.add_words(parser)


def main(args: argparse.Namespace) -> int:
    """Runs the command."""
    allow.check(args)
    run = directory.find_run(args.session)
    # Without a flag both are meant: to leave a file alone is neither to read nor to write it.
    kinds = allow.accesses(args) or [Access.READ, Access.WRITE]
    wishes = [grants.path_wish(word, kind, must_exist=False) for word in args.path for kind in kinds]
    for word in args.connect:
        wishes += grants.connect_wishes(word, must_exist=False)
    for line in grants.deny(run, wishes, Scope.ONCE if args.once else Scope.RUN, BY):
        print(f"nd7: {line}")
    return 0
