"""Attacks on the Landlock floor: pitfalls 1 to 13 of docs/SECURITY.md."""

from __future__ import annotations

import os
import subprocess

import pytest

pytestmark = pytest.mark.attack


def test_pitfall_01_secrets_cannot_be_read_but_names_can(arena):
    result = arena.sh("ls ~/.ssh; cat ~/.ssh/id_ed25519; cat ~/project/src/main.c")
    assert "id_ed25519" in result.out
    assert "secret" not in result.out
    assert "int x;" in result.out
    assert result.denied(str(arena.home / ".ssh/id_ed25519"))


def test_pitfall_01_a_secret_is_not_readable_through_a_link(arena):
    result = arena.sh("ln -s ~/.ssh/id_ed25519 link; cat link; cat src/../../.ssh/id_ed25519; cat /proc/self/cwd/link")
    assert "secret" not in result.out
    assert result.denied(str(arena.home / ".ssh/id_ed25519"))


def test_pitfall_02_entries_made_later_in_home_are_readable(arena):
    def make_later(_):
        arena.write("home/later/file", "later\n")
        arena.write("home/later.txt", "also later\n")

    result = arena.sh("sleep 0.2; cat ~/later/file ~/later.txt", on_start=make_later)
    assert result.out == "later\nalso later\n"


def test_pitfall_03_a_replaced_file_stays_readable(arena):
    arena.write("home/.gitconfig", "old\n")

    def replace(_):
        os.replace(arena.write("home/.gitconfig.new", "new\n"), arena.home / ".gitconfig")

    assert arena.sh("sleep 0.2; cat ~/.gitconfig", on_start=replace).out == "new\n"


def test_pitfall_03_claude_json_is_replaced_by_temp_file_and_rename(arena):
    arena.write("home/.claude.json", "{}\n")
    code = (
        "mkdir ~/.claude.json.lock && echo new > ~/.claude.json.tmp.1.ab && mv ~/.claude.json.tmp.1.ab ~/.claude.json"
    )
    result = arena.sh(f"{code} && rmdir ~/.claude.json.lock && cat ~/.claude.json")
    assert result.out == "new\n"
    assert result.denials == []


def test_pitfall_04_a_bind_mount_of_a_secret_is_refused_too(arena):
    alias = arena.top / "alias"
    alias.mkdir()

    def mount():
        os.unshare(os.CLONE_NEWNS) if hasattr(os, "unshare") else _unshare()
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        subprocess.run(["mount", "--bind", str(arena.home), str(alias)], check=True)

    result = arena.sh(f"cat {alias}/.ssh/id_ed25519; cat {alias}/project/src/main.c", prepare=mount)
    assert "int x;" in result.out, result.err
    assert "secret" not in result.out
    assert result.denied(str(alias / ".ssh/id_ed25519"))


def _unshare():
    from nd7tui.engine.sandbox import abi

    abi.syscall(abi.NR["unshare"], 0x00020000)


def test_pitfall_05_a_secret_that_appears_later_is_refused(arena):
    def later(_):
        arena.write("home/.aws/credentials", "aws secret\n")

    result = arena.sh("sleep 0.2; cat ~/.aws/credentials", on_start=later)
    assert result.out == ""
    assert result.denied(str(arena.home / ".aws/credentials"))


def test_pitfall_07_rename_inside_works_and_a_link_from_outside_does_not(arena):
    arena.write("home/project/a/file", "a\n")
    arena.write("home/project/b/x", "b\n")
    result = arena.sh(f"mv a/file b/file && cat b/file; ln {arena.top}/outside/file here; cat here")
    assert result.out == "a\n"
    assert not (arena.project / "here").exists()
    assert result.denied(str(arena.top / "outside/file"))


@pytest.mark.parametrize(
    "command",
    [
        "echo x > {out}/new",
        "echo x >> {out}/file",
        "rm {out}/file",
        "mkdir {out}/dir",
        "mv {out}/file here",
        "mv src/main.c {out}/",
        "truncate -s 0 {out}/file",
        "ln -s / {out}/link",
        "chmod 777 {out}/file",
        "chown 0:0 {out}/file",
        "touch -d 2001-01-01 {out}/file",
        "mkfifo {out}/fifo",
        "cp src/main.c {out}/file",
    ],
)
def test_pitfall_09_nothing_outside_is_changed(arena, command):
    def state():
        info = (arena.top / "outside/file").stat()
        return sorted(os.listdir(arena.top / "outside")), info.st_mode, info.st_uid, info.st_mtime_ns, info.st_size

    before = state()
    result = arena.sh(command.format(out=f"{arena.top}/outside"))
    assert state() == before
    assert result.status != 0
    assert result.denials


