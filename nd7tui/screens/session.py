"""The session screen: the program's pane, what was refused, the log, what is enforced.

Rule: while the pane is in use every key but the prefix goes to the program; a denial never takes the focus and never a
key. Which denial the prefix keys mean is settled when the prefix is pressed, so that one arriving in between is not
answered by mistake. The screen owns no truth: rows come from the log, answers go to the rule file.

Owns: which part is in use, the prefix, the pane's child. A session that is only watched has no pane.
"""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING

from textual import on, work
from textual.worker import get_current_worker

from nd7tui.actions import Action, Context, Facts
from nd7tui.engine import paths
from nd7tui.engine.log.tail import Damaged
from nd7tui.engine.policy.rules import Scope
from nd7tui.engine.run.options import new_session_id
from nd7tui.errors import Nd7Error
from nd7tui.messages import Polled
from nd7tui.screens import rulebook, status
from nd7tui.screens.base import Nd7Screen
from nd7tui.screens.board import Board
from nd7tui.screens.deciding import Chosen, Deciding
from nd7tui.screens.feed import Feed
from nd7tui.screens.launch import Launch, run_command
from nd7tui.screens.layout import Part
from nd7tui.screens.session_bars import SessionBars
from nd7tui.widgets.bars import Bar
from nd7tui.widgets.cells import clean
from nd7tui.widgets.denial_list import DenialList
from nd7tui.widgets.denials import DenialBook, State
from nd7tui.widgets.frame_list import MOST_TAIL_ROWS, FrameList, damaged_row, row_of
from nd7tui.widgets.row_view import RowView

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual import events
    from textual.app import ComposeResult

    from nd7tui.engine.run.directory import Run
    from nd7tui.widgets.agent_pane import AgentPane
    from nd7tui.widgets.denials import DenialRow

    PaneFactory = Callable[[list[str], str | None], AgentPane]

POLL_SECONDS = 0.04
ENDED_ARM_SECONDS = 1.0
FRESH = 2_000_000_000
PLAYED = "the demo answers its own questions; nd7 tui demo --manual leaves the keys to you"


def make_pane(argv: list[str], cwd: str | None) -> AgentPane:
    """Returns the real pane."""
    from nd7tui.widgets.agent_pane import AgentPane

    return AgentPane(argv, cwd=cwd)


