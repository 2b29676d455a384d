"""nd7-exec and nd7-hook, the real binaries, below a supervisor that only answers."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
from dataclasses import dataclass, field

import pytest

from nd7tui.engine import helpers

pytestmark = pytest.mark.e2e

FAKE = os.path.join(os.path.dirname(__file__), "fake_supervisor.py")
EXEC, HOOK = (helper.path for helper in helpers.find())


@dataclass
class Ended:
    status: int
    out: bytes
    err: bytes
    seen: list[dict] = field(default_factory=list)

    def payloads(self, kind):
        return [bytes.fromhex(each["payload"]) for each in self.seen if each["kind"] == kind]


@pytest.fixture
def in_run(tmp_path):
    """Returns a function that starts a program in a fake run and waits for it."""

    def start(
        *argv, out=b"", err=b"", status=0, stdin=b"", env=None, answer=True, listen=True, mode="700", before=None
    ):
        script = tmp_path / "script.json"
        told = {"out": out.hex(), "err": err.hex(), "status": status, "answer": answer, "listen": listen, "mode": mode}
        script.write_text(json.dumps(told))
        seen = tmp_path / "script.json.seen"
        seen.unlink(missing_ok=True)
        done = subprocess.run(
            [sys.executable, FAKE, script, *argv],
            input=stdin,
            capture_output=True,
            env=os.environ | {"SHELL": "/bin/sh"} | (env or {}),
            cwd=tmp_path,
            timeout=60,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr, json.loads(seen.read_text()) if seen.exists() else [])

    return start


def outside(*argv, env=None, stdin=b""):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ND7_")}
    done = subprocess.run(argv, input=stdin, capture_output=True, env=clean | (env or {}), timeout=60, check=False)
    return Ended(done.returncode, done.stdout, done.stderr)


def denies(*entries):
    return b"".join(os.fsencode(entry) + b"\0" for entry in entries)


def test_the_helpers_are_built():
    assert EXEC, "nd7-exec was not built"
    assert HOOK, "nd7-hook was not built"


# ---- nd7-exec: what it becomes


def test_becomes_the_shell_and_says_nothing(in_run):
    done = in_run(EXEC, "-c", "echo out; echo err >&2; exit 7")
    assert (done.status, done.out, done.err) == (7, b"out\n", b"err\n")


def test_announces_the_command_as_the_process_that_becomes_it(in_run):
    done = in_run(EXEC, "-c", "echo $$")
    assert done.payloads("exec") == [b"echo $$"]
    assert int(done.out) == done.seen[0]["pid"]


@pytest.mark.parametrize(
    "text",
    [
        b"printf 'a\nb\n'",
        b"printf '\xff\xfe'",
        b"-x; echo never",
        b"echo 'it'\\''s'",
        b"",
        b"# only a comment",
        b"cat <<'E'\n$x `y`\nE",
    ],
)
def test_text_of_any_bytes_runs_as_the_shell_would_run_it(in_run, text):
    done = in_run(EXEC, "-c", text)
    plain = subprocess.run(["/bin/sh", "-c", "--", text], capture_output=True, check=False)
    assert done.payloads("exec") == [text]
    assert (done.status, done.out) == (plain.returncode, plain.stdout)


def test_the_longest_text_an_argument_can_be(in_run):
    text = b": " + b"x" * (128 * 1024 - 3)  # MAX_ARG_STRLEN, less the NUL
    assert in_run(EXEC, "-c", text).payloads("exec") == [text]


def test_arguments_after_the_command_are_its_own(in_run):
    assert in_run(EXEC, "-c", 'echo "$0|$1|$2"', "name", "a b", "-c").out == b"name|a b|-c\n"


def test_hands_on_environment_descriptors_and_directory(in_run, tmp_path):
    done = in_run("sh", "-c", f"exec 7</etc/hostname; {EXEC} -c 'ls /proc/self/fd; pwd; echo $KEPT'", env={"KEPT": "1"})
    lines = done.out.decode().split()
    assert lines == ["0", "1", "2", "3", "7", str(tmp_path), "1"]  # 3: ls reading the directory


def test_a_signal_ends_it_as_it_would_the_shell(in_run):
    assert in_run(EXEC, "-c", "kill -TERM $$").status == 128 + 15


@pytest.mark.parametrize(
    ("shell", "name"),
    [("/bin/bash", "bash"), ("/bin/sh", "sh"), ("/bin/false", "bash"), ("relative/sh", "bash"), ("", "bash")],
)
def test_the_users_shell_when_it_is_one_we_know(in_run, shell, name):
    assert in_run(EXEC, "-c", "echo ${0##*/}", env={"SHELL": shell}).out == name.encode() + b"\n"


def test_a_shell_that_is_not_listed_is_not_taken(in_run, tmp_path):
    fake = tmp_path / "bash"
    fake.write_text("#!/bin/sh\necho fake\n")
    fake.chmod(0o755)
    assert in_run(EXEC, "-c", "echo real", env={"SHELL": str(fake)}).out == b"real\n"


def test_is_found_from_far_below(in_run):
    deep = f"{EXEC} -c 'echo deep'"
    for _ in range(5):
        deep = f"(sh -c '{deep}'; true)" if "'" not in deep else f"({deep}; true)"
    assert in_run("sh", "-c", deep).out == b"deep\n"


def test_a_program_with_a_bracket_in_its_name_hides_nothing(in_run, tmp_path):
    odd = tmp_path / "x) R 1 1"
    shutil.copy("/bin/sh", odd)
    assert in_run(str(odd), "-c", f"{EXEC} -c 'echo found'; true").out == b"found\n"


# ---- nd7-exec: live denies


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "project"
    for name in ("secret", "open/inner/deep", "open/beside"):
        (root / name).mkdir(parents=True)
    for name in ("secret/key", "open/file", "open/inner/file", "open/inner/deep/file", "open/beside/file"):
        (root / name).write_text(f"{name}\n")
    return os.path.realpath(root)


def test_a_read_deny_narrows_reading_only_there(in_run, tree):
    done = in_run(
        EXEC,
        "-c",
        f"cat {tree}/secret/key || echo refused; cat {tree}/open/file; echo x > {tree}/secret/new && echo written",
        out=denies(f"r:{tree}/secret"),
    )
    assert done.out == b"refused\nopen/file\nwritten\n"
    assert b"Permission denied" in done.err


def test_a_write_deny_narrows_every_change_below_it(in_run, tree):
    where = f"{tree}/secret"
    changes = [
        f"echo x > {where}/key",
        f"echo x > {where}/new",
        f": > {where}/key",
        f"mkdir {where}/dir",
        f"rm {where}/key",
        f"mv {where}/key {tree}/open/key",
        f"mv {tree}/open/file {where}/file",
        f"ln {where}/key {tree}/open/link",
        f"ln -s x {where}/symlink",
        f"mkfifo {where}/fifo",
        f"truncate -s 0 {where}/key",
    ]
    text = "; ".join(f"({change}) 2>/dev/null && echo '{change}'" for change in changes)
    done = in_run(
        EXEC, "-c", f"{text}; cat {where}/key; echo x > {tree}/open/new && echo beside", out=denies(f"w:{where}")
    )
    assert done.out == b"secret/key\nbeside\n"


def test_moving_a_file_out_does_not_make_it_readable(in_run, tree):
    text = f"mv {tree}/secret/key {tree}/open/key; ln {tree}/secret/key {tree}/open/key2; cat {tree}/open/key*"
    assert in_run(EXEC, "-c", text, out=denies(f"r:{tree}/secret")).out == b""


def test_renaming_between_directories_beside_still_works(in_run, tree):
    for rule in (f"r:{tree}/secret", f"w:{tree}/secret"):
        text = f"mv {tree}/open/file {tree}/open/beside/f && mv {tree}/open/beside/f {tree}/open/file && echo moved"
        done = in_run(EXEC, "-c", text, out=denies(rule))
        assert done.out == b"moved\n", done.err


def test_denies_of_both_kinds_inside_each_other(in_run, tree):
    rules = denies(f"w:{tree}/open", f"r:{tree}/open/inner", f"w:{tree}/open/inner/deep/file")
    text = f"""
        cat {tree}/open/file; cat {tree}/open/beside/file
        cat {tree}/open/inner/file || echo no; cat {tree}/open/inner/deep/file || echo no
        echo x > {tree}/open/beside/file || echo no
        echo x > {tree}/secret/key && echo yes
    """
    assert in_run(EXEC, "-c", text, out=rules).out == b"open/file\nopen/beside/file\nno\nno\nno\nyes\n"


def test_a_denied_file_among_its_siblings(in_run, tree):
    rules = denies(f"r:{tree}/open/inner/file")
    assert in_run(EXEC, "-c", f"cat {tree}/open/inner/deep/file; cat {tree}/open/inner/file", out=rules).out == (
        b"open/inner/deep/file\n"
    )


def test_a_denied_path_that_appears_later_stays_denied(in_run, tree):
    rules = denies(f"r:{tree}/later/secret")
    text = f"mkdir -p {tree}/later/secret; echo x > {tree}/later/secret/key; cat {tree}/later/secret/key || echo no"
    assert in_run(EXEC, "-c", text, out=rules).out == b"no\n"


def test_a_denied_root_denies_everything(in_run):
    done = in_run(EXEC, "-c", "echo x > /dev/null || echo no", out=denies("w:/"))
    assert done.out == b"no\n"


def test_names_that_begin_alike_are_not_the_same(in_run, tree):
    os.mkdir(f"{tree}/secretary")
    with open(f"{tree}/secretary/file", "w") as file:
        file.write("fine\n")
    assert in_run(EXEC, "-c", f"cat {tree}/secretary/file", out=denies(f"r:{tree}/secret")).out == b"fine\n"


def test_names_that_are_not_utf8(in_run, tree):
    odd = os.fsencode(tree) + b"/\xff\xfe"
    os.mkdir(odd)
    with open(odd + b"/key", "wb") as file:
        file.write(b"x\n")
    assert in_run(EXEC, "-c", b"cat " + odd + b"/key || echo no", out=denies(b"r:" + odd)).out == b"no\n"


def test_what_runs_below_stays_narrow_and_can_be_narrowed_again(in_run, tree):
    text = f"{EXEC} -c 'cat {tree}/secret/key || echo no'"
    assert in_run(EXEC, "-c", text, out=denies(f"r:{tree}/secret")).out == b"no\n"


def test_more_layers_than_the_kernel_takes_is_a_refusal(in_run, tree, tmp_path):
    nest = tmp_path / "nest"
    nest.write_text(f'#!/bin/sh\n[ "$1" = 0 ] && exec echo ran\nexec {EXEC} -c "{nest} $(($1 - 1))"\n')
    nest.chmod(0o755)
    done = in_run(str(nest), "20", out=denies(f"r:{tree}/secret"))
    assert (done.status, done.out) == (126, b"")
    assert b"too many layers" in done.err


@pytest.mark.parametrize(
    "list_", [b"x:/a\0", b"r:a\0", b"r:/a//b\0", b"r:/a/../b\0", b"r:/a/\0", b"r:\0", b"\0", b"r:/a\0\0w:/b\0", b"r"]
)
def test_a_list_that_cannot_be_read_runs_nothing(in_run, list_):
    done = in_run(EXEC, "-c", "echo ran", out=list_)
    assert (done.status, done.out, done.err.count(b"\n")) == (126, b"", 1)


# ---- nd7-exec: refusals


def test_outside_a_run_it_refuses_with_a_hint():
    done = outside(EXEC, "-c", "echo ran")
    assert (done.status, done.out) == (126, b"")
    assert done.err.startswith(b"nd7-exec: not inside a run")
    assert b"nd7-exec: hint: " in done.err


def test_a_run_that_the_environment_only_claims():
    done = outside(EXEC, "-c", "echo ran", env={"ND7_RUN": str(os.getpid())})
    assert (done.status, done.out) == (126, b"")
    assert b"supervisor is gone" in done.err


@pytest.mark.parametrize("argv", [(), ("-c",), ("-x", "echo"), ("--help",), ("echo",), ("--", "-c", "x")])
def test_other_options_are_a_usage_error(argv):
    done = outside(EXEC, *argv)
    assert (done.status, done.out) == (2, b"")
    assert done.err.startswith(b"nd7-exec: usage: ")


@pytest.mark.parametrize("how", [{"listen": False}, {"status": 2, "err": b"nd7: policy is closed\nmore\n"}])
def test_a_supervisor_that_cannot_or_will_not_runs_nothing(in_run, how):
    done = in_run(EXEC, "-c", "echo ran", **how)
    assert (done.status, done.out, done.err.count(b"\n")) == (126, b"", 1)
    assert done.err.startswith(b"nd7-exec: run ")


def test_a_directory_that_others_may_write_is_no_run(in_run):
    done = in_run(EXEC, "-c", "echo ran", mode="777")
    assert (done.status, done.out) == (126, b"")


def test_a_socket_of_somebody_else_is_not_believed(in_run):
    # The program in the run puts its own listener where the supervisor's was.
    text = """
