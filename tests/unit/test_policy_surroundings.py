from __future__ import annotations

import os

import pytest

from nd7tui.engine import paths
from nd7tui.engine.policy import surroundings
from nd7tui.engine.policy.rules import Access, Effect


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "home", lambda: os.path.realpath(tmp_path / "home"))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    (tmp_path / "home/app/.claude").mkdir(parents=True)
    (tmp_path / "dots").mkdir()
    return tmp_path / "home"


def policy(home):
    layout = surroundings.layout_of(str(home / "app"), str(home / ".nd7/sessions/1"), tmp=())
    return surroundings.floor_of(layout)


def effect(home, access: Access, path) -> Effect:
    return policy(home).decide_path(access, os.fsencode(path)).effect


def test_a_secret_behind_a_link_is_refused_where_it_lies(home, tmp_path) -> None:
    (tmp_path / "dots/aws").mkdir()
    (home / ".aws").symlink_to(tmp_path / "dots/aws")
    assert effect(home, Access.READ, tmp_path / "dots/aws/credentials") is Effect.DENY
    assert effect(home, Access.READ, home / ".aws") is Effect.DENY
    assert effect(home, Access.READ, tmp_path / "dots") is Effect.ALLOW


def test_the_never_list_follows_links(home, tmp_path) -> None:
    (home / ".claude").mkdir()
    (home / ".claude/settings.json").symlink_to(home / "app/settings.json")
    verdict = policy(home).decide_path(Access.WRITE, os.fsencode(home / "app/settings.json"))
    assert verdict.effect is Effect.DENY
    assert verdict.reason == "the agent's configuration"


def test_patterns_follow_links(home, tmp_path) -> None:
    (home / "app/.claude/settings.local.json").symlink_to(home / "app/other.json")
    (home / ".claude.json").symlink_to(tmp_path / "dots/claude.json")
    assert effect(home, Access.WRITE, home / "app/other.json") is Effect.ASK
    assert effect(home, Access.WRITE, tmp_path / "dots/claude.json") is Effect.ALLOW


def test_dotfiles_kept_in_the_project_ask(home) -> None:
    (home / "app/bashrc").touch()
    (home / ".bashrc").symlink_to(home / "app/bashrc")
    assert effect(home, Access.WRITE, home / "app/bashrc") is Effect.ASK


def test_a_link_to_everything_closes_nothing(home) -> None:
    (home / ".fly").symlink_to("/")
    (home / ".kube").symlink_to(home / "app")
    assert effect(home, Access.READ, "/etc/passwd") is Effect.ALLOW
    assert effect(home, Access.READ, home / "app/x") is Effect.ALLOW


def test_devices_are_not_followed(home) -> None:
    own = f"/proc/{os.getpid()}/fd".encode()
    assert not [rule for rule in policy(home).default if getattr(rule.target, "path", b"").startswith(own)]


def test_nameservers(tmp_path) -> None:
    (tmp_path / "r").write_text(
        "# x\nnameserver 192.0.2.1\nnameserver\nnameserver bad\nnameserver fe80::1%eth0\nsearch a\n"
        "nameserver 192.0.2.1\n"
    )
    assert surroundings.nameservers(str(tmp_path / "r")) == ("192.0.2.1", "fe80::1")
    assert surroundings.nameservers(str(tmp_path / "none")) == ()


def test_tmp_directories_never_open_home(tmp_path) -> None:
    # Everything of this test is beneath /tmp, so /tmp itself would open that home too.
    home = str(tmp_path / "home")
    (tmp_path / "home/t").mkdir(parents=True)
    for given in ("", "relative", "/nope", home, str(tmp_path), "/"):
        assert surroundings.tmp_directories({"TMPDIR": given}, home) == ()
    inside = str(tmp_path / "home/t")
    assert surroundings.tmp_directories({"TMPDIR": inside}, home) == (os.fsencode(os.path.realpath(inside)),)
    assert surroundings.tmp_directories({}, "/home/ann") == (os.fsencode(os.path.realpath("/tmp")),)


def test_package_managers_are_sent_to_caches_of_their_own(home, monkeypatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    found = surroundings.make_caches({"NPM_CONFIG_CACHE": "/mine", "PIP_CACHE_DIR": "/theirs"})
    caches = os.path.realpath(home / ".cache/nd7")
    assert found == {"UV_CACHE_DIR": f"{caches}/uv", "GOCACHE": f"{caches}/go-build"}
    assert os.stat(caches).st_mode & 0o777 == 0o700
    assert effect(home, Access.WRITE, f"{caches}/npm/x") is Effect.ALLOW
    assert effect(home, Access.WRITE, home / ".npm/_cacache") is Effect.DENY


def test_without_a_place_for_caches_there_are_none(home, monkeypatch) -> None:
    (home / ".cache").touch()
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert surroundings.make_caches({}) == {}
