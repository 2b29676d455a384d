"""What becomes of one notified system call, and what is told of it when policy says no.

Rule: a handler decides by returning one of these; only the gate talks to the listener. `CONTINUE` may be returned
only for what the Landlock floor enforces by itself, because the caller can change its memory after we looked
(Source: seccomp_unotify(2), NOTES).
"""

from __future__ import annotations

from nd7tui.engine.records import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from nd7tui.engine.policy.rules import Access, Verdict
    from nd7tui.engine.sandbox.call import Call


@dataclass(frozen=True, slots=True)
class Continue:
    """The kernel runs the call itself; the floor is the judge."""


@dataclass(frozen=True, slots=True)
class Value:
    """The call was done here; the caller gets `value` as its result."""

    value: int = 0


@dataclass(frozen=True, slots=True)
class Errno:
    """The call was tried here and failed, or is not available inside; the caller gets `-errno`."""

    errno: int


@dataclass(frozen=True, slots=True)
class Inject:
    """The caller gets `fd` (of this process, closed afterwards) as a new descriptor of its own."""

    fd: int
    cloexec: bool


@dataclass(frozen=True, slots=True)
class Pending:
    """`work` may block: a worker thread runs it and answers with the outcome it returns.

    `work` receives a function that tells whether the caller is still waiting; it must return soon once it is not.
    """

    work: Callable[[Callable[[], bool]], Outcome]


@dataclass(slots=True)
class Request:
    """One call that policy refuses or asks about, still unanswered.

    Attributes:
        id: The notification's id.
        tid: The calling thread.
        pid: Its process (thread group).
        op: The system call's name.
        access: What was wanted.
        kind: `path`, `host` or `socket`.
        target: Canonical path, `address:port/proto`, or unix socket path (`@name` when abstract).
        second: The other side of a rename or link, if any.
        verdict: What policy said and by which rule.
        errno: What the caller gets if it is refused.
        comm: The thread's name.
        exe: The program it runs.
    """

    id: int
    tid: int
    pid: int
    op: str
    access: Access
    kind: str
    target: bytes
    verdict: Verdict
    errno: int
    comm: str = ""
    exe: str = ""
    second: bytes | None = None
    call: Call | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Refused:
    """Policy says no, or asks."""

    request: Request


@dataclass(frozen=True, slots=True)
class Fault:
    """A call that was refused because judging or doing it failed here: a defect of ours, not a decision.

    Attributes:
        pid: The caller's process.
        op: The system call's name.
        error: What failed.
        comm: The thread's name.
    """

    pid: int
    op: str
    error: str
    comm: str = ""


Outcome = Continue | Value | Errno | Inject | Pending | Refused
CONTINUE = Continue()