import os, socket, subprocess, sys
path = os.path.expanduser(f"~/.nd7/sessions/{os.getppid()}/hook.sock")
os.unlink(path)
mine = socket.socket(socket.AF_UNIX)
mine.bind(path)
mine.listen()
sys.exit(subprocess.call([sys.argv[1], "-c", "echo ran"]))
"""
    done = in_run(sys.executable, "-c", text, EXEC, env={"HOME": pwd.getpwuid(os.getuid()).pw_dir})
    assert (done.status, done.out) == (126, b"")
    assert b"not the supervisor's" in done.err


# ---- nd7-hook


def test_hands_the_payload_over_and_repeats_the_reply(in_run):
    done = in_run(HOOK, stdin=b'{"a":1}\n', out=b'{"ok":true}', err=b"note\n", status=3)
    assert (done.status, done.out, done.err) == (3, b'{"ok":true}', b"note\n")
    assert done.payloads("hook") == [b'{"a":1}\n']


@pytest.mark.parametrize("size", [0, 3, 3000, 9 << 20])
def test_payloads_and_replies_of_any_bytes_and_size(in_run, size):
    payload = b"\0\xff\n" * (size // 3)
    done = in_run(HOOK, stdin=payload, out=payload)
    assert done.payloads("hook") == [payload]
    assert done.out == payload


def test_a_payload_over_the_limit_blocks(in_run, tmp_path):
    big = tmp_path / "big"
    with open(big, "wb") as file:
        file.truncate((64 << 20) + 1)
    done = in_run("sh", "-c", f"{HOOK} < {big}")
    assert (done.status, done.out, done.err.count(b"\n")) == (2, b"", 1)


@pytest.mark.parametrize("how", [{"listen": False}, {"answer": False}])
def test_a_supervisor_that_is_not_there_blocks_the_tool_call(in_run, how):
    done = in_run(HOOK, stdin=b"{}", **how)
    assert (done.status, done.out, done.err.count(b"\n")) == (2, b"", 1)


def test_a_supervisor_that_is_gone_blocks_the_tool_call():
    done = outside(HOOK, stdin=b"{}", env={"ND7_SESSION": "0b0e7a40-5f0c-4c60-9d7e-5f1f0a6a8d11"})
    assert (done.status, done.out, done.err.count(b"\n")) == (2, b"", 1)


def test_outside_a_run_it_becomes_nd7_record_beside_it(tmp_path):
    shutil.copy(HOOK, tmp_path / "nd7-hook")
    nd7 = tmp_path / "nd7"
    nd7.write_text('#!/bin/sh\necho "$@"; cat\n')
    nd7.chmod(0o755)
    assert outside(str(tmp_path / "nd7-hook"), "--x", stdin=b"payload").out == b"record --x\npayload"


def test_outside_a_run_without_nd7_it_says_so_and_blocks_nothing(tmp_path):
    shutil.copy(HOOK, tmp_path / "nd7-hook")
    done = outside(str(tmp_path / "nd7-hook"))
    assert (done.status, done.out, done.err.count(b"\n")) == (1, b"", 1)
