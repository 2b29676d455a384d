from __future__ import annotations

import os

import pytest

from nd7tui import cli
from nd7tui.engine import paths
from nd7tui.engine.policy.document import RunRecord
from nd7tui.engine.policy.rules import Access, Effect, HostTarget, PathTarget, Scope, SocketTarget
from nd7tui.engine.run import directory, grants
from nd7tui.errors import UsageError


@pytest.fixture
def home(tmp_path, monkeypatch):
    # Beneath a directory that is no temporary one of the run.
    monkeypatch.setattr(paths, "home", lambda: os.path.realpath(tmp_path / "home"))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    for name in ("home/app/src", "home/data", "home/.ssh", "home/.claude"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "home/.npmrc").touch()
    (tmp_path / "home/.claude/settings.json").touch()
    made = directory.create(os.getpid())
    top = os.fsencode(tmp_path / "home")
    record = RunRecord("s", os.getpid(), 1, ("claude",), top + b"/app", top, (), "/log")
    directory.write_record(made, record)
    monkeypatch.chdir(tmp_path / "home/app")
    return tmp_path / "home"


def nd7(capsys, *argv: str) -> tuple[int, str, str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["nd7", *argv])
        with pytest.raises(SystemExit) as ended:
            cli.main()
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def rules():
    return directory.find_run(None).record.rules


def test_allow_writes_one_rule_and_says_so(home, capsys) -> None:
    status, out, err = nd7(capsys, "allow", "../data/")
    assert (status, err) == (0, "")
    assert out == f"nd7: allowed: write {home}/data (run {os.getpid()})\n"
    (rule,) = rules()
    assert (rule.effect, rule.access, rule.scope, rule.by) == (Effect.ALLOW, Access.WRITE, Scope.RUN, "nd7 allow")
    assert rule.target == PathTarget(os.fsencode(home / "data"))


def test_allow_twice_is_one_rule(home, capsys) -> None:
    nd7(capsys, "allow", "../data")
    _, out, _ = nd7(capsys, "allow", "../data")
    assert "allowed already" in out
    assert len(rules()) == 1


def test_what_is_open_from_the_start_needs_no_rule(home, capsys) -> None:
    status, out, _ = nd7(capsys, "allow", "src")
    assert status == 0
    assert "allowed already" in out
    assert "(the project)" in out
    assert rules() == ()


def test_a_secret_is_opened_for_both_unless_a_flag_says_which(home, capsys) -> None:
    nd7(capsys, "allow", "../.npmrc", "--read")
    assert [r.access for r in rules()] == [Access.READ]
    nd7(capsys, "deny", "../.npmrc")
    assert rules() == ()
    nd7(capsys, "allow", "../.npmrc")
    assert [r.access for r in rules()] == [Access.READ, Access.WRITE]


def test_once(home, capsys) -> None:
    _, out, _ = nd7(capsys, "allow", "../data", "--once")
    assert "for one use" in out
    assert rules()[0].scope is Scope.ONCE


@pytest.mark.parametrize(
    ("words", "text", "hint"),
    [
        (["../nope"], "no such file", "existing path"),
        (["../.nd7"], "stays refused", "nothing opens it"),
        (["--read", "../.nd7"], "stays refused", "nothing opens it"),
        (["../.claude/settings.json"], "stays refused", "nothing opens it"),
        ([".."], "whole home", "--yes"),
        (["/"], "more than your whole home", "--yes"),
        (["--connect", "*:*"], "whole network", "--yes"),
        (["--connect", "github.com"], "not HOST:PORT", "github.com:22"),
        (["--connect", "::1:22"], "not HOST:PORT", "[2001:db8::1]"),
        (["--connect", "a.org:99999"], "not a port", "65535"),
        (["--connect", "unix:/nope"], "no such file", ""),
        ([], "nothing named", "nd7 allow PATH"),
    ],
)
def test_what_is_refused(home, capsys, words, text, hint) -> None:
    status, out, err = nd7(capsys, "allow", *words)
    assert (status, out) == (2, "")
    assert text in err
    assert hint in err
    assert rules() == ()


def test_a_refused_word_leaves_the_others_undone(home, capsys) -> None:
    assert nd7(capsys, "allow", "../data", "../.claude/settings.json")[0] == 2
    assert rules() == ()


