"""Claude Code: its flags and hooks.

Rule: the user's own options win or are merged with, never dropped silently; where one would switch nd7's hooks off,
the person is told. Measured with Claude Code 2.1.332: of a repeated `--settings` or `--append-system-prompt` only the
last counts, so there must be one of each; `--session-id` with `--resume` or `--continue` is an error without
`--fork-session`; `--resume ID` keeps that id; `--safe-mode` and `--bare` run no hooks, those of `--settings` included.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from nd7tui.engine.agents.adapter import Prepared
from nd7tui.engine.agents.arguments import Word, without, words
from nd7tui.engine.agents.note import note
from nd7tui.engine.agents.scratch import own_directory
from nd7tui.engine.records import dataclass
from nd7tui.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nd7tui.engine.agents.adapter import RunFacts

# Seconds each hook may take. The agent goes on without the answer when it is late.
HOOKS: dict[str, int] = {
    "SessionStart": 5,
    "UserPromptSubmit": 5,
    "PreToolUse": 5,
    "PostToolUse": 5,
    "PostToolUseFailure": 5,
    "Stop": 5,
    "SessionEnd": 1,
}
# Source: `claude --help` of 2.1.332. They take no session options, or start no session here.
_SUBCOMMANDS_TEXT = (
    "agents attach auth auto-mode config doctor gateway import install kill logs mcp plugin plugins purge respawn rm"
    " setup-token stop ultrareview update upgrade"
)
SUBCOMMANDS = frozenset(_SUBCOMMANDS_TEXT.split())
_INFORMATION = frozenset({"-v", "--version", "-h", "--help"})
# Options whose next argument is a value that might itself look like an option we search for.
_VALUED_TEXT = (
    "--add-dir --agent --agents --allowedTools --allowed-tools --append-system-prompt --append-system-prompt-file"
    " --autocompact --betas --debug-file --disallowedTools --disallowed-tools --effort --environment --fallback-model"
    " --file --input-format --json-schema --max-budget-usd --max-turns --mcp-config --model -n --name --output-format"
    " --permission-mode --permission-prompt-tool --permission-prompts --plugin-dir --plugin-url --session-id"
    " --setting-sources --settings --system-prompt --system-prompt-file --system-prompt-snapshot --tools"
)
_VALUED = frozenset(_VALUED_TEXT.split())
_CHOOSES_ID = frozenset(
    {"-c", "--continue", "--from-pr", "--teleport", "--cloud", "--bg", "--background", "--desktop", "--environment"}
)
_RESUME = frozenset({"-r", "--resume"})
_HOOKS_OFF = frozenset({"--safe-mode", "--bare"})
_HOOKS_OFF_ENV = ("CLAUDE_CODE_SAFE_MODE", "CLAUDE_CODE_SIMPLE")
_OUTSIDE = frozenset({"--bg", "--background", "--cloud", "--desktop", "--environment"})


@dataclass(frozen=True, slots=True)
class Claude:
    """The adapter for Claude Code."""

    name: str = "claude"
    source: str = "intent:claude-code"
    # Measured: Claude matches the user's permission rules against the rewritten text. Without a decision a rule that
    # allows no longer matches (even `echo` asks, and fails with -p), and with --permission-mode bypassPermissions a
    # rule that denies is lost; with `allow` every rule is. Decision 0007.
    rewrites: bool = False
    decision: str | None = None

    def prepare(self, argv: Sequence[str], env: Mapping[str, str], run: RunFacts) -> Prepared:
        """Adds settings, system prompt and session id; see the module's rule.

        Raises:
            UsageError: The user's own `--settings` or prompt file cannot be read.
        """
        args = list(argv[1:])
        scratch, notes = own_directory("CLAUDE_CONFIG_DIR", env, run)
        protected = tuple(os.path.join(d, f) for d in scratch for f in ("settings.json", "settings.local.json"))
        extra: list[str] = []
        session_id, follows = run.session_id, True
        if not (args and (args[0] in SUBCOMMANDS or args[0] in _INFORMATION)):
            found = list(words(args, _VALUED))
            session_id, follows, own = _session(found, run)
            prompt, prompt_words = _prompt(found, run)
            settings, settings_words = _settings(found, run)
            extra = ["--settings", json.dumps(settings, separators=(",", ":")), "--append-system-prompt", prompt, *own]
            notes += _warnings(found, env)
            if not run.hook_program:
                notes += ("nd7-hook is not installed: what the agent intends is not recorded",)
            args = without(args, (*prompt_words, *settings_words))
        return Prepared(
            argv=(argv[0], *extra, *args),
            env=dict(env),
            session_id=session_id,
            session_id_follows=follows,
            project=run.project,
            scratch=scratch,
            protected=protected,
            notes=notes,
        )


def _session(found: Sequence[Word], run: RunFacts) -> tuple[str, bool, list[str]]:
    """Returns the log's id, whether the agent may use another one, and the options that tell the agent ours."""
    names = {word.name for word in found}
    named = _last(found, "--session-id")
    if named:
        return (named, False, []) if _is_uuid(named) else (run.session_id, True, [])
    resumed = next((_operand_after(found, at) for at, word in enumerate(found) if word.name in _RESUME), None)
    if resumed and _is_uuid(resumed) and "--fork-session" not in names:
        # Still followed: the agent asks what to do when there is no such conversation.
        return resumed.lower(), True, []
    if resumed is not None or names & (_CHOOSES_ID | _RESUME) or any(map(_may_continue, names)):
        return run.session_id, True, []
    return run.session_id, False, ["--session-id", run.session_id]


