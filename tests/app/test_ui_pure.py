"""The pure parts: cells, denial book, status, launch, settings."""

from __future__ import annotations

import argparse
import time

from hypothesis import given
from hypothesis import strategies as st

from nd7tui.commands import tui
from nd7tui.engine.log.frame import Frame
from nd7tui.engine.policy.document import Enforced, RunRecord, rule_to_json
from nd7tui.engine.policy.rules import Access, Effect, HostTarget, PathTarget, Policy, Rule, Scope, SocketTarget
from nd7tui.screens import status
from nd7tui.screens.feed import Chain
from nd7tui.screens.launch import Launch, run_command
from nd7tui.screens.rulebook import target_of, target_words
from nd7tui.widgets.cells import clean, cut, cut_middle, fit, plain, tilde, width
from nd7tui.widgets.denial_rows import one_line, two_lines
from nd7tui.widgets.denials import ARM_AFTER, DenialBook, State, can_widen, split_address, widened

NOW = 1_800_000_000_000_000_000
SECOND = 1_000_000_000


@given(st.text())
def test_clean_text_steers_nothing(text):
    shown = clean(text)
    assert not any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 or 0xD800 <= ord(char) < 0xE000 for char in shown)
    assert not set(shown) & set("\u202e\u202d\u2066\u2067\u200b\u2028\ufeff")
    shown.encode()


@given(st.text(), st.integers(0, 60))
def test_what_is_cut_fits(text, cells):
    assert width(cut(clean(text), cells)) <= cells
    assert width(cut_middle(clean(text), cells)) <= cells


@given(st.lists(st.tuples(st.text(), st.just("dim"))), st.integers(0, 80))
def test_rows_are_exactly_as_wide_as_the_view(parts, cells):
    assert width(plain(fit([(clean(text), role) for text, role in parts], cells))) == cells


def test_tilde():
    assert tilde("/home/a/x", "/home/a") == "~/x"
    assert tilde("/home/ab", "/home/a") == "/home/ab"
    assert tilde("/home/a", "/home/a") == "~"


def frame(kind="denial", ts=NOW, seq=0, **body):
    return Frame(0, "s", seq, ts, "h", "effect:seccomp", kind, "0" * 64, body, "f" * 64, b"")


def denial(target="/home/a/x", access="write", ts=NOW, **more):
    return frame(ts=ts, access=access, target=target, **({"id": "d1", "count": 1, "comm": "bash"} | more))


def allow(path, scope=Scope.RUN, rule_id="r1", effect=Effect.ALLOW):
    return Rule(effect, Access.WRITE, PathTarget(path.encode()), scope, "tui", NOW, rule_id)


def only(book):
    (row,) = book.rows()
    return row


def test_the_state_comes_from_rules_and_frames():
    book = DenialBook()
    book.take(denial(), NOW)
    row = only(book)
    assert book.state(row, NOW) is State.REFUSED
    book.set_policy(Policy(live=(allow("/home/a"),)))
    assert book.state(row, NOW) is State.ALLOWED
    book.set_policy(Policy())
    book.take(frame("revoke", NOW + 1, rule=rule_to_json(allow("/home/a"))), NOW)
    assert book.state(row, NOW) is State.TAKEN_BACK
    book.take(denial(ts=NOW + 2), NOW)
    assert book.state(only(book), NOW) is State.REFUSED
    book.set_policy(Policy(live=(allow("/home/a/x", effect=Effect.DENY),)))
    assert book.state(only(book), NOW) is State.DENIED


def test_a_grant_used_once_is_not_in_force_any_more():
    book = DenialBook()
    book.take(denial(), NOW)
    once = allow("/home/a/x", Scope.ONCE)
    book.set_policy(Policy(live=(once,)))
    assert book.state(only(book), NOW) is State.ONCE
    book.take(frame("revoke", NOW + 1, rule=rule_to_json(once), spent=True), NOW)
    assert book.policy.live == ()
    assert book.state(only(book), NOW) is State.ONCE
    book.take(denial(ts=NOW + 2), NOW)
    assert book.state(only(book), NOW) is State.REFUSED


def test_what_only_the_floor_allows_is_not_called_allowed():
    book = DenialBook()
    book.take(denial(), NOW)
    book.set_policy(Policy(default=(allow("/home", Scope.DEFAULT),)))
    assert book.state(only(book), NOW) is State.REFUSED


