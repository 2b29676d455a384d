"""What a run costs whole programs: `python benchmarks/overhead.py [--runs N] [--only NAME]`.

Each is run unconfined, under `nd7 run` and under `nd7 run --fast` in turn, the start of nd7 included. What is needed
from package registries is fetched before by npm and pip themselves; the measured programs work offline. Results are
written into the project's top, as people's are, and what is created there after the start is emulated; *below* is a
directory that was there.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from _timing import MODES, Table, World, about, ratios, spread, take_turns, world

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NPM_PACKAGES = {"eslint": "^9", "express": "^4"}
PIP_PACKAGES = ("pygments", "requests", "rich", "urllib3")
C_FILES, CLONED_FILES, SEARCHED_FILES, EXECS = 40, 2_000, 20_000, 400
C_FILE = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int function_NUMBER(const char *text, char *out, size_t size)
{
    size_t used = 0;
    for (const char *at = text; *at && used + 1 < size; at++)
        if (*at != ' ')
            out[used++] = *at;
    out[used] = 0;
    return printf("%d %s\\n", NUMBER, out) + (int)strlen(out) + abs(getpid());
}
"""


@dataclass(frozen=True)
class Workload:
    """A program to measure.

    Attributes:
        name: As in the table.
        tools: Programs it needs.
        prepare: Fills the project, not measured; returns the command line.
        products: What each run makes in the project and the next must not find.
    """

    name: str
    tools: tuple[str, ...]
    prepare: Callable[[World, Path], list[str]]
    products: tuple[str, ...] = ()


def npm_ci(world: World, project: Path) -> list[str]:
    (project / "package.json").write_text(
        json.dumps({"name": "bench", "version": "1.0.0", "dependencies": NPM_PACKAGES})
    )
    offline = {"npm_config_cache": str(project / "cache"), "npm_config_update_notifier": "false"}
    online = {**os.environ, **offline}
    registry = world.call(["npm", "config", "get", "registry"], project, online).strip()
    world.call(["npm", "install", "--package-lock-only", "--no-audit", "--no-fund"], project, online)
    world.call(["npm", "ci", "--no-audit", "--no-fund"], project, online)
    world.env.update(offline, npm_config_registry=registry)  # the cache's keys name the registry
    return ["npm", "ci", "--offline", "--no-audit", "--no-fund"]


def gcc(_world: World, project: Path) -> list[str]:
    for number in range(C_FILES):
        (project / f"file{number}.c").write_text(C_FILE.replace("NUMBER", str(number)))
    return ["sh", "-ec", "for file in *.c; do gcc -O2 -c $file -o ${file%.c}.o; done"]


def write_tree(top: Path, files: int, lines: int) -> None:
    """Writes `files` text files, a hundred in a directory."""
    for number in range(files):
        if number % 100 == 0:
            (top / f"part{number // 100}").mkdir(parents=True)
        text = "".join(f"line {line} of file {number}, some words\n" for line in range(lines))
        (top / f"part{number // 100}" / f"file{number}.txt").write_text(text)


def repository(world: World) -> Path:
    """Returns a git repository outside of the project, made once."""
    source = world.base / "repository"
    if not source.exists():
        source.mkdir()
        write_tree(source, CLONED_FILES, 40)
        author = ["-c", "user.name=bench", "-c", "user.email=bench", "-c", "gc.auto=0"]
        world.call(["git", "init", "--quiet"], source)
        world.call(["git", "add", "."], source)
        world.call(["git", *author, "commit", "--quiet", "--message", "all"], source)
    return source


def git_clone(world: World, _project: Path) -> list[str]:
    return ["git", "clone", "--quiet", "--no-local", str(repository(world)), "clone"]


def git_clone_below(world: World, project: Path) -> list[str]:
    (project / "work").mkdir()
    return [*git_clone(world, project)[:-1], "work/clone"]


def pip_install(world: World, project: Path) -> list[str]:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    quiet = ["--quiet", "--no-cache-dir"]
    wheels = str(project / "wheels")
    download = [*pip, "download", *quiet, "--only-binary", ":all:", "--dest", wheels, *PIP_PACKAGES]
    world.call(download, project, dict(os.environ))
    world.env["PIP_CONFIG_FILE"] = os.devnull
    return [*pip, "install", *quiet, "--no-index", "--find-links", wheels, "--target", "site", *PIP_PACKAGES]


def grep(_world: World, project: Path) -> list[str]:
    write_tree(project / "tree", SEARCHED_FILES, 20)
    (project / "tree" / "needle").write_text("a needle\n")
    return ["grep", "-r", "needle", "tree"]


def execs(_world: World, _project: Path) -> list[str]:
    true = shutil.which("true") or "/bin/true"
    return ["sh", "-ec", f"i=0; while [ $i -lt {EXECS} ]; do {true}; i=$((i+1)); done"]


WORKLOADS = (
    Workload("npm ci", ("npm", "node"), npm_ci, ("node_modules",)),
    Workload("gcc", ("gcc",), gcc, tuple(f"file{number}.o" for number in range(C_FILES))),
    Workload("git clone", ("git",), git_clone, ("clone",)),
    Workload("git clone below", ("git",), git_clone_below, ("work/clone",)),
    Workload("pip install", (), pip_install, ("site",)),
    Workload("grep -r", ("grep",), grep),
    Workload("execs", (), execs),
)


def measure(world: World, workload: Workload, rounds: int) -> dict[str, list[float]]:
    """Returns each mode's seconds, a value a round."""
    project = world.directory("project-" + workload.name.replace(" ", "-"))
    argv = workload.prepare(world, project)

    def once(prefix: tuple[str, ...]) -> float:
        for name in workload.products:
            if (project / name).is_dir():
                shutil.rmtree(project / name)
            else:
                (project / name).unlink(missing_ok=True)
        return world.confined_seconds(prefix, argv, project)

    once(())  # fills the page cache
    try:
        return take_turns({mode: lambda prefix=prefix: once(prefix) for mode, prefix in MODES.items()}, rounds)
    finally:
        shutil.rmtree(project)


def cells(world: World, workload: Workload, rounds: int) -> list[str]:
    """Measures a workload and returns its row."""
    if missing := [tool for tool in workload.tools if not shutil.which(tool)]:
        return [f"not measured: no {' '.join(missing)}"]
    found = measure(world, workload, rounds)
    bare = found["unconfined"]
    return [spread(bare, 3) + " s", *(spread(ratios(found[mode], bare), 2) for mode in ("default", "fast"))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", choices=[workload.name for workload in WORKLOADS])
    args = parser.parse_args()
    chosen = [workload for workload in WORKLOADS if args.only in {None, workload.name}]
    about(args.runs)
    with world(*(tool for workload in chosen for tool in workload.tools)) as made:
        table = Table("program", "unconfined", "default: ratio", "fast: ratio")
        for workload in chosen:
            table.row(workload.name, lambda workload=workload: cells(made, workload, args.runs))
    return table.end()


if __name__ == "__main__":
    sys.exit(main())
