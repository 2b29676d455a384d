"""Appending to a session's log.

Rule: nothing handed to `append` is lost, and nothing is appended to a log that is not what it should be. Under the
exclusive lock the end of the log is what `head` says, or is repaired in the two ways a crash can leave it (`head`
missing or one frame behind; a torn last line, moved to a file of its own and told of in a frame); anything else is
refused, and the frame goes to `refused.ndjson` with the reason.

Owns: the session's `events.ndjson`, `head`, `lock`, `torn-*` and `refused.ndjson`. The descriptors stay open between
appends; the cost of one does not grow with the log. A log held open also refuses when it finds itself rolled back.
Not proved by a successful append: that the disk has it (nothing is synced, as a crash of the machine costs at most
the last frames, which the chain then shows).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time

from nd7tui.engine import locks
from nd7tui.engine.log import bodies, faults, layout
from nd7tui.engine.log.chain import Head, check_frame, check_head, genesis, parse_head
from nd7tui.engine.log.ending import read_ending
from nd7tui.engine.log.files import NEW, PRIVATE, keep_refused, make_private, write_all
from nd7tui.engine.log.frame import Frame, parse, seal, stated_hash
from nd7tui.engine.log.headfile import HeadFile, read_head
from nd7tui.engine.records import dataclass
from nd7tui.errors import Nd7Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from nd7tui.engine.log.frame import Body

_LOG_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
PATIENCE = 2.0


class AppendRefusedError(faults.LogError):
    """A frame was not appended.

    Attributes:
        kept: Whether it was written to `refused.ndjson` instead.
    """

    def __init__(self, session_id: str, reason: str, *, kept: bool) -> None:
        where = "the frame is in refused.ndjson" if kept else "the frame could not be kept"
        super().__init__(
            f"session {session_id!a:.80}: not appended: {reason}; {where}",
            hint=f"nd7 verify {session_id!a:.80} says what is wrong with the log",
        )
        self.session_id = session_id
        self.reason = reason
        self.kept = kept


class RolledBackError(faults.LogError):
    """The log no longer has a frame that this process wrote."""

    def __init__(self, known: Head, found: Head | None) -> None:
        there = "empty" if found is None else f"at frame {found.seq}"
        super().__init__(f"the log was replaced or cut: frame {known.seq} was written, now it is {there}")
        self.known = known
        self.found = found


@dataclass(frozen=True, slots=True)
class _Known:
    """What the files were when this process last let go of the lock."""

    head: Head
    size: int


class SessionLog:
    """One session's log, open for appending.

    Threads may share it; so may processes that each have their own.

    Args:
        session_id: The agent's session id, verbatim.
        root: The directory of all sessions; by default the state directory's.
        writer: Source of the frames the log writes by itself (`log_torn`).
        patience: How long to wait for another process's lock, seconds.
        host: Host name; by default this machine's.

    Raises:
        SessionIdError: The id cannot name a directory.
        OSError: The session's directory or files cannot be opened.
    """

    def __init__(
        self,
        session_id: str,
        root: str | None = None,
        *,
        writer: str = "nd7:supervisor",
        patience: float = PATIENCE,
        host: str | None = None,
    ) -> None:
        self.session_id = session_id
        self.directory = layout.session_dir(session_id, root)
        self._writer = writer
        self._patience = patience
        self._host = os.uname().nodename if host is None else host
        self._mutex = threading.Lock()
        self._known: _Known | None = None
        self._size = 0
        self._dir = self._lock = self._log = -1
        self._head = HeadFile(-1)
        self._open()

    @property
    def path(self) -> str:
        """The path of `events.ndjson`."""
        return os.path.join(self.directory, layout.EVENTS)

    @property
    def head(self) -> Head | None:
        """The last frame this object appended, or None."""
        return None if self._known is None else self._known.head

    def append(self, source: str, kind: str, body: Body, ts: int | None = None) -> Frame:
        """Appends one frame and returns it.

        Args:
            source: `<class>:<producer>`.
            kind: What the body is.
            body: Members in the order they shall be written; bytes in it become text.
            ts: Unix nanoseconds; by default now.

        Raises:
            AppendRefusedError: The log is not what it should be, or cannot be written.
            TypeError: The body holds what JSON cannot.
            ValueError: The body holds a NaN or an infinity.
        """
        stamp = time.time_ns() if ts is None else ts
        with self._mutex:
            try:
                self._take_lock()
                try:
                    return self._append(self._current(), source, kind, body, stamp)
                finally:
                    self._release_lock()
            except (Nd7Error, OSError) as error:
                reason = str(error) if isinstance(error, Nd7Error) else f"{error.strerror or error}"
                kept = self._refuse(reason, source, kind, body, stamp)
                raise AppendRefusedError(self.session_id, reason, kept=kept) from error

    def record_hook(
        self, payload: bytes, source: str | None = None, ts: int | None = None, hook_ppid: int | None = None
    ) -> Frame:
        """Appends the frame for a hook's payload, whatever the payload is.

        Args:
            payload: The hook's standard input, as received.
            source: `intent:<agent>`; None recognises the agent by the payload.
            ts: Unix nanoseconds at which the hook was invoked; by default now.
            hook_ppid: Parent pid of the hook's process.

        Raises:
            AppendRefusedError: As `append`.
        """
        if source is None:
            source = bodies.source_of(bodies.read_payload(payload))
        stamp = time.time_ns() if ts is None else ts
        kind, body = bodies.from_bytes(payload, hook_ppid)
        try:
            return self.append(source, kind, body, stamp)
        except RecursionError:  # Read, but nested too deep to be written.
            return self.append(source, "hook", bodies.as_text(payload), stamp)

    def close(self) -> None:
        """Closes the files; the object cannot be used afterwards."""
        with self._mutex, contextlib.suppress(Nd7Error):
            # Removing the spare `head.tmp` must not meet another process that is writing its own.
            self._take_lock(patience=0.1)
            self._head.close()
        with self._mutex:
            self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> None:
        make_private(self.directory)
        self._dir = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._head = HeadFile(self._dir)
        try:
            self._lock = os.open(layout.LOCK, NEW, PRIVATE, dir_fd=self._dir)
            self._log = os.open(layout.EVENTS, _LOG_FLAGS, PRIVATE, dir_fd=self._dir)
        except OSError:
            self._close()
            raise

    def _close(self) -> None:
        self._head.forget()
        for fd in (self._dir, self._lock, self._log):
            if fd >= 0:
                os.close(fd)
        self._dir = self._lock = self._log = -1

    def _take_lock(self, patience: float | None = None) -> None:
        """Takes the exclusive lock, waiting no longer than the log's patience."""
        if self._dir < 0:
            raise faults.LogError("the log is closed")
        locks.take(self._lock, fcntl.LOCK_EX, self._patience if patience is None else patience)

    def _release_lock(self) -> None:
        if self._lock >= 0:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    def _current(self) -> Head | None:
        """Returns the last frame; looks at the log's end only when it is not as this process left it."""
        log = os.fstat(self._log)
        if not log.st_nlink:
            self._close()
            self._open()
            self._take_lock()
            log = os.fstat(self._log)
        known = self._known
        if known is not None and log.st_size == known.size and self._head.is_ours():
            return known.head
        self._head.forget()
        self._size = log.st_size
        return self._inspect(log.st_size)

    def _inspect(self, size: int) -> Head | None:
        """Reads how the log ends, repairs what a crash can leave, and refuses anything else."""
        ending = read_ending(self._log, size)
        last = None
        if ending.line:
            frame = parse(ending.line)
            last = check_frame(ending.line, frame.seq, None if frame.seq else genesis(self.session_id))
            self._agree(frame.prev, last)
        else:
            check_head(read_head(self._dir), None)
        known = self._known
        if known is not None and (
            last is None or last.seq < known.head.seq or (last.seq == known.head.seq and last != known.head)
        ):
            raise RolledBackError(known.head, last)
        if ending.complete == size:
            return last
        name = self._set_aside(ending.complete, size)
        os.ftruncate(self._log, ending.complete)
        self._size = ending.complete
        told = {"file": name, "bytes": size - ending.complete}
        frame = self._append(last, self._writer, "log_torn", told, time.time_ns())
        return Head(frame.seq, frame.hash)

    def _agree(self, prev: str, last: Head) -> None:
        """Checks `head` against the last frame; a `head` that is missing or one frame behind is written anew."""
        content = read_head(self._dir)
        if content is None or parse_head(content) == Head(last.seq - 1, prev):
            self._head.write(last)
        else:
            check_head(content, last)

    def _append(self, last: Head | None, source: str, kind: str, body: Body, ts: int) -> Frame:
        """Writes one frame after `last`, under the lock."""
        seq, prev = (0, genesis(self.session_id)) if last is None else (last.seq + 1, last.hash)
        line = seal(self.session_id, seq, ts, host=self._host, source=source, kind=kind, prev=prev, body=body)
        # A write cut short stays where it is, as evidence: the next append sets the torn line aside and tells of it.
        write_all(self._log, line)
        head = Head(seq, stated_hash(line))
        self._size += len(line)
        self._known = _Known(head, self._size)
        try:
            self._head.write(head)
        except OSError:
            # The frame is in the log; a `head` one behind is what the next append repairs, or refuses to go on with.
            self._head.forget()
        return Frame(0, self.session_id, seq, ts, self._host, source, kind, prev, body, head.hash, line)

    def _set_aside(self, start: int, end: int) -> str:
        """Moves the torn end of the log to a file of its own; returns the file's name."""
        name = f"torn-{time.time_ns()}"
        fd = os.open(name, NEW | os.O_EXCL, PRIVATE, dir_fd=self._dir)
        try:
            while part := os.pread(self._log, min(end - start, 1 << 20), start):
                write_all(fd, part)
                start += len(part)
            os.fsync(fd)
        finally:
            os.close(fd)
        return name

    def _refuse(self, reason: str, source: str, kind: str, body: Body, ts: int) -> bool:
        """Keeps a frame that was not appended; returns whether it could."""
        entry = {"ts": ts, "reason": reason, "session_id": self.session_id, "host": self._host}
        return keep_refused(self.directory, entry | {"source": source, "kind": kind, "body": body})
