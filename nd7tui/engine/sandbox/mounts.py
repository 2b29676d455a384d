"""Other names of a refused directory: bind mounts.

Rule: a refused path is refused under every name that a mount gives it. Pure but for `read`.
Does not prove: anything about hard links, which have no list; docs/SECURITY.md says so.
Source: proc_pid_mountinfo(5).
"""

from __future__ import annotations

from nd7tui.engine.records import dataclass


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


def read() -> Mounts:
    """Returns the mounts this process sees."""
    with open("/proc/self/mountinfo", "rb") as file:
        return Mounts(parse(file.read()))


class Mounts:
    """The mounts, ready to be asked about many paths.

    Args:
        mounts: In the order of mountinfo.
    """

    def __init__(self, mounts: list[Mount]) -> None:
        # Of several at one point the last one mounted is seen.
        self._at = {mount.point: mount for mount in mounts}
        self._of: dict[bytes, list[Mount]] = {}
        for mount in mounts:
            self._of.setdefault(mount.device, []).append(mount)

    def aliases(self, path: bytes) -> list[bytes]:
        """Returns the other paths under which the canonical `path` can be reached, in the order of the mounts."""
        home = self._mount_of(path)
        if home is None or len(self._of[home.device]) == 1:
            return []
        inner = _join(home.root, _below(path, home.point))
        found = []
        for mount in self._of[home.device]:
            if mount is not home and _beneath(inner, mount.root):
                alias = _join(mount.point, _below(inner, mount.root))
                # An alias that a later mount hides is not a way in, but refusing it costs nothing.
                if alias != path:
                    found.append(alias)
        return found

    def _mount_of(self, path: bytes) -> Mount | None:
        while (found := self._at.get(path)) is None and path not in {b"/", b""}:
            path = path[: path.rindex(b"/")] or b"/"
        return found


def _plain(text: bytes) -> bytes:
    if b"\\" not in text:
        return text
    import re

    return re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), text)


def _beneath(path: bytes, top: bytes) -> bool:
    return top in {b"/", path} or path.startswith(top + b"/")


def _below(path: bytes, top: bytes) -> bytes:
    return path.lstrip(b"/") if top == b"/" else path[len(top) :].lstrip(b"/")


def _join(top: bytes, rest: bytes) -> bytes:
    return top if not rest else top.rstrip(b"/") + b"/" + rest
