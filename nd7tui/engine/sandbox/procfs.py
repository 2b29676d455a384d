"""Files of processes outside the run, which the kernel gives to those who may trace them.

Rule: `/proc/<pid>/mem`, `environ`, `maps` and their like are asked for by whoever opens them. A process of the run is
no tracer of what is outside (Landlock), the supervisor is: so it opens none of these for the run. What anybody may
read stays readable, so that `ps` works.
Does not prove: anything about calls that are continued; there the kernel asks the caller itself.
Source: Linux fs/proc/base.c, tgid_base_stuff; landlock(7), "Ptrace restrictions".
"""

from __future__ import annotations

import ctypes
import os
import struct

from nd7tui.engine.sandbox import abi

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from nd7tui.engine.sandbox.resolve import Place

_PROC_SUPER_MAGIC = 0x9FA0
_FOR_ALL = frozenset(
    b"stat statm status cmdline comm children cgroup cpuset limits mounts mountinfo oom_score oom_adj oom_score_adj "
    b"loginuid sessionid schedstat sched autogroup".split()
)


def asks_who_traces(place: Place, info: os.stat_result, contains: Callable[[int], bool]) -> bool:
    """Tells whether `place` is such a file of a process outside the run.

    Args:
        place: What is to be opened.
        info: Its status.
        contains: Tells whether a pid belongs to the run.
    """
    if os.major(info.st_dev) or not _is_procfs(place.fd):
        return False
    parts = place.path.split(b"/")
    if parts[-1] in _FOR_ALL or not any(part.isdigit() for part in parts):
        return False
    if parts[1] != b"proc":
        return True  # mounted elsewhere, perhaps by another pid namespace: the numbers may mean others
    return parts[2].isdigit() and not contains(int(parts[2]))


def _is_procfs(fd: int) -> bool:
    buffer = ctypes.create_string_buffer(128)
    abi.syscall(abi.NR["fstatfs"], fd, ctypes.addressof(buffer))
    kind: int = struct.unpack_from("@l", buffer)[0]
    return kind == _PROC_SUPER_MAGIC