class SessionScreen(Deciding, SessionBars, Nd7Screen):
    """One session, with the program in a pane (`launch`) or watched from outside (`run`)."""

    DEFAULT_CSS = """
    SessionScreen #pane { border-top: solid $primary; &:focus { border-top: heavy $accent; } }
    SessionScreen #log { padding-left: 1; }
    SessionScreen #notice { background: $warning-muted; }
    SessionScreen #status { background: $panel; }
    """

    def __init__(
        self, launch: Launch | None = None, run: Run | None = None, *, pane_factory: PaneFactory = make_pane
    ) -> None:
        super().__init__()
        self.launch = launch
        self.pane: AgentPane | None = None
        if launch is not None:
            session_id = launch.session_id or new_session_id()
            self.feed = Feed(session_id)
            self.pane = pane_factory(run_command(launch, session_id), launch.cwd)
            self.pane.id = Part.PANE.value
            self.program = launch.program
        elif run is not None and run.record is not None:
            self.feed = Feed(run.record.session_id, run.pid)
            self.program = run.record.argv
        else:
            raise ValueError("a session screen needs a launch, or a run to watch")
        self.on_ended: Callable[[SessionScreen], None] | None = None
        self.home = paths.home()
        self.book = DenialBook()
        self.denials = DenialList(self.book, self.home, id=Part.DENIALS.value)
        self.log_tail = FrameList(follow=True, most=MOST_TAIL_ROWS, home=self.home, id=Part.LOG.value)
        self.notice = Bar(id=Part.NOTICE.value)
        self.status = Bar(id=Part.STATUS.value)
        parts = [self.notice, self.denials, self.log_tail, self.status, self.hints]
        self.board = Board(*([self.pane] if self.pane else []), *parts, pane=self.pane is not None)
        self.ended = False
        self.exit_status: int | None = None
        self.exit_signal: int | None = None
        self._ended_at = 0.0
        self._pending = False
        self._chosen = Chosen()
        self._clipboard: str | None = None
        self._first_read = True

    # --- life

    def compose(self) -> ComposeResult:
        """Composes the board; the hints are one of its parts."""
        from nd7tui.screens.base import TooSmall

        yield self.board
        yield TooSmall(id="too-small")

    def on_mount(self) -> None:
        """Starts reading."""
        self.denials.reload()
        self.log_tail.border_title = "log"
        if self.pane is not None:
            self.pane.border_title = clean(" ".join(self.program))
        self.focus_part(self.board.part)
        self.set_interval(0.5, self._tick)
        self._watch()
        if self.launch is not None and self.launch.plays_itself:
            self._play_demo()

    @work(exclusive=True, exit_on_error=True)
    async def _watch(self) -> None:
        """Polls the logs and the rule file, a little at a time; when nothing is new that is two `stat` calls."""
        while True:
            self._find_pid()
            news = self.feed.poll()
            if news.items or news.record:
                self.post_message(Polled(news))
            await asyncio.sleep(0 if news.more else POLL_SECONDS)

    @work(thread=True)
    def _play_demo(self) -> None:
        """Answers for the person, from outside the run and by the log alone, until the demo has ended."""
        from nd7tui.engine.agents.demo_driver import drive_demo

        worker = get_current_worker()
        self.app.call_from_thread(self.say, PLAYED, "warn", 12.0)
        try:
            drive_demo(self.feed.session_id, lambda: self.ended or worker.is_cancelled)
        except (Nd7Error, OSError) as error:
            if not worker.is_cancelled:
                self.app.call_from_thread(self.say_error, error)

    def _find_pid(self) -> None:
        process = getattr(self.pane, "process", None)
        if self.feed.pid is None and process is not None:
            self.feed.pid = process.pid

    def on_unmount(self) -> None:
        """Closes the files."""
        self.feed.close()

    @on(Polled)
    def _take(self, message: Polled) -> None:
        """Takes in frames and rules."""
        news, now = message.news, time.time_ns()
        rows = []
        for item in news.items:
            if isinstance(item, Damaged):
                rows.append(damaged_row(item))
                continue
            rows.append(row_of(item))
            # What was in the log long before this screen is history, not news; what still waits is news.
            seen = self.pane is None and item.ts < self.feed.started - FRESH
            self.book.take(item, now, seen=seen)
        if news.record:
            self.book.set_policy(self.feed.policy)
        if rows:
            self.log_tail.add(rows)
        self.denials.reload()
        self.show_bars()

    def _tick(self) -> None:
        """Counts the seconds down; when nothing is asked, nothing in the list changes by itself."""
        if self.denials.asks():
            self.denials.reload()
        self.show_bars()

    def resized(self) -> None:
        """Gives the focus back when the screen is big enough again."""
        if not self.too_small:
            self.call_after_refresh(self.focus_part, self.board.part)

    # --- which part is in use

    @property
    def pane_in_use(self) -> bool:
        """Whether keys belong to the program."""
        return self.pane is not None and not self.ended and self.board.part is Part.PANE

    @property
    def supervisor_killed(self) -> bool:
        """Whether the run's supervisor ended without its last frame; it has had a second to write one."""
        gone = self.ended and self.exit_signal is not None and time.monotonic() - self._ended_at > ENDED_ARM_SECONDS
        return gone and self.feed.ended is None and self.feed.chain.frames > 0

    def focus_part(self, part: Part) -> None:
        """Puts a part in use."""
        if self.board.part is Part.DENIALS and part is not Part.DENIALS:
            self.book.read_all()
            self.denials.reload()
        self.denials.in_use = part is Part.DENIALS
        zoom = self.board.zoom and part is Part.PANE
        self.board.change(part=part, zoom=zoom)
        widget = {Part.PANE: self.pane, Part.DENIALS: self.denials, Part.LOG: self.log_tail}.get(part)
        if widget is not None:
            self.call_after_refresh(widget.focus)
        self.show_bars()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Follows a click into another part."""
        part = {Part.PANE.value: Part.PANE, Part.DENIALS.value: Part.DENIALS, Part.LOG.value: Part.LOG}.get(
            event.widget.id or ""
        )
        if part is not None and part is not self.board.part:
            self.focus_part(part)

    def contexts(self) -> list[Context]:
        """Returns where a key is looked up that is not the program's."""
        here = {Part.DENIALS: Context.DENIALS, Part.LOG: Context.LOG}.get(self.board.part)
        contexts = [here] if here else []
        return [*contexts, Context.ENDED] if self.ended else contexts

    # --- keys

    def take_key(self, event: events.Key) -> bool:
        """Takes a key: the prefix and what follows it, else the program's, else by the part in use."""
        if self._pending:
            return self._after_prefix(event)
        if event.key == self.keymap.prefix:
            self._begin_chord()
            return True
        if self.too_small:
            return True
        if self.pane_in_use and self.pane is not None:
            self.pane.send_key(event)
            return True
        if self.ended and self.board.part is Part.PANE and time.monotonic() - self._ended_at < ENDED_ARM_SECONDS:
            # It was meant for the program, which had just gone.
            self.say("the program has just ended; that key did nothing")
            return True
        if self.board.part is Part.DENIALS and self.guard_key(event):
            return True
        return super().take_key(event)

    def _begin_chord(self) -> None:
        self._pending = True
        self._chosen = Chosen.of(self.book)
        self._message_until = 0.0
        self.show_hints()

    def _after_prefix(self, event: events.Key) -> bool:
        self._pending = False
        key = event.key
        if key == self.keymap.prefix:
            if self.pane_in_use and self.pane is not None:
                self.pane.send_key(event)
        elif key != "escape":
            action = self.keymap.find([Context.PREFIX], key)
            if action is None:
                self.say(f"no key {key} after {self.keymap.shown('prefix')}; {self.keymap.chord('help')} lists them")
            else:
                self.perform(action)
        self.call_after_refresh(self.show_hints)
        return True

    def perform_clicked(self, action: Action) -> None:
        """A click on a key after the prefix means the newest denial, as the chord does."""
        if action.context is Context.PREFIX:
            self._chosen = Chosen.of(self.book)
        self.perform(action)

    # --- what actions depend on

    def facts(self, action: Action) -> Facts:
        """Returns what decides whether `action` can run."""
        if action.context is Context.PREFIX:
            row = {"allow-newest": self._chosen.allow, "deny-newest": self._chosen.deny}.get(action.id)
        else:
            row = self.denials.current
        return self.facts_about(row)

    def facts_about(self, row: DenialRow | None) -> Facts:
        """Returns the facts about one denial of this session."""
        now = time.time_ns()
        state = self.book.state(row, now) if row else None
        level = self.denials.level
        return Facts(
            running=self.pane is not None and not self.ended,
            pane=self.pane is not None,
            writable=self.feed.run is not None,
            row=row is not None,
            armed=row is not None and self.book.armed(row, now),
            allowed=state is State.ALLOWED,
            denied=state is State.DENIED,
            unread=self.book.unread,
            session=self.feed.chain.frames > 0 or bool(self.feed.chain.damaged),
            never=row is not None and bool(rulebook.never_reason(self.book.policy, row.access, row.raw)),
            clipboard=self._clipboard is not None,
            can_widen=self.can_widen(row),
            widened=level > 0,
        )

    # --- what the pane says

    def on_agent_pane_exited(self, message: AgentPane.Exited) -> None:
        """The program ended; the screen stays."""
        self.ended, self._ended_at = True, time.monotonic()
        self.exit_status, self.exit_signal = message.status, message.signal
        self.board.change(zoom=False)
        if message.error:
            self.say(message.error, "bad", 12.0)
        self.show_bars()
        if self.on_ended is not None:
            self.on_ended(self)

    def on_agent_pane_ready(self, message: AgentPane.Ready) -> None:
        """The program runs."""
        if message.notice:
            self.say(message.notice, "warn")

    def on_agent_pane_title_changed(self, message: AgentPane.TitleChanged) -> None:
        """Shows the program's title, beside its name: it is the program's words."""
        if self.pane is not None:
            name = clean(" ".join(self.program))
            self.pane.border_title = f"{name} ({clean(message.title)})" if message.title else name

    def on_agent_pane_bell(self) -> None:
        """Rings."""
        self.app.bell()

    def on_agent_pane_notification(self, message: AgentPane.Notification) -> None:
        """Says the program's words as the program's."""
        self.say(f"{status.program_name(self.program)} says: {clean(message.text)[:200]}")

    def on_agent_pane_clipboard_asked(self, message: AgentPane.ClipboardAsked) -> None:
        """Asks; the agent is not trusted with the clipboard."""
        self._clipboard = message.text
        self.show_bars()

    @on(RowView.Chosen)
    def _chosen_row(self, message: RowView.Chosen) -> None:
        """A double click is enter."""
        if message.view is self.denials:
            self.do_denial_details()
        elif message.view is self.log_tail:
            self.do_log_details()

    # --- actions

    def do_focus_denials(self) -> None:
        """To the denial list."""
        self.focus_part(Part.DENIALS)

    def do_focus_log(self) -> None:
        """To the log."""
        self.focus_part(Part.LOG)

    def do_focus_pane(self) -> None:
        """Back to the program; in a session that is only watched, back to the menu."""
        if self.pane is None:
            self.do_menu()
        else:
            self.focus_part(Part.PANE)

    do_denials_to_pane = do_log_to_pane = do_focus_pane

    def do_zoom(self) -> None:
        """The pane alone, and back."""
        self.focus_part(Part.PANE)
        self.board.change(zoom=not self.board.zoom)

    def do_log_follow(self) -> None:
        """To the end of the log, and on with it."""
        self.log_tail.follow = True
        self.log_tail.rows_changed()

    def do_log_details(self) -> None:
        """The frame under the cursor."""
        from nd7tui.screens.details import FrameDetails, read_frame

        row = self.log_tail.current
        if row is None:
            return
        frame = read_frame(self.feed.events, row.seq)
        if frame is None:
            self.say(row.fault or "that frame is in a linked session's log", "warn")
        else:
            self.app.push_screen(FrameDetails(frame))

    def do_log_review(self) -> None:
        """The whole log."""
        from nd7tui.screens.review import ReviewScreen

        self.app.push_screen(ReviewScreen(os.path.dirname(self.feed.events)))

    do_ended_review = do_log_review

    def do_verify_session(self) -> None:
        """Checks the chain, and what it is linked with."""
        from nd7tui.screens.verify import VerifyScreen

        self.app.push_screen(VerifyScreen([os.path.dirname(self.feed.events)]))

    do_ended_verify = do_verify_session

    def do_show_rules(self) -> None:
        """The rules in force."""
        from nd7tui.screens.rules import RulesScreen

        self.app.push_screen(RulesScreen(self.feed.run, self.feed.policy))

    def do_clipboard(self) -> None:
        """Copies what the program asked for."""
        text, self._clipboard = self._clipboard, None
        if text is not None:
            self.app.copy_to_clipboard(text)
            self.say(f"copied {len(text)} characters for the program")
        self.show_bars()

    def do_menu(self) -> None:
        """The menu; the program keeps running."""
        self.app.pop_screen()

    do_ended_menu = do_menu

    def do_ended_restart(self) -> None:
        """Starts the same again, as a new session."""
        if self.launch is not None:
            again = Launch(self.launch.program, self.launch.options, self.launch.cwd)
            self.app.call_later(self.app.start_session, again)  # type: ignore[attr-defined]

    # --- for the answers

    def scope_words(self, scope: Scope) -> str:
        """Returns how long an answer lasts, in words."""
        return {Scope.ONCE: "for one call", Scope.RUN: "until this run ends"}.get(scope, "in every run of this project")
