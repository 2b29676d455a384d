"""A person with a home of their own, at a terminal: what the end-to-end tests of the UI are driven through.

nd7 takes the home directory from the password database, never from `$HOME`. So a person gets a mount namespace in which
`/etc/passwd` names a throw-away directory; nothing of the real home is read or written. That directory is not under
`/tmp`, which a run may write.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from terminal import Terminal

BIN = os.path.dirname(os.path.abspath(sys.executable))
NAMESPACE = 'mount --bind "$0" /etc/passwd && exec "$@"'
# The same for somebody who may not enter a directory ($1) on the way to the Python that runs this ($2).
REACH = """
mount --bind "$0" /etc/passwd && mount --bind "$2" /mnt && mount -t tmpfs -o mode=755 none "$1" && mkdir -p "$2" &&
mount --bind /mnt "$2" && umount /mnt && shift 2 && exec "$@"
"""
ORDINARY = 12345


class Person:
    """One user, a project in their home, a private key, and a terminal.

    Args:
        uid: Who; root can be anybody, anybody else only themselves.
    """

    def __init__(self, uid=None):
        self.uid = os.getuid() if uid is None else uid
        self.top = Path(tempfile.mkdtemp(prefix="nd7-e2e-", dir="/var/tmp"))
        self.top.chmod(0o755)
        self.home = self.top / "home"
        self.project = self.home / "project"
        self.key = self.home / ".ssh" / "id_ed25519"
        self.project.mkdir(parents=True)
        self.key.parent.mkdir()
        self.key.write_text("PRIVATE\n")
        self._own(self.home)
        self.passwd = self.top / "passwd"
        self.passwd.write_text(self._passwd())
        self.env = {
            "PATH": f"{BIN}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": str(self.home), "SHELL": "/bin/bash", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1",
            "HISTFILE": "/dev/null",
        }  # fmt: skip
        self.terminal = None

    def _passwd(self):
        others = [line for line in Path("/etc/passwd").read_text().splitlines() if line.split(":")[2] != str(self.uid)]
        try:
            name = pwd.getpwuid(self.uid).pw_name
        except KeyError:
            name = "nd7e2e"
        return "\n".join([f"{name}:x:{self.uid}:{self.uid}::{self.home}:/bin/bash", *others, ""])

    def _own(self, top):
        if self.uid != os.getuid():
            subprocess.run(["chown", "-R", f"{self.uid}:{self.uid}", str(top)], check=True)

    @property
    def wrap(self):
        """The command that becomes another one in this person's namespace."""
        unshare = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--user", "--map-current-user", "--mount"]
        if self.uid == os.getuid():
            return [*unshare, "sh", "-c", NAMESPACE, str(self.passwd)]
        # By way of a shell: what is run next must not be reached by the rights that are given up.
        become = ["setpriv", "--reuid", str(self.uid), "--regid", str(self.uid), "--clear-groups"]
        plain = ["sh", "-c", 'exec "$0" "$@"']
        closed = closed_parent(sys.base_prefix)
        if closed is None:
            return [*unshare, "sh", "-c", NAMESPACE, str(self.passwd), *become, *plain]
        return [*unshare, "sh", "-c", REACH, str(self.passwd), closed, sys.base_prefix, *become, *plain]

    def run(self, *argv, **options):
        """Runs a command as this person, outside any run."""
        return subprocess.run(
            [*self.wrap, *argv], env=self.env, cwd=self.project, capture_output=True, text=True, check=False,
            timeout=60, **options,
        )  # fmt: skip

    def nd7(self, *argv):
        return self.run(f"{BIN}/nd7", *argv)

    # --- at the terminal

    def sit_down(self, columns=120, lines=40):
        """Opens the terminal, a shell in the project."""
        where = self.top / "terminal"
        where.mkdir()
        self._own(where)
        self.terminal = Terminal(
            where, only=self.env, columns=columns, lines=lines, cwd=self.project, wrap=self.wrap
        )  # fmt: skip
        return self.terminal

    def open(self, *words, ready="chain ok"):
        """Starts `nd7 tui WORDS` and waits until the run stands."""
        terminal = self.terminal or self.sit_down()
        terminal.type(" ".join(["nd7 tui", *words]))
        terminal.until(ready)
        return terminal

    def quit(self):
        """Leaves the UI after the program's end."""
        time.sleep(1.2)  # for a second after the end keys are taken for the program's
        self.terminal.keys("q")
        self.terminal.until(lambda lines: any(line.startswith("$ nd7 tui") for line in lines))

    def chord(self, key, asked, then):
        """Presses the prefix, sees what the key would mean, presses it, sees what was done."""
        terminal = self.terminal
        time.sleep(0.6)  # what has only just appeared is not decided
        terminal.keys("C-g")
        terminal.until(lambda lines: asked in lines[-2] + lines[-1])
        terminal.keys(key)
        terminal.until(then)

    def allow(self, what):
        self.chord("a", what, f"allowed {what}")

    def take_back(self, what):
        self.chord("d", f"take back: {what}", f"took back {what}")

    # --- what was recorded

    @property
    def sessions(self):
        return self.home / ".local/state/nd7/sessions"

    @property
    def session(self):
        """The id of the only session."""
        (name,) = [path.name for path in self.sessions.iterdir() if (path / "events.ndjson").exists()]
        return name

    def frames(self):
        """The session as `nd7 show --json` prints it."""
        done = self.nd7("show", self.session, "--json")
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def told(self, kind, count=1, timeout=20.0):
        """Waits for frames of a kind."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            found = [frame["body"] for frame in self.frames() if frame["kind"] == kind]
            if len(found) >= count:
                return found
            time.sleep(0.1)
        raise AssertionError(f"not {count} {kind} frames: {[frame['kind'] for frame in self.frames()]}")

    def story(self, path):
        """What the log tells about one path, in order; repeats left out."""
        steps = []
        for frame in self.frames():
            body = frame["body"]
            if frame["kind"] == "denial" and body["target"] == str(path) and "repeat_of" not in body:
                steps.append("denial")
            elif frame["kind"] in {"grant", "revoke"} and body["rule"]["target"].get("path") == str(path):
                steps.append(frame["kind"])
        return steps

    def verified(self):
        done = self.nd7("verify", self.session)
        assert done.returncode == 0, done.stderr
        assert "unchanged" in done.stdout
        return True

    # --- processes

    @property
    def ui(self):
        """The pid of `nd7 tui`: the shell's only child."""
        return only_child(self.terminal.shell_pid)

    @property
    def supervisor(self):
        """The pid of `nd7 run`: the UI's only child."""
        return only_child(self.ui)

    @property
    def record(self):
        """The rule file of the only run."""
        (path,) = (self.home / ".nd7/sessions").glob("*/record.json")
        return path

    def leave(self):
        if self.terminal is not None:
            pids = descendants(self.terminal.shell_pid)
            self.terminal.close()
            # A run that ends writes its last frames into the home; what is removed before that comes back.
            end = time.monotonic() + 10
            while any(map(alive, pids)) and time.monotonic() < end:
                time.sleep(0.05)
        shutil.rmtree(self.top, ignore_errors=True)


def closed_parent(path):
    """The topmost directory on the way to `path` that others may not enter, if any."""
    return next((str(top) for top in reversed(Path(path).parents) if not top.stat().st_mode & 0o001), None)


def only_child(pid, timeout=10.0):
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if len(children) == 1:
            return int(children[0])
        time.sleep(0.05)
    raise AssertionError(f"{pid} has the children {children}")


def descendants(pid):
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [found for child in map(int, children) for found in (child, *descendants(child))]


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def make(uid=None):
    """Returns a person; fails the test where this machine lets nobody have a namespace of their own."""
    if uid is not None and uid != os.getuid() and os.getuid() != 0:
        pytest.skip("needs root, to be somebody else")
    person = Person(uid)
    tried = person.nd7("--version")
    if tried.returncode:
        person.leave()
        pytest.fail(f"no mount namespace, or nd7 cannot be reached as uid {person.uid}: {tried.stderr.strip()}")
    return person
