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
    assert arena.bare("cat ~/.ssh/id_ed25519") == "secret\n"


def test_pitfall_01_a_secret_is_not_readable_through_a_link(arena):
    code = (
        "ln -s ~/.ssh/id_ed25519 link; cat link; cat src/../../.ssh/id_ed25519; cat /proc/self/cwd/link;"
        f"cat /proc/self/root{arena.home}/.ssh/id_ed25519; cd ~/.ssh; cat id_ed25519; exec 5< .; cat /proc/self/fd/5/*"
    )
    result = arena.sh(code)
    assert "secret" not in result.out
    assert result.denied(str(arena.home / ".ssh/id_ed25519"))
    (arena.project / "link").unlink()
    assert arena.bare(code) == "secret\n" * 6


def test_pitfall_02_entries_made_later_in_home_are_readable(arena):
    def make_later(_):
        arena.write("home/later/file", "later\n")
        arena.write("home/later.txt", "also later\n")

    result = arena.sh("sleep 0.2; cat ~/later/file ~/later.txt", on_start=make_later)
    assert result.out == "later\nalso later\n"


def test_pitfall_02_but_cannot_be_executed(arena):
    def make_later(_):
        for name in ("home/later.sh", "home/project/src/later.sh"):
            arena.write(name, "#!/bin/sh\necho ran\n").chmod(0o755)

    result = arena.sh("sleep 0.2; ~/later.sh; src/later.sh; sh ~/later.sh", on_start=make_later)
    assert result.out == "ran\nran\n"  # in the project, and read by a shell
    assert "Permission denied" in result.err


def test_pitfall_03_a_replaced_file_stays_readable(arena):
    arena.write("home/.gitconfig", "old\n")

    def replace(_):
        os.replace(arena.write("home/.gitconfig.new", "new\n"), arena.home / ".gitconfig")

    assert arena.sh("cat ~/.gitconfig").out == "old\n"
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
        _unshare()
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

    assert not (arena.home / ".aws").exists()
    result = arena.sh("sleep 0.2; cat ~/.aws/credentials; ls ~/.aws", on_start=later)
    assert result.out == "credentials\n"
    assert result.denied(str(arena.home / ".aws/credentials"))
    assert arena.bare("cat ~/.aws/credentials") == "aws secret\n"


def test_pitfall_06_what_is_mounted_later_below_a_directory_is_covered_like_it(arena):
    ready, sealed = arena.project / "src", arena.top / "outside/mnt"
    sealed.mkdir()

    def mount_later():
        _unshare()
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        mount = "mount -t tmpfs -o mode=777 nd7test"
        code = f"sleep 0.4; {mount} {sealed} && echo out > {sealed}/file && chmod 666 {sealed}/file;"
        subprocess.Popen(["sh", "-c", f"{code} {mount} {ready} && echo in > {ready}/mounted"])

    result = arena.sh(
        "cat src/main.c; while ! cat src/mounted 2>/dev/null; do sleep 0.05; done; echo w > src/new; cat src/new;"
        f"cat {sealed}/file; echo w > {sealed}/file; cat {sealed}/file; rm src/new; ls src",
        prepare=mount_later,
    )
    assert result.out.split() == ["int", "x;", "in", "w", "out", "out", "mounted"], result.err
    assert result.denied(str(sealed / "file"))


def test_pitfall_06_the_program_itself_cannot_mount(arena):
    code = f"mount --bind {arena.home}/.ssh src; mount -t tmpfs none src; ls src; unshare -m true && echo unshared"
    code += "; unshare -rm true && echo unshared"
    assert arena.sh(code).out == "main.c\n"
    if not arena.uid:
        bare = f"unshare -m sh -c 'mount --make-rprivate /; mount --bind {arena.home}/.ssh src; ls src'"
        assert arena.bare(bare) == "id_ed25519\n"


def test_pitfall_07_rename_inside_works_and_a_link_from_outside_does_not(arena):
    arena.write("home/project/a/file", "a\n")
    arena.write("home/project/b/x", "b\n")
    code = f"ln {arena.top}/outside/file here; cat here; ln ~/.ssh/id_ed25519 key; cat key"
    result = arena.sh(f"mv a/file b/file && cat b/file; mv a c && mv c b/ && ls b; {code}")
    assert result.out.split() == ["a", "c", "file", "x"]
    assert not (arena.project / "here").exists()
    assert result.denied(str(arena.top / "outside/file"))
    assert result.denied(str(arena.home / ".ssh/id_ed25519"))
    assert arena.bare(code) == "outside\nsecret\n"


