"""A run without a sandbox: makes the run's directory, serves its hook socket by a script, starts one program.

Usage: fake_supervisor.py SCRIPT PROGRAM [ARGS]. SCRIPT is a JSON file {"status", "out", "err" (hex), "answer": bool,
"mode": octal text of the directory, "listen": bool}; what arrived is written to SCRIPT.seen. Ends with the program's
status.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
from typing import Any

from nd7tui.engine import paths
from nd7tui.engine.run.hooks import HookServer
from nd7tui.engine.run.wire import Reply


class Script:
    def __init__(self, path: str) -> None:
        self.path = path
        with open(path) as file:
            self.told: dict[str, Any] = json.load(file)
        self.seen: list[dict[str, Any]] = []

    def reply(self, kind: str, payload: bytes, pid: int) -> Reply:
        self.seen.append({"kind": kind, "payload": payload.hex(), "pid": pid})
        return Reply(self.told["status"], bytes.fromhex(self.told["out"]), bytes.fromhex(self.told["err"]))

    def save(self) -> None:
        with open(f"{self.path}.seen", "w") as file:
            json.dump(self.seen, file)


def contains(pid: int) -> bool:
    """By ancestry, as the supervisor's tree does it."""
    while pid > 1:
        if pid == os.getpid():
            return True
        with open(f"/proc/{pid}/stat") as file:
            pid = int(file.read().rpartition(")")[2].split()[1])
    return False


def main() -> int:
    script = Script(sys.argv[1])
    run_dir = os.path.join(paths.runs_dir(), str(os.getpid()))
    os.makedirs(run_dir, 0o700)
    os.chmod(run_dir, int(script.told["mode"], 8))
    try:
        server = None
        if script.told["listen"]:
            server = HookServer(
                run_dir, contains, lambda data, pid: script.reply("hook", data, pid),
                lambda data, pid: script.reply("exec", data, pid),
            )  # fmt: skip
        child = subprocess.Popen(sys.argv[2:])
        while child.poll() is None:
            if server is not None and script.told["answer"]:
                select.select([server.fileno()], [], [], 0.005)
                server.serve()
            else:
                select.select([], [], [], 0.005)
        script.save()
        return child.returncode if child.returncode >= 0 else 128 - child.returncode
    finally:
        shutil.rmtree(run_dir)


if __name__ == "__main__":
    sys.exit(main())
