"""What becomes of a refused call: told at once, counted when it repeats, held when a person can be asked.

Rule: every refusal is answered exactly once, by a `Refuse` or by the policy that came to allow it, and every held call
has a deadline. The first of a kind is told at once; repeats within a second are one more frame with their number.
Owns: the windows in which repeats are counted, the held calls, and the targets a person has just been asked about.
Sans I/O: requests, policy answers and the time (nanoseconds, any clock that never goes back) come in, actions go out;
the supervisor carries them out in order.
Does not prove: that a held caller still waits. The supervisor asks the listener, and reports what it hears by `settle`.
"""

from __future__ import annotations

from enum import StrEnum

from nd7tui.engine.policy.rules import Access, Effect, Scope
from nd7tui.engine.records import dataclass, field
from nd7tui.engine.run.options import Ask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from nd7tui.engine.sandbox.outcome import Request

SECOND = 1_000_000_000
QUIET = 60 * SECOND
# A confined program chooses what it asks for; what it can make us remember is bounded. Beyond: refused at once.
MOST_HELD = 256
MOST_QUIET = 4096
MOST_WINDOWS = 4096


class Outcome(StrEnum):
    """How a held call ended."""

    ALLOWED = "allowed"
    DENIED = "denied"
    EXPIRED = "expired"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Tell:
    """A denial frame is due.

    Attributes:
        request: The call; for a count, the latest of the repeats.
        id: The frame's id, unique within the run (`d12`).
        count: How many calls the frame stands for.
        repeat_of: Id of the frame that told of the first of them.
        hold: How long the caller is held, ns; None when it is not.
        noise: Known noise: for the log only.
    """

    request: Request
    id: str
    count: int = 1
    repeat_of: str | None = None
    hold: int | None = None
    noise: bool = False


@dataclass(frozen=True, slots=True)
class Refuse:
    """The caller gets its errno."""

    request: Request


@dataclass(frozen=True, slots=True)
class Ended:
    """The question with this id is no longer open."""

    request: Request
    id: str
    outcome: Outcome


Action = Tell | Refuse | Ended
Key = tuple[str, Access, str, bytes, bytes | None, str]
Thing = tuple[Access, str, bytes]


def _key(request: Request) -> Key:
    return (request.op, request.access, request.kind, request.target, request.second, request.exe)


def _thing(request: Request) -> Thing:
    return (request.access, request.kind, request.target)


@dataclass(slots=True)
class _Window:
    """One second of the same denial."""

    first: str
    latest: Request
    ends: int
    noise: bool
    repeats: int = 0


@dataclass(slots=True)
class _Held:
    """One question and the callers that wait for its answer."""

    id: str
    key: Key
    deadline: int
    requests: list[Request] = field(default_factory=list)


