#include "run.h"

#include "say.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    DEPTH_LIMIT = 4096, /* a loop guard, far beyond any real chain of parents */
    ATTEMPTS = 16,      /* an ancestor that ends while we walk hands its children on: start again */
};

/* The home directory of the password database, never $HOME. The local file is asked first: getpwuid() would look for
 * nscd, a unix socket that policy refuses, on every command. Returns a malloc'd string or NULL. */
static char *home_directory(void)
{
    uid_t uid = getuid();
    char *home = NULL;
    FILE *file = fopen("/etc/passwd", "re");
    if (file) {
        for (struct passwd *entry; (entry = fgetpwent(file));)
            if (entry->pw_uid == uid) {
                home = strdup(entry->pw_dir);
                break;
            }
        fclose(file);
    }
    if (!home) {
        struct passwd *entry = getpwuid(uid);
        if (entry)
            home = strdup(entry->pw_dir);
    }
    return home;
}

/* The parent of `pid`, 0 for the top, -1 (errno set) when it is gone or not readable. */
static pid_t parent_of(pid_t pid)
{
    char path[32], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return -1;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0) {
        errno = ESRCH; /* a process that ended between open and read */
        return -1;
    }
    text[length] = 0;
    /* `pid (comm) state ppid …`: comm may hold anything, ')' too, so the last ')' ends it. Source: proc(5). */
    char *after = strrchr(text, ')');
    int parent;
    if (!after || sscanf(after + 1, " %*c %d", &parent) != 1) {
        errno = EPROTO;
        return -1;
    }
    return parent;
}

/* Opens `<pid>` below `sessions` when it is a directory that only its owner, us, can change. */
static int open_run(int sessions, pid_t pid)
{
    char name[16];
    snprintf(name, sizeof name, "%d", (int)pid);
    int directory = openat(sessions, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory < 0)
        return -1;
    struct stat status;
    if (fstat(directory, &status) == 0 && status.st_uid == geteuid() && !(status.st_mode & 022))
        return directory;
    close(directory);
    return -1;
}

/* One walk up. Returns 1 found, 0 none, -1 an ancestor vanished (ESRCH, ENOENT) or cannot be read. */
static int walk(int sessions, struct run *run)
{
    pid_t pid = getppid();
    for (int depth = 0; depth < DEPTH_LIMIT && pid > 0; depth++) {
        run->directory = open_run(sessions, pid);
        if (run->directory >= 0) {
            run->supervisor = pid;
            return 1;
        }
        if (pid == 1)
            return 0;
        pid = parent_of(pid);
    }
    return pid < 0 ? -1 : 0;
}

static int walk_until_steady(int sessions, struct run *run)
{
    int found = -1;
    for (int attempt = 0; attempt < ATTEMPTS && found < 0; attempt++)
        found = walk(sessions, run);
    return found;
}

bool run_find(struct run *run, int status)
{
    *run = (struct run){.directory = -1};
    char *home = home_directory();
    if (!home)
        refuse(status, "no entry for user %d in the password database", (int)getuid());
    char *sessions_path = NULL;
    if (asprintf(&sessions_path, "%s/.nd7/sessions", home) < 0)
        refuse(status, "out of memory");
    free(home);
    int sessions = open(sessions_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int found = 0;
    if (sessions >= 0)
        found = walk_until_steady(sessions, run);
    else if (errno != ENOENT && errno != ENOTDIR)
        refuse(status, "cannot open %s: %s", sessions_path, strerror(errno));
    if (found < 0)
        refuse(status, "cannot read the parent processes in /proc: %s", strerror(errno));
    if (found > 0 && asprintf(&run->path, "%s/%d", sessions_path, (int)run->supervisor) < 0)
        refuse(status, "out of memory");
    free(sessions_path);
    if (sessions >= 0)
        close(sessions);
    return found > 0;
}

bool run_hinted(void)
{
    const char *run = getenv("ND7_RUN"), *session = getenv("ND7_SESSION");
    return (run && *run) || (session && *session);
}

void run_release(struct run *run)
{
    if (run->directory >= 0)
        close(run->directory);
    free(run->path);
    *run = (struct run){.directory = -1};
}