def test_a_question_and_its_ends():
    for outcome, state in (
        ("allowed", State.ONCE), ("denied", State.DENIED), ("expired", State.REFUSED), ("gone", State.GONE),
    ):  # fmt: skip
        book = DenialBook()
        book.take(denial(held=True, deadline=NOW + 20 * SECOND), NOW)
        assert book.state(only(book), NOW + SECOND) is State.ASK
        assert book.state(only(book), NOW + 21 * SECOND) is State.REFUSED
        book.read_all()
        assert book.unread == 1
        book.take(frame("denial_end", NOW + 2 * SECOND, id="d1", outcome=outcome), NOW)
        assert book.state(only(book), NOW + 3 * SECOND) is state
    book = DenialBook()
    book.take(denial(held=True, deadline=NOW + 20 * SECOND), NOW)
    book.take(frame("run_end", NOW + 1), NOW)
    assert book.state(only(book), NOW + 2) is State.GONE


def test_rows_merge_and_count_and_go_to_the_top():
    book = DenialBook()
    book.take(denial("/a"), NOW)
    book.take(denial("/b"), NOW)
    book.take(denial("/a", count=5, repeat_of="d1"), NOW)
    assert [(row.target, row.count) for row in book.rows()] == [("/a", 6), ("/b", 1)]
    assert book.total == 7


def test_unread_arming_and_history():
    book = DenialBook()
    book.take(denial("/old"), NOW, seen=True)
    assert book.unread == 0
    book.take(denial("/new"), NOW)
    row = book.newest()
    assert row.target == "/new"
    assert not book.armed(row, NOW)
    assert book.armed(row, NOW + ARM_AFTER)


def test_nonsense_frames_are_survived():
    book = DenialBook()
    for body in (
        {},
        {"access": "fly", "target": 3},
        {"access": "write"},
        {"access": ["write"]},
        {"access": "write", "target": "x", "count": "many", "id": 7, "target_hex": "zz"},
    ):
        try:
            book.take(frame(**body), NOW)
        except TypeError:
            raise AssertionError(body) from None
    book.take(frame("revoke", rule={"effect": "maybe"}), NOW)
    book.take(frame("denial_end", id=["x"]), NOW)
    for row in book.rows():
        book.state(row, NOW)
        one_line(row, State.REFUSED, NOW, 40, "")


def test_the_exact_bytes_are_kept():
    book = DenialBook()
    book.take(denial("/a/\\xff", target_hex=b"/a/\xff".hex()), NOW)
    assert only(book).raw == b"/a/\xff"
    assert target_of(only(book)) == PathTarget(b"/a/\xff")


def test_targets():
    book = DenialBook()
    book.take(denial("203.0.113.7:22/tcp", "connect"), NOW)
    assert target_of(only(book)) == HostTarget("203.0.113.7", 22, "tcp")
    assert not can_widen(only(book), 0)
    assert target_words(HostTarget("203.0.113.7", 22, "tcp")) == "203.0.113.7:22/tcp"
    book = DenialBook()
    book.take(denial("/run/docker.sock", "connect"), NOW)
    assert target_of(only(book)) == SocketTarget(b"/run/docker.sock")
    assert split_address("[2001:db8::1]:53/udp") == ("2001:db8::1", 53, "udp")


def test_widening_stops_before_the_root():
    assert widened(b"/a/b/c", 1) == b"/a/b"
    assert widened(b"/a/b/c", 9) == b"/a"
    book = DenialBook()
    book.take(denial("/a/b"), NOW)
    assert can_widen(only(book), 0)
    assert not can_widen(only(book), 1)


@given(st.text(min_size=1), st.integers(30, 120))
def test_denial_lines_fit(target, cells):
    book = DenialBook()
    book.take(denial("/" + target.replace("\0", ""), count=12345), NOW)
    row = only(book)
    for line in (one_line(row, State.ASK, NOW, cells, "/home/a"), *two_lines(row, State.ASK, NOW, cells, "/home/a")):
        assert "\n" not in plain(line)
        assert "\x1b" not in plain(line)


def record(**more):
    fields = {
        "session_id": "s", "pid": 1, "started": 1, "argv": ("bash",), "project": b"/p", "home": b"/h", "tmp": (),
        "log": "/l", "enforced": Enforced(7, True),
    }  # fmt: skip
    return RunRecord(**(fields | more))


def text(pieces):
    return "".join(piece.text for piece in pieces)


