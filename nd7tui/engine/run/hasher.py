"""The BLAKE3 of the program's file, for the log.

Rule: a start does not wait for a big file. What is hashed at once is in `run_start`; what takes longer is hashed by a
thread and told in a `process_exec` frame when it is known.
Does not prove: that these bytes were run. The file is read by name, a moment away from its start.
"""

from __future__ import annotations

import os
import threading

from blake3 import blake3

from nd7tui.engine.run.frames import SUPERVISOR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nd7tui.engine.run.chains import Chains

# About 5 ms.
AT_ONCE = 8 << 20


class Hasher:
    """Hashes one file.

    Args:
        path: The file.

    Attributes:
        digest: 64 hex digits, None as long as it is not known or cannot be.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self.digest: str | None = None
        self._late = False
        try:
            if os.stat(path).st_size <= AT_ONCE:
                self._hash()
                return
        except OSError:
            return
        self._late = True
        threading.Thread(target=self._hash_late, daemon=True).start()

    def tell(self, chains: Chains, pid: int) -> None:
        """Writes the frame for a digest that came late, once."""
        if self._late and self.digest is not None:
            self._late = False
            body = {"pid": pid, "exe": self._path, "exe_blake3": self.digest}
            chains.own.append(SUPERVISOR, "process_exec", body)

    def _hash_late(self) -> None:
        try:
            self._hash()
        except OSError:
            self._late = False

    def _hash(self) -> None:
        self.digest = blake3().update_mmap(self._path).hexdigest()
