"""Where a session's files are, and which session ids may name a directory.

Rule: a session id comes from an agent and becomes a directory's name verbatim, so it is checked here and nowhere
else. Computes names only; creates nothing.
"""

from __future__ import annotations

import os

from nd7tui.engine import paths
from nd7tui.errors import UsageError

EVENTS = "events.ndjson"
HEAD = "head"
HEAD_TMP = "head.tmp"
LOCK = "lock"
REFUSED = "refused.ndjson"
_NAME_MAX = 255


class SessionIdError(UsageError):
    """A session id that cannot name a directory."""

    def __init__(self, session_id: object, why: str) -> None:
        super().__init__(f"unusable session id {session_id!a:.80}: {why}")
        self.session_id = session_id


def check_session_id(session_id: object) -> str:
    r"""Returns the id when it can be a directory's name.

    Raises:
        SessionIdError: Not text, empty, `.`, `..`, with `/`, `\` or NUL, not Unicode, or over 255 bytes.
    """
    if not isinstance(session_id, str):
        raise SessionIdError(session_id, "it is not text")
    if session_id in {"", ".", ".."}:
        raise SessionIdError(session_id, "it names no directory of its own")
    if any(char in session_id for char in "/\\\0"):
        raise SessionIdError(session_id, "it has a slash, a backslash or a NUL")
    try:
        encoded = session_id.encode()
    except UnicodeEncodeError as error:
        raise SessionIdError(session_id, "it is not Unicode") from error
    if len(encoded) > _NAME_MAX:
        raise SessionIdError(session_id, f"it is longer than {_NAME_MAX} bytes")
    return session_id


def session_dir(session_id: str, root: str | None = None) -> str:
    """Returns the session's directory below `root` (by default the state directory's `sessions`).

    Raises:
        SessionIdError: The id cannot name a directory.
    """
    return os.path.join(paths.sessions_dir() if root is None else root, check_session_id(session_id))


def events_path(session_id: str, root: str | None = None) -> str:
    """Returns the path of the session's log.

    Raises:
        SessionIdError: The id cannot name a directory.
    """
    return os.path.join(session_dir(session_id, root), EVENTS)
