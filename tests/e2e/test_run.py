"""`nd7 run`, the real program: what is enforced, what is told, and how it ends."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time

import pytest
from terminal import Terminal

import nd7tui

pytestmark = pytest.mark.e2e
ND7 = [sys.executable, "-m", "nd7tui.cli"]
HOME = pwd.getpwuid(os.getuid()).pw_dir


class World:
    """A project, a place outside of it, and a log of its own."""

    def __init__(self, tmp_path):
        # Not below /tmp, which a run may write.
        self.outside = os.path.join(HOME, f".nd7-test-{os.getpid()}-{tmp_path.name}")
        self.project = os.path.join(self.outside, "project")
        os.makedirs(self.project)
        self.state = str(tmp_path / "state")
        self.env = {**os.environ, "XDG_STATE_HOME": self.state}

    def path(self, name):
        return os.path.join(self.outside, name)

    def run(self, *argv, **options):
        return subprocess.run(
            [*ND7, "run", *argv], cwd=self.project, env=self.env, capture_output=True, text=True, check=False,
            timeout=60, **options,
        )  # fmt: skip

    def start(self, *argv, **options):
        return subprocess.Popen(
            [*ND7, "run", *argv], cwd=self.project, env=self.env, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
        )  # fmt: skip

    def nd7(self, *argv):
        return subprocess.run(
            [*ND7, *argv], env=self.env, capture_output=True, text=True, check=False, cwd=self.project, timeout=30
        )

    def frames(self):
        found = []
        sessions = os.path.join(self.state, "nd7/sessions")
        for name in os.listdir(sessions):
            with open(os.path.join(sessions, name, "events.ndjson"), encoding="utf-8") as file:
                found += [json.loads(line) for line in file]
        return sorted(found, key=lambda frame: frame["ts"])

    def bodies(self, kind):
        return [frame["body"] for frame in self.frames() if frame["kind"] == kind]

    def wait_for(self, kind, count=1, timeout=10):
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            try:
                found = self.bodies(kind)
            except (FileNotFoundError, ValueError):
                found = []
            if len(found) >= count:
                return found
            time.sleep(0.02)
        raise AssertionError(f"no {kind} frame: {[frame['kind'] for frame in self.frames()]}")

    def verified(self):
        (session,) = os.listdir(os.path.join(self.state, "nd7/sessions"))
        done = self.nd7("verify", session)
        assert done.returncode == 0, done.stderr
        return True


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    subprocess.run(["rm", "-rf", world.outside], check=True)


def run_dir(process):
    return os.path.join(HOME, ".nd7/sessions", str(process.pid))


def test_the_project_is_writable_and_the_rest_is_not(world):
    done = world.run("sh", "-c", f"echo in > inside; echo out > {world.path('file')}; cat inside; exit 3")
    assert done.returncode == 3
    assert done.stdout == "in\n"
    assert "ermission denied" in done.stderr
    assert not os.path.exists(world.path("file"))
    (denial,) = world.bodies("denial")
    assert (denial["target"], denial["access"], denial["errno"]) == (world.path("file"), "write", "EACCES")
    assert (denial["comm"], denial["count"]) == ("sh", 1)
    assert world.verified()


def test_package_managers_have_caches_that_no_install_outside_trusts(world):
    world.env |= {"XDG_CACHE_HOME": world.path("cache"), "GOCACHE": "/elsewhere"}
    world.env.pop("npm_config_cache", None)
    os.makedirs(world.path("cache/npm"))
    code = 'echo $GOCACHE; echo x > $npm_config_cache/x && echo $npm_config_cache; echo x > "$XDG_CACHE_HOME/y"'
    done = world.run("--hold", "0", "sh", "-c", f"mkdir -p $npm_config_cache; {code}")
    assert done.stdout.split() == ["/elsewhere", world.path("cache/nd7/npm")], done.stderr
    assert os.path.exists(world.path("cache/nd7/npm/x"))
    assert [body["target"] for body in world.bodies("denial")] == [world.path("cache/y")]


def test_it_says_when_the_program_may_change_nd7(world):
    # A copy of its own: where this checkout is, a run may be allowed to write.
    installed = world.path("installed")
    shutil.copytree(os.path.dirname(nd7tui.__file__), os.path.join(installed, "nd7tui"))
    world.env["PYTHONPATH"] = installed
    told = world.run("--project", installed, "true").stderr
    assert f"nd7 itself is in {installed}/nd7tui, where the program may write" in told
    assert world.run("true").stderr == ""


def test_the_log_tells_the_whole_run(world):
    world.run("--hold", "7", "sh", "-c", "exit 4")
    kinds = [frame["kind"] for frame in world.frames()]
    assert kinds == ["run_start", "run_end"]
    (start,) = world.bodies("run_start")
    assert list(start) == [
        *("pid", "argv", "cwd", "policy", "kernel", "landlock_abi", "mode", "partial", "nd7", "exe", "exe_blake3"),
        "hold_seconds",
    ]
    assert start["argv"] == ["sh", "-c", "exit 4"]
    assert start["hold_seconds"] == 7
    (end,) = world.bodies("run_end")
    assert (end["exit"], end["left_behind"]) == (4, 0)
    assert world.verified()


@pytest.mark.parametrize("code", [0, 1, 255])
def test_the_exit_status_is_the_programs(world, code):
    assert world.run("sh", "-c", f"exit {code}").returncode == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_it_dies_of_the_programs_signal(world, number):
    assert world.run("sh", "-c", f"kill -{int(number)} $$").returncode == -number
    assert world.bodies("run_end")[0]["signal"] == number


def test_signals_and_descriptors_are_as_a_program_expects_them(world):
    shown = "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status; ls /proc/self/fd"
    bare = subprocess.run(["sh", "-c", shown], check=True, capture_output=True, text=True).stdout
    assert world.run("sh", "-c", shown).stdout == bare


def test_nothing_of_a_run_is_left(world):
    world.run("sh", "-c", "sleep 100 & setsid sleep 100 & trap '' TERM; (trap '' TERM; sleep 100; sleep 100) & exit 0")
    (end,) = world.bodies("run_end")
    assert end["left_behind"] >= 3
    assert end["duration_ms"] < 5000
    listed = subprocess.run(["ps", "-eo", "args"], check=True, capture_output=True, text=True).stdout
    assert "\nsleep 100" not in listed


def test_the_run_directory_goes_with_the_run(world):
    with world.start("cat") as process:
        world.wait_for("run_start")
        with open(os.path.join(run_dir(process), "record.json"), encoding="utf-8") as file:
            record = json.load(file)
        assert record["argv"] == ["cat"]
        assert record["project"] == world.project
        process.stdin.close()
    assert process.returncode == 0
    assert not os.path.exists(run_dir(process))


def test_a_run_that_was_killed_is_swept(world):
    with world.start("cat") as process:
        world.wait_for("run_start")
        process.kill()
        process.stdin.close()
    assert os.path.exists(run_dir(process))
    world.run("true")
    assert not os.path.exists(run_dir(process))


@pytest.mark.parametrize(
    ("argv", "status", "said"),
    [
        (["no-such-program"], 126, "no-such-program"),
        (["/etc/passwd"], 126, "not executable"),
        (["--project", "/nonexistent", "true"], 126, "/nonexistent"),
        (["--project", "/etc/passwd", "true"], 126, "not a directory"),
        (["--session-id", "../x", "true"], 2, "session id"),
        (["--hold", "-1", "true"], 2, "hold"),
        (["--write", "/nonexistent", "true"], 2, "/nonexistent"),
        (["--write", "~/.nd7", "true"], 2, "nd7"),
        (["--connect", "nonsense", "true"], 2, "nonsense"),
        ([], 2, "no program"),
    ],
)
def test_bad_words_are_one_clear_error_and_nothing_is_made(world, argv, status, said):
    done = world.run(*[word.replace("~", HOME) for word in argv])
    assert done.returncode == status
    assert done.stderr.startswith("nd7: ")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 2
    assert not os.path.exists(world.state)


RETRY = """
import sys
for line in sys.stdin:
    try:
        open(line.strip(), "w").close()
        print("ok", flush=True)
    except OSError as error:
        print(error.errno, flush=True)
