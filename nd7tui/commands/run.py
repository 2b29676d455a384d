"""`nd7 run PROGRAM [ARGS]`: a program confined, without a UI; ends as the program ends."""

from __future__ import annotations

from nd7tui.engine.run import jobs, options, start

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import NoReturn


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the options; the program and its arguments are the dispatcher's."""
    parser.usage = "nd7 run [OPTIONS] PROGRAM [ARGS]"
    options.add_arguments(parser)


def main(args: argparse.Namespace) -> NoReturn:
    """Runs the program and ends as it ended."""
    jobs.end_like(start.run(options.from_arguments(args)))


def run(argv: list[str]) -> NoReturn:
    """Runs a program for which no option was given and ends as it ended."""
    jobs.end_like(start.run(options.without_any(argv)))
