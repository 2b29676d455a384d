"""The one action registry: every key the UI answers, once.

Rule: footer, help screen, `docs/keys.md`, the user's `[keys]` table and the key dispatch all read `REGISTRY`; a key
that is not here does nothing of ours. An action that cannot run now says why (`why_disabled`), never nothing.

Owns: the registry, the facts an action may depend on, the user's keymap. Pure: no Textual, no files.
A keymap that loads does not prove that the outer terminal can send those keys.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

DEFAULT_PREFIX = "ctrl+g"
PREFIX_ID = "prefix"


class Context(StrEnum):
    """Where an action's key is listened to; the value is the heading in help."""

    PREFIX = "From the pane, after the prefix key"
    DENIALS = "In the denial list"
    LOG = "In the log"
    ENDED = "After the program has ended"
    HOME = "In the menu"
    SESSIONS = "In the list of past sessions"
    RUNNING = "In the list of running sessions"
    REVIEW = "While reviewing a session"
    VERIFY = "While verifying"
    RULES = "In the list of rules"
    BACK = "On every screen above another"


@dataclass(frozen=True, slots=True)
class Facts:
    """What the current screen knows that decides whether an action can run.

    Attributes:
        running: A program of ours runs in the pane.
        pane: The screen has an agent pane (a watched session has none).
        writable: There is a live run whose rule file can be written.
        row: A denial is under the cursor (or is the newest one, for the prefix keys).
        armed: That denial has been on screen long enough to be decided.
        allowed: A live rule of this run allows what that denial asked for.
        denied: A live rule of this run denies it.
        unread: Number of denials nobody has looked at.
        session: A session is known (its log can be verified or reviewed).
        rule: A live rule is under the cursor.
        never: Nothing may allow what that denial asked for.
        clipboard: The program wants to put something on the clipboard.
        can_widen: The grant can still be widened to the parent directory.
        widened: The grant is wider than the path itself.
    """

    running: bool = False
    pane: bool = False
    writable: bool = False
    row: bool = False
    armed: bool = False
    allowed: bool = False
    denied: bool = False
    unread: int = 0
    session: bool = False
    rule: bool = False
    never: bool = False
    clipboard: bool = False
    can_widen: bool = False
    widened: bool = False


Why = Callable[[Facts], "str | None"]


def _always(_: Facts) -> str | None:
    return None


def _needs_row(facts: Facts) -> str | None:
    return None if facts.row else "no denial here"


def _can_decide(facts: Facts) -> str | None:
    if not facts.row:
        return "no denial to decide"
    if not facts.writable:
        return "the run is over: its rules are gone with it"
    if not facts.armed:
        return "this denial has only just appeared: look, then press again"
    return None


def _can_allow(facts: Facts) -> str | None:
    if reason := _can_decide(facts):
        return reason
    if facts.never:
        return "on the never-list: nothing can allow this"
    return "already allowed" if facts.allowed else None


def _can_always(facts: Facts) -> str | None:
    # An answer for every later run may follow an answer for this one.
    return _can_allow(replace(facts, allowed=False))


def _can_deny(facts: Facts) -> str | None:
    return _can_decide(facts) or ("already denied by a rule" if facts.denied else None)


def _needs_pane(facts: Facts) -> str | None:
    return None if facts.pane else "this session is only watched: its program runs in another terminal"


def _needs_session(facts: Facts) -> str | None:
    return None if facts.session else "no session here"


def _can_restart(facts: Facts) -> str | None:
    return _needs_pane(facts) or ("the program still runs" if facts.running else None)


def _needs_rule(facts: Facts) -> str | None:
    if not facts.writable:
        return "the run is over: its rules are gone with it"
    return None if facts.rule else "no live rule under the cursor; the rules of the start cannot be taken back"


def _needs_clipboard(facts: Facts) -> str | None:
    return None if facts.clipboard else "the program has not asked for the clipboard"


def _can_widen(facts: Facts) -> str | None:
    return _needs_row(facts) or (None if facts.can_widen else "cannot be made wider")


