"""Codex CLI: its flags.

Rule: as in claude.py. Measured with Codex 0.171.0: `--no-daemon`, `-s` and `--no-daemon` given twice are errors;
`--no-daemon` belongs to the top level (`codex --no-daemon exec …`), `exec` itself does not know it; `exec`, `resume`
and `fork` take `-s` and `-c` after their name, `exec resume` and `review` take no `-s`; `-c developer_instructions`
replaces the user's own.

Codex must not use its daemon: it would be one started outside, and run the agent's commands unconfined.
Codex gets no hooks here yet: it takes them only from its configuration, and only trusted ones (issue 4, `nd7 init`).
"""

from __future__ import annotations

import os
import tomllib
from typing import TYPE_CHECKING, Any

from nd7tui.engine.agents.adapter import Prepared
from nd7tui.engine.agents.arguments import Word, without, words
from nd7tui.engine.agents.note import note
from nd7tui.engine.agents.scratch import own_directory
from nd7tui.engine.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nd7tui.engine.agents.adapter import RunFacts

# Source: `codex --help` of 0.171.0.
_SESSIONS = frozenset({"exec", "e", "resume", "fork", "review"})
_OTHERS_TEXT = (
    "agents login logout mcp plugin app-server remote-control completion update doctor sandbox debug apply a queue"
    " archive delete migrate-rollouts migrate-nfs-db unarchive cloud exec-server features help"
)
_OTHERS = frozenset(_OTHERS_TEXT.split())
_INFORMATION = frozenset({"-V", "--version", "-h", "--help"})
_VALUED_TEXT = (
    "-c --config --enable --disable --remote --remote-auth-token-env -i --image -m --model --local-provider -p"
    " --profile -s --sandbox -C --cd --add-dir -a --ask-for-approval"
)
_VALUED = frozenset(_VALUED_TEXT.split())
_KEY = "developer_instructions"
_SANDBOX = frozenset({"-s", "--sandbox"})
_UNSANDBOXED = frozenset({"--dangerously-bypass-approvals-and-sandbox", "--yolo"})
_OUTSIDE = frozenset({"--remote"})


@dataclass(frozen=True, slots=True)
class Codex:
    """The adapter for Codex CLI."""

    name: str = "codex"
    source: str = "intent:codex"
    rewrites: bool = True
    # Codex takes a rewritten command only together with a decision.
    decision: str | None = "allow"

    def prepare(self, argv: Sequence[str], env: Mapping[str, str], run: RunFacts) -> Prepared:
        """Switches off daemon and inner sandbox and adds the note; see the module's rule."""
        args = list(argv[1:])
        scratch, notes = own_directory("CODEX_HOME", env, run)
        protected = tuple(os.path.join(d, f) for d in scratch for f in ("config.toml", "hooks.json"))
        if _command(args).value not in _OTHERS and not _INFORMATION.intersection(args[:1]):
            config = os.path.join(env.get("CODEX_HOME") or os.path.join(run.home, ".codex"), "config.toml")
            args, more = _with_ours(args, run, config)
            notes += more
        return Prepared(
            argv=(argv[0], *args),
            env=dict(env),
            session_id=run.session_id,
            session_id_follows=True,
            project=run.project,
            scratch=scratch,
            protected=protected,
            notes=notes,
        )


def _with_ours(args: list[str], run: RunFacts, config: str) -> tuple[list[str], tuple[str, ...]]:
    found = list(words(args, _VALUED))
    names = {word.name for word in found}
    theirs = [word for word in found if _is_instructions(word)]
    sandbox = [word for word in found if word.name in _SANDBOX or _is_short(word, "-s")]
    daemon = [word for word in found if word.name == "--no-daemon"]
    kept = without(args, (*theirs, *sandbox, *daemon))
    own = _value(theirs[-1]) if theirs else _configured(config)
    text = f"{own}\n\n{note(run)}" if own else note(run)
    sub = _command(kept)
    after = sub.end if sub.value in _SESSIONS else 0
    ours = ["-c", f"{_KEY}={toml_string(text)}"]
    if not names & _UNSANDBOXED:
        no_flag = sub.value == "review"
        ours = [*(("-c", 'sandbox_mode="danger-full-access"') if no_flag else ("-s", "danger-full-access")), *ours]
    return ["--no-daemon", *kept[:after], *ours, *kept[after:]], _warnings(sandbox, names)


def _command(args: Sequence[str]) -> Word:
    """Returns the first operand: a sub-command, or the beginning of a prompt; an empty word when there is none."""
    return next((word for word in words(args, _VALUED) if not word.name), Word(0, 0, "", None))


def _warnings(sandbox: Sequence[Word], names: set[str]) -> tuple[str, ...]:
    asked = [word.value for word in sandbox if word.value not in {None, "danger-full-access"}]
    notes = [f"codex's own sandbox ({mode}) cannot start inside nd7's: nd7's boundary is in force" for mode in asked]
    if "--approve-for-me" in names:
        notes.append("codex's --approve-for-me wants its own sandbox, which cannot start inside nd7's")
    notes += [
        f"{name} works outside this run: nd7 neither confines nor records that" for name in sorted(names & _OUTSIDE)
    ]
    return tuple(notes)


def _is_instructions(word: Word) -> bool:
    return (word.name in {"-c", "--config"} and (word.value or "").split("=")[0].strip() == _KEY) or (
        word.name == f"-c{_KEY}"
    )


def _is_short(word: Word, option: str) -> bool:
    return word.name.startswith(option) and not word.name.startswith("--")


def _value(word: Word) -> str:
    """Returns the text of `-c developer_instructions=…`: TOML if it is, else as it stands, as Codex reads it."""
    text = word.value or ""
    raw = text if word.name == f"-c{_KEY}" else text.partition("=")[2]
    try:
        value: Any = tomllib.loads(f"v = {raw}")["v"]
    except tomllib.TOMLDecodeError:
        return raw
    return value if isinstance(value, str) else raw


def _configured(path: str) -> str:
    """Returns the user's own instructions from the configuration, empty when there are none or it cannot be read.

    Codex itself reports a configuration it cannot read.
    """
    try:
        with open(path, "rb") as file:
            value = tomllib.load(file).get(_KEY)
    except (OSError, ValueError):
        return ""
    return value if isinstance(value, str) else ""


def toml_string(text: str) -> str:
    """Returns `text` as a TOML basic string on one line. Source: TOML 1.0, Strings."""
    return '"' + "".join(_toml_character(c) for c in text) + '"'


def _toml_character(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    return f"\\u{ord(character):04x}" if ord(character) < 0x20 or ord(character) == 0x7F else character


ADAPTER = Codex()