"""


def ask(process, path):
    process.stdin.write(path + "\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def change(process, edit):
    path = os.path.join(run_dir(process), "record.json")
    with open(path, encoding="utf-8") as file:
        record = json.load(file)
    edit(record["rules"])
    with open(path + ".mine", "w", encoding="utf-8") as file:
        json.dump(record, file)
    os.chmod(path + ".mine", 0o600)
    os.rename(path + ".mine", path)


def grant(path, *, scope="run", effect="allow", id="g1"):  # noqa: A002
    return {
        "id": id, "effect": effect, "access": "write", "target": {"path": path}, "scope": scope, "by": "test", "at": 1,
    }  # fmt: skip


def test_the_very_next_call_sees_a_changed_rule(world):
    outside = world.path("granted")
    with world.start(sys.executable, "-c", RETRY) as process:
        assert ask(process, outside) == "13"
        for number in range(20):
            change(process, lambda rules, name=f"g{number}": rules.append(grant(outside, id=name)))
            assert ask(process, outside) == "ok"
            change(process, lambda rules: rules.clear())
            assert ask(process, outside) == "13"
        process.stdin.close()
    assert len(world.bodies("grant")) == len(world.bodies("revoke")) == 20
    assert sum(body["count"] for body in world.bodies("denial")) == 21
    assert world.verified()


def test_a_grant_for_one_use_opens_once(world):
    outside = world.path("once")
    with world.start(sys.executable, "-c", RETRY) as process:
        assert ask(process, outside) == "13"
        change(process, lambda rules: rules.append(grant(outside, scope="once")))
        assert ask(process, outside) == "ok"
        assert ask(process, outside) == "13"
        process.stdin.close()
    assert world.bodies("revoke")[0]["spent"] is True


def test_a_live_deny_shuts_the_project(world):
    inside = os.path.join(world.project, "x")
    with world.start(sys.executable, "-c", RETRY) as process:
        assert ask(process, inside) == "ok"
        change(process, lambda rules: rules.append(grant(inside, effect="deny")))
        assert ask(process, inside) == "13"
        change(process, lambda rules: rules.clear())
        assert ask(process, inside) == "ok"
        process.stdin.close()


def test_a_broken_rule_file_keeps_the_last_good_rules_and_is_told_once(world):
    outside = world.path("kept")
    with world.start(sys.executable, "-c", RETRY) as process:
        world.wait_for("run_start")
        change(process, lambda rules: rules.append(grant(outside)))
        assert ask(process, outside) == "ok"
        path = os.path.join(run_dir(process), "record.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write('{"rules": [{"effect": "allow"}')
        assert ask(process, outside) == "ok"
        assert ask(process, world.path("other")) == "13"
        error = [body for body in world.wait_for("rules_changed", 2) if body.get("error")]
        assert len(error) == 1
        os.unlink(path)
        world.wait_for("rules_changed", 3)
        assert ask(process, outside) == "ok"
        change(process, lambda rules: rules.clear())
        assert ask(process, outside) == "13"
        process.stdin.close()
        told = process.stderr.read()
    assert told.count("last good rules") == 2
    assert "Traceback" not in told


def test_a_held_call_waits_for_its_answer_and_stalls_nobody(world):
    envrc = os.path.join(world.project, ".envrc")
    script = f"(echo x > {envrc} && echo held-ok) & echo free > free; cat free; wait"
    with world.start("sh", "-c", script) as process:
        assert process.stdout.readline() == "free\n"
        (denial,) = world.wait_for("denial")
        assert denial["held"] is True
        assert denial["deadline"] > time.time_ns()
        change(process, lambda rules: rules.append(grant(envrc)))
        assert process.stdout.readline() == "held-ok\n"
        process.stdin.close()
    assert world.bodies("denial_end")[0]["outcome"] == "allowed"


def test_a_held_call_expires(world):
    began = time.monotonic()
    done = world.run("--hold", "0.5", "sh", "-c", "echo x > .envrc; echo x > .envrc")
    assert 0.5 < time.monotonic() - began < 5
    assert done.stderr.count("ermission denied") == 2
    assert [body["outcome"] for body in world.bodies("denial_end")] == ["expired"]
    assert len(world.bodies("denial")) == 2
    assert not os.path.exists(os.path.join(world.project, ".envrc"))


def test_a_held_caller_can_be_interrupted(world):
    with world.start("sh", "-c", "(echo x > .envrc) & sleep 0.5; kill -9 $!; wait; echo after") as process:
        assert process.stdout.readline() == "after\n"
        world.wait_for("denial_end")
        process.stdin.close()
    assert world.bodies("denial_end")[0]["outcome"] == "gone"


def test_ask_all_holds_other_refusals_too_and_none_holds_nothing(world):
    world.run("--hold", "0.2", "--ask", "all", "sh", "-c", f"echo x > {world.path('a')}")
    world.run("--hold", "5", "--ask", "none", "sh", "-c", "echo x > .envrc")
    assert len(world.bodies("denial_end")) == 1
    assert len(world.bodies("denial")) == 2


def test_repeats_are_counted(world):
    script = f"for i in 1 2 3 4 5 6 7 8 9 10; do echo x > {world.path('again')}; done 2>/dev/null"
    world.run("sh", "-c", script)
    first, rest = world.bodies("denial")
    assert (first["count"], rest["count"], rest["repeat_of"]) == (1, 9, first["id"])


def test_killing_the_supervisor_shuts_the_program(world):
    with world.start(sys.executable, "-c", RETRY) as process:
        inside = os.path.join(world.project, "y")
        assert ask(process, inside) == "ok"
        process.kill()
        process.wait(10)
        process.stdin.write(inside + "\n")
        process.stdin.flush()
        assert process.stdout.readline().strip() == "38"
        process.stdin.close()


def test_the_program_cannot_signal_its_supervisor(world):
    done = world.run("sh", "-c", "kill -9 $PPID; kill -TERM 0 2>/dev/null; echo no")
    assert done.returncode == -signal.SIGTERM or "no" in done.stdout
    assert world.bodies("run_end")


def test_the_log_on_a_full_disk_is_told_and_nothing_is_lost(world):
    with world.start(sys.executable, "-c", RETRY) as process:
        assert ask(process, world.path("a")) == "13"
        (session,) = os.listdir(os.path.join(world.state, "nd7/sessions"))
        directory = os.path.join(world.state, "nd7/sessions", session)
        # Nothing can be made or opened there any more, as on a disk that has gone away.
        os.rename(directory, directory + ".away")
        with open(directory, "w", encoding="utf-8"):
            pass
        assert ask(process, world.path("b")) == "13"
        time.sleep(0.3)
        os.unlink(directory)
        os.rename(directory + ".away", directory)
        assert ask(process, world.path("c")) == "13"
        process.stdin.close()
    assert [body["target"] for body in world.bodies("denial")] == [world.path(name) for name in "abc"]


@pytest.fixture
def terminal(world, tmp_path):
    terminal = Terminal(tmp_path, cwd=world.project, env={"XDG_STATE_HOME": world.state})
    yield terminal
    terminal.close()


RUN = " ".join([*ND7, "run"])


def test_bash_in_a_terminal_with_its_own_jobs(world, terminal):
    terminal.type(f"{RUN} env PS1='inner> ' bash --norc --noprofile -i")
    terminal.wait_for("inner>")
    terminal.type("sleep 100")
    time.sleep(0.3)
    terminal.keys("C-z")
    terminal.wait_for("Stopped")
    terminal.type("kill %1; wait; echo x > ../outside; echo inner-$((1+1))")
    terminal.wait_for("inner-2")
    terminal.wait_for("ermission denied")
    terminal.type("suspend")
    terminal.wait_for("Stopped", count=2)
    terminal.type("fg")
    terminal.type("echo back-$((1+1))")
    terminal.wait_for("back-2")
    terminal.type("exit 9")
    terminal.type("echo status-$?")
    terminal.wait_for("status-9")


def test_vim_in_a_terminal(world, terminal):
    terminal.type(f"{RUN} vim -u NONE -i NONE -N file.txt")
    terminal.wait_for("[New]")
    terminal.keys("i")
    terminal.type("hello")
    terminal.keys("Escape")
    terminal.type(":w")
    terminal.wait_for("written")
    terminal.resize(100, 30)
    terminal.type(":echo &lines . 'x' . &columns")
    terminal.wait_for("30x100")
    terminal.keys("C-z")
    terminal.wait_for("Stopped")
    terminal.type("fg")
    time.sleep(0.5)
    terminal.type(":wq! ../outside.txt")
    terminal.wait_for("E212")
    terminal.type("")
    terminal.type(":q!")
    time.sleep(0.5)  # what is typed before vim has gone is vim's
    terminal.type("echo status-$?")
    terminal.wait_for("status-0")
    with open(os.path.join(world.project, "file.txt"), encoding="utf-8") as file:
        assert file.read() == "hello\n\n"


def test_the_shells_own_redirections_and_pipes_work(world, terminal):
    terminal.type(f"echo abc | {RUN} tr a-c x-z | cat > piped; {RUN} cat piped; stty -a | grep -o ' echo '")
    terminal.wait_for("xyz")


SEND = """
import json, os, socket, sys
sys.path.insert(0, sys.argv[1])
from nd7tui.engine.run.wire import Kind, parse_reply, render_request