def test_pitfall_08_access_says_yes_where_open_fails(arena):
    """So nobody may take access(2) for an answer, and no test here does."""
    code = f"test -w {arena.top}/outside/file && echo yes; echo x > {arena.top}/outside/file || echo refused"
    result = arena.sh(f"{code}; stat -c %s {arena.top}/outside/file; test -r ~/.ssh/id_ed25519 && echo yes")
    assert result.out.split() == ["yes", "refused", "8", "yes"]
    assert arena.bare(code) == "yes\n"


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
        "chown {owner} {out}/file",
        "touch -d 2001-01-01 {out}/file",
        "mkfifo {out}/fifo",
        "cp src/main.c {out}/file",
    ],
)
def test_pitfall_09_nothing_outside_is_changed(arena, command):
    def state():
        if not (arena.top / "outside/file").exists():
            return None
        info = (arena.top / "outside/file").stat()
        return sorted(os.listdir(arena.top / "outside")), info.st_mode, info.st_uid, info.st_mtime_ns, info.st_size

    before = state()
    owner = "1:1" if not arena.uid else f"{arena.uid}:{arena.gid}"  # an ordinary user may only say what is so
    command = command.format(out=f"{arena.top}/outside", owner=owner)
    result = arena.sh(command)
    assert state() == before
    assert result.status != 0
    assert result.denials
    arena.bare(command)
    assert state() != before or (arena.uid and "chown" in command), "the same without the sandbox changes nothing"


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
    assert arena.bare(f"python3 - <<'END'\n{code}END").split() == ["done"] * 4


def test_pitfall_09_the_same_works_in_the_project(arena):
    result = arena.sh(
        "echo x > f; chmod 640 f; touch -d 2001-01-01 f; stat -c '%a %Y' f; mkdir -p deep/er; mv f deep/er/;"
        "ln deep/er/f hard; ln -s hard soft; truncate -s 1 soft; stat -c %s hard; rm -r deep hard soft; mkfifo p; ls"
    )
    assert result.out.split() == ["640", "978307200", "1", "p", "src"], result.err
    assert result.denials == []


def test_pitfall_10_inherited_descriptors_are_closed(arena):
    def leak():
        for number in (60, 70, 500, 1000):
            os.dup2(os.open("/etc/passwd", os.O_RDONLY), number)
            assert os.get_inheritable(number)

    result = arena.run("ls", "/proc/self/fd", prepare=leak)
    assert result.out.split() == ["0", "1", "2", "3"]  # 3 is the directory that ls reads
    assert "passwd" not in arena.sh("ls -l /proc/self/fd /proc/$$/fd", prepare=leak).out


def test_pitfall_11_the_usual_devices_work(arena):
    result = arena.sh(
        "echo x > /dev/null; head -c 2 /dev/zero | wc -c; head -c 2 /dev/urandom | wc -c; echo y > /dev/stdout"
    )
    assert result.out.split() == ["2", "2", "y"], result.err


def _opens(device):
    """Tells whether there is such a device and root may read it here: what a container forbids shows nothing."""
    try:
        os.close(os.open(device, os.O_RDONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


def test_pitfall_11_a_raw_disk_cannot_be_read_or_made(arena):
    device = next(name for name in ("/dev/vda", "/dev/sda", "/dev/loop0", "/dev/kmsg") if _opens(name))
    code = f"true < {device} && echo read; mknod disk b 254 0 && echo made; rm -f disk; mknod p p && ls"
    result = arena.sh(code)
    assert result.out.split() == ["p", "src"]
    assert result.denied(device)
    (arena.project / "p").unlink()
    if not arena.uid:
        assert arena.bare(code).split() == ["read", "made", "p", "src"]


def test_pitfall_12_mptcp_and_fast_open_are_refused(arena):
    code = """
import socket, errno
I, S, D, R = socket.AF_INET, socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW
server = socket.create_server(("127.0.0.1", 0))
for make in (lambda: socket.socket(I, S, 262), lambda: socket.socket(socket.AF_INET6, S, 262),
             lambda: socket.socket(I, R, 1), lambda: socket.socket(I, D, 1), lambda: socket.socket(I, D, 136),
             lambda: socket.socket(socket.AF_PACKET, R, 0), lambda: socket.socket(38, socket.SOCK_SEQPACKET, 0),
             lambda: socket.socket(40, S, 0),
             lambda: socket.socket(I, S).sendto(b"x", 0x20000000, server.getsockname()),
             lambda: socket.socket(I, S).sendmsg([b"x"], [], 0x20000000, server.getsockname()),
             lambda: socket.socket(I, S).connect(server.getsockname())):
    try: make(); print("made")
    except OSError as error: print(errno.errorcode[error.errno])
"""
    words = arena.python(code).out.split()
    assert words[:2] == ["EPROTONOSUPPORT"] * 2
    assert words[2:8] == ["EPERM", *["EPROTONOSUPPORT"] * 2, *["EAFNOSUPPORT"] * 3]
    assert words[8:] == ["ENOTSUP", "ENOTSUP", "made"]  # as Python calls EOPNOTSUPP
    assert "ENOTSUP" not in arena.bare(f"python3 - <<'END'\n{code}END")


def test_pitfall_13_listening_works(arena):
    code = """
import socket, threading
for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET, ""), (socket.AF_INET6, "::1")):
    server = socket.create_server((host, 0), family=family)
    threading.Thread(target=lambda: server.accept()[0].send(b"served")).start()
    print(socket.create_connection((host or "127.0.0.1", server.getsockname()[1])).recv(9))
"""
    result = arena.python(code)
    assert result.out.split() == ["b'served'"] * 3, result.err


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
