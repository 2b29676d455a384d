"""How the demo agent behaves like a real one: payloads to `nd7-hook`, commands as the answer rewrote them.

Rule: like both real agents it goes on when a hook fails; but it says so and remembers it, because in a demo that is a
fault.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

_HOOK_SECONDS = 10
_COMMAND_SECONDS = 60


@dataclass(slots=True)
class Client:
    """One session's hooks and commands.

    Attributes:
        hook_program: Path of `nd7-hook`.
        session_id: The session's id.
        faults: What went wrong with hooks, in words.
    """

    hook_program: str
    session_id: str
    faults: list[str] = field(default_factory=list)
    _prompt_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    _calls: int = 0

    def hook(self, event: str, **fields: Any) -> dict[str, Any]:
        """Sends one payload and returns the answer, empty when there is none."""
        payload = {
            "session_id": self.session_id,
            "cwd": os.getcwd(),
            "prompt_id": self._prompt_id,
            "permission_mode": "default",
            "hook_event_name": event,
            **fields,
        }
        try:
            done = subprocess.run(
                [self.hook_program],
                input=json.dumps(payload).encode(),
                capture_output=True,
                timeout=_HOOK_SECONDS,
                check=False,
            )
            if done.returncode != 0:
                self.faults.append(f"{event} hook: status {done.returncode}: {done.stderr.decode(errors='replace')}")
                return {}
            answer = json.loads(done.stdout) if done.stdout.strip() else {}
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            self.faults.append(f"{event} hook: {error}")
            return {}
        return answer if isinstance(answer, dict) else {}

    def call(self, tool_name: str, **tool_input: Any) -> Call:
        """Announces a tool call (PreToolUse) and returns it."""
        self._calls += 1
        identity = f"demo_{self._calls:02d}"
        answer = self.hook("PreToolUse", tool_name=tool_name, tool_input=tool_input, tool_use_id=identity)
        output = answer.get("hookSpecificOutput", {})
        return Call(self, identity, tool_name, output.get("updatedInput", tool_input), time.monotonic())


@dataclass(slots=True)
class Call:
    """One announced tool call; `tool_input` is what the hook's answer made of it."""

    client: Client
    identity: str
    tool_name: str
    tool_input: dict[str, Any]
    started: float

    def run(self) -> subprocess.CompletedProcess[bytes]:
        """Runs the call's command as the agent's shell does, reports its result and returns it."""
        done = subprocess.run(
            ["/bin/sh", "-c", self.tool_input["command"]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_COMMAND_SECONDS,
            check=False,
        )
        text = done.stdout.decode(errors="replace")
        if done.returncode == 0:
            self.succeeded({"stdout": text, "stderr": "", "interrupted": False})
        else:
            self.failed(f"Exit code {done.returncode}\n{text}")
        return done

    def succeeded(self, response: object) -> None:
        """Reports the result (PostToolUse)."""
        self._report("PostToolUse", tool_response=response)

    def failed(self, error: object) -> None:
        """Reports the failure (PostToolUseFailure)."""
        self._report("PostToolUseFailure", error=str(error), is_interrupt=False)

    def _report(self, event: str, **fields: Any) -> None:
        self.client.hook(
            event,
            tool_name=self.tool_name,
            tool_input=self.tool_input,
            tool_use_id=self.identity,
            duration_ms=round((time.monotonic() - self.started) * 1000),
            **fields,
        )
