#include "decide.h"

#include <errno.h>
#include <sys/syscall.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

struct verdict done(long result)
{
    return result < 0 ? failed(errno) : (struct verdict){.kind = RETURN};
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