def test_yes_opens_home_and_says_what_stays_shut(home, capsys) -> None:
    status, out, _ = nd7(capsys, "allow", "..", "--yes", "--write")
    assert status == 0
    assert "stays refused" in out


def test_a_link_laid_by_the_run_is_not_taken_for_what_it_leads_to(home, capsys) -> None:
    (home / "app/build").symlink_to(home / ".ssh")
    status, _, err = nd7(capsys, "allow", "--read", "build")
    assert status == 2
    assert f"leads out of {home}/app, to {home}/.ssh" in err
    assert nd7(capsys, "allow", "--read", "../.ssh")[0] == 0


def test_deny_adds_when_there_is_nothing_to_take_back(home, capsys) -> None:
    status, out, _ = nd7(capsys, "deny", "src")
    assert status == 0
    assert out.count("denied: ") == 2
    assert {(r.effect, r.access) for r in rules()} == {(Effect.DENY, Access.READ), (Effect.DENY, Access.WRITE)}
    assert "denied already" in nd7(capsys, "deny", "src", "--read")[1]
    _, out, _ = nd7(capsys, "allow", "src", "--read", "--write")
    assert "took back the deny" in out
    assert rules() == ()


def test_a_path_that_is_gone_can_be_taken_back(home, capsys) -> None:
    nd7(capsys, "allow", "../data")
    (home / "data").rmdir()
    _, out, _ = nd7(capsys, "deny", "../data")
    assert out.startswith("nd7: took back: write ")
    assert rules() == ()


def test_a_standing_deny_is_named(home, capsys) -> None:
    (home / ".config/nd7").mkdir(parents=True)
    text = '[[project]]\npath = "~/app"\nrules = [{ effect = "deny", access = "write", path = "~/data" }]\n'
    (home / ".config/nd7/config.toml").write_text(text)
    status, _, err = nd7(capsys, "allow", "../data")
    assert status == 2
    assert "config.toml" in err


def test_connect(home, capsys, monkeypatch) -> None:
    found = {"github.com": ("192.0.2.4", "2001:db8::4")}
    monkeypatch.setattr(grants, "resolve_name", lambda name: found[name])
    _, out, _ = nd7(capsys, "allow", "--connect", "github.com:22")
    assert "connect 192.0.2.4:22/tcp (github.com)" in out
    assert "connect [2001:db8::4]:22/tcp (github.com)" in out
    assert rules()[0].target == HostTarget("192.0.2.4", 22, "tcp")
    found["github.com"] = ("192.0.2.5",)
    _, out, _ = nd7(capsys, "deny", "--connect", "github.com:22")
    assert out.count("took back") == 2
    assert rules() == ()


@pytest.mark.parametrize(
    ("word", "target"),
    [
        ("192.0.2.1:5432", HostTarget("192.0.2.1", 5432, "tcp")),
        ("[::1]:80/udp", HostTarget("::1", 80, "udp")),
        ("[::ffff:192.0.2.1]:80", HostTarget("192.0.2.1", 80, "tcp")),
        ("*:22", HostTarget("*", 22, "tcp")),
        ("10.0.0.0/8:*", HostTarget("10.0.0.0/8", None, "tcp")),
        ("loopback:5353/udp", HostTarget("loopback", 5353, "udp")),
        ("unix:/dev/null", SocketTarget(b"/dev/null")),
        ("unix:@bus", SocketTarget(b"@bus")),
    ],
)
def test_words_for_addresses(word, target) -> None:
    (wish,) = grants.connect_wishes(word, must_exist=True, proto="tcp", resolve=lambda name: (name,))
    assert wish.target == target
    (again,) = grants.connect_wishes(grants.show(target), must_exist=True, proto="tcp")
    assert again.target == target


def test_several_wishes_are_all_or_nothing_in_one_write(home) -> None:
    run = directory.find_run(None)
    wishes = [grants.path_wish(str(home / name), Access.WRITE, must_exist=True) for name in ("data", ".ssh")]
    grants.allow(run, wishes, Scope.RUN, "tui")
    assert len(rules()) == 2


def test_names_that_terminals_would_obey_are_escaped() -> None:
    assert grants.show(PathTarget(b"/a\x1b[2J\xff\n")) == "/a\\x1b[2J\\udcff\\n"


def test_an_unknown_name(monkeypatch) -> None:
    with pytest.raises(UsageError, match="no address"):
        grants.resolve_name("a..b")
