"""Which adapter a command line gets.

Rule: the program is recognised by the name of its file, or of a symbolic link on the way to it (the native installer
of Claude Code links `claude` to `versions/2.1.332`; npm links `codex` to `codex.js`). Never by what it prints, never
by running it. The bare word `demo` always means the bundled demo agent; `./demo` is the user's own program.

Only the adapter that is needed is imported: this runs at the start of every `nd7 run`.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nd7tui.engine.agents.adapter import Adapter

DEMO = "demo"
AGENTS = ("claude", "codex")
_MODULES = {name: f"nd7tui.engine.agents.{name}" for name in (*AGENTS, DEMO)}
_SUFFIXES = (".js", ".mjs", ".cjs", ".exe")
_LINKS = 40  # the kernel's own limit on symbolic links in one lookup


def adapter_for(argv: Sequence[str]) -> Adapter | None:
    """Returns the adapter for a command line, or None for a program that is no known agent."""
    if not argv:
        return None
    if argv[0] == DEMO:
        return load(DEMO)
    path = find_program(argv[0])
    names = {_stem(link) for link in _chain(path)} if path else set()
    return next((load(name) for name in AGENTS if name in names), None)


def load(name: str) -> Adapter:
    """Imports one adapter by its name."""
    import importlib

    adapter: Adapter = importlib.import_module(_MODULES[name]).ADAPTER
    return adapter


def find_program(word: str, path: str | None = None) -> str | None:
    """Returns the file that running `word` would start, unresolved, or None.

    `shutil.which` would do the same; importing shutil costs a tenth of what starting a run may.
    """
    if "/" in word:
        return word if _runnable(word) else None
    folders = (os.environ.get("PATH", os.defpath) if path is None else path).split(os.pathsep)
    found = (os.path.join(folder or ".", word) for folder in folders)
    return next((candidate for candidate in found if _runnable(candidate)), None)


def _runnable(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(mode) and os.access(path, os.X_OK)


def _chain(path: str) -> Iterator[str]:
    """Yields the path, then what each symbolic link points to."""
    for _ in range(_LINKS):
        yield path
        try:
            target = os.readlink(path)
        except OSError:
            return
        path = os.path.join(os.path.dirname(path), target)


def _stem(path: str) -> str:
    name = os.path.basename(path)
    return next((name.removesuffix(end) for end in _SUFFIXES if name.endswith(end)), name)
