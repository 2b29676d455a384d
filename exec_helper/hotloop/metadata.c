#include "decide.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

/* One call that changes a mode, an owner or times. */
struct change {
    enum { CHMOD, CHOWN, TIMES } what;
    bool by_descriptor;
    int dirfd;      /* or the descriptor itself */
    uint64_t path;  /* address in the caller */
    uint32_t flags; /* AT_* */
    mode_t mode;
    uid_t owner;
    gid_t group;
    uint64_t times; /* address of two struct timespec, 0 for now */
};

/* Reads the registers; false when the call is not one of these. */
static bool read_change(const struct caller *caller, struct change *change)
{
    const uint64_t *args = caller->args;
    *change = (struct change){.dirfd = AT_FDCWD, .path = args[0]};
    switch (caller->nr) {
#ifdef SYS_chmod
    case SYS_chmod:
        change->mode = args[1] & 07777;
        return true;
    case SYS_chown:
    case SYS_lchown:
        change->what = CHOWN;
        change->owner = (uid_t)args[1];
        change->group = (gid_t)args[2];
        change->flags = caller->nr == SYS_lchown ? AT_SYMLINK_NOFOLLOW : 0;
        return true;
#endif
    case SYS_fchmod:
        change->by_descriptor = true;
        change->dirfd = (int)args[0];
        change->mode = args[1] & 07777;
        return true;
    case SYS_fchown:
        change->what = CHOWN;
        change->by_descriptor = true;
        change->dirfd = (int)args[0];
        change->owner = (uid_t)args[1];
        change->group = (gid_t)args[2];
        return true;
    case SYS_fchmodat:
    case SYS_fchmodat2:
        change->mode = args[2] & 07777;
        change->flags = caller->nr == SYS_fchmodat2 ? (uint32_t)args[3] : 0;
        break;
    case SYS_fchownat:
        change->what = CHOWN;
        change->owner = (uid_t)args[2];
        change->group = (gid_t)args[3];
        change->flags = (uint32_t)args[4];
        break;
    case SYS_utimensat:
        change->what = TIMES;
        change->times = args[2];
        change->flags = (uint32_t)args[3];
        change->by_descriptor = args[1] == 0;
        break;
    default:
        return false;
    }
    change->dirfd = (int)args[0];
    change->path = args[1];
    return true;
}

static long act(const struct change *change, const struct place *place, const struct timespec *times)
{
    char magic[40];
    switch (change->what) {
    case CHMOD:
        snprintf(magic, sizeof magic, "/proc/self/fd/%d", place->fd);
        return chmod(magic, change->mode);
    case CHOWN:
        return fchownat(place->fd, "", change->owner, change->group, AT_EMPTY_PATH);
    default: /* not by libc's function, which refuses an empty path */
        return syscall(SYS_utimensat, place->fd, "", change->times ? times : NULL, AT_EMPTY_PATH);
    }
}

static struct verdict judge(const struct caller *caller, const struct ground *ground, const struct change *change,
                            const struct place *place, const struct timespec *times)
{
    struct stat status;
    if (fstat(place->fd, &status) != 0 || place->path[0] != '/' || status.st_nlink == 0)
        return PUNTED;
    struct found found = table_find(ground->table, place->path, place->length);
    if (found.unknown || !found.allowed[WRITE])
        return PUNTED;
    if (change->what == CHMOD && S_ISLNK(status.st_mode))
        return failed(EOPNOTSUPP);
    if (!caller_rights(caller, NULL))
        return PUNTED;
    struct verdict verdict = caller_waits(caller) ? done(act(change, place, times)) : failed(EINTR);
    caller_rights_back(caller);
    return verdict;
}

struct verdict decide_metadata(const struct caller *caller, const struct ground *ground)
{
    struct change change;
    struct timespec times[2];
    struct place place;
    char path[PATH_MAX];
    /* AT_EMPTY_PATH and what is not known here is rare. */
    if (!read_change(caller, &change) || change.flags & ~(uint32_t)AT_SYMLINK_NOFOLLOW)
        return PUNTED;
    if (change.times && caller_read(caller, change.times, times, sizeof times) != 0)
        return PUNTED;
    if (change.by_descriptor) {
        caller_descriptor(caller, change.dirfd, &place);
    } else {
        if (caller_path(caller, change.path, path) != 0)
            return PUNTED;
        caller_object(caller, change.dirfd, path, !(change.flags & AT_SYMLINK_NOFOLLOW), &place);
    }
    if (place.fd < 0) /* never continued: the floor knows nothing of metadata */
        return caller_fault(caller, &place);
    struct verdict verdict = judge(caller, ground, &change, &place, times);
    close(place.fd);
    return verdict;
}
