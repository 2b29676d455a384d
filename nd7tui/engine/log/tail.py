"""Following a log while it grows.

Rule: `poll` never blocks, never changes anything, and hands out each line once and in order, however the writes
fall. A line that is not whole yet stays in the file until it is: a torn line may be taken out of the log again, and
must not be glued to what comes after it. What is damaged is handed out as `Damaged`, never skipped.

The chain is checked along the way, from the first frame the tail sees; the `head` file is not (`verify` does that).
"""

from __future__ import annotations

import os

from nd7tui.engine.log import faults
from nd7tui.engine.log.chain import check_frame, genesis
from nd7tui.engine.log.ending import behind_newline
from nd7tui.engine.log.frame import Frame, parse
from nd7tui.engine.records import dataclass

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Damaged:
    """A place in the log that is not as it was written.

    Attributes:
        offset: Where the line begins, bytes.
        raw: The line; empty when the file itself shrank or was replaced.
        fault: What is wrong.
        frame: The frame, when it can be read all the same.
    """

    offset: int
    raw: bytes
    fault: faults.LogError
    frame: Frame | None = None


class Tail:
    """An incremental reader of one `events.ndjson`, which need not exist yet.

    Args:
        path: The log's path (`layout.events_path`); its directory's name is the session id.
        from_end: Start behind the last whole line instead of at the beginning.
    """

    def __init__(self, path: str, *, from_end: bool = False) -> None:
        self.path = path
        self._fd = -1
        self._inode = (0, 0)
        self._seen = (0, 0)
        self._offset = 0
        self._from_end = from_end
        self._expect: tuple[int, str] | None = (0, genesis(os.path.basename(os.path.dirname(path))))

    def poll(self, limit: int = 4 << 20) -> list[Frame | Damaged]:
        """Returns what is new, oldest first; an empty list means nothing is, for now.

        Args:
            limit: Stop after about this many bytes (at a line's end); poll again for the rest.

        Raises:
            OSError: The file is there and cannot be read.
        """
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            return []
        found = self._follow(status)
        if self._seen == (status.st_size, status.st_mtime_ns):
            return found
        start = self._offset
        while self._offset - start < limit:
            lines = self._lines()
            if not lines:
                self._seen = (status.st_size, status.st_mtime_ns)
                break
            for line in lines:
                found.append(self._read(line))
                self._offset += len(line)
        return found

    @property
    def torn_at(self) -> int | None:
        """Where a line begins that has no end yet, bytes; None when all is read. A log that grows may have one."""
        try:
            return self._offset if os.stat(self.path).st_size > self._offset else None
        except FileNotFoundError:
            return None

    def close(self) -> None:
        """Closes the file; polling again starts where this left off."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1
        self._seen = (0, 0)

    def _follow(self, status: os.stat_result) -> list[Frame | Damaged]:
        """Opens the file, and notices when it is not the one that was read before."""
        inode = (status.st_dev, status.st_ino)
        found: list[Frame | Damaged] = []
        if self._fd >= 0 and inode != self._inode:
            found.append(Damaged(0, b"", faults.LogError("the log was replaced by another file")))
            self.close()
            self._offset, self._expect = 0, (0, genesis(os.path.basename(os.path.dirname(self.path))))
        if self._fd < 0:
            self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            self._inode = inode
        if self._from_end:
            self._from_end, self._expect = False, None
            self._offset = behind_newline(self._fd, status.st_size)
        if status.st_size < self._offset:
            found.append(Damaged(status.st_size, b"", faults.LogError("the log got shorter")))
            self._offset = behind_newline(self._fd, status.st_size)
            self._expect = None
        return found

    def _lines(self) -> list[bytes]:
        """Returns the whole lines at the offset: a chunk of them, or one however long, or none."""
        data = b""
        while b"\n" not in data:
            more = os.pread(self._fd, max(_CHUNK, len(data)), self._offset + len(data))
            if not more:
                return []
            data += more
        return _split(data)

    def _read(self, line: bytes) -> Frame | Damaged:
        """Reads one line and checks its place in the chain."""
        try:
            frame = parse(line)
        except faults.FrameError as error:
            seq = None if self._expect is None else self._expect[0]
            self._expect = None
            return Damaged(self._offset, line, error if seq is None else faults.NotSealedError(seq))
        seq, prev = (frame.seq, None) if self._expect is None else self._expect
        self._expect = (frame.seq + 1, frame.hash)
        try:
            check_frame(line, seq, prev)
        except faults.ChainError as error:
            return Damaged(self._offset, line, error, frame)
        return frame


def _split(data: bytes) -> list[bytes]:
    """Returns the whole lines of `data`, newlines kept."""
    return [line + b"\n" for line in data.split(b"\n")[:-1]]