class Denials:
    """The core; see the module.

    Args:
        hold: How long a caller may be held, ns; 0 never holds.
        ask: Which refusals are held.
        log_noise: Known noise gets frames too.
        is_noise: Tells known noise.
    """

    def __init__(self, hold: int, ask: Ask, *, log_noise: bool, is_noise: Callable[[Request], bool]) -> None:
        self._hold = hold
        self._ask = ask
        self._log_noise = log_noise
        self._is_noise = is_noise
        self._last_id = 0
        # Oldest first: every window and every hold lasts equally long, so the first is the next to end.
        self._windows: dict[Key, _Window] = {}
        self._held: dict[Key, _Held] = {}
        self._quiet: dict[Thing, int] = {}
        self._waiting = 0

    @property
    def waiting(self) -> int:
        """How many callers are held."""
        return self._waiting

    def held(self) -> list[Request]:
        """Returns every held call, oldest question first."""
        return [request for held in self._held.values() for request in held.requests]

    def next_due(self) -> int | None:
        """Returns the time at which `tick` has something to do, None if never."""
        dues = []
        if self._held:
            dues.append(next(iter(self._held.values())).deadline)
        if self._windows:
            dues.append(next(iter(self._windows.values())).ends)
        return min(dues, default=None)

    def arrive(self, request: Request, now: int) -> list[Action]:
        """Takes in one refused call. What is due ends first: a question past its deadline takes no more callers."""
        return [*self.tick(now), *self._take_in(request, now)]

    def settle(self, request: Request, outcome: Outcome, now: int) -> list[Action]:
        """Ends the wait of one held call: `ALLOWED` and `GONE` need no answer, the others refuse it."""
        held = self._held.get(_key(request))
        if held is None or request not in held.requests:
            return []
        held.requests.remove(request)
        self._waiting -= 1
        actions: list[Action] = []
        if outcome in {Outcome.DENIED, Outcome.EXPIRED}:
            self._be_quiet(request, now)
            actions.append(Refuse(request))
        if not held.requests:
            del self._held[held.key]
            actions.append(Ended(request, held.id, outcome))
        return actions

    def tick(self, now: int) -> list[Action]:
        """Ends what is due."""
        actions: list[Action] = []
        while (held := next(iter(self._held.values()), None)) is not None and held.deadline <= now:
            for request in list(held.requests):
                actions += self.settle(request, Outcome.EXPIRED, now)
        while (window := next(iter(self._windows.values()), None)) is not None and window.ends <= now:
            actions += self._close_window(window, now)
        while (until := next(iter(self._quiet.values()), None)) is not None and until <= now:
            del self._quiet[next(iter(self._quiet))]
        return actions

    def rules_changed(self) -> list[Action]:
        """Tells the counts so far and starts afresh, so that the first refusal by the new rules is told at once."""
        windows = list(self._windows.values())
        self._windows.clear()
        return [action for window in windows for action in self._tell_repeats(window)]

    def finish(self, now: int) -> list[Action]:
        """Ends everything: the run is over."""
        actions: list[Action] = []
        for request in self.held():
            actions += [*self.settle(request, Outcome.GONE, now), Refuse(request)]
        return actions + self.rules_changed()

    def _take_in(self, request: Request, now: int) -> list[Action]:
        key = _key(request)
        held = self._held.get(key)
        if held is not None and self._waiting < MOST_HELD:
            return self._join(held, request, now)
        noise = self._is_noise(request)
        if noise and not self._log_noise:
            return [Refuse(request)]
        if self._may_hold(request, noise=noise, now=now):
            return self._question(key, request, now)
        return [*self._count(key, request, now, noise=noise), Refuse(request)]

    def _next_id(self) -> str:
        self._last_id += 1
        return f"d{self._last_id}"

    def _may_hold(self, request: Request, *, noise: bool, now: int) -> bool:
        if noise or not self._hold or self._waiting >= MOST_HELD or self._quiet.get(_thing(request), 0) > now:
            return False
        verdict = request.verdict
        if verdict.effect is Effect.ASK:
            return self._ask is not Ask.NONE
        # What a person has denied, and what no answer could open, is not a question.
        final = verdict.rule is not None and verdict.rule.scope is not Scope.DEFAULT
        return self._ask is Ask.ALL and not final

    def _question(self, key: Key, request: Request, now: int) -> list[Action]:
        held = _Held(self._next_id(), key, now + self._hold, [request])
        self._held[key] = held
        self._waiting += 1
        return [*self._drop_window(key), Tell(request, held.id, hold=self._hold)]

    def _join(self, held: _Held, request: Request, now: int) -> list[Action]:
        held.requests.append(request)
        self._waiting += 1
        if held.key in self._windows:
            return self._count(held.key, request, now, noise=False)
        self._windows[held.key] = _Window(held.id, request, now + SECOND, noise=False, repeats=1)
        return []

    def _count(self, key: Key, request: Request, now: int, *, noise: bool) -> list[Action]:
        if (window := self._windows.get(key)) is not None:
            window.latest = request
            window.repeats += 1
            return []
        actions: list[Action] = []
        if len(self._windows) >= MOST_WINDOWS:
            actions += self._drop_window(next(iter(self._windows)))
        first = self._next_id()
        self._windows[key] = _Window(first, request, now + SECOND, noise)
        return [*actions, Tell(request, first, noise=noise)]

    def _close_window(self, window: _Window, now: int) -> list[Action]:
        """Tells the repeats; a denial that goes on is counted on, so that it is one frame a second and not two."""
        key = _key(window.latest)
        del self._windows[key]
        if not window.repeats:
            return []
        actions = self._tell_repeats(window)
        self._windows[key] = _Window(window.first, window.latest, now + SECOND, window.noise)
        return actions

    def _drop_window(self, key: Key) -> list[Action]:
        window = self._windows.pop(key, None)
        return self._tell_repeats(window) if window else []

    def _tell_repeats(self, window: _Window) -> list[Action]:
        if not window.repeats:
            return []
        return [Tell(window.latest, self._next_id(), window.repeats, window.first, noise=window.noise)]

    def _be_quiet(self, request: Request, now: int) -> None:
        self._quiet.pop(_thing(request), None)
        while len(self._quiet) >= MOST_QUIET:
            del self._quiet[next(iter(self._quiet))]
        self._quiet[_thing(request)] = now + QUIET
