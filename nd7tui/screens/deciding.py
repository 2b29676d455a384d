"""Answering denials: the allow and deny keys of the session screen.

Rule: a key answers only what the person could see: the denial was on screen for half a second, and the key did not
come in a burst (a paste that lost its brackets). Everything that widens is a rule in the run's file; "always" asks
again, with the exact path and scope, and Cancel is what enter presses.

Owns: the burst guard. Mixed into `SessionScreen`, which has the rows.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

from nd7tui.actions import Context
from nd7tui.engine.policy.rules import Effect, Scope
from nd7tui.errors import Nd7Error
from nd7tui.screens import rulebook
from nd7tui.widgets.bars import Piece
from nd7tui.widgets.cells import clean, cut_middle, tilde
from nd7tui.widgets.denials import can_widen, widened

if TYPE_CHECKING:
    from textual import events
    from textual.app import App
    from textual.timer import Timer

    from nd7tui.actions import Action, Keymap
    from nd7tui.engine.policy.rules import Rule
    from nd7tui.screens.feed import Feed
    from nd7tui.widgets.denial_list import DenialList
    from nd7tui.widgets.denials import DenialBook, DenialRow

BURST_SECONDS = 0.05
PASTE_SECONDS = 0.5
DECISIONS = frozenset({"allow-run", "allow-once", "allow-always", "deny"})


class Chosen(NamedTuple):
    """Which denials the keys after the prefix mean, settled when the prefix is pressed.

    Attributes:
        allow: As `DenialBook.to_allow` says.
        deny: As `DenialBook.to_deny` says.
    """

    allow: DenialRow | None = None
    deny: DenialRow | None = None

    @classmethod
    def of(cls, book: DenialBook) -> Chosen:
        """Chooses."""
        now = time.time_ns()
        return cls(book.to_allow(now), book.to_deny(now))


class Deciding:
    """The part of the session screen that answers."""

    if TYPE_CHECKING:
        app: App[object]
        feed: Feed
        book: DenialBook
        denials: DenialList
        keymap: Keymap
        home: str
        _chosen: Chosen
        _message_until: float

        def say(self, text: str, role: str = "strong", seconds: float = 6.0) -> None: ...  # noqa: D102
        def say_error(self, error: Exception) -> None: ...  # noqa: D102
        def perform(self, action: Action) -> None: ...  # noqa: D102
        def scope_words(self, scope: Scope) -> str: ...  # noqa: D102

    _last_key = 0.0
    _last_paste = 0.0
    _due: Timer | None = None

    # --- the burst guard

    def note_paste(self) -> None:
        """A paste arrived: what follows at once is no answer."""
        self._last_paste = time.monotonic()
        self._stop_due()

    def guard_key(self, event: events.Key) -> bool:
        """Takes a key of the denial list that decides: it counts when no other key comes right before or after it."""
        now, before = time.monotonic(), self._last_key
        self._last_key = now
        if self._due is not None:
            self._stop_due()
            self.say("ignored: several keys at once look like a paste", "warn")
            return True
        action = self.keymap.find([Context.DENIALS], event.key)
        if action is None or action.id not in DECISIONS:
            return False
        if (event.is_printable and now - before < BURST_SECONDS) or now - self._last_paste < PASTE_SECONDS:
            self.say("ignored: that looks like a paste", "warn")
            return True
        self._due = self.denials.set_timer(BURST_SECONDS, lambda: self._decide(action))
        return True

    def _decide(self, action: Action) -> None:
        self._due = None
        self.perform(action)

    def _stop_due(self) -> None:
        if self._due is not None:
            self._due.stop()
            self._due = None

    # --- what is offered

    def can_widen(self, row: DenialRow | None) -> bool:
        """Tells whether the next grant can cover one more directory."""
        return row is not None and can_widen(row, self.denials.level)

    def grant_pieces(self) -> list[Piece]:
        """Returns what the next grant covers, when it is not the path itself."""
        row = self.denials.current
        if row is None or not self.denials.level:
            return []
        wide = tilde(clean(os.fsdecode(self.denials.target)), self.home)
        return [Piece(f" grant covers {cut_middle(wide, 40)}/ and all beneath it ", "warn")]

    # --- answers

    def do_allow_newest(self) -> None:
        """Allows the denial chosen when the prefix was pressed."""
        if self._chosen.allow is not None:
            self._allow(self._chosen.allow, Scope.RUN, 0)

    def do_deny_newest(self) -> None:
        """Denies the one chosen for it, or takes its grant back."""
        if self._chosen.deny is not None:
            self._deny(self._chosen.deny)

    def do_allow_run(self) -> None:
        """Allows the denial under the cursor until the run ends."""
        self._allow_current(Scope.RUN)

    def do_allow_once(self) -> None:
        """Allows one call."""
        self._allow_current(Scope.ONCE)

    def do_allow_always(self) -> None:
        """Asks again, then allows it in every run of the project."""
        from nd7tui.screens.dialogs import Confirm

        row = self.denials.current
        if row is None or self.feed.record is None:
            return
        level = self.denials.level
        target = rulebook.target_of(row, level)
        lines = [
            f"allow   {row.access.value}",
            f"path    {clean(rulebook.target_words(target))}",
            f"in      every run whose project is {clean(os.fsdecode(self.feed.record.project))}",
            "until   you remove it from ~/.config/nd7/config.toml",
        ]
        self.app.push_screen(
            Confirm("Allow this always?", lines, "Allow always", danger=True),
            lambda sure: self._always(row, level) if sure else None,
        )

    def do_deny(self) -> None:
        """Takes the grant back, or denies."""
        row = self.denials.current
        if row is not None:
            self._deny(row)

    def _allow_current(self, scope: Scope) -> None:
        row = self.denials.current
        if row is not None:
            self._allow(row, scope, self.denials.level)
            self.denials.level = 0

    def _allow(self, row: DenialRow, scope: Scope, level: int) -> None:
        run = self.feed.run
        if run is None:
            return
        rule = rulebook.allow(run, row, self.book.policy, scope, level)
        row.unread = False
        self.say(f"allowed {self._words(rule)} {self.scope_words(scope)}")

    def _always(self, row: DenialRow, level: int) -> None:
        try:
            rule = rulebook.allow_always(self.feed.run, self.feed.record, row, self.book.policy, level)
        except (Nd7Error, OSError) as error:
            self.say_error(error)
            return
        row.unread = False
        self.say(f"allowed {self._words(rule)} {self.scope_words(Scope.PROJECT)}")

    def _deny(self, row: DenialRow) -> None:
        run = self.feed.run
        if run is None:
            return
        rule = rulebook.take_back_or_deny(run, row, self.book.policy)
        row.unread = False
        verb = "took back" if rule.effect is Effect.ALLOW else "denied"
        self.say(f"{verb} {self._words(rule)}")

    def _words(self, rule: Rule) -> str:
        return f"{rule.access.value} {tilde(clean(rulebook.target_words(rule.target)), self.home)}"

    # --- the rest of the list's keys

    def do_widen(self) -> None:
        """The next grant covers one more directory."""
        self.denials.widen(+1)
        self._message_until = 0.0

    def do_narrow(self) -> None:
        """One less."""
        self.denials.widen(-1)
        self._message_until = 0.0

    def do_denial_details(self) -> None:
        """Everything about the denial under the cursor."""
        from nd7tui.screens.details import DenialDetails

        row = self.denials.current
        if row is not None:
            self.app.push_screen(DenialDetails(row, self.book.verdict(row)))

    def do_copy_target(self) -> None:
        """Copies what the next grant would cover."""
        row = self.denials.current
        if row is not None:
            text = clean(os.fsdecode(widened(row.raw, self.denials.level)))
            self.app.copy_to_clipboard(text)
            self.say(f"copied {text}")

    def do_noise(self) -> None:
        """Known noise shown or hidden."""
        self.denials.show_noise = not self.denials.show_noise
        self.denials.reload()
        shown = "shown" if self.denials.show_noise else "hidden"
        self.say(f"known noise {shown} ({self.book.hidden})")
