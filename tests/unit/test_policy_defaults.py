"""The policy table of the reference, line by line."""

from __future__ import annotations

import pytest

from nd7tui.engine.policy.defaults import Layout, policy_for
from nd7tui.engine.policy.rules import Access, Effect, PathTarget, Policy, Rule, Scope

HOME = b"/home/ann"
LAYOUT = Layout(
    home=HOME,
    project=b"/home/ann/src/app",
    tmp=(b"/tmp", b"/var/tmp"),
    scratch=(b"/home/ann/.scratch",),
    run_dir=b"/home/ann/.nd7/sessions/42",
    state_dir=b"/home/ann/.local/state/nd7",
    nameservers=("192.0.2.53", "2001:db8::53"),
    uid=1000,
    programs=(b"/opt/nd7/bin",),
)
POLICY = policy_for(LAYOUT)
A, D, Q = Effect.ALLOW, Effect.DENY, Effect.ASK


@pytest.mark.parametrize(
    ("path", "read", "write"),
    [
        ("~/src/app", A, A),
        ("~/src/app/x/y", A, A),
        ("~/src/apple", A, D),
        ("~/src", A, D),
        ("/tmp/x", A, A),
        ("~/.scratch/x", A, A),
        ("/etc/passwd", A, D),
        ("~/notes", A, D),
        ("~/.ssh", D, D),
        ("~/.ssh/id_ed25519", D, D),
        ("~/.sshx", A, D),
        ("~/.aws/credentials", D, D),
        ("~/.gnupg/private-keys-v1.d/k.key", D, D),
        ("~/.gnupg/pubring.kbx", A, D),
        ("~/.config/gh/hosts.yml", D, D),
        ("~/.config/git/credentials", D, D),
        ("~/.config/git/ignore", A, D),
        ("~/.netrc", D, D),
        ("~/.kube/config", D, D),
        ("~/.docker/config.json", D, D),
        ("~/.docker/buildx", A, D),
        ("~/.npmrc", D, D),
        ("~/.mozilla/firefox/x", D, D),
        ("~/snap/firefox/common", D, D),
        ("~/.claude", A, A),
        ("~/.claude/projects/x", A, A),
        ("~/.claude/settings.json", A, D),
        ("~/.claude/settings.local.json", A, D),
        ("~/.claude/hooks/x.sh", A, Q),
        ("~/.claude.json", A, A),
        ("~/.claude.json.lock/x", A, A),
        ("~/.claude.json.tmp.1.abc", A, A),
        ("~/.claudex", A, D),
        ("~/.codex/auth.json", A, A),
        ("~/.codex/config.toml", A, D),
        ("~/.codex/hooks.json", A, D),
        ("~/.nd7", D, D),
        ("~/.nd7/sessions/41/record.json", D, D),
        ("~/.nd7/sessions/42/record.json", A, D),
        ("~/.config/nd7/config.toml", A, D),
        ("~/.local/state/nd7/sessions/x", D, D),
        ("/opt/nd7/bin/nd7-exec", A, D),
        ("~/src/app/.git/HEAD", A, A),
        ("~/src/app/.git/hooks/pre-commit", A, Q),
        ("~/src/app/.git/config", A, Q),
        ("~/src/app/.git/config.lock", A, A),
        ("~/src/app/sub/.git/config", A, A),
        ("~/src/app/.claude/settings.local.json", A, Q),
        ("~/src/app/.claude/commands/x.md", A, A),
        ("~/src/app/.mcp.json", A, Q),
        ("~/src/app/.envrc", A, Q),
        ("~/src/app/.vscode/tasks.json", A, Q),
        ("~/src/app/Makefile", A, A),
        ("/dev", D, D),
        ("/dev/null", A, A),
        ("/dev/pts/3", D, D),  # the run's own are told by who holds them: sandbox/terminals.py
        ("/dev/pts/ptmx", A, A),
        ("/dev/shm/x", A, A),
        ("/dev/kvm", D, D),
        ("/dev/mem", D, D),
        ("/proc/self/status", A, D),
        ("/etc/shadow", A, D),  # its own mode refuses it to anybody but root
    ],
)
def test_table(path: str, read: Effect, write: Effect) -> None:
    target = path.encode().replace(b"~", HOME, 1) if path.startswith("~") else path.encode()
    assert POLICY.decide_path(Access.READ, target).effect is read
    assert POLICY.decide_path(Access.WRITE, target).effect is write


