"""`nd7 doctor`: what this machine can enforce and what is missing, one line each.

Rule: every line says in words how it is; the exit status is 1 when something that nd7 needs is missing.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from nd7tui.engine.doctor import Check


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def main(args: argparse.Namespace) -> int:
    """Prints the report and returns the exit status."""
    from nd7tui.engine.doctor import healthy, judge
    from nd7tui.engine.doctor_facts import gather

    checks = judge(gather())
    ok = healthy(checks)
    if args.json:
        import json

        print(json.dumps({"ok": ok, "checks": [asdict(check) for check in checks]}, indent=1))
    else:
        print("\n".join(map(line, checks)))
    return 0 if ok else 1


def line(check: Check) -> str:
    """Returns one line of the report."""
    todo = f" ({check.todo})" if check.todo else ""
    return f"{check.state:<8}{check.name}: {check.text}{todo}"
