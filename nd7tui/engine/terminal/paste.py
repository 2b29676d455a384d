"""Pastes: to the program as one piece of text, never as keys.

Rule: a paste cannot end its own brackets, and holds no control character besides tab and line ends, so it cannot press
keys in the program. `Guard` keeps the rule on the way in: an ESC inside a bracketed paste makes Textual's parser hand
the text out as loose key presses, which would be typed into the agent; the guard takes it out before the parser.

Pure. What it does not cover: a terminal without bracketed paste, whose pastes are keys and look like typing.
"""

from __future__ import annotations

_START, _END = "\x1b[200~", "\x1b[201~"
_KEEP = "\t\n\r"
_REPLACED = {code: " " for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in _KEEP}


def clean(text: str) -> str:
    """Returns pasted text with each control character but tab and line ends made a space."""
    return text.translate(_REPLACED)


def encode(text: str, *, bracketed: bool) -> bytes:
    """Returns what a paste sends.

    Args:
        text: The pasted text.
        bracketed: The program asked for brackets (mode 2004); without them line ends become the enter key's CR.
    """
    safe = clean(text).encode(errors="replace")
    if bracketed:
        return _START.encode() + safe + _END.encode()
    return safe.replace(b"\r\n", b"\r").replace(b"\n", b"\r")


class Guard:
    """Takes ESC out of bracketed pastes in a terminal's input, cut anywhere.

    Outside a paste every character passes at once, so that an ESC key press waits for nothing.
    """

    def __init__(self) -> None:
        self._inside = False
        self._matched = 0
        self._held = ""

    def feed(self, data: str) -> str:
        """Returns the input that may go on to the parser; it may be empty while an end bracket is incomplete."""
        out: list[str] = []
        data = self._held + data
        self._held = ""
        while data:
            data = self._paste(data, out) if self._inside else self._keys(data, out)
        return "".join(out)

    def _keys(self, data: str, out: list[str]) -> str:
        """Passes everything up to and with a start bracket, remembering one begun in an earlier piece."""
        for index, char in enumerate(data):
            self._matched = self._matched + 1 if char == _START[self._matched] else int(char == _START[0])
            if self._matched == len(_START):
                self._matched, self._inside = 0, True
                out.append(data[: index + 1])
                return data[index + 1 :]
        out.append(data)
        return ""

    def _paste(self, data: str, out: list[str]) -> str:
        """Passes pasted text without ESC up to and with the end bracket; holds back one that is not complete."""
        end = data.find(_END)
        if end >= 0:
            out += (data[:end].replace("\x1b", ""), _END)
            self._inside = False
            return data[end + len(_END) :]
        escape = data.rfind("\x1b")
        if escape >= 0 and _END.startswith(data[escape:]):
            data, self._held = data[:escape], data[escape:]
        out.append(data.replace("\x1b", ""))
        return ""