def test_status_words():
    assert text(status.enforced(record(), "", ended=False)) == " Landlock 7 + listener"
    partial = record(enforced=Enforced(0, False, ("network",), "fast"))
    assert text(status.enforced(partial, "", ended=False)) == " NO LANDLOCK NO LISTENER, fast PARTIAL: network"
    assert "unknown" in text(status.enforced(None, "", ended=False))
    assert "unreadable" in text(status.enforced(None, "broken", ended=False))
    assert "DAMAGED: frame 3" in text(status.chain_state(Chain(3, "ab", "frame 3: bad")))
    assert status.ending_words(None, None, {"exit": 3}) == "ended, exit status 3"
    assert status.ending_words(143, 15, None) == "ended by signal 15"


def test_the_status_line_gives_up_its_end_first():
    parts = {"a": [status.Piece(" aaaa")], "b": [status.Piece(" bbbb")], "c": [status.Piece(" cccc")]}
    assert text(status.status_line(14, parts)) == " aaaa │ bbbb"


def test_the_run_command_never_imports_from_the_working_directory():
    command = run_command(Launch(("bash", "-c", "x"), ("--fast",)), "id")
    assert command[-7:] == ["run", "--session-id", "id", "--fast", "bash", "-c", "x"]
    assert command[0].endswith("/nd7") or "-P" in command


def test_options_are_handed_on_as_they_were():
    parser = argparse.ArgumentParser()
    tui.configure(parser)
    args = parser.parse_args(["--project", "/p", "--write", "/a", "--write", "/b", "--fast", "--hold", "5"])
    words = tui.run_options(args)
    assert parser.parse_args(words) == args


def test_settings(tmp_path):
    path = tmp_path / "config.toml"
    assert tui.user_settings(str(path)) == ({}, None, ())
    path.write_text('[keys]\nprefix = "ctrl+b"\n[ui]\ntheme = "nord"\n')
    assert tui.user_settings(str(path)) == ({"prefix": "ctrl+b"}, "nord", ())
    path.write_text("keys = 3\n")
    assert tui.user_settings(str(path)) == ({}, None, ("[keys] is not a table",))
    path.write_text("[keys\n")
    assert tui.user_settings(str(path))[2]
    assert time.time_ns() > 0


def rule_at(effect, path, at, name):
    return Rule(effect, Access.WRITE, PathTarget(path), Scope.RUN, "tui", at, name)


def test_what_an_editor_writes_beside_the_file_is_not_what_a_key_means():
    book = DenialBook()
    book.take(denial("/home/u/file"), NOW)
    for name in (".file.swp", "4913", "file~", ".viminfo", ".#file", "#file#"):
        book.take(denial(f"/home/u/{name}"), NOW)
    assert book.newest().target == "/home/u/file"
    assert book.to_allow(NOW).target == book.to_deny(NOW).target == "/home/u/file"
    book.newest().unread = False
    assert book.newest().target == "/home/u/#file#"


def test_deny_means_the_last_grant_when_that_is_newer_than_the_newest_denial():
    book = DenialBook()
    book.take(denial("/a"), NOW)
    book.take(denial("/b"), NOW)
    book.newest().unread = False
    last = book.row(("write", b"/b")).last_ts
    book.set_policy(Policy(live=(rule_at(Effect.ALLOW, b"/b", last + 1, "g"),)))
    assert book.to_allow(NOW).target == "/a"
    assert book.to_deny(NOW).target == "/b"
    book.set_policy(Policy(live=(rule_at(Effect.ALLOW, b"/b", 0, "g"),)))
    assert book.to_deny(NOW).target == "/a"


def test_allow_undoes_the_last_decision_only_if_that_was_to_shut():
    book = DenialBook()
    book.take(denial("/a"), NOW)
    book.take(denial("/b"), NOW)
    book.read_all()
    assert book.to_allow(NOW) is None
    shut = rule_at(Effect.DENY, b"/a", NOW, "d")
    book.set_policy(Policy(live=(shut,)))
    assert book.to_allow(NOW).target == "/a"
    book.set_policy(Policy(live=(shut, rule_at(Effect.ALLOW, b"/b", NOW + 1, "g"))))
    assert book.to_allow(NOW) is None


def test_the_demo_plays_itself_unless_the_person_wants_the_keys():
    assert Launch(("demo", "--fast")).plays_itself
    assert not Launch(("demo", "--manual")).plays_itself
    assert not Launch(("./demo",)).plays_itself
    assert not Launch(("bash", "demo")).plays_itself
