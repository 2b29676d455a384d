"""`nd7 tui [PROGRAM [ARGS]]`: the text UI; with a program, its session, else the menu.

Rule: the options are those of `nd7 run` and are handed to it as they are; the UI itself enforces nothing.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from nd7tui.engine import paths
from nd7tui.engine.run import options
from nd7tui.errors import UsageError

if TYPE_CHECKING:
    import argparse

# Each as `nd7 run` spells it.
_VALUES = ("project", "ask", "hold")
_LISTS = ("read", "write", "connect")
_FLAGS = ("fast", "allow_partial", "log_noise", "quiet")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the options of a run, and the UI's own."""
    parser.usage = "nd7 tui [OPTIONS] [PROGRAM [ARGS]]"
    options.add_arguments(parser)


def main(args: argparse.Namespace) -> int:
    """Runs the UI; returns the program's exit status, 0 from the menu."""
    program = list(args.program)
    if program[:1] == ["--"]:
        del program[0]
    if program:
        # The words are checked before the screen is taken.
        args.program = program
        options.from_arguments(args)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("the text UI needs a terminal", hint="nd7 run PROGRAM works without one")
    from nd7tui.actions import load_keymap
    from nd7tui.app import Nd7App
    from nd7tui.screens.launch import Launch

    keys, theme, notes = user_settings(paths.config_file())
    launch = Launch(tuple(program), tuple(run_options(args)), None, args.session_id) if program else None
    app = Nd7App(launch, keymap=load_keymap(keys), theme=theme, notes=notes)
    app.run()
    return app.return_value if isinstance(app.return_value, int) else app.return_code or 0


def run_options(args: argparse.Namespace) -> list[str]:
    """Returns the options in words again, for `nd7 run`."""
    words: list[str] = []
    for name in _VALUES:
        value = getattr(args, name)
        if value is not None:
            words += [f"--{name}", str(value)]
    for name in _LISTS:
        for value in getattr(args, name):
            words += [f"--{name}", value]
    words += [f"--{name.replace('_', '-')}" for name in _FLAGS if getattr(args, name)]
    return words


def user_settings(path: str) -> tuple[dict[str, Any], str | None, tuple[str, ...]]:
    """Returns the `[keys]` table, the theme of `[ui]`, and what is wrong with the file.

    A broken file leaves the defaults in force; it is the run that refuses to start with it.
    """
    import tomllib

    try:
        with open(path, "rb") as file:
            document = tomllib.load(file)
    except FileNotFoundError:
        return {}, None, ()
    except (OSError, ValueError) as error:
        return {}, None, (str(error).splitlines()[0].lower(),)
    keys, ui = document.get("keys", {}), document.get("ui", {})
    tables = (("keys", keys), ("ui", ui))
    notes = tuple(f"[{name}] is not a table" for name, table in tables if not isinstance(table, dict))
    theme = ui.get("theme") if isinstance(ui, dict) else None
    return keys if isinstance(keys, dict) else {}, theme if isinstance(theme, str) else None, notes