def _can_narrow(facts: Facts) -> str | None:
    return _needs_row(facts) or (None if facts.widened else "already the path itself")


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a person can do.

    Attributes:
        id: The name in `[keys]`, in `do_<id>` methods and in tests.
        label: At most two words, for the footer.
        key: The default key, in Textual's spelling.
        context: Where the key is listened to.
        help: One line for the help screen.
        danger: It widens what the program may do, or ends something.
        why_disabled: Says why it cannot run now, or None.
        footer: Whether the footer has room for it.
    """

    id: str
    label: str
    key: str
    context: Context
    help: str
    danger: bool = False
    why_disabled: Why = field(default=_always)
    footer: bool = True


_P, _D, _L, _E = Context.PREFIX, Context.DENIALS, Context.LOG, Context.ENDED
_H, _S, _U, _R = Context.HOME, Context.SESSIONS, Context.RUNNING, Context.REVIEW

# fmt: off
REGISTRY: tuple[Action, ...] = (
    Action("allow-newest", "allow", "a", _P, "allow the newest unread denial for this run; or undo the last deny",
           True, _can_allow),
    Action("deny-newest", "deny", "d", _P, "deny the newest unread denial, or take back the last grant if it is newer",
           why_disabled=_can_deny),
    Action("focus-denials", "denials", "l", _P, "go to the denial list"),
    Action("menu", "menu", "w", _P, "the menu; the program keeps running"),
    Action("help", "help", "question_mark", _P, "all keys"),
    Action("quit", "quit", "q", _P, "leave nd7; asks while a program still runs", danger=True),
    Action("focus-log", "log", "o", _P, "go to the log"),
    Action("focus-pane", "pane", "p", _P, "go back to the program's pane", why_disabled=_needs_pane),
    Action("zoom", "zoom", "z", _P, "the pane alone on the screen, and back", why_disabled=_needs_pane),
    Action("show-rules", "rules", "r", _P, "the rules in force, and taking grants back", why_disabled=_needs_session),
    Action("verify-session", "verify", "v", _P, "check this session's hash chain", why_disabled=_needs_session),
    Action("clipboard", "clipboard", "c", _P, "let the program put what it asked for on the clipboard", True,
           _needs_clipboard, footer=False),
    Action("mouse", "mouse", "m", _P, "mouse capture on or off (off: select text with the terminal)"),

    Action("allow-run", "allow", "a", _D, "allow this until the run ends", True, _can_allow),
    Action("allow-once", "once", "o", _D, "allow this for one system call", True, _can_allow),
    Action("allow-always", "always", "A", _D, "allow this in every run of this project; asks again, with the scope",
           True, _can_always),
    Action("deny", "deny", "d", _D, "take the grant back, or deny this whatever else is allowed",
           why_disabled=_can_deny),
    Action("widen", "wider", "plus", _D, "the next grant covers the parent directory instead", why_disabled=_can_widen),
    Action("narrow", "narrower", "minus", _D, "one directory back towards the path itself", why_disabled=_can_narrow,
           footer=False),
    Action("denial-details", "details", "enter", _D, "the whole frame: ancestors, rule, reason",
           why_disabled=_needs_row),
    Action("copy-target", "copy", "c", _D, "copy the path or address to the clipboard", why_disabled=_needs_row,
           footer=False),
    Action("noise", "noise", "n", _D, "show or hide what every program is known to try"),
    Action("denials-to-pane", "back", "escape", _D, "back to the program's pane"),
    Action("denials-help", "help", "question_mark", _D, "all keys", footer=False),

    Action("log-details", "details", "enter", _L, "the frame under the cursor", why_disabled=_needs_session),
    Action("log-follow", "follow", "f", _L, "jump to the end and follow it"),
    Action("log-review", "review", "r", _L, "this session in the review screen", why_disabled=_needs_session),
    Action("log-to-pane", "back", "escape", _L, "back to the program's pane"),
    Action("log-help", "help", "question_mark", _L, "all keys", footer=False),

    Action("ended-review", "review", "r", _E, "review what was recorded", why_disabled=_needs_session),
    Action("ended-verify", "verify", "v", _E, "check the hash chain", why_disabled=_needs_session),
    Action("ended-restart", "restart", "R", _E, "start the same program again, as a new session",
           why_disabled=_can_restart),
    Action("ended-menu", "menu", "w", _E, "the menu"),
    Action("ended-help", "help", "question_mark", _E, "all keys", footer=False),
    Action("ended-quit", "quit", "q", _E, "leave nd7", danger=True),

    Action("new-session", "new session", "n", _H, "start a program confined"),
    Action("running", "running", "u", _H, "sessions running now: go back to one, or watch it"),
    Action("sessions", "past sessions", "s", _H, "recorded sessions: review, verify"),
    Action("verify", "verify", "v", _H, "check one session's chain, or all of them"),
    Action("rules", "rules", "R", _H, "what a program may do from the start, and the live rules of a run"),
    Action("home-help", "help", "question_mark", _H, "all keys"),
    Action("home-quit", "quit", "q", _H, "leave nd7; asks while a program still runs", danger=True),

    Action("open-session", "review", "enter", _S, "review the session under the cursor", why_disabled=_needs_session),
    Action("verify-one", "verify", "v", _S, "check its hash chain", why_disabled=_needs_session),
    Action("filter-sessions", "filter", "slash", _S, "filter by project, agent or id"),
    Action("sort-sessions", "sort", "o", _S, "sort by time, project, frames, denials"),

    Action("watch-run", "open", "enter", _U, "go to the session under the cursor", why_disabled=_needs_session),
    Action("run-rules", "rules", "R", _U, "its rules", why_disabled=_needs_session),

    Action("filter-frames", "filter", "slash", _R, "filter by text or kind (kind:denial)"),
    Action("only-denials", "denials", "d", _R, "only denials and decisions, and back"),
    Action("next-kind", "kind", "k", _R, "only frames of one kind; again: the next kind"),
    Action("frame-details", "details", "enter", _R, "the frame's whole payload"),
    Action("review-verify", "verify", "v", _R, "check this session's hash chain"),
    Action("copy-frame", "copy", "c", _R, "copy the frame as it is in the log", footer=False),

    Action("verify-all", "all", "a", Context.VERIFY, "check every recorded session"),
    Action("verify-again", "again", "v", Context.VERIFY, "check again"),

    Action("take-back", "take back", "d", Context.RULES, "take the live rule under the cursor back",
           why_disabled=_needs_rule),

    Action("back", "back", "escape", Context.BACK, "back to the screen below"),
    Action("back-help", "help", "question_mark", Context.BACK, "all keys", footer=False),
)
# fmt: on

BY_ID: dict[str, Action] = {action.id: action for action in REGISTRY}

_NAMES = {
    "plus_sign": "plus",
    "hyphen_minus": "minus",
    "solidus": "slash",
    "reverse_solidus": "backslash",
    "commercial_at": "at",
    "low_line": "underscore",
}
_SHOWN = {
    "question_mark": "?",
    "plus": "+",
    "minus": "-",
    "slash": "/",
    "escape": "esc",
    "backslash": "\\",
    "at": "@",
    "underscore": "_",
    "full_stop": ".",
    "comma": ",",
    "ctrl+right_square_bracket": "ctrl+]",
    "ctrl+backslash": "ctrl+\\",
    "ctrl+underscore": "ctrl+_",
    "ctrl+at": "ctrl+@",
}


def normalise(key: str) -> str:
    """Returns a key in Textual's spelling: `+` becomes `plus`, `ctrl+]` becomes `ctrl+right_square_bracket`.

    Source: textual.keys, which names a character by its Unicode name.
    """
    key = key.strip()
    head, last = (key[:-1], key[-1:]) if len(key) == 1 or key[-2:-1] == "+" else ("", "")
    if not last or last.isalnum():
        return key
    name = unicodedata.name(last, last).lower().replace("-", "_").replace(" ", "_")
    return head + _NAMES.get(name, name)


def shown(key: str) -> str:
    """Returns how a key is written for people: `question_mark` is `?`."""
    return _SHOWN.get(key, key)


@dataclass(frozen=True, slots=True)
class Keymap:
    """The keys in force: the defaults with the user's changes.

    Attributes:
        keys: Action id to key, every action present.
        prefix: The key that reaches the UI from the pane.
        problems: What was wrong in the user's table, one line each; those entries keep their default.
    """

    keys: Mapping[str, str]
    prefix: str = DEFAULT_PREFIX
    problems: tuple[str, ...] = ()

    def find(self, contexts: Iterable[Context], key: str) -> Action | None:
        """Returns the action that `key` means in the first of `contexts` that knows it."""
        for context in contexts:
            for action in REGISTRY:
                if action.context is context and self.keys[action.id] == key:
                    return action
        return None

    def shown(self, action_id: str) -> str:
        """Returns the key of an action as people write it; `prefix` is the prefix key itself."""
        return shown(self.prefix if action_id == PREFIX_ID else self.keys[action_id])

    def chord(self, action_id: str) -> str:
        """Returns what to press from the pane, for example `ctrl+g a`."""
        return f"{shown(self.prefix)} {self.shown(action_id)}"


def default_keymap() -> Keymap:
    """Returns the keymap of a user without a `[keys]` table."""
    return Keymap({action.id: action.key for action in REGISTRY})


def load_keymap(table: Mapping[str, object]) -> Keymap:
    """Returns the keymap for the user's `[keys]` table; what makes no sense keeps its default and is named.

    Args:
        table: Action id (or `prefix`) to key, as it stands in `config.toml`.
    """
    keys = {action.id: action.key for action in REGISTRY}
    problems: list[str] = []
    prefix = DEFAULT_PREFIX
    for name, value in table.items():
        if name != PREFIX_ID and name not in BY_ID:
            problems.append(f"[keys] has no action {name!r}")
        elif not isinstance(value, str) or not value.strip():
            problems.append(f"[keys] {name}: a key is a non-empty string")
        elif name == PREFIX_ID:
            prefix, problem = _prefix(value)
            problems += [problem] if problem else []
        else:
            keys[name] = normalise(value)
    problems += _undo_conflicts(keys)
    return Keymap(keys, prefix, tuple(problems))


def _prefix(value: str) -> tuple[str, str | None]:
    # A printable prefix would swallow a letter of what is typed into the program.
    key = normalise(value)
    if "+" not in key and not (key[:1] == "f" and key[1:].isdigit()):
        return DEFAULT_PREFIX, f"[keys] prefix: {value!r} is a key people type; use one with ctrl+ or alt+"
    return key, None


def _undo_conflicts(keys: dict[str, str]) -> list[str]:
    problems = []
    for action in REGISTRY:
        same = [other for other in REGISTRY if other.context is action.context and keys[other.id] == keys[action.id]]
        if len(same) > 1:
            problems.append(f"[keys] {' and '.join(a.id for a in same)} have the same key; the defaults stay")
            keys.update({other.id: other.key for other in REGISTRY if other.context is action.context})
    return problems


def keys_document(keymap: Keymap) -> str:
    """Returns `docs/keys.md`."""
    lines = [
        "# Keys",
        "",
        "Written by `python -m nd7tui.actions > docs/keys.md` from the action registry; a test keeps it current.",
        "",
        f"Every key goes to the program in the pane, except the prefix key, `{keymap.shown(PREFIX_ID)}`.",
        "Pressed twice, it goes through itself. Keys marked with **!** widen what the program may do, or end",
        "something.",
        "",
        "Change them in `~/.config/nd7/config.toml`, by id:",
        "",
        "```toml",
        "[keys]",
        'prefix = "ctrl+b"',
        'allow-newest = "y"',
        "```",
    ]
    for context in Context:
        lines += ["", f"## {context.value}", "", "| key | | what | id |", "|---|---|---|---|"]
        lines += [
            f"| `{keymap.shown(action.id)}` | {'**!**' if action.danger else ''} | {action.help} | `{action.id}` |"
            for action in REGISTRY
            if action.context is context
        ]
    lines += ["", "In every list: arrow keys, page up and down, home and end; the mouse does the same.", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    print(keys_document(default_keymap()), end="")
