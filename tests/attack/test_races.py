"""Pitfalls 15 and 16: everything that can change between the check and the act changes, for seconds, really.

Each race runs without the sandbox first, where it must succeed: a race that is never lost proves nothing.
"""

from __future__ import annotations

import contextlib
import os
import subprocess

import pytest
from confine import PYTHON, live

from nd7tui.engine.policy.rules import Access, Effect
from nd7tui.engine.sandbox import launch

pytestmark = pytest.mark.attack

SECONDS, SECONDS_BARE = "1.5", "0.5"

PATHS = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static char path[512];
static volatile struct open_how how;
static const char *good, *bad, *kind;
static volatile int stop;
static void *flip(void *unused) {
    (void)unused;
    while (!stop) {
        if (*kind == 'f') { how.flags = O_RDWR; how.flags = O_RDONLY; }
        else { strcpy(path, bad); strcpy(path, good); }
    }
    return 0;
}
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
int main(int argc, char **argv) {
    kind = argv[1]; good = argv[2]; bad = argv[3];
    int escaped = 0, done = 0, refused = 0, flags = *kind == 'w' ? O_WRONLY : O_RDONLY;
    strcpy(path, good);
    double end = now() + atof(argv[4]);
    pthread_t t;
    pthread_create(&t, 0, flip, 0);
    while (now() < end) {
        if (*kind == 'c') {  /* chmod: done there, so the object tells */
            int r = chmod(path, 0640);
            r < 0 ? refused++ : done++;
            continue;
        }
        int fd = *kind == 'f' ? (int)syscall(SYS_openat2, AT_FDCWD, path, (void *)&how, sizeof how) : open(path, flags);
        if (fd < 0) { refused += errno == EACCES; continue; }
        done++;
        char name[64], real[512] = {0};
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        if (*kind == 'f') escaped += (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
        else if (readlink(name, real, sizeof real - 1) > 0) escaped += strcmp(real, bad) == 0;
        close(fd);
    }
    stop = 1;
    struct stat s;
    if (*kind == 'c' && stat(bad, &s) == 0) escaped = (s.st_mode & 0777) == 0640;
    printf("%d %d %d\n", escaped, done > 0, refused > 0);
    return 0;
}
"""


def escapes(text):
    escaped, done, refused = map(int, text.split())
    return escaped, done, refused


@pytest.mark.parametrize(("kind", "bad"), [("w", "outside/file"), ("r", "home/.ssh/id_ed25519"), ("c", "outside/file")])
def test_pitfall_15_swapping_the_path_never_escapes(arena, kind, bad):
    words = kind, str(arena.project / "src/main.c"), str(arena.top / bad), SECONDS
    program = arena.build(PATHS)
    result = arena.run(program, *words)
    assert escapes(result.out) == (0, 1, 1), result.err
    assert result.denied(str(arena.top / bad))
    assert escapes(arena.bare(" ".join((program, *words[:3], SECONDS_BARE))))[0] > 0


@pytest.mark.parametrize(("kind", "access"), [("w", Access.WRITE), ("r", Access.READ), ("c", Access.WRITE)])
def test_pitfall_15_nor_reaches_a_live_denial_inside_the_floor(arena, kind, access):
    private = arena.write("home/project/src/private")
    words = kind, str(arena.project / "src/main.c"), str(private), SECONDS
    program = arena.build(PATHS)
    result = arena.run(program, *words, live=(live(Effect.DENY, access, private),))
    assert escapes(result.out) == (0, 1, 1), result.err
    assert result.denied(str(private))
    assert escapes(arena.bare(" ".join((program, *words[:3], SECONDS_BARE))))[0] > 0


@pytest.mark.parametrize("strict", [False, True])
def test_pitfall_15_swapping_the_flags_in_memory_opens_nothing_for_writing(arena, strict):
    """openat2 takes its flags from memory; what is swapped lies where reading is allowed and writing is not."""
    target = arena.project / "src/main.c" if strict else arena.top / "outside/file"
    rules = (live(Effect.DENY, Access.WRITE, target),) if strict else ()
    words = "f", str(target), "-", SECONDS
    program = arena.build(PATHS)
    result = arena.run(program, *words, live=rules)
    assert escapes(result.out) == (0, 1, 1), result.err
    assert result.denied(str(target))
    assert escapes(arena.bare(" ".join((program, *words[:3], SECONDS_BARE))))[0] > 0


BASES = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static volatile int stop;
static const char *good, *bad;
static int held[2], by_cwd;
static void *flip(void *unused) {
    (void)unused;
    while (!stop) {
        if (by_cwd) { if (chdir(good) || chdir(bad)) abort(); }
        else { dup2(held[0], 100); dup2(held[1], 100); }
    }
    return 0;
}
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
int main(int argc, char **argv) {
    int escaped = 0, done = 0, refused = 0;
    by_cwd = argv[1][0] == 'c'; good = argv[2]; bad = argv[3];
    held[0] = open(good, O_RDONLY); held[1] = open(bad, O_RDONLY);
    dup2(held[0], 100);
    pthread_t t;
    pthread_create(&t, 0, flip, 0);
    double end = now() + atof(argv[4]);
    while (now() < end) {
        int fd = openat(by_cwd ? AT_FDCWD : 100, "file", O_WRONLY);
        if (fd < 0) { refused += errno == EACCES; continue; }
        char name[64], real[512] = {0};
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        done++;
        if (readlink(name, real, sizeof real - 1) > 0) escaped += strncmp(real, bad, strlen(bad)) == 0;
        close(fd);
    }
    stop = 1;
    printf("%d %d %d\n", escaped, done > 0, refused > 0);
    return 0;
}
"""


@pytest.mark.parametrize("how", ["cwd", "descriptor"])
@pytest.mark.parametrize("strict", [False, True])
def test_pitfall_15_swapping_where_a_path_starts_never_escapes(arena, how, strict):
    good = arena.write("home/project/src/open/file").parent
    bad = arena.write("home/project/src/sealed/file").parent if strict else arena.top / "outside"
    rules = (live(Effect.DENY, Access.WRITE, bad),) if strict else ()
    program = arena.build(BASES)
    result = arena.run(program, how, str(good), str(bad), "1", live=rules)
    assert escapes(result.out) == (0, 1, 1), result.err
    assert result.denied(str(bad / "file"))
    assert escapes(arena.bare(f"{program} {how} {good} {bad} {SECONDS_BARE}"))[0] > 0


# Swaps a directory and a symbolic link to somewhere else, from outside of the run and as fast as can be: a run's own
# renames wait in the same line as what they are to race with.
SWAP = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv) { for (;;) syscall(SYS_renameat2, AT_FDCWD, argv[1], AT_FDCWD, argv[2], 2); }
"""

ENTRIES = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
int main(int argc, char **argv) {
    int escaped = 0, done = 0, refused = 0;
    double end = now() + atof(argv[2]);
    while (now() < end) {
        int fd = open("src/d/made", O_CREAT | O_WRONLY, 0600);
        if (fd >= 0) {
            char name[64], real[512] = {0};
            snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
            done++;
            if (readlink(name, real, sizeof real - 1) > 0) escaped += strncmp(real, argv[1], strlen(argv[1])) == 0;
            close(fd);
        } else refused += errno == EACCES;
        unlink("src/d/made");
        unlink("src/d/keep");
        rename("src/main.c", "src/d/moved");
        rename("src/d/moved", "src/main.c");
        mkdir("src/d/dir", 0700);
        rmdir("src/d/dir");
        link("src/main.c", "src/d/hard");
        unlink("src/d/hard");
        chmod("src/d/mode", 0640);
        truncate("src/d/mode", 0);
    }
    printf("%d %d %d\n", escaped, done > 0, refused > 0);
    return 0;
}
"""