def send(kind, payload):
    link = socket.socket(socket.AF_UNIX)
    link.connect(os.path.join(sys.argv[2], os.environ["ND7_RUN"], "hook.sock"))
    link.sendall(render_request(kind, payload))
    data = b""
    while part := link.recv(65536):
        data += part
    return parse_reply(data)

def hook(**members):
    return send(Kind.HOOK, json.dumps({"session_id": os.environ["ND7_SESSION"], **members}).encode())
"""
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def inside(world, script, *options):
    return world.run(*options, sys.executable, "-c", SEND + script, ROOT, os.path.join(HOME, ".nd7/sessions"))


def test_hooks_are_recorded_and_effects_carry_their_tool_call(world):
    done = inside(
        world,
        f"""
hook(hook_event_name="PreToolUse", tool_use_id="toolu_1", tool_name="Bash", tool_input={{"command": "make x"}})
assert send(Kind.ANNOUNCE, b"make x").status == 0
os.system("echo x > {world.path("x")}")
hook(hook_event_name="PostToolUse", tool_use_id="toolu_1", tool_name="Bash", tool_input={{}}, tool_response="no")
""",
    )
    assert done.returncode == 0, done.stderr
    kinds = [frame["kind"] for frame in world.frames()]
    assert kinds == ["run_start", "tool_call", "denial", "tool_result", "run_end"]
    (denial,) = world.bodies("denial")
    assert denial["tool_use_id"] == "toolu_1"
    assert denial["ancestors"][-1] == world.bodies("run_start")[0]["pid"]
    assert world.verified()


def test_an_agent_with_an_id_of_its_own_gets_its_own_chain(world):
    done = inside(
        world,
        """
