"""What a command through `nd7-exec` costs: `python benchmarks/exec_helper.py [--runs N] [--only NAME]`.

`nd7-exec -c :` and the same shell's `-c :` take turns inside one run. With a live deny, nd7-exec narrows itself by a
Landlock layer, and the run is strict: the opens of both are emulated.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING

from _timing import MODES, ND7_EXEC, Table, Waiting, World, about, differences, ratios, spread, world

if TYPE_CHECKING:
    from pathlib import Path

# Runs inside: argv is nd7-exec and the number of rounds; prints milliseconds, a list for the shell, one for nd7-exec.
DRIVER = """
import json, os, subprocess, sys, time
nd7_exec, rounds = sys.argv[1], int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
shell = subprocess.check_output([nd7_exec, "-c", "echo $0"], text=True).strip()

def once(program):
    start = time.perf_counter()
    _, status = os.waitpid(os.posix_spawn(program, [program, "-c", ":"], os.environ), 0)
    if status:
        sys.exit(f"{program}: status {status}")
    return 1000 * (time.perf_counter() - start)

programs = [shell, nd7_exec]
times = {program: [] for program in programs}
for number in range(rounds + 3):
    for program in programs if number % 2 else reversed(programs):
        times[program].append(once(program))
print(json.dumps([times[program][3:] for program in programs]))
"""
CASES = {
    "default": MODES["default"],
    "fast": MODES["fast"],
    "default, a live deny": MODES["default"],
}


def cells(world: World, project: Path, name: str, rounds: int) -> list[str]:
    """Measures a case and returns its row."""
    argv = [sys.executable, "-I", "-c", DRIVER, ND7_EXEC, str(rounds)]
    with Waiting(world, CASES[name], argv, project) as waiting:
        if "deny" in name:
            waiting.nd7("deny", str(project / "secret"))
        shell, helper = json.loads(waiting.go())
    over, ratio = differences(helper, shell), ratios(helper, shell)
    return [spread(shell, 2), spread(helper, 2), spread(over, 2), spread(ratio, 1)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--only", choices=list(CASES))
    args = parser.parse_args()
    if not os.access(ND7_EXEC, os.X_OK):
        print("not measured: nd7-exec is not installed")
        return 0
    about(args.runs)
    with world() as made:
        project = made.directory("project")
        (project / "secret").mkdir()
        table = Table("run", "`sh -c :`: ms", "`nd7-exec -c :`: ms", "ms over `sh`", "ratio")
        for name in CASES if args.only is None else [args.only]:
            table.row(name, lambda name=name: cells(made, project, name, args.runs))
    return table.end()


if __name__ == "__main__":
    sys.exit(main())