def _operand_after(found: Sequence[Word], at: int) -> str:
    """Returns the optional value of `--resume` (`-r ID`, `--resume=ID`), empty when it has none."""
    if found[at].value is not None:
        return found[at].value or ""
    following = found[at + 1] if at + 1 < len(found) else None
    return following.value or "" if following is not None and not following.name else ""


def _may_continue(name: str) -> bool:
    """Tells whether a bundle of short options holds -c or -r; when in doubt, yes: then the id is only followed."""
    return len(name) > 2 and name[0] == "-" and name[1] != "-" and bool({"c", "r"} & set(name[1:]))


def _prompt(found: Sequence[Word], run: RunFacts) -> tuple[str, list[Word]]:
    """Returns the text to append to the system prompt, the user's own first, and the user's words it replaces."""
    text, own = None, []
    for word in found:
        if word.name == "--append-system-prompt":
            text = word.value or ""
        elif word.name == "--append-system-prompt-file":
            text = _read(word.value or "", word.name)
        else:
            continue
        own.append(word)
    return (f"{text}\n\n{note(run)}" if text else note(run)), own


def _settings(found: Sequence[Word], run: RunFacts) -> tuple[dict[str, Any], list[Word]]:
    """Returns our settings merged into the user's `--settings`, and the words they replace."""
    own = [word for word in found if word.name == "--settings"]
    merged = _load_settings(own[-1].value or "") if own else {}
    sandbox = merged.get("sandbox")
    merged["sandbox"] = {**(sandbox if isinstance(sandbox, dict) else {}), "enabled": False}
    merged["disableAllHooks"] = False
    theirs = merged.get("hooks")
    hooks: dict[str, Any] = dict(theirs) if isinstance(theirs, dict) else {}
    for event, entry in hook_entries(run.hook_program).items() if run.hook_program else ():
        before = hooks.get(event)
        hooks[event] = [*(before if isinstance(before, list) else []), *entry]
    merged["hooks"] = hooks
    return merged, own


def hook_entries(hook_program: str) -> dict[str, list[dict[str, Any]]]:
    """Returns the `hooks` object for the seven events, in exec form: no shell between the agent and the program."""
    return {
        event: [{"hooks": [{"type": "command", "command": hook_program, "args": [], "timeout": seconds}]}]
        for event, seconds in HOOKS.items()
    }


def _load_settings(value: str) -> dict[str, Any]:
    text = value if value.lstrip().startswith("{") else _read(value, "--settings")
    try:
        settings = json.loads(text)
    except ValueError as error:
        raise UsageError("claude's --settings is not JSON", f"nd7 adds its hooks to it: {error}") from error
    if not isinstance(settings, dict):
        raise UsageError("claude's --settings is not a JSON object", "nd7 adds its hooks to it")
    return settings


def _read(path: str, option: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the file of claude's {option}: {path!r}", str(error)) from error


def _warnings(found: Sequence[Word], env: Mapping[str, str]) -> tuple[str, ...]:
    names = {word.name for word in found}
    off = [*sorted(names & _HOOKS_OFF), *(name for name in _HOOKS_OFF_ENV if env.get(name) not in {None, "", "0"})]
    notes = [f"{name} switches hooks off: what the agent intends is not recorded, the boundary holds" for name in off]
    notes += [
        f"{name} works outside this run: nd7 neither confines nor records that" for name in sorted(names & _OUTSIDE)
    ]
    return tuple(notes)


def _last(found: Sequence[Word], name: str) -> str | None:
    return next((word.value for word in reversed(found) if word.name == name), None)


def _is_uuid(text: str) -> bool:
    groups = text.split("-")
    return [len(g) for g in groups] == [8, 4, 4, 4, 12] and all(c in "0123456789abcdefABCDEF" for c in "".join(groups))


ADAPTER = Claude()
