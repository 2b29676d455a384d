from __future__ import annotations

import os

import pytest

from nd7tui.engine import locks, paths
from nd7tui.engine.policy import config
from nd7tui.engine.policy.config import RuleFileError
from nd7tui.engine.policy.rules import Access, Effect, HostTarget, PathTarget, Policy, Rule, Scope, SocketTarget

ALLOW = Rule(Effect.ALLOW, Access.WRITE, PathTarget(b"/srv/data"), Scope.RUN, "tui", 5, "r1")


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "home", lambda: os.path.realpath(tmp_path))
    (tmp_path / ".config/nd7").mkdir(parents=True)
    return tmp_path


def write(home, text: str) -> None:
    (home / ".config/nd7/config.toml").write_text(text)


def test_the_example_in_the_module_is_one(home) -> None:
    text = "\n".join(line[4:] for line in config.__doc__.splitlines() if line.startswith("    "))
    write(home, text)
    read = config.load()
    assert read.hold_seconds == 60
    assert read.mode == "fast"
    assert len(read.rules) == 3
    assert {type(rule.target) for rule in read.projects[0].rules} == {PathTarget, HostTarget, SocketTarget}


def test_no_file_is_no_rules(home) -> None:
    assert config.load() == config.Config()


def test_the_tables_of_the_ui_are_not_for_a_run_to_refuse(home) -> None:
    write(home, '[defaults]\nhold_seconds = 3\n\n[keys]\nallow-newest = "ctrl+y"\n\n[ui]\ntheme = "nord"\n')
    assert config.load() == config.Config(hold_seconds=3.0)


def test_rules_hold_in_the_project_and_beneath(home) -> None:
    write(home, '[[project]]\npath = "~/app"\nrules = [{effect="allow", access="write", path="~/.npm/"}]\n')
    read = config.load()
    top = os.fsencode(home)
    npm = top + b"/.npm/x"
    for project, effect in ((b"/app", Effect.ALLOW), (b"/app/sub", Effect.ALLOW), (b"/apple", Effect.DENY)):
        policy = read.apply(Policy(), top + project)
        assert policy.decide_path(Access.WRITE, npm).effect is effect
        assert all(rule.scope is Scope.PROJECT for rule in policy.live)


def test_read_deny_can_be_opened_for_a_run(home) -> None:
    write(home, '[defaults]\nread_deny = ["/srv/x"]\n')
    everything = Rule(Effect.ALLOW, Access.READ, PathTarget(b"/"), Scope.DEFAULT, "nd7", 0, "d")
    policy = config.load().apply(Policy(default=(everything,)), b"/p")
    assert policy.decide_path(Access.READ, b"/srv/x/y").effect is Effect.DENY
    grant = Rule(Effect.ALLOW, Access.READ, PathTarget(b"/srv/x"), Scope.RUN, "t", 0, "g")
    assert policy.with_live([grant]).decide_path(Access.READ, b"/srv/x/y").effect is Effect.ALLOW


def test_an_allowed_path_that_became_a_link_is_an_error_and_a_denied_one_is_denied_twice(home) -> None:
    (home / ".ssh").mkdir()
    (home / "link").symlink_to(home / ".ssh")
    write(home, '[defaults]\nrules = [{effect="allow", access="read", path="~/link"}]\n')
    with pytest.raises(RuleFileError, match="symbolic link") as caught:
        config.load()
    assert caught.value.where == "defaults.rules[0].path"
    write(home, '[defaults]\nrules = [{effect="deny", access="read", path="~/link"}]\n')
    assert [rule.target.path for rule in config.load().rules] == [
        os.fsencode(home / "link"),
        os.fsencode(home / ".ssh"),
    ]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("x = 1", "x"),
        ("[defaults]\nhold = 1", "defaults.hold"),
        ("[defaults]\nhold_seconds = -1", "defaults.hold_seconds"),
        ("[defaults]\nhold_seconds = nan", "defaults.hold_seconds"),
        ('[defaults]\nmode = "quick"', "defaults.mode"),
        ('[defaults]\nread_deny = ["x"]', "defaults.read_deny[0]"),
        ("defaults = 1", "defaults"),
        ("[project]\npath='/x'", "project"),
        ("[[project]]\nrules = []", "project[0].path"),
        ('[[project]]\npath="/p"\nrules=[{effect="alow", access="read", path="/x"}]', "project[0].rules[0].effect"),
        ('[[project]]\npath="/p"\nrules=[{effect="deny", access="read", pth="/x"}]', "project[0].rules[0].path"),
        ('[[project]]\npath="/p"\nrules=[{effect="deny", access="read", path="/x", n=1}]', "project[0].rules[0].n"),
        ('[[project]]\npath="/p"\nrules=[{effect="deny", access="connect", path="/x"}]', "project[0].rules[0]"),
        ('[[project]]\npath="/p"\nrules=[{effect="deny", access="connect", host="a.org"}]', "project[0].rules[0]"),
        ("[[[", ""),
        ("a = [" * 5000, ""),
    ],
)
def test_each_fault_names_its_member(home, text: str, where: str) -> None:
    write(home, text)
    with pytest.raises(RuleFileError) as caught:
        config.load()
    assert caught.value.where == where
    assert str(caught.value).startswith("config.toml: ")


