#include "decide.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

static const uint32_t TMPFILE = O_TMPFILE & ~O_DIRECTORY;
/* Added to every open of ours: here nothing may wait, and no terminal is taken. */
static const uint32_t UNASKED = O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
/* Meant for the walk and the caller's descriptor, not for what is opened. */
static const uint32_t NOT_KEPT = O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;

/* The arguments of an open, whichever call they came by. */
struct wanted {
    int dirfd;
    uint32_t flags;
    mode_t mode;
    uint64_t resolve;
    char path[PATH_MAX];
};

static bool writes(const struct wanted *wanted)
{
    return (wanted->flags & O_ACCMODE) != O_RDONLY || (wanted->flags & (O_TRUNC | TMPFILE));
}

static bool reads(const struct wanted *wanted)
{
    return (wanted->flags & O_ACCMODE) != O_WRONLY;
}

static bool follows(const struct wanted *wanted)
{
    return !(wanted->flags & O_NOFOLLOW) && (wanted->flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
}

static bool makes_with_slash(const struct wanted *wanted)
{
    size_t length = strlen(wanted->path);
    return wanted->flags & O_CREAT && length > 0 && wanted->path[length - 1] == '/';
}

/* Reads the arguments; returns 0, an errno, or -1: Python decides. */
static int read_wanted(const struct caller *caller, struct wanted *wanted)
{
    const uint64_t *args = caller->args;
    uint64_t path = args[1];
    *wanted = (struct wanted){.dirfd = AT_FDCWD};
    switch (caller->nr) {
#ifdef SYS_open
    case SYS_open:
        path = args[0];
        wanted->flags = (uint32_t)args[1];
        wanted->mode = args[2] & 07777;
        break;
    case SYS_creat:
        path = args[0];
        wanted->flags = O_CREAT | O_WRONLY | O_TRUNC;
        wanted->mode = args[1] & 07777;
        break;
#endif
    case SYS_openat:
        wanted->dirfd = (int)args[0];
        wanted->flags = (uint32_t)args[2];
        wanted->mode = args[3] & 07777;
        break;
    case SYS_openat2: {
        struct open_how how;
        if (args[3] != sizeof how)
            return -1;
        int error = caller_read(caller, args[2], &how, sizeof how);
        if (error)
            return error;
        if (how.flags >> 32 || how.resolve & ~(uint64_t)0x3f)
            return EINVAL;
        wanted->dirfd = (int)args[0];
        wanted->flags = (uint32_t)how.flags;
        wanted->mode = how.mode & 07777;
        wanted->resolve = how.resolve;
        break;
    }
    default:
        return -1;
    }
    return caller_path(caller, path, wanted->path);
}

static struct verdict injected(int fd, const struct wanted *wanted)
{
    if (fd < 0)
        return failed(errno);
    if (!(wanted->flags & O_NONBLOCK))
        (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return (struct verdict){.kind = INJECT, .value = fd, .cloexec = wanted->flags & O_CLOEXEC};
}

/* Opens what we hold, as the caller. */
static struct verdict reopen(const struct caller *caller, const struct wanted *wanted, const struct place *place)
{
    if (wanted->flags & TMPFILE)
        return PUNTED;
    if (!caller_rights(caller, NULL))
        return PUNTED;
    struct verdict verdict = failed(EINTR);
    if (caller_waits(caller)) {
        char magic[40];
        snprintf(magic, sizeof magic, "/proc/self/fd/%d", place->fd);
        verdict = injected(open(magic, (int)((wanted->flags & ~NOT_KEPT) | UNASKED)), wanted);
    }
    caller_rights_back(caller);
    /* Somebody holds a lease, which takes its time to break. */
    return verdict.kind == FAIL && verdict.value == EWOULDBLOCK ? PUNTED : verdict;
}

/* True where what is opened depends on who asks: procfs, wherever it is mounted. Also when that cannot be told. */
static bool is_in_proc(const struct place *place)
{
    struct statfs file_system;
    return fstatfs(place->fd, &file_system) != 0 || file_system.f_type == PROC_SUPER_MAGIC;
}

static struct verdict existing(const struct caller *caller, const struct ground *ground, const struct wanted *wanted,
                               const struct place *place)
{
    struct stat status;
    if (fstat(place->fd, &status) != 0)
        return PUNTED;
    bool directory = S_ISDIR(status.st_mode);
    if ((wanted->flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
        return failed(EEXIST);
    if (S_ISLNK(status.st_mode))
        return failed(ELOOP);
    if (place->path[0] != '/' || (status.st_nlink == 0 && !directory))
        return PUNTED; /* what the caller holds already */
    if (directory && !writes(wanted))
        return ground->strict ? reopen(caller, wanted, place) : CONTINUED;
    if (directory && !(wanted->flags & TMPFILE))
        return failed(EISDIR);
    struct found found = table_find(ground->table, place->path, place->length);
    if (found.unknown || (writes(wanted) && !found.allowed[WRITE]) || (reads(wanted) && !found.allowed[READ]))
        return PUNTED;
    if ((!writes(wanted) || may_continue(ground, &found, WRITE)) &&
        (!reads(wanted) || may_continue(ground, &found, READ)))
        return CONTINUED;
    if (!S_ISREG(status.st_mode) || is_in_proc(place))
        return PUNTED;
    return wanted->flags & O_DIRECTORY ? failed(ENOTDIR) : reopen(caller, wanted, place);
}

static struct verdict create_here(const struct caller *caller, const struct wanted *wanted, const struct name *name)
{
    mode_t mask;
    if (!caller_rights(caller, &mask))
        return PUNTED;
    struct verdict verdict = failed(EINTR);
    if (caller_waits(caller)) {
        int flags = (int)(wanted->flags | O_NOFOLLOW | UNASKED); /* never through a link made meanwhile */
        mode_t before = umask(mask);
        verdict = injected(openat(name->parent.fd, name->last, flags, wanted->mode), wanted);
        umask(before);
    }
    caller_rights_back(caller);
    return verdict;
}

static struct verdict not_found(const struct caller *caller, const struct ground *ground, const struct wanted *wanted,
                                const struct place *place)
{
    if (place->error != ENOENT)
        return caller_fault(caller, place);
    const bool wants[2] = {[READ] = reads(wanted), [WRITE] = writes(wanted) || wanted->flags & O_CREAT};
    return decide_missing(caller, ground, wanted->dirfd, wanted->path, wants);
}

static struct verdict create(const struct caller *caller, const struct ground *ground, const struct wanted *wanted)
{
    struct name name;
    struct stat status;
    caller_name(caller, wanted->dirfd, wanted->path, &name);
    if (name.parent.fd < 0)
        return not_found(caller, ground, wanted, &name.parent);
    struct verdict verdict = PUNTED;
    struct found found = table_find(ground->table, name.path, name.length);
    /* A file in the place of a directory may stand for all of it: `.git` can name another directory. */
    bool allowed = !found.unknown && found.allowed[WRITE] && !found.stricter_beneath[WRITE] &&
                   (!reads(wanted) || found.allowed[READ]);
    /* One that is there after all, or a link that leads nowhere, is not this simple. */
    bool fresh = fstatat(name.parent.fd, name.last, &status, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
    if (allowed && fresh) {
        struct found above = table_find(ground->table, name.parent.path, name.parent.length);
        bool covered = may_continue(ground, &above, WRITE) && (!reads(wanted) || may_continue(ground, &above, READ));
        verdict = covered ? CONTINUED : create_here(caller, wanted, &name);
    }
    close(name.parent.fd);
    return verdict;
}

struct verdict decide_open(const struct caller *caller, const struct ground *ground)
{
    struct wanted wanted;
    int error = read_wanted(caller, &wanted);
    if (error == -1 || error == EPERM || error == EACCES || error == ESRCH)
        return PUNTED;
    if (error)
        return failed(error);
    if (wanted.flags & O_PATH)
        return ground->strict ? PUNTED : CONTINUED;
    if (wanted.resolve & ~(uint64_t)RESOLVE_CACHED) /* binds the walk, so the kernel does it or nobody */
        return ground->strict ? failed(ENOSYS) : CONTINUED;
    if (makes_with_slash(&wanted)) /* with O_CREAT always EISDIR, if only its directory is there */
        return ground->strict ? PUNTED : CONTINUED;
    struct place place;
    caller_object(caller, wanted.dirfd, wanted.path, follows(&wanted), &place);
    if (place.fd < 0) {
        if (place.error == ENOENT && wanted.flags & O_CREAT)
            return create(caller, ground, &wanted);
        return not_found(caller, ground, &wanted, &place);
    }
    struct verdict verdict = existing(caller, ground, &wanted, &place);
    close(place.fd);
    return verdict;
}
