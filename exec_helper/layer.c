#include "layer.h"

#include "landlock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

static const uint64_t READ_KINDS = LL_FS_READ_FILE;
static const uint64_t WRITE_KINDS = LL_FS_WRITE_FILE | LL_FS_REMOVE_DIR | LL_FS_REMOVE_FILE | LL_FS_MAKE_CHAR |
                                    LL_FS_MAKE_DIR | LL_FS_MAKE_REG | LL_FS_MAKE_SOCK | LL_FS_MAKE_FIFO |
                                    LL_FS_MAKE_BLOCK | LL_FS_MAKE_SYM | LL_FS_TRUNCATE;
/* The kernel refuses a rule on a file with any of the others. Source: landlock.rst, "Filesystem flags". */
static const uint64_t FILE_KINDS = LL_FS_READ_FILE | LL_FS_WRITE_FILE | LL_FS_TRUNCATE;

/* What is still to be denied below one directory: the path that remains, and the kinds of access. */
struct branch {
    const char *rest; /* relative, no leading '/' */
    uint64_t kinds;
};

static const char *grant(int ruleset, int entry, uint64_t kinds)
{
    struct stat status;
    if (fstat(entry, &status) != 0)
        return strerror(errno);
    if (S_ISLNK(status.st_mode))
        return NULL; /* a link has no content of its own; where it leads is granted or denied by its own path */
    if (!S_ISDIR(status.st_mode))
        kinds &= FILE_KINDS;
    struct ll_path_beneath_attr rule = {.allowed_access = kinds, .parent_fd = entry};
    return kinds == 0 || ll_add_path(ruleset, &rule) == 0 ? NULL : strerror(errno);
}

/* True for faults that only mean "this one cannot be reached": it stays ungranted and thereby refused. */
static bool is_unreachable(int error)
{
    return error == ENOENT || error == ENOTDIR || error == EACCES || error == EPERM || error == ELOOP;
}

static const char *visit(int ruleset, int directory, const struct branch *branches, size_t count,
                         uint64_t granted);

/* Grants one entry of a directory what no branch takes from it, and goes down where one leads further. */
static const char *visit_entry(int ruleset, int directory, const char *name, const struct branch *branches,
                               size_t count, uint64_t granted)
{
    size_t length = strlen(name), deeper = 0;
    uint64_t ending = 0, passing = 0;
    struct branch *below = calloc(count, sizeof *below);
    if (!below)
        return strerror(ENOMEM);
    for (size_t i = 0; i < count; i++) {
        const char *rest = branches[i].rest;
        if (strncmp(rest, name, length) != 0 || (rest[length] != 0 && rest[length] != '/'))
            continue;
        if (rest[length] == 0) {
            ending |= branches[i].kinds;
        } else {
            passing |= branches[i].kinds;
            below[deeper++] = (struct branch){rest + length + 1, branches[i].kinds};
        }
    }
    const char *fault = NULL;
    passing &= granted & ~ending;
    granted &= ~ending & ~passing;
    if (granted || passing) {
        int entry = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (entry >= 0) {
            fault = granted ? grant(ruleset, entry, granted) : NULL;
            if (!fault && passing)
                fault = visit(ruleset, entry, below, deeper, passing);
            close(entry);
        } else if (!is_unreachable(errno)) {
            fault = strerror(errno);
        }
    }
    free(below);
    return fault;
}

/* Visits every entry of `directory` (O_PATH). `granted` are the kinds that the entries get unless a branch takes them. */
static const char *visit(int ruleset, int directory, const struct branch *branches, size_t count,
                         uint64_t granted)
{
    int readable = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (readable < 0)
        return is_unreachable(errno) ? NULL : strerror(errno);
    DIR *list = fdopendir(readable);
    if (!list) {
        close(readable);
        return strerror(ENOMEM);
    }
    const char *fault = NULL;
    while (!fault) {
        errno = 0;
        struct dirent *entry = readdir(list);
        if (!entry) {
            fault = errno ? strerror(errno) : NULL;
            break;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            fault = visit_entry(ruleset, directory, entry->d_name, branches, count, granted);
    }
    closedir(list);
    return fault;
}

/* Builds the rules of one ruleset whose handled kinds are `handled` (less REFER, which `/` gets as a whole). */
static const char *fill(int ruleset, const struct deny *denies, size_t count, uint64_t handled, int abi)
{
    struct branch *branches = calloc(count, sizeof *branches);
    if (!branches)
        return strerror(ENOMEM);
    size_t used = 0;
    uint64_t everywhere = 0; /* denied at "/" itself */
    for (size_t i = 0; i < count; i++) {
        uint64_t kinds = (denies[i].write ? WRITE_KINDS : READ_KINDS) & handled;
        if (denies[i].path[1] == 0)
            everywhere |= kinds;
        else
            branches[used++] = (struct branch){denies[i].path + 1, kinds};
    }
    const char *fault = NULL;
    int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        fault = strerror(errno);
    /* Renaming between directories is refused by any layer that does not grant REFER; the kernel still refuses a move
     * that would give a file more access than it had, so nothing leaves a denied directory by it. */
    if (!fault && abi >= 2)
        fault = grant(ruleset, root, LL_FS_REFER);
    if (!fault)
        fault = visit(ruleset, root, branches, used, handled & ~everywhere);
    if (root >= 0)
        close(root);
    free(branches);
    return fault;
}

static const char *restrict_self(int ruleset)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ll_restrict(ruleset) != 0)
        return errno == E2BIG ? "too many layers of nd7-exec inside each other" : strerror(errno);
    return NULL;
}

const char *layer_apply(const struct deny *denies, size_t count)
{
    if (count == 0)
        return NULL;
    int abi = ll_abi();
    if (abi < 1)
        return "this kernel has no Landlock";
    uint64_t handled = 0;
    for (size_t i = 0; i < count; i++)
        handled |= denies[i].write ? WRITE_KINDS : READ_KINDS;
    if (abi < 3)
        handled &= ~LL_FS_TRUNCATE; /* truncate(2) is a notified call as well */
    struct ll_ruleset_attr attr = {.handled_access_fs = handled | (abi >= 2 ? LL_FS_REFER : 0)};
    int ruleset = ll_create(&attr);
    if (ruleset < 0)
        return strerror(errno);
    const char *fault = fill(ruleset, denies, count, handled, abi);
    if (!fault)
        fault = restrict_self(ruleset);
    close(ruleset);
    return fault;
}
