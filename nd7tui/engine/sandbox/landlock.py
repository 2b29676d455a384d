"""landlockpy, without what a start has no time for.

Rule: the package is used as it is published; two imports are left out while it loads, and can be made as ever
afterwards. `landlockpy.testing` brings in dataclasses and pathlib for nothing. `ctypes.util` brings in shutil and
subprocess and starts ldconfig to learn the name of the C library, which this process has long loaded: told no name,
landlockpy opens the process's own symbols. Together they took 30 ms. Whoever has imported one of the three before
gets the package whole.
Does not prove: anything about the kernel; `prepare.probe` asks it.
Source: landlockpy 0.2.0 (the version pyproject.toml names), `_syscall._get_libc`; dlopen(3) with NULL.
"""

from __future__ import annotations

import ctypes
import sys
from types import ModuleType

_LEFT_OUT = ("landlockpy.testing", "ctypes.util")


def _load() -> None:
    if any(name in sys.modules for name in ("landlockpy", *_LEFT_OUT)):
        return
    for name in _LEFT_OUT:
        sys.modules[name] = ModuleType(name)
    util = sys.modules["ctypes.util"]
    vars(util)["find_library"] = lambda _name: None
    vars(ctypes)["util"] = util
    try:
        import landlockpy

        landlockpy.abi_version()  # the first call opens the library, for good
        del landlockpy.testing
    finally:
        for name in _LEFT_OUT:
            del sys.modules[name]
        del vars(ctypes)["util"]


_load()

from landlockpy import AccessFS, AccessNet, Ruleset, Scope  # noqa: E402 - after what it must not bring in

__all__ = ["AccessFS", "AccessNet", "Ruleset", "Scope"]
