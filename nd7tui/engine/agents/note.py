"""What the agent is told about the boundary, in its own instructions.

Rule: say whose policy it is, that it is not to be routed around, and what the person can do. It is advice to a
program; nothing depends on its being followed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nd7tui.engine.agents.adapter import RunFacts


def note(run: RunFacts) -> str:
    """Returns the paragraph added to the agent's system prompt."""
    return f"""# nd7 boundary
You and every program you start run inside nd7, a boundary the user chose and the operating system's kernel enforces. \
It is nd7's policy, separate from your own permission rules and sandbox settings; changing those does not change it.
Writable: {run.project}, the temporary directory, and your own state directory. Private keys and credentials in the \
home directory cannot be read. Network: TCP port 443, DNS and loopback only. Writing files that other programs run \
later (such as .git/hooks or .envrc) asks the user first and may wait a while for the answer.
When an operation fails with "Permission denied", "Operation not permitted", EACCES or EPERM, nd7 has probably refused \
it. Do not look for another way to the same end: no copies, links, other paths, other tools or other hosts. Tell the \
user which exact path or host:port you need and why. They can allow it with the key shown beside the denial in nd7, or \
from another terminal with `nd7 allow PATH`, `nd7 allow --read PATH` or `nd7 allow --connect HOST:PORT` (add \
`--session {run.run_pid}` when several runs are open). You cannot run these commands yourself. A grant holds at once \
and without a restart: try the same operation again when the user says so."""
