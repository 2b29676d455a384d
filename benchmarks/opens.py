"""What one open costs: `python benchmarks/opens.py [--runs N] [--only NAME]`.

Microseconds per open and close of one file, by a C program that does nothing else. *In the floor*: the file was there
and allowed at the start, so the supervisor passes the call on. *Emulated*: its directory is allowed while the program
runs, so the supervisor opens the file and hands the descriptor over.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from dataclasses import dataclass

from _timing import MODES, Table, Waiting, World, about, ratios, spread, take_turns, world

MEASURED_MS = 400
SOURCE = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    int flags = (argv[1][0] == 'w' ? O_WRONLY : O_RDONLY) | O_CLOEXEC;
    puts("ready");
    fflush(stdout);
    getchar();
    double from = now(), took = 0, enough = atof(argv[3]) * 1e6;
    long calls = 0;
    for (; took < enough; took = now() - from)
        for (int i = 0; i < 64; i++, calls++) {
            int fd = open(argv[2], flags);
            if (fd < 0) {
                perror(argv[2]);
                return 1;
            }
            close(fd);
        }
    printf("%.1f\n", took / calls);
}
"""


@dataclass(frozen=True)
class Case:
    """An open to measure.

    Attributes:
        kind: `r` or `w`.
        path: The file, beneath the world's base.
        live: Its directory is allowed while the program runs.
    """

    kind: str
    path: str
    live: bool = False


CASES = {
    "read, in the floor": Case("r", "project/src/file"),
    # Not in the project's top: the floor has holes there, so it grants what was there one by one.
    "write, in the floor": Case("w", "project/src/file"),
    "write, emulated": Case("w", "outside/file", live=True),
}


def build(world: World) -> str:
    """Compiles the loop and returns its path."""
    source, program = world.base / "opens.c", world.base / "opens"
    source.write_text(SOURCE)
    world.call(["cc", "-O2", "-o", str(program), str(source)], world.base)
    return str(program)


def microseconds(world: World, program: str, prefix: tuple[str, ...], case: Case) -> float:
    """Returns what one open and close took."""
    path = world.base / case.path
    argv = [program, case.kind, str(path), str(MEASURED_MS)]
    with Waiting(world, prefix, argv, world.base / "project") as waiting:
        if prefix and case.live:
            waiting.nd7("allow", "--write", str(path.parent))
        return float(waiting.go()) / 1000


def cells(world: World, program: str, case: Case, rounds: int) -> list[str]:
    """Measures a case and returns its row."""
    measures = {
        mode: lambda prefix=prefix: microseconds(world, program, prefix, case) for mode, prefix in MODES.items()
    }
    found = take_turns(measures, rounds)
    bare = found["unconfined"]
    row = [spread(bare, 2)]
    for mode in ("default", "fast"):
        row += [spread(found[mode], 1), spread(ratios(found[mode], bare), 1)]
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--only", choices=list(CASES))
    args = parser.parse_args()
    if not shutil.which("cc"):
        print("not measured: no C compiler")
        return 0
    about(args.runs)
    with world("cc") as made:
        for path in ("project/src/file", "outside/file"):
            (made.base / path).parent.mkdir(parents=True)
            (made.base / path).write_text("content\n")
        program = build(made)
        table = Table("open", "unconfined: µs", "default: µs", "ratio", "fast: µs", "ratio")
        for name in CASES if args.only is None else [args.only]:
            table.row(name, lambda name=name: cells(made, program, CASES[name], args.runs))
    return table.end()


if __name__ == "__main__":
    sys.exit(main())
