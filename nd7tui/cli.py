"""The `nd7` command: finds the sub-command, imports only that, turns errors into one line and an exit status.

Rule: nothing heavy is imported here. `nd7 run` adds this file's cost to every program it starts.
"""

from __future__ import annotations

import gc
import os
import sys

from nd7tui.engine.version import VERSION
from nd7tui.errors import Nd7Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from typing import NoReturn

COMMANDS: dict[str, str] = {
    "tui": "start a program confined, in the text UI; without a program: the menu",
    "run": "start a program confined, without a UI",
    "allow": "allow a path or an address to the running program",
    "deny": "take a grant back, or deny a path or an address",
    "sessions": "list the recorded sessions",
    "show": "print a session's log",
    "denials": "print a session's denials",
    "verify": "check a session's hash chain",
    "record": "append a hook's payload to its session's log (called by agents)",
    "doctor": "say what this machine can enforce and what is missing",
}

# From the program's name on, every argument is the program's.
PROGRAM_COMMANDS = frozenset({"run", "tui"})


def _parser(name: str, configure: Callable[[argparse.ArgumentParser], None]) -> argparse.ArgumentParser:
    """Returns the parser of a sub-command that declares its own options by `configure`."""
    import argparse

    class Parser(argparse.ArgumentParser):
        """An argument parser that speaks in nd7's voice."""

        def error(self, message: str) -> NoReturn:
            print(f"nd7: {message}", file=sys.stderr)
            print(f"nd7: hint: {self.prog} --help", file=sys.stderr)
            raise SystemExit(2)

    parser = Parser(prog=f"nd7 {name}", description=COMMANDS[name], allow_abbrev=False)
    configure(parser)
    if name in PROGRAM_COMMANDS:
        parser.add_argument("program", nargs=argparse.REMAINDER, metavar="PROGRAM [ARGS]")
    return parser


def _overview() -> str:
    rows = "\n".join(f"  {name:<10} {text}" for name, text in COMMANDS.items())
    return f"usage: nd7 COMMAND [OPTIONS] …\n\n{rows}\n\n`nd7 COMMAND --help` says more."


def _dispatch(argv: list[str]) -> int:
    if not argv or argv[0] in {"-h", "--help", "help"}:
        print(_overview())
        return 0 if argv else 2
    if argv[0] in {"-V", "--version"}:
        print(f"nd7 {VERSION}")
        return 0
    name, rest = argv[0], argv[1:]
    if name not in COMMANDS:
        print(f"nd7: no command {name!r}\nnd7: hint: nd7 --help", file=sys.stderr)
        return 2
    if name == "run":
        gc.disable()  # a start makes much and drops nothing; serving turns it on again
        if rest and rest[0][:1] not in {"", "-"}:
            # No option at all, which is how programs are started: 8 ms without a parser.
            from nd7tui.commands import run

            run.run(rest)
    import importlib

    module = importlib.import_module(f"nd7tui.commands.{name}")
    return int(module.main(_parser(name, module.configure).parse_args(rest)))


def main() -> NoReturn:
    """Runs one command and exits with its status."""
    try:
        status = _dispatch(sys.argv[1:])
    except Nd7Error as error:
        print(f"nd7: {error}", file=sys.stderr)
        if error.hint:
            print(f"nd7: hint: {error.hint}", file=sys.stderr)
        status = error.exit_code
    except KeyboardInterrupt:
        status = 130
    except BrokenPipeError:
        # The reader of our output went away (`nd7 show | head`): not a fault, but nothing more can be printed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        status = 141
    sys.exit(status)


if __name__ == "__main__":
    main()