for _ in range(2):
    assert hook(hook_event_name="Stop", session_id="11111111-2222-4333-8444-555555555555").status == 0
""",
    )
    assert done.returncode == 0, done.stderr
    sessions = os.listdir(os.path.join(world.state, "nd7/sessions"))
    assert len(sessions) == 2
    links = world.bodies("run_link")
    assert sorted(link["session_id"] for link in links) == sorted(sessions)
    for session in sessions:
        assert world.nd7("verify", session).returncode == 0


def test_an_announced_command_hears_live_denies(world):
    shut = os.path.join(world.project, "shut")
    os.mkdir(shut)
    script = """
import time
sys.stdin.readline()
reply = send(Kind.ANNOUNCE, b"make x")
print(reply.stdout.decode().replace(chr(0), ";"), flush=True)
"""
    argv = [sys.executable, "-c", SEND + script, ROOT, os.path.join(HOME, ".nd7/sessions")]
    with world.start(*argv) as process:
        world.wait_for("run_start")
        change(process, lambda rules: rules.append(grant(shut, effect="deny")))
        process.stdin.write("\n")
        process.stdin.close()
        assert process.stdout.read() == f"w:{shut};\n"


def test_nobody_outside_the_run_is_served(world):
    with world.start("cat") as process:
        world.wait_for("run_start")
        env = {**os.environ, "ND7_RUN": str(process.pid), "ND7_SESSION": "x"}
        script = SEND + "reply = hook(hook_event_name='Stop'); print(reply.status, reply.stderr)"
        argv = [sys.executable, "-c", script, ROOT, os.path.join(HOME, ".nd7/sessions")]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=10)
        process.stdin.close()
    assert done.stdout.startswith("2 ")
    assert not world.bodies("turn_end")
