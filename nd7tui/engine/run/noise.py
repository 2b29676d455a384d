"""Refusals that say nothing about what a program is up to.

Rule: an entry here hides a refusal from people, never allows anything: the call is refused all the same, and
`--log-noise` puts it in the log. So an entry must be something that every program of its kind tries by itself and does
without. Pure.
"""

from __future__ import annotations

import os

from nd7tui.engine.policy.rules import Access

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nd7tui.engine.sandbox.outcome import Request

# What the C library tries when it looks up a user or a host. Source: nscd(8), sssd-nss, nss-systemd(8), nss-resolve(8).
_LOOKUPS = frozenset(
    {
        b"/run/nscd/socket",
        b"/var/run/nscd/socket",
        b"/var/lib/sss/pipes/nss",
        b"/run/systemd/resolve/io.systemd.Resolve",
    }
)
_LOOKUP_DIRECTORIES = (b"/run/systemd/userdb/",)


def is_noise(request: Request) -> bool:
    """Tells whether a refused call is known noise."""
    if request.access is Access.CONNECT:
        return request.kind == "socket" and (
            request.target in _LOOKUPS or request.target.startswith(_LOOKUP_DIRECTORIES)
        )
    return request.access is Access.WRITE and _is_bytecode_cache(request)


def _is_bytecode_cache(request: Request) -> bool:
    """Python caches what it compiles, beside the source, and does without where it may not."""
    if not os.path.basename(request.exe).startswith(("python", "pypy")):
        return False
    parent, _, name = request.target.rpartition(b"/")
    if name == b"__pycache__":
        return request.op in {"mkdir", "mkdirat"}
    # `x.cpython-311.pyc.140231` is the temporary name it is written under.
    return parent.endswith(b"/__pycache__") and b".pyc" in name
