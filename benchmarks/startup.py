"""What nd7 adds to the start of a program: `python benchmarks/startup.py [--runs N] [--only NAME]`.

Milliseconds from the start to the end of a program that does nothing, and what is left of them without bare `true`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from typing import TYPE_CHECKING

from _timing import ND7, FailedError, Table, World, about, differences, spread, take_turns, world

if TYPE_CHECKING:
    from pathlib import Path

BASELINE = "true"


def programs(project: Path) -> dict[str, list[str]]:
    # As near to what `nd7 run` allows as bubblewrap's options come.
    view = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", str(project), str(project)]
    return {
        BASELINE: ["true"],
        "bwrap true": ["bwrap", *view, "--unshare-pid", "true"],
        "python -I -c pass": [sys.executable, "-I", "-c", "pass"],
        "nd7 --version": [ND7, "--version"],
        "nd7 run true": [ND7, "run", "true"],
        "nd7 run --fast true": [ND7, "run", "--fast", "true"],
    }


def able(world: World, project: Path, argv: list[str]) -> bool:
    """Whether a program is there and may do its work on this machine; warms it up."""
    try:
        return bool(shutil.which(argv[0])) and world.seconds(argv, project) >= 0
    except FailedError:
        if argv[0] == ND7:
            raise
        return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--only", metavar="NAME", help="one program of the table, beside `true`")
    args = parser.parse_args()
    about(args.runs)
    with world("true", "bwrap") as made:
        project = made.directory("project")
        wanted = {name: argv for name, argv in programs(project).items() if name in {args.only or name, BASELINE}}
        found = take_turns(
            {
                name: lambda argv=argv: 1000 * made.seconds(argv, project)
                for name, argv in wanted.items()
                if able(made, project, argv)
            },
            args.runs,
        )
    table = Table("program", "ms", "ms over `true`")
    for name in wanted:
        table.row(f"`{name}`", lambda name=name: cells(name, found))
    return table.end()


def cells(name: str, found: dict[str, list[float]]) -> list[str]:
    """Returns a program's row."""
    if name not in found:
        return ["does not work here"]
    over = [] if name == BASELINE else [spread(differences(found[name], found[BASELINE]), 1)]
    return [spread(found[name], 1), *over]


if __name__ == "__main__":
    sys.exit(main())
