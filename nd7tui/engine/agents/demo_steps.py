"""The demo's scenes: each tries one real thing and says what came of it.

Rule: nothing is acted. Every open, connect and command is the real system call of a confined process, and a scene that
ends other than it should is counted as wrong and makes the demo exit with 1.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from nd7tui.engine.agents.demo_client import Client
    from nd7tui.engine.agents.demo_screen import Screen

NOTES = "nd7-demo-notes.txt"
SECRETS = (".ssh/id_ed25519", ".ssh/id_rsa", ".aws/credentials", ".netrc", ".config/gh/hosts.yml")
FORBIDDEN = ("198.51.100.1", 25)  # TEST-NET-2, RFC 5737: belongs to nobody
_POLL_SECONDS = 0.5
_HELD_SECONDS = 120


@dataclass(slots=True)
class Stage:
    """What the scenes share.

    Attributes:
        screen: The narration.
        client: The hooks.
        outside: The file outside the project to try.
        home: The user's home directory.
        wait: Seconds to wait for the person's key.
        wrong: What was not as it should be.
    """

    screen: Screen
    client: Client
    outside: str
    home: str
    wait: float
    wrong: list[str] = field(default_factory=list)

    def fault(self, text: str) -> None:
        """Says and counts what is not as it should be."""
        self.wrong.append(text)
        self.screen.wrong(text)


def inside(stage: Stage) -> None:
    """A write in the project, in this process."""
    stage.screen.say("The project directory is writable. I write a note, like an agent's Write tool does.")
    path = os.path.join(os.getcwd(), NOTES)
    call = stage.client.call("Write", file_path=path, content="hello from the demo\n")
    stage.screen.doing(f"write {path}")
    error = _write(path)
    if error is None:
        call.succeeded({"type": "create", "filePath": path})
        stage.screen.allowed("it is inside the project")
    else:
        call.failed(error)
        stage.fault(f"a write in the project failed: {error}")


def command(stage: Stage) -> None:
    """A shell command, rewritten by the hook to run through nd7-exec."""
    stage.screen.say("A shell command. The hook records it and has it run through nd7-exec.")
    call = stage.client.call("Bash", command=f"ls && wc -c {NOTES}", description="Look around")
    stage.screen.doing(call.tool_input["command"])
    if "nd7-exec" not in call.tool_input["command"]:
        stage.fault("the hook did not rewrite the command")
    done = call.run()
    stage.screen.output(done.stdout.decode(errors="replace"))
    if done.returncode == 0:
        stage.screen.allowed("commands run as usual, inside the same boundary")
    else:
        stage.fault(f"the command ended with status {done.returncode}")


def secret(stage: Stage) -> None:
    """A read of a private key."""
    stage.screen.say("Most files can be read, private keys and credentials cannot.")
    path = os.path.join(stage.home, next((s for s in SECRETS if _there(os.path.join(stage.home, s))), SECRETS[0]))
    call = stage.client.call("Read", file_path=path)
    stage.screen.doing(f"read {path}")
    try:
        with open(path, "rb") as file:
            file.read(1)
    except FileNotFoundError as error:
        call.failed(error)
        stage.screen.say("There is no such file on this machine, so there was nothing to refuse.")
    except OSError as error:
        call.failed(error)
        stage.screen.refused(_words(error))
    else:
        call.succeeded({"type": "text"})
        stage.fault("a private key could be read")


def outside(stage: Stage) -> None:
    """A write outside the project, allowed by the person while this process runs, and taken back again."""
    path = stage.outside
    stage.screen.say("Now a file in your home directory, outside the project.")
    call = stage.client.call("Write", file_path=path, content="hello from the demo\n")
    stage.screen.doing(f"write {path}")
    error = _write(path)
    if error is None:
        stage.fault("a write outside the project was not refused")
        return
    stage.screen.refused(_words(error))
    stage.screen.say("The denial is in nd7's list now. Nothing in here can allow it: only you can.")
    stage.screen.waiting("allow it: ctrl+g then a. I try again until then")
    if not _until(lambda: _write(path) is None, stage.wait):
        call.failed(error)
        stage.screen.say(f"Nobody allowed it within {stage.wait:.0f} seconds, so it stays refused. I go on.")
        return
    stage.screen.allowed("the same process, the same open: it works now, no restart")
    _command_outside(stage)
    stage.screen.waiting("take it back: ctrl+g then d. I keep writing until it is refused")
    call.succeeded({"type": "create", "filePath": path})
    if _until(lambda: _write(path) is not None, stage.wait):
        stage.screen.refused("taken back: the very next write fails again")
    else:
        stage.screen.say(f"Nobody took it back within {stage.wait:.0f} seconds. It ends with the run anyway.")


def network(stage: Stage) -> None:
    """A connection to this machine and one to a mail port elsewhere."""
    stage.screen.say("Network: TCP port 443, DNS and this machine itself. Nothing else.")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        call = stage.client.call("WebFetch", url=f"tcp://127.0.0.1:{port}")
        stage.screen.doing(f"connect to 127.0.0.1 port {port} (my own listener)")
        error, _ = _connect(("127.0.0.1", port))
    if error is None:
        call.succeeded("connected")
        stage.screen.allowed("loopback")
    else:
        call.failed(error)
        stage.fault(f"a connection to loopback failed: {error}")
    host, mail = FORBIDDEN
    call = stage.client.call("WebFetch", url=f"tcp://{host}:{mail}")
    stage.screen.doing(f"connect to {host} port {mail} (mail, an address that belongs to nobody)")
    error, seconds = _connect(FORBIDDEN)
    call.failed(error or "connected")
    if isinstance(error, PermissionError):
        stage.screen.refused(f"{_words(error)}, after {seconds * 1000:.1f} ms: no packet was sent")
    else:
        stage.fault(f"a connection to a mail port was not refused by policy: {error}")


def hook_file(stage: Stage) -> None:
    """A write to a file that git would run later, outside the boundary: held until the person answers."""
    hooks = os.path.join(os.getcwd(), ".git/hooks")
    if not os.path.isdir(hooks):
        stage.screen.say("This project has no .git/hooks; nothing to show here.")
        return
    path = os.path.join(hooks, "post-commit")
    stage.screen.say("A git hook runs later, outside this boundary. Writing one is a question to you: my write waits.")
    call = stage.client.call("Write", file_path=path, content="#!/bin/sh\n")
    stage.screen.doing(f"write {path}")
    stage.screen.waiting("answer: ctrl+g then a or d. No answer means no")
    answer: list[OSError | None] = []
    began = time.monotonic()
    # open() is blocked in the kernel while it is held; another thread of this process goes on.
    thread = threading.Thread(target=lambda: answer.append(_write(path)), daemon=True)
    thread.start()
    thread.join(_HELD_SECONDS)
    seconds = time.monotonic() - began
    if not answer:
        stage.fault(f"the held write got no answer within {seconds:.0f} seconds")
    elif answer[0] is None:
        call.succeeded({"type": "create", "filePath": path})
        stage.screen.allowed(f"you said yes after {seconds:.1f} seconds (the file goes with this project)")
    else:
        call.failed(answer[0])
        stage.screen.refused(f"{_words(answer[0])}, after waiting {seconds:.1f} seconds")


def _command_outside(stage: Stage) -> None:
    call = stage.client.call("Bash", command=f"echo 'and from a command' >> '{stage.outside}'", description="Append")
    stage.screen.doing("echo 'and from a command' >> the same file")
    if call.run().returncode == 0:
        stage.screen.allowed("commands see the grant as well")
    else:
        stage.fault("a command did not see the grant")


def _until(done: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _write(path: str) -> OSError | None:
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write("hello from the demo\n")
    except OSError as error:
        return error
    return None


def _connect(address: tuple[str, int]) -> tuple[OSError | None, float]:
    began = time.monotonic()
    try:
        socket.create_connection(address, timeout=5).close()
    except OSError as error:
        return error, time.monotonic() - began
    return None, time.monotonic() - began


def _there(path: str) -> bool:
    with contextlib.suppress(OSError):
        os.stat(path)
        return True
    return False


def _words(error: OSError) -> str:
    return f"{error.strerror or error}"


SCENES: tuple[tuple[str, Callable[[Stage], None]], ...] = (
    ("Write inside the project", inside),
    ("Run a command", command),
    ("Read a private key", secret),
    ("Write outside the project", outside),
    ("Connect to the network", network),
    ("Write a git hook", hook_file),
)