def test_pitfall_09_extended_attributes_outside_are_refused(arena):
    code = f"""
import os
fd = os.open({str(arena.top / "outside/file")!r}, os.O_RDONLY)
for act in (lambda: os.setxattr(fd, "user.x", b"1"), lambda: os.fchmod(fd, 0o777), lambda: os.utime(fd),
            lambda: os.setxattr({str(arena.top / "outside/file")!r}, "user.x", b"1")):
    try:
        act()
        print("done")
    except PermissionError:
        print("refused")
"""
    assert arena.python(code).out.split() == ["refused"] * 4


def test_pitfall_09_the_same_works_in_the_project(arena):
    result = arena.sh(
        "echo x > f; chmod 640 f; touch -d 2001-01-01 f; stat -c '%a %Y' f; mkdir -p deep/er; mv f deep/er/;"
        "ln deep/er/f hard; ln -s hard soft; truncate -s 1 soft; stat -c %s hard; rm -r deep hard soft; mkfifo p; ls"
    )
    assert result.out.split() == ["640", "978307200", "1", "p", "src"], result.err
    assert result.denials == []


def test_pitfall_10_inherited_descriptors_are_closed(arena):
    def leak():
        for _ in range(3):
            os.set_inheritable(os.open("/etc/passwd", os.O_RDONLY), True)

    result = arena.run("ls", "/proc/self/fd", prepare=leak)
    assert set(result.out.split()) <= {"0", "1", "2", "3"}


def test_pitfall_11_the_usual_devices_work(arena):
    result = arena.sh(
        "echo x > /dev/null; head -c 2 /dev/zero | wc -c; head -c 2 /dev/urandom | wc -c; echo y > /dev/stdout"
    )
    assert result.out.split() == ["2", "2", "y"], result.err


def test_pitfall_11_a_raw_disk_cannot_be_read_or_made(arena):
    if not os.path.exists("/dev/vda") and not os.path.exists("/dev/sda"):
        device = "/dev/kmsg"
    else:
        device = "/dev/vda" if os.path.exists("/dev/vda") else "/dev/sda"
    result = arena.sh(f"head -c 1 {device} >/dev/null && echo read; mknod disk b 254 0 && echo made; ls")
    assert "read" not in result.out
    assert "made" not in result.out


def test_pitfall_12_mptcp_and_fast_open_are_refused(arena):
    code = """
import socket, errno
for make in (lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262),
             lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1),
             lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0),
             lambda: socket.socket(38, socket.SOCK_SEQPACKET, 0),
             lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).sendto(b"x", 0x20000000, ("127.0.0.1", 1))):
    try:
        make()
        print("made")
    except OSError as error:
        print(errno.errorcode[error.errno])
"""
    assert "made" not in arena.python(code).out


def test_pitfall_13_listening_works(arena):
    assert arena.python("import socket; socket.create_server(('127.0.0.1', 0)); print('ok')").out == "ok\n"


def test_protected_project_files_ask_and_cannot_be_reached_by_moving(arena):
    arena.write("home/project/.git/hooks/x.sample", "")
    arena.write("home/project/.git/config", "[core]\n")
    arena.write("home/project/.git/HEAD", "ref: refs/heads/main\n")
    result = arena.sh(
        "echo evil > .git/hooks/pre-commit; mv .git g; mkdir -p n/hooks; mv n/hooks .git/hooks; mv -T n .git;"
        "rm -r .git/hooks; ln -s /tmp .git/hooks; cp src/main.c .git/config; echo ok > .git/index; cat .git/index"
    )
    assert result.out == "ok\n"
    assert os.listdir(arena.project / ".git/hooks") == ["x.sample"]
    assert (arena.project / ".git/config").read_text() == "[core]\n"
    assert {d["effect"] for d in result.denials} == {"ask"}