@pytest.mark.parametrize(
    ("ip", "port", "proto", "effect"),
    [
        ("203.0.113.9", 443, "tcp", A),
        ("2001:db8::1", 443, "tcp", A),
        ("203.0.113.9", 443, "udp", D),
        ("203.0.113.9", 22, "tcp", D),
        ("203.0.113.9", 80, "tcp", D),
        ("203.0.113.9", 53, "udp", D),
        ("192.0.2.53", 53, "udp", A),
        ("192.0.2.53", 53, "tcp", A),
        ("::ffff:192.0.2.53", 53, "tcp", A),
        ("2001:db8::53", 53, "udp", A),
        ("127.0.0.1", 8080, "tcp", A),
        ("127.9.9.9", 1, "udp", A),
        ("::1", 8080, "tcp", A),
        ("::ffff:127.0.0.1", 8080, "tcp", A),
        ("0.0.0.0", 8080, "tcp", A),  # noqa: S104
        ("::", 8080, "tcp", A),
        ("::ffff:0.0.0.0", 8080, "tcp", A),
        ("::2", 8080, "tcp", D),
        ("169.254.169.254", 80, "tcp", D),
        ("example.org", 443, "tcp", D),
        ("", 443, "tcp", D),
    ],
)
def test_network(ip: str, port: int, proto: str, effect: Effect) -> None:
    assert POLICY.decide_host(ip, port, proto).effect is effect


@pytest.mark.parametrize(
    ("path", "effect"),
    [
        (b"/run/nscd/socket", A),
        (b"/run/systemd/resolve/io.systemd.Resolve", A),
        (b"/run/user/1000/gnupg/S.gpg-agent.extra", A),
        (b"/run/user/1000/gnupg/S.gpg-agent", D),
        (b"/home/ann/.nd7/sessions/42/hook.sock", A),
        (b"/home/ann/.nd7/sessions/41/hook.sock", D),
        (b"/var/run/docker.sock", D),
        (b"/run/user/1000/bus", D),
        (b"/tmp/codex-daemon-1000/x", D),
        (b"@/tmp/.X11-unix/X0", D),
    ],
)
def test_sockets(path: bytes, effect: Effect) -> None:
    assert POLICY.decide_socket(path).effect is effect


def live(policy: Policy, path: bytes, access: Access = Access.WRITE, effect: Effect = A) -> Policy:
    return policy.with_live([Rule(effect, access, PathTarget(path), Scope.RUN, "test", 1, "r1")])


def test_granting_home_opens_neither_secrets_nor_startup_files() -> None:
    granted = live(POLICY, HOME)
    assert granted.decide_path(Access.WRITE, HOME + b"/notes").effect is A
    for name in (b"/.ssh/authorized_keys", b"/.bashrc", b"/.config/systemd/user/x", b"/.nd7/x", b"/.gnupg/gpg.conf"):
        assert granted.decide_path(Access.WRITE, HOME + name).effect is D


def test_granting_the_root_for_reading_keeps_devices_usable_and_secrets_shut() -> None:
    granted = live(POLICY, b"/", Access.READ)
    assert granted.decide_path(Access.READ, b"/dev/null").effect is A
    assert granted.decide_path(Access.READ, HOME + b"/.ssh/id").effect is D


def test_a_grant_at_the_secret_itself_opens_it() -> None:
    assert live(POLICY, HOME + b"/.npmrc", Access.READ).decide_path(Access.READ, HOME + b"/.npmrc").effect is A


def test_every_rule_says_why() -> None:
    assert all(rule.why for rule in POLICY.default + POLICY.never)
    assert POLICY.decide_path(Access.READ, HOME + b"/.ssh/id").reason == "secret: ssh keys"
    assert POLICY.decide_path(Access.WRITE, b"/usr/x").reason == "outside the project"
    assert POLICY.decide_path(Access.WRITE, HOME + b"/src/app/.git/hooks/x").reason == "git runs it"


def test_ids_are_unique() -> None:
    ids = [rule.id for rule in POLICY.default + POLICY.never]
    assert len(ids) == len(set(ids))


def test_carrying_the_git_directory_away_asks_and_the_agents_directory_never() -> None:
    assert POLICY.decide_tree(Access.WRITE, LAYOUT.project + b"/.git").effect is Q
    assert POLICY.decide_tree(Access.WRITE, LAYOUT.project + b"/.claude").effect is Q
    assert POLICY.decide_tree(Access.WRITE, LAYOUT.project + b"/src").effect is A
    assert POLICY.decide_tree(Access.WRITE, HOME + b"/.claude").effect is D


def test_root_also_keeps_the_systems_secrets() -> None:
    policy = policy_for(Layout(HOME, LAYOUT.project, (), (), LAYOUT.run_dir, LAYOUT.state_dir, (), 0))
    for path in (b"/etc/shadow", b"/etc/sudoers.d/x", b"/root/.ssh/id", b"/etc/ssh/ssh_host_rsa_key"):
        assert policy.decide_path(Access.READ, path).effect is D
    assert policy.decide_path(Access.READ, b"/etc/ssh/ssh_host_rsa_key.pub").effect is A


def test_a_run_started_in_a_startup_directory_may_work_there() -> None:
    project = HOME + b"/.config/nvim"
    policy = policy_for(Layout(HOME, project, (), (), LAYOUT.run_dir, LAYOUT.state_dir, (), 1000))
    assert policy.decide_path(Access.WRITE, project + b"/init.lua").effect is A
