"""The sessions there are, and finding one by what a person types.

Rule: reads only, creates nothing; looks at the first lines and the last one of each log, so listing costs the same
however long the logs are (counting denials reads them whole, and only when asked). Nothing here is verified.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from nd7tui.engine import paths
from nd7tui.engine.log import layout
from nd7tui.engine.log.ending import read_ending, read_exactly
from nd7tui.engine.log.faults import FrameError
from nd7tui.engine.log.frame import Frame, parse
from nd7tui.engine.records import dataclass
from nd7tui.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

_OPENING = 256 << 10
_OPENING_FRAMES = 20
_AGENTS = {"intent:claude-code": "claude", "intent:codex": "codex"}
_ENDS = frozenset({"run_end", "session_end"})
# Sorted names put `kind` before `source` in everything an agent wrote, so only an envelope reads like this.
_DENIAL = b'"source":"effect:seccomp","kind":"denial","prev":"'
_ENVELOPE_MOST = 2048


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """What a list of sessions shows of one.

    Attributes:
        session_id: Its id, verbatim (not safe to print as it is).
        path: Its directory.
        frames: How many frames it has, by the last one's seq.
        first_ts: Unix ns of the first frame, 0 when there is none.
        last_ts: Unix ns of the last one.
        agent: The program that was run, else the agent whose hooks wrote it, else empty.
        project: The directory it ran in, else empty.
        running: Whether a run that is alive names this session.
        ended: Whether the last frame says that it ended.
        denials: Refusals without noise and repeats, or None when not counted.
        size: Bytes of the log.
        torn: Whether its last line was cut short.
    """

    session_id: str
    path: str
    frames: int
    first_ts: int
    last_ts: int
    agent: str
    project: str
    running: bool
    ended: bool
    denials: int | None
    size: int
    torn: bool = False

    @property
    def events(self) -> str:
        """The path of its log, for `Tail`."""
        return os.path.join(self.path, layout.EVENTS)

    @property
    def state(self) -> str:
        """One word: `running`, `torn`, `ended`, or `open` when nothing says that it ended."""
        if self.running:
            return "running"
        return "torn" if self.torn else "ended" if self.ended else "open"


def list_sessions(root: str | None = None, *, count_denials: bool = False) -> list[SessionSummary]:
    """Returns the sessions, newest last frame first; directories without a log are left out.

    Args:
        root: The directory of all sessions; by default the state directory's.
        count_denials: Read every log whole, to count.
    """
    root = paths.sessions_dir() if root is None else root
    running = running_sessions()
    found = []
    for name in _names(root):
        session = _summarise(os.path.join(root, name), name in running, count_denials=count_denials)
        if session is not None:
            found.append(session)
    return sorted(found, key=lambda session: (session.last_ts, session.session_id), reverse=True)


def find_session(word: str, root: str | None = None) -> str:
    """Returns the id a person means: an id, the beginning of just one, or `last`.

    Raises:
        UsageError: None is meant, or several.
    """
    root = paths.sessions_dir() if root is None else root
    names = _names(root)
    if word in names:
        return word
    if word == "last":
        if not names:
            raise UsageError("there are no sessions", hint="start one: nd7 run claude")
        return max(names, key=lambda name: _modified(os.path.join(root, name)))
    matches = [name for name in names if word and name.startswith(word)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UsageError(f"{len(matches)} sessions begin with {word!a}", hint=f"for example {matches[0]!a}")
    raise UsageError(f"no session {word!a:.80}", hint="nd7 sessions lists them")


def running_sessions() -> set[str]:
    """Returns the ids of the sessions that live runs say they write."""
    ids = set()
    for name in _names(paths.runs_dir()):
        try:
            with open(os.path.join(paths.runs_dir(), name, "record.json"), "rb") as file:
                record = json.load(file)
            if _alive(int(name)):
                ids.add(str(record["session_id"]))
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            continue  # Half made, being removed, or not ours to judge: the run's own reader says so.
    return ids


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


def _names(root: str) -> list[str]:
    """Returns the names of the directories in `root`, none when it is missing."""
    try:
        with os.scandir(root) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir())
    except FileNotFoundError:
        return []


def _modified(directory: str) -> int:
    try:
        return os.stat(os.path.join(directory, layout.EVENTS)).st_mtime_ns
    except OSError:
        return -1


def _summarise(directory: str, running: bool, *, count_denials: bool) -> SessionSummary | None:
    try:
        fd = os.open(os.path.join(directory, layout.EVENTS), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as file:
        size = os.fstat(fd).st_size
        ending = read_ending(fd, size)
        last = _frame(ending.line)
        opening = _opening(read_exactly(fd, 0, min(size, _OPENING)))
        agent, project = _about(opening)
        return SessionSummary(
            session_id=os.path.basename(directory),
            path=directory,
            frames=0 if last is None else last.seq + 1,
            first_ts=opening[0].ts if opening else 0,
            last_ts=0 if last is None else last.ts,
            agent=agent,
            project=project,
            running=running,
            ended=last is not None and last.kind in _ENDS,
            denials=_count(file) if count_denials else None,
            size=size,
            torn=ending.complete < size,
        )


def _frame(line: bytes) -> Frame | None:
    try:
        return parse(line)
    except FrameError:
        return None


def _opening(data: bytes) -> list[Frame]:
    """Returns the first frames that can be read."""
    lines = data.split(b"\n", _OPENING_FRAMES)[:_OPENING_FRAMES]
    return [frame for line in lines if (frame := _frame(line)) is not None]


def _about(frames: list[Frame]) -> tuple[str, str]:
    """Returns the agent and the project a log's first frames tell of."""
    agent = next((_AGENTS[frame.source] for frame in frames if frame.source in _AGENTS), "")
    project = next((cwd for frame in frames if isinstance(cwd := frame.body.get("cwd"), str)), "")
    for frame in frames:
        argv = frame.body.get("argv")
        if frame.kind == "run_start" and isinstance(argv, list) and argv and isinstance(argv[0], str):
            return os.path.basename(argv[0]), project
    return agent, project


def _count(lines: Iterable[bytes]) -> int:
    """Returns how many frames tell of a refusal that is neither noise nor the repeat of one told of."""
    count = 0
    for line in lines:
        if line.find(_DENIAL, 0, _ENVELOPE_MOST) >= 0:
            frame = _frame(line)
            count += frame is not None and not (frame.body.get("noise") is True or frame.body.get("repeat_of"))
    return count
