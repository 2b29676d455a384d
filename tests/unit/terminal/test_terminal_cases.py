"""The shared escape sequence cases, on both engines. A case known to fail is listed with its reason, and the listing
itself fails once the case passes."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from nd7tui.engine.terminal.choose import ENGINES, make
from nd7tui.engine.terminal.protocol import Engine, Reply, Style, Underline

CASES = json.loads((Path(__file__).parents[2] / "vectors" / "terminal-cases.json").read_text())

KNOWN = {
    ("ghostty", "decstr-keeps-screen"): "a soft reset leaves insert mode on",
    ("ghostty", "decxcpr"): "CSI ? 6 n is not answered; no agent asks",
    ("ghostty", "xtgettcap"): "DCS + q is swallowed without an answer; no agent asks",
}


def lines(engine: Engine) -> list[str]:
    engine.take_dirty()
    return ["".join(run.text for run in engine.row(y)).rstrip(" ") for y in range(engine.size[1])]


def style_at(engine: Engine, x: int, y: int) -> Style:
    for run in engine.row(y):
        if x < run.width:
            return run.style
        x -= run.width
    raise AssertionError("no such cell")


def attributes(style: Style) -> set[str]:
    flags = {
        "bold": style.bold, "faint": style.dim, "italic": style.italic, "inverse": style.reverse, "blink": style.blink,
        "invisible": style.conceal, "strikethrough": style.strike, "underline": style.underline != Underline.NONE,
        f"ul{int(style.underline)}": True,
    }  # fmt: skip
    return {name for name, on in flags.items() if on}


def faults(engine: Engine, case: dict) -> list[str]:
    """What of the case's expectation is not so."""
    engine.feed(bytes.fromhex(case["input_hex"]))
    got, expect, wrong = lines(engine), case["expect"], []
    replies = b"".join(event.data for event in engine.drain() if isinstance(event, Reply)).decode("latin-1")
    for y, text in expect.get("lines", {}).items():
        if got[int(y)] != text.rstrip(" "):
            wrong.append(f"line {y} is {got[int(y)]!r}, not {text!r}")
    for y, texts in expect.get("anylines", {}).items():
        if got[int(y)] not in texts:
            wrong.append(f"line {y} is {got[int(y)]!r}")
    for where, wanted in expect.get("cells", {}).items():
        style = style_at(engine, *ast.literal_eval(where))
        for side in ("fg", "bg"):
            value = wanted.get(side, "any")
            value = tuple(value) if isinstance(value, list) else value
            if value != "any" and getattr(style, side) != value:
                wrong.append(f"{side} at {where} is {getattr(style, side)}, not {value}")
        if missing := set(wanted.get("has", ())) - attributes(style):
            wrong.append(f"{where} lacks {missing}")
        if extra := set(wanted.get("hasnot", ())) & attributes(style):
            wrong.append(f"{where} has {extra}")
    cursor = engine.cursor
    if "cur" in expect and [cursor.col, cursor.row] != expect["cur"]:
        wrong.append(f"cursor at {cursor.col},{cursor.row}, not {expect['cur']}")
    if "vis" in expect and cursor.visible != expect["vis"]:
        wrong.append(f"cursor visible is {cursor.visible}")
    if "title" in expect and engine.title != expect["title"]:
        wrong.append(f"title is {engine.title!r}")
    if "reply" in expect and not re.fullmatch(expect["reply"], replies, re.DOTALL):
        wrong.append(f"reply is {replies!r}")
    return wrong


def test_the_vectors_are_all_there():
    assert len([case for case in CASES if not case["expect"].get("info")]) == 119


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(name, case):
    engine = make(name, case["cols"], case["rows"])
    wrong = faults(engine, case)
    engine.close()
    if (name, case["id"]) in KNOWN:
        assert wrong, f"{case['id']} passes on {name} now: take it out of KNOWN"
    else:
        assert not wrong