def test_remember_keeps_comments_and_adds_once(home) -> None:
    write(home, '# mine\n[defaults]\nmode = "fast" # quick\n')
    project = os.fsencode(home) + b"/app"
    config.remember(ALLOW, project)
    config.remember(ALLOW, project)
    ssh = Rule(Effect.ALLOW, Access.CONNECT, HostTarget("192.0.2.1", 22, "tcp"), Scope.RUN, "t", 1, "x", "github.com")
    config.remember(ssh, project)
    config.remember(ALLOW, b"/other")
    text = (home / ".config/nd7/config.toml").read_text()
    assert text.startswith('# mine\n[defaults]\nmode = "fast" # quick\n')
    assert 'path = "~/app"' in text
    read = config.load()
    assert [rule.target for rule in read.rules_for(project)] == [ALLOW.target, ssh.target]
    assert read.rules_for(project)[1].why == "github.com"
    assert [rule.target for rule in read.rules_for(b"/other")] == [ALLOW.target]


@pytest.mark.parametrize(
    "text",
    [
        '[[project]]\npath = "/p" # here\n[[project.rules]]\neffect = "deny"\naccess = "read"\npath = "/x"\n',
        '[[project]]\npath = "/p"\nrules = []\n\n[defaults]\nmode = "fast"\n',
        '[[project]]\npath = "/p"\nrules = [{ effect = "deny", access = "read", path = "/x" }]\n[[project]]\npath="/q"',
        'project = [{ path = "/p" }]\n',
    ],
)
def test_remember_fits_into_what_is_there(home, text: str) -> None:
    write(home, text)
    before = config.load().rules_for(b"/p")
    config.remember(ALLOW, b"/p")
    after = config.load().rules_for(b"/p")
    assert [rule.target for rule in after] == [*(rule.target for rule in before), ALLOW.target]


def test_remember_makes_the_file_for_its_owner_only(home) -> None:
    config.remember(ALLOW, b"/p")
    assert (home / ".config/nd7/config.toml").stat().st_mode & 0o777 == 0o600


def test_remember_leaves_a_broken_file_alone(home) -> None:
    write(home, "oops")
    with pytest.raises(RuleFileError):
        config.remember(ALLOW, b"/p")
    assert (home / ".config/nd7/config.toml").read_text() == "oops"


def test_what_is_not_utf8_is_refused_with_a_hint(home) -> None:
    rule = Rule(Effect.ALLOW, Access.WRITE, PathTarget(b"/srv/\xff"), Scope.RUN, "tui", 5, "r1")
    with pytest.raises(RuleFileError, match="UTF-8") as caught:
        config.remember(rule, b"/p")
    assert caught.value.hint


def test_a_lock_that_is_kept_is_told_and_nothing_is_changed(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(locks, "PATIENCE", 0.05)
    path = tmp_path / "config.toml"
    path.write_text("")
    with (
        locks.locked(f"{path}.lock", "held"),
        pytest.raises(locks.LockHeldError, match=r"config.toml: another process"),
    ):
        config.remember(ALLOW, b"/p", str(path))
    assert path.read_text() == ""