@contextlib.contextmanager
def swapping(arena, one, other):
    user = {"user": arena.uid, "group": arena.gid, "extra_groups": []}
    process = subprocess.Popen([arena.build(SWAP), str(one), str(other)], **user)
    try:
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("strict", [False, True])
def test_pitfall_16_a_directory_swapped_for_a_link_never_escapes(arena, strict):
    sealed = "home/project/src/sealed" if strict else "outside/sealed"
    target = arena.write(f"{sealed}/keep").parent
    arena.write(f"{sealed}/mode").chmod(0o604)
    os.chmod(target, 0o777)  # noqa: S103 - the sandbox, not the mode, is under test
    here = arena.write("home/project/src/d/x").parent
    link = arena.project / "src/l"
    os.symlink(target, link)
    rules = (live(Effect.DENY, Access.WRITE, target),) if strict else ()

    def state():
        info = (target / "mode").stat()
        return sorted(os.listdir(target)), info.st_mode, info.st_size

    before = state()
    program = arena.build(ENTRIES)
    with swapping(arena, here, link):
        result = arena.run(program, str(target), SECONDS, live=rules)
        assert state() == before
        assert escapes(result.out) == (0, 1, 1), result.err
        assert any(denial["target"].startswith(str(target)) for denial in result.denials)
        assert escapes(arena.bare(f"{program} {target} {SECONDS_BARE}"))[0] > 0
    assert state() != before


APPEARING = """
import contextlib, errno, os, shutil, sys, time
top, end = sys.argv[1], time.monotonic() + float(sys.argv[2])
inner, seen = top + "/inner", set()
child = os.fork()
if child == 0:
    while time.monotonic() < end:
        os.makedirs(inner)
        open(inner + "/file", "w").close()
        while os.path.exists(top):
            with contextlib.suppress(OSError):
                shutil.rmtree(top)
    os._exit(0)
while time.monotonic() < end:
    for action in (
        lambda: os.mkdir(inner + "/made"),
        lambda: os.open(inner + "/file", os.O_RDONLY),
        lambda: os.open(inner + "/new", os.O_WRONLY | os.O_CREAT),
        lambda: os.rename(inner + "/made", inner + "/other"),
    ):
        try:
            os.close(action() or os.open("/", os.O_RDONLY))
            seen.add("done")
        except OSError as error:
            seen.add(errno.errorcode[error.errno])
print(*sorted(seen), os.waitpid(child, 0)[1])
"""


@pytest.mark.parametrize("place", ["project", "outside/granted"])
def test_what_appears_between_check_and_act_is_not_refused(arena, place):
    """What fails because a directory is missing is not left to a floor that refuses all it does not know."""
    granted = arena.top / "outside/granted"
    granted.mkdir(exist_ok=True)
    os.chown(granted, arena.uid, arena.gid)
    top = (arena.project if place == "project" else granted) / "fresh"
    rules = [live(Effect.ALLOW, access, granted) for access in (Access.READ, Access.WRITE)]

    def grant(started):
        started.gate.set_policy(launch.with_aliases(arena.policy()).with_live(rules))

    result = arena.run(PYTHON, "-c", APPEARING, str(top), SECONDS, on_start=grant)
    assert result.out.split() in (["ENOENT", "done", "0"], ["EEXIST", "ENOENT", "done", "0"]), result.err
    assert not result.denials
