"""What the session screen says in its bars: status, notice, keys.

Rule: derived anew each time from the feed, the book and the part in use; what must not be missed comes first. Mixed
into `SessionScreen`, which has all of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nd7tui.actions import REGISTRY, Context
from nd7tui.screens import status
from nd7tui.screens.base import Nd7Screen
from nd7tui.screens.layout import Part
from nd7tui.widgets.bars import Piece
from nd7tui.widgets.cells import clean, cut_middle, tilde

if TYPE_CHECKING:
    from nd7tui.screens.board import Board
    from nd7tui.screens.deciding import Chosen
    from nd7tui.screens.feed import Feed
    from nd7tui.widgets.agent_pane import AgentPane
    from nd7tui.widgets.bars import Bar
    from nd7tui.widgets.denial_list import DenialList
    from nd7tui.widgets.denials import DenialBook, DenialRow


class SessionBars(Nd7Screen):
    """The part of the session screen that speaks."""

    if TYPE_CHECKING:
        feed: Feed
        book: DenialBook
        denials: DenialList
        board: Board
        pane: AgentPane | None
        notice: Bar
        status: Bar
        program: tuple[str, ...]
        home: str
        ended: bool
        exit_status: int | None
        exit_signal: int | None
        _pending: bool
        _chosen: Chosen
        _clipboard: str | None

        @property
        def pane_in_use(self) -> bool: ...  # noqa: D102

        @property
        def supervisor_killed(self) -> bool: ...  # noqa: D102

        def grant_pieces(self) -> list[Piece]: ...  # noqa: D102

    def show_bars(self) -> None:
        """Writes all bars."""
        if not self.is_mounted:
            return
        feed, ended = self.feed, self.ended or self.feed.ended is not None
        ending = status.ending_words(self.exit_status, self.exit_signal, feed.ended) if ended else ""
        waiting = self.denials.asks()
        narrow = self.size.width < 100
        groups = {
            "enforced": status.enforced(feed.record, feed.record_fault, ended=ended),
            "unread": status.unread(self.book.unread, self.book.total),
            "chain": status.chain_state(feed.chain, short=narrow),
            "state": status.run_state(
                running=self.pane is not None and feed.run_exists,
                watched=self.pane is None,
                ending=ending,
                pid=None if narrow else feed.pid,
            ),
        }
        if waiting:
            groups = {"waiting": [Piece(f" {waiting} ASKED", "warn", "focus-denials")], **groups}
        self.status.show(status.status_line(self.size.width, groups))
        notice = self._notice(ending)
        self.notice.show(notice)
        self.board.change(notice=bool(notice))
        self.show_hints()

    def _notice(self, ending: str) -> list[Piece]:
        """Returns what must not be missed, most pressing first."""
        feed = self.feed
        if feed.chain.damaged:
            return [Piece(f" the log is DAMAGED: {feed.chain.damaged}", "bad")]
        if feed.error:
            return [Piece(f" rule file: the last good rules hold; {feed.error}", "bad")]
        if feed.record is not None and feed.record.enforced is not None and feed.record.enforced.partial:
            return [Piece(f" NOT ENFORCED here: {', '.join(feed.record.enforced.partial)}", "bad")]
        if self._clipboard is not None:
            chord = self.keymap.chord("clipboard")
            text = f" {status.program_name(self.program)} asks for the clipboard: {self._clipboard[:60]!r}; "
            return [Piece(text, "warn"), Piece(f"{chord} allows it", "key", "clipboard")]
        if self.supervisor_killed:
            return [Piece(" the supervisor was killed: the calls that it judges fail from now on", "bad")]
        if ending:
            return [Piece(f" {status.program_name(self.program)} {ending}", "strong"), *self._ended_keys()]
        return []

    def _ended_keys(self) -> list[Piece]:
        if self.board.part is Part.PANE:
            return []
        return [Piece(f"   {self.keymap.shown('ended-menu')} menu", "key", "ended-menu")]

    def hint_pieces(self) -> list[Piece]:
        """Returns the keys of the part in use; after the prefix, all of its keys."""
        if self._pending:
            return self._chord_pieces()
        if self.board.part is Part.DENIALS:
            return [*self.grant_pieces(), *self.key_pieces([Context.DENIALS])]
        if not self.pane_in_use:
            return self.key_pieces(self.contexts())
        return self._pane_pieces()

    def _pane_pieces(self) -> list[Piece]:
        prefix = self.keymap.shown("prefix")
        pieces = [Piece(f" {prefix} ", "key"), Piece("then ", "dim")]
        newest = self.book.newest()
        if newest is not None:
            target = cut_middle(tilde(clean(newest.target), self.home), max(24, self.size.width - 70))
            key = self.keymap.shown("allow-newest")
            pieces += [
                Piece(f"{key} ", "key", "allow-newest"),
                Piece(f"allow {newest.access.value} {target}  ", "warn", "allow-newest"),
            ]
        for name in ("focus-denials", "help", "menu", "deny-newest", "focus-log", "zoom", "quit"):
            action = next(action for action in REGISTRY if action.id == name)
            pieces += [Piece(f"{self.keymap.shown(name)} ", "key", name), Piece(f"{action.label}  ", "", name)]
        return pieces

    def _chord_pieces(self) -> list[Piece]:
        """Returns the keys after the prefix, before them what allow and deny mean right now."""
        allow, deny = self._chosen
        pieces = [Piece(f" {self.keymap.shown('prefix')} ", "strong")]
        room = max(24, self.size.width - 60)
        if allow is deny and allow is not None:
            pieces.append(Piece(f"[{self._asked(allow, room)}] ", "warn"))
        else:
            room = room if allow is None or deny is None else room // 2
            if allow is not None:
                pieces.append(
                    Piece(f"[{'allow' if allow.unread else 'allow again'}: {self._asked(allow, room)}] ", "warn")
                )
            if deny is not None:
                pieces.append(Piece(f"[{'deny' if deny.unread else 'take back'}: {self._asked(deny, room)}] ", "warn"))
        return [*pieces, *self.key_pieces([Context.PREFIX])[1:]]

    def _asked(self, row: DenialRow, room: int) -> str:
        return f"{row.access.value} {cut_middle(tilde(clean(row.target), self.home), room)}"
