"""The demo agent: `nd7 tui demo`, `nd7 run demo`.

Rule: it is labelled as a demo on its own screen, tells what it does before it does it, and works without network and
account. Exit status 0 when the boundary did all it promises, 1 when something was not as it should be, 2 when it is
not started by nd7.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pwd
import sys

from nd7tui.engine.agents.demo_client import Client
from nd7tui.engine.agents.demo_screen import Screen
from nd7tui.engine.agents.demo_steps import NOTES, SCENES, Stage

_PROMPT = "Show what the boundary does: read, write, connect and run a few things."


def main(argv: list[str]) -> int:
    """Plays the demo and returns its exit status."""
    options = _parser().parse_args(argv)
    if not (options.session and options.outside):
        print("nd7: the demo agent runs inside nd7\nnd7: hint: nd7 tui demo", file=sys.stderr)
        return 2
    screen = Screen(fast=options.fast)
    client = Client(options.hook, options.session)
    wait = options.wait if options.wait is not None else (3.0 if options.fast else 20.0)
    stage = Stage(screen, client, options.outside, pwd.getpwuid(os.getuid()).pw_dir, wait)
    try:
        return _play(stage)
    except KeyboardInterrupt:
        screen.say("Stopped by you.")
        client.hook("SessionEnd", reason="other")
        return 130


def _play(stage: Stage) -> int:
    stage.client.hook("SessionStart", source="startup")
    stage.client.hook("UserPromptSubmit", prompt=_PROMPT)
    stage.screen.banner()
    stage.screen.say("It sends real hooks and tries real reads, writes and connections in nd7's real sandbox.")
    for number, (title, scene) in enumerate(SCENES, 1):
        stage.screen.step(number, len(SCENES), title)
        scene(stage)
    return _end(stage)


def _end(stage: Stage) -> int:
    with contextlib.suppress(OSError):
        os.unlink(NOTES)
    message = (
        "Done: everything was as nd7 promises." if not stage.wrong else f"Done: {len(stage.wrong)} things were wrong."
    )
    stage.client.hook("Stop", stop_hook_active=False, last_assistant_message=message)
    stage.client.hook("SessionEnd", reason="other")
    for fault in stage.client.faults:
        stage.fault(fault)
    stage.screen.pause(0.5)
    stage.screen.say("")
    if stage.wrong:
        stage.screen.wrong(f"{len(stage.wrong)} things were not as they should be")
    else:
        stage.screen.allowed("everything was as nd7 promises")
    stage.screen.say("All of it is in the log, in one chain. Check it:")
    stage.screen.doing(f"nd7 verify {stage.client.session_id}")
    return 1 if stage.wrong else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="nd7 tui demo", description="A scripted stand-in for an agent.")
    parser.add_argument("--fast", action="store_true", help="do not pause for reading")
    parser.add_argument("--manual", action="store_true", help="leave the keys to you (in the UI, which else answers)")
    parser.add_argument("--wait", type=float, metavar="SECONDS", help="how long to wait for your key (default 20)")
    for name in ("--hook", "--exec", "--session", "--outside"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
