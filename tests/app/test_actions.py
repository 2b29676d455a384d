"""The action registry: docs current, no double keys, users' changes."""

from __future__ import annotations

import os

import pytest

from nd7tui.actions import BY_ID, REGISTRY, Context, Facts, default_keymap, keys_document, load_keymap, normalise, shown
from nd7tui.screens.base import Nd7Screen
from nd7tui.screens.help import HelpScreen, help_rows
from nd7tui.screens.home import HomeScreen
from nd7tui.screens.review import ReviewScreen
from nd7tui.screens.rules import RulesScreen
from nd7tui.screens.session import SessionScreen
from nd7tui.screens.sessions import RunningScreen, SessionsScreen
from nd7tui.screens.verify import VerifyScreen
from nd7tui.widgets.cells import plain

SCREENS = {
    Context.PREFIX: SessionScreen,
    Context.DENIALS: SessionScreen,
    Context.LOG: SessionScreen,
    Context.ENDED: SessionScreen,
    Context.HOME: HomeScreen,
    Context.SESSIONS: SessionsScreen,
    Context.RUNNING: RunningScreen,
    Context.REVIEW: ReviewScreen,
    Context.VERIFY: VerifyScreen,
    Context.RULES: RulesScreen,
    Context.BACK: Nd7Screen,
}


def test_the_keys_document_is_current():
    path = os.path.join(os.path.dirname(__file__), "../../docs/keys.md")
    with open(path, encoding="utf-8") as file:
        assert file.read() == keys_document(default_keymap()), "python -m nd7tui.actions > docs/keys.md"


@pytest.mark.parametrize("action", REGISTRY, ids=lambda action: action.id)
def test_every_action_is_carried_out_by_its_screen(action):
    assert callable(getattr(SCREENS[action.context], f"do_{action.id.replace('-', '_')}"))


def test_ids_and_keys_are_unique():
    assert len(BY_ID) == len(REGISTRY)
    keys = [(action.context, action.key) for action in REGISTRY]
    assert len(set(keys)) == len(keys)


def test_labels_are_short():
    assert all(len(action.label.split()) <= 2 for action in REGISTRY)


def test_help_has_every_action():
    text = "\n".join(plain(row) for row in help_rows(default_keymap()))
    assert all(action.help in text for action in REGISTRY)
    assert HelpScreen is not None


def test_a_disabled_action_says_why():
    assert BY_ID["allow-run"].why_disabled(Facts()) == "no denial to decide"
    ready = Facts(row=True, writable=True, armed=True)
    assert BY_ID["allow-run"].why_disabled(ready) is None
    assert "only just appeared" in BY_ID["allow-run"].why_disabled(Facts(row=True, writable=True))
    assert "run is over" in BY_ID["deny"].why_disabled(Facts(row=True, armed=True))


@pytest.mark.parametrize(("written", "key"), [
    ("a", "a"), ("A", "A"), ("+", "plus"), ("?", "question_mark"), ("/", "slash"), ("-", "minus"), ("ctrl+g", "ctrl+g"),
    ("ctrl+]", "ctrl+right_square_bracket"), ("f2", "f2"), ("ctrl+\\", "ctrl+backslash"), ("escape", "escape"),
])  # fmt: skip
def test_normalise(written, key):
    assert normalise(written) == key
    assert normalise(key) == key
    assert normalise(shown(key)) == key or key == "escape"


def test_a_users_keys():
    keymap = load_keymap({"prefix": "ctrl+]", "allow-newest": "y"})
    assert keymap.problems == ()
    assert keymap.prefix == "ctrl+right_square_bracket"
    assert keymap.find([Context.PREFIX], "y") is BY_ID["allow-newest"]
    assert keymap.find([Context.PREFIX], "a") is None
    assert keymap.chord("allow-newest") == "ctrl+] y"


@pytest.mark.parametrize(("table", "words"), [
    ({"alow": "y"}, "no action 'alow'"),
    ({"prefix": "a"}, "a key people type"),
    ({"prefix": 3}, "non-empty string"),
    ({"help": ""}, "non-empty string"),
    ({"allow-newest": "d"}, "the same key"),
])  # fmt: skip
def test_what_makes_no_sense_keeps_the_default_and_is_named(table, words):
    keymap = load_keymap(table)
    assert words in keymap.problems[0]
    assert keymap.keys == default_keymap().keys
    assert keymap.prefix == "ctrl+g"
