#include "decide.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

struct verdict done(long result)
{
    return result < 0 ? failed(errno) : (struct verdict){.kind = RETURN};
}

/* Whether `path` is in a directory that nothing inside can change and that the floor grants for reading: most of what
 * is looked for and not found is a library or a header. */
static bool is_looked_for(const struct ground *ground, const char *path, const bool wants[2])
{
    if (*path != '/' || wants[WRITE] || strstr(path, "/.."))
        return false;
    struct found found = table_find(ground->table, path, strlen(path));
    return !found.unknown && !found.allowed[WRITE] && may_continue(ground, &found, READ);
}

/* It may appear before the kernel looks again, and where the floor does not know what is new, the kernel would refuse
 * it: there the answer is ours. */
struct verdict decide_missing(const struct caller *caller, const struct ground *ground, int dirfd, const char *path,
                              const bool wants[2])
{
    char way[PATH_MAX];
    struct name gap;
    struct stat status;
    if (!*path)
        return failed(ENOENT);
    if (is_looked_for(ground, path, wants))
        return CONTINUED;
    memcpy(way, path, strlen(path) + 1);
    caller_gap(caller, dirfd, way, &gap);
    if (gap.parent.fd < 0)
        return PUNTED;
    struct verdict verdict = PUNTED;
    /* One that is there after all may be a link that leads nowhere. */
    if (fstatat(gap.parent.fd, gap.last, &status, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT) {
        struct found above = table_find(ground->table, gap.parent.path, gap.parent.length);
        if ((!wants[READ] || may_continue(ground, &above, READ)) &&
            (!wants[WRITE] || may_continue(ground, &above, WRITE)))
            verdict = CONTINUED;
        else if (caller_walks_plainly(caller, dirfd, way))
            verdict = failed(ENOENT);
    }
    close(gap.parent.fd);
    return verdict;
}

struct verdict decide(const struct caller *caller, const struct ground *ground)
{
    if (!ground->table || caller->tid <= 0)
        return PUNTED;
    switch (caller->nr) {
#ifdef SYS_open
    case SYS_open:
    case SYS_creat:
#endif
    case SYS_openat:
    case SYS_openat2:
        return decide_open(caller, ground);
#ifdef SYS_mkdir
    case SYS_mkdir:
    case SYS_rmdir:
    case SYS_unlink:
    case SYS_rename:
    case SYS_symlink:
#endif
#ifdef SYS_renameat
    case SYS_renameat:
#endif
    case SYS_mkdirat:
    case SYS_unlinkat:
    case SYS_renameat2:
    case SYS_symlinkat:
        return decide_name(caller, ground);
#ifdef SYS_chmod
    case SYS_chmod:
    case SYS_chown:
    case SYS_lchown:
#endif
    case SYS_fchmod:
    case SYS_fchown:
    case SYS_fchmodat:
    case SYS_fchmodat2:
    case SYS_fchownat:
    case SYS_utimensat:
        return decide_metadata(caller, ground);
    default:
        return PUNTED;
    }
}
