"""Text from outside, made safe to print.

Rule: whatever an agent, a program or a file name put into the log, what is printed cannot move the cursor, change
colours, reorder the line, or hide itself. Pure. It does not make the text true.
"""

from __future__ import annotations

import re
import unicodedata

# Whole escape sequences first, so that their parameters do not stay behind as text: CSI; OSC, DCS, SOS, PM and APC up
# to their terminator; then two-byte ones. Source: ECMA-48 5th edition, 5.4 and 5.6.
_SEQUENCES = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c|\\Z)"
    "|\x1b[ -/]*[0-~]?"
)
_BREAKS = re.compile("[\t\n\v\f\r\x85\u2028\u2029]+")
# Controls, soft hyphen, zero-width and bidirectional controls, interlinear marks, tags, surrogates.
_INVISIBLE = (
    "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff\ud800-\udfff"
)
_CONTROLS = re.compile(f"[{_INVISIBLE}]")
_CONTROLS_BUT_BREAKS = re.compile(f"[{_INVISIBLE}\v\f\x85\u2028\u2029]")
LIMIT = 500


def clean(text: str, limit: int = LIMIT) -> str:
    """Returns one line of harmless text, at most `limit` characters long (`…` marks a cut)."""
    head = _SEQUENCES.sub("", text[: limit * 4])
    line = _CONTROLS.sub("", _BREAKS.sub(" ", head)).strip()
    return line if len(line) <= limit and len(text) <= limit * 4 else line[: limit - 1] + "…"


def clean_block(text: str) -> str:
    """Returns harmless text with its line breaks and tabs kept."""
    return _CONTROLS_BUT_BREAKS.sub("", _SEQUENCES.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def clip(text: str, cells: int) -> str:
    """Returns as much of clean text as fits into that many terminal cells."""
    if len(text) * 2 <= cells:
        return text
    used = kept = 0
    for index, char in enumerate(text):
        used += 0 if unicodedata.combining(char) else 1 + (unicodedata.east_asian_width(char) in "WF")
        if used <= cells - 1:
            kept = index + 1
        if used > cells:
            return text[:kept] + "…" if cells > 0 else ""
    return text
