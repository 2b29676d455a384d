#include "decide.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NOREPLACE = 1, EXCHANGE = 2 };

/* One call that makes, removes or renames entries. */
struct naming {
    enum { MKDIR, SYMLINK, REMOVE, RENAME } what;
    int dirfd[2];
    uint64_t path[2]; /* addresses in the caller; [1] is a rename's new name */
    uint64_t text;    /* SYMLINK: address of what the link says */
    uint32_t flags;   /* REMOVE: AT_REMOVEDIR; RENAME: RENAME_* */
    mode_t mode;      /* MKDIR */
};

/* Reads the registers; false when the call is not one of these. */
static bool read_naming(const struct caller *caller, struct naming *naming)
{
    const uint64_t *args = caller->args;
    *naming = (struct naming){.dirfd = {AT_FDCWD, AT_FDCWD}, .path = {args[0], args[1]}};
    switch (caller->nr) {
#ifdef SYS_mkdir
    case SYS_mkdir:
        naming->mode = args[1] & 07777;
        return true;
    case SYS_rmdir:
        naming->what = REMOVE;
        naming->flags = AT_REMOVEDIR;
        return true;
    case SYS_unlink:
        naming->what = REMOVE;
        return true;
    case SYS_rename:
        naming->what = RENAME;
        return true;
    case SYS_symlink:
        naming->what = SYMLINK;
        naming->text = args[0];
        naming->path[0] = args[1];
        return true;
#endif
    case SYS_mkdirat:
        naming->mode = args[2] & 07777;
        break;
    case SYS_unlinkat:
        naming->what = REMOVE;
        naming->flags = (uint32_t)args[2];
        break;
#ifdef SYS_renameat
    case SYS_renameat:
#endif
    case SYS_renameat2:
        naming->what = RENAME;
        naming->flags = caller->nr == SYS_renameat2 ? (uint32_t)args[4] : 0;
        naming->dirfd[1] = (int)args[2];
        naming->path[1] = args[3];
        break;
    case SYS_symlinkat:
        naming->what = SYMLINK;
        naming->text = args[0];
        naming->dirfd[0] = (int)args[1];
        naming->path[0] = args[2];
        return true;
    default:
        return false;
    }
    naming->dirfd[0] = (int)args[0];
    naming->path[0] = args[1];
    return true;
}

/* Whether policy allows what `naming` does with entry `i`. */
static bool is_allowed(const struct ground *ground, const struct naming *naming, const struct name names[2], int i)
{
    struct found found = table_find(ground->table, names[i].path, names[i].length);
    bool tree = naming->what == RENAME || naming->what == SYMLINK;
    if (found.unknown || !found.allowed[WRITE] || (tree && found.stricter_beneath[WRITE]))
        return false;
    /* A new name may be readable where the old one is not. */
    bool carried = naming->what == RENAME && (i == 0 || naming->flags & EXCHANGE);
    return !carried || (found.allowed[READ] && !found.stricter_beneath[READ]);
}

static bool is_covered(const struct ground *ground, const struct naming *naming, const struct name *name)
{
    struct found above = table_find(ground->table, name->parent.path, name->parent.length);
    return may_continue(ground, &above, WRITE) && (naming->what != RENAME || may_continue(ground, &above, READ));
}

/* What fails as it would without nd7, before policy is asked; 0 when nothing does. */
static int is_in_vain(const struct naming *naming, const struct name names[2])
{
    struct stat status, other;
    bool there = fstatat(names[0].parent.fd, names[0].last, &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (naming->what == MKDIR || naming->what == SYMLINK)
        return there ? EEXIST : 0;
    if (!there)
        return ENOENT;
    if (naming->what == REMOVE) {
        bool directory = naming->flags & AT_REMOVEDIR;
        return directory == S_ISDIR(status.st_mode) ? 0 : directory ? ENOTDIR : EISDIR;
    }
    bool taken = fstatat(names[1].parent.fd, names[1].last, &other, AT_SYMLINK_NOFOLLOW) == 0;
    return naming->flags & NOREPLACE && taken ? EEXIST : 0;
}

static long act(const struct naming *naming, const struct name names[2], const char *text)
{
    int parent = names[0].parent.fd;
    const char *last = names[0].last;
    switch (naming->what) {
    case MKDIR:
        return mkdirat(parent, last, naming->mode);
    case SYMLINK:
        return symlinkat(text, parent, last);
    case REMOVE:
        return unlinkat(parent, last, (int)(naming->flags & AT_REMOVEDIR));
    default:
        return syscall(SYS_renameat2, parent, last, names[1].parent.fd, names[1].last, naming->flags);
    }
}

static struct verdict act_here(const struct caller *caller, const struct naming *naming, const struct name names[2],
                               const char *text)
{
    mode_t mask = 0, before = 0;
    bool makes = naming->what == MKDIR;
    if (!caller_rights(caller, makes ? &mask : NULL))
        return PUNTED;
    struct verdict verdict = failed(EINTR);
    if (caller_waits(caller)) {
        if (makes)
            before = umask(mask);
        verdict = done(act(naming, names, text));
        if (makes)
            umask(before);
    }
    caller_rights_back(caller);
    return verdict;
}

static struct verdict judge(const struct caller *caller, const struct ground *ground, const struct naming *naming,
                            const struct name names[2], const char *text)
{
    int count = naming->what == RENAME ? 2 : 1, error = is_in_vain(naming, names);
    bool covered = true;
    if (error)
        return failed(error);
    for (int i = 0; i < count; i++) {
        if (!is_allowed(ground, naming, names, i))
            return PUNTED;
        covered = covered && is_covered(ground, naming, &names[i]);
    }
    return covered ? CONTINUED : act_here(caller, naming, names, text);
}

struct verdict decide_name(const struct caller *caller, const struct ground *ground)
{
    struct naming naming;
    struct name names[2];
    char path[PATH_MAX], text[PATH_MAX] = "";
    if (!read_naming(caller, &naming) || (naming.what == RENAME && naming.flags & ~(uint32_t)(NOREPLACE | EXCHANGE)) ||
        (naming.what == REMOVE && naming.flags & ~(uint32_t)AT_REMOVEDIR))
        return PUNTED;
    if (naming.text && (caller_path(caller, naming.text, text) != 0 || !*text))
        return PUNTED;
    int count = naming.what == RENAME ? 2 : 1, held = 0;
    struct verdict verdict = PUNTED;
    while (held < count && caller_path(caller, naming.path[held], path) == 0) {
        caller_name(caller, naming.dirfd[held], path, &names[held]);
        if (names[held].parent.fd < 0) {
            const bool wants[2] = {[READ] = naming.what == RENAME, [WRITE] = true};
            verdict = names[held].parent.error == ENOENT
                          ? decide_missing(caller, ground, naming.dirfd[held], path, wants)
                          : caller_fault(caller, &names[held].parent);
            break;
        }
        held++;
    }
    if (held == count)
        verdict = judge(caller, ground, &naming, names, text);
    while (held-- > 0)
        close(names[held].parent.fd);
    return verdict;
}
