"""Other names of a refused directory: bind mounts.

Rule: a refused path is refused under every name that a mount gives it. Pure but for `read`.
Does not prove: anything about hard links, which have no list; docs/SECURITY.md says so.
Source: proc_pid_mountinfo(5).
"""

from __future__ import annotations

import re

from nd7tui.engine.records import dataclass

_ESCAPE = re.compile(rb"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of mountinfo: `root` of file system `device` appears at `point`."""

    device: bytes
    root: bytes
    point: bytes


def parse(text: bytes) -> list[Mount]:
    """Returns the mounts of a mountinfo text, in its order."""
    fields = (line.split(b" ") for line in text.splitlines())
    return [Mount(f[2], _plain(f[3]), _plain(f[4])) for f in fields if len(f) > 4]


def read() -> list[Mount]:
    """Returns the mounts this process sees."""
    with open("/proc/self/mountinfo", "rb") as file:
        return parse(file.read())


def aliases(path: bytes, mounts: list[Mount]) -> list[bytes]:
    """Returns the other paths under which the canonical `path` can be reached, in the order of the mounts."""
    home = _mount_of(path, mounts)
    if home is None:
        return []
    inner = _join(home.root, _below(path, home.point))
    found = []
    for mount in mounts:
        if mount is not home and mount.device == home.device and _beneath(inner, mount.root):
            alias = _join(mount.point, _below(inner, mount.root))
            # An alias that a later mount hides is not a way in, but refusing it costs nothing.
            if alias != path:
                found.append(alias)
    return found


def _plain(text: bytes) -> bytes:
    return _ESCAPE.sub(lambda match: bytes([int(match[1], 8)]), text)


def _beneath(path: bytes, top: bytes) -> bool:
    return top in {b"/", path} or path.startswith(top + b"/")


def _below(path: bytes, top: bytes) -> bytes:
    return path.lstrip(b"/") if top == b"/" else path[len(top) :].lstrip(b"/")


def _join(top: bytes, rest: bytes) -> bytes:
    return top if not rest else top.rstrip(b"/") + b"/" + rest


def _mount_of(path: bytes, mounts: list[Mount]) -> Mount | None:
    best: Mount | None = None
    for mount in mounts:  # of several at one point the last one mounted is seen
        if _beneath(path, mount.point) and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best
