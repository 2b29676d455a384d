#include "caller.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGE = 4096, STATUS_SIZE = 8192 };

/* Reads /proc/<who>/status; returns its length or -1. */
static ssize_t read_status(const char *who, char *text)
{
    char path[48];
    snprintf(path, sizeof path, "/proc/%s/status", who);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t length = read(fd, text, STATUS_SIZE - 1);
    close(fd);
    if (length >= 0)
        text[length] = 0;
    return length;
}

/* Returns the value behind "\n<field>:\t", NULL when there is none. */
static const char *field_of(const char *text, const char *field)
{
    const char *at = strstr(text, field);
    return at ? at + strlen(field) : NULL;
}

/* Copies the lines of ids and groups, which two threads of the same rights have in common; false when they are not all
 * there or too long. */
static bool ids_of(const char *text, char *ids, size_t size)
{
    const char *uid = field_of(text, "\nUid:"), *groups = field_of(text, "\nGroups:");
    const char *gid = field_of(text, "\nGid:");
    if (!uid || !gid || !groups)
        return false;
    int length = snprintf(ids, size, "%.*s/%.*s/%.*s", (int)strcspn(uid, "\n"), uid, (int)strcspn(gid, "\n"), gid,
                          (int)strcspn(groups, "\n"), groups);
    return length > 0 && (size_t)length < size;
}

static bool effective_of(const char *text, uint64_t *effective)
{
    const char *at = field_of(text, "\nCapEff:");
    if (!at)
        return false;
    *effective = strtoull(at, NULL, 16);
    return true;
}

static bool set_effective(uint64_t effective)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &header, data) != 0)
        return false;
    data[0].effective = (uint32_t)effective;
    data[1].effective = (uint32_t)(effective >> 32);
    return syscall(SYS_capset, &header, data) == 0;
}

bool caller_init(struct own *own, int listener)
{
    *own = (struct own){.listener = listener, .is_root = geteuid() == 0};
    own->proc_length = (size_t)snprintf(own->proc, sizeof own->proc, "/proc/%d", getpid());
    if (!own->is_root)
        return true;
    char text[STATUS_SIZE];
    return read_status("thread-self", text) > 0 && ids_of(text, own->ids, sizeof own->ids) &&
           effective_of(text, &own->effective);
}

bool caller_waits(const struct caller *caller)
{
    return ioctl(caller->own->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &caller->id) == 0;
}

static ssize_t read_some(const struct caller *caller, uint64_t address, void *buffer, size_t size)
{
    struct iovec local = {buffer, size}, remote = {(void *)(uintptr_t)address, size};
    return process_vm_readv(caller->tid, &local, 1, &remote, 1, 0);
}

int caller_read(const struct caller *caller, uint64_t address, void *buffer, size_t size)
{
    ssize_t got = read_some(caller, address, buffer, size);
    if (got < 0)
        return errno;
    return (size_t)got == size ? 0 : EFAULT;
}

int caller_path(const struct caller *caller, uint64_t address, char *path)
{
    size_t length = 0;
    while (length < PATH_MAX) {
        /* Never across a page boundary in one read: the next page may be unmapped. */
        size_t step = PAGE - (address + length) % PAGE;
        if (step > PATH_MAX - length)
            step = PATH_MAX - length;
        ssize_t got = read_some(caller, address + length, path + length, step);
        if (got <= 0)
            return got < 0 ? errno : EFAULT;
        if (memchr(path + length, 0, (size_t)got))
            return 0;
        length += (size_t)got;
    }
    return ENAMETOOLONG;
}

static void no_place(struct place *place, int error)
{
    place->fd = -1;
    place->error = error;
    place->length = 0;
    place->path[0] = 0;
}

/* Gives a held descriptor its name; one whose name cannot be told is left to Python. */
static void hold(const struct caller *caller, int fd, struct place *place)
{
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, place->path, sizeof place->path);
    const struct own *own = caller->own;
    bool ours = length >= (ssize_t)own->proc_length && memcmp(place->path, own->proc, own->proc_length) == 0 &&
                (length == (ssize_t)own->proc_length || place->path[own->proc_length] == '/');
    /* Below our own /proc directory: the caller said /proc/self and meant itself. */
    if (length <= 0 || length == (ssize_t)sizeof place->path || ours) {
        close(fd);
        no_place(place, 0);
        return;
    }
    place->fd = fd;
    place->error = 0;
    place->length = (size_t)length;
    place->path[length] = 0;
}

/* Opens /proc/<tid>/<what>; returns -1 with errno. */
static int open_of(const struct caller *caller, const char *what, int flags)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", caller->tid, what);
    return open(path, O_PATH | O_CLOEXEC | flags);
}

void caller_descriptor(const struct caller *caller, int fd, struct place *place)
{
    char what[24];
    snprintf(what, sizeof what, "fd/%d", fd);
    int held = open_of(caller, what, 0);
    if (held < 0)
        no_place(place, errno == ENOENT ? EBADF : 0);
    else
        hold(caller, held, place);
}

/* True when ENOENT very likely means only that the caller's own /proc entries are not ours. */
static bool may_mean_itself(const char *path)
{
    static const char *const starts[] = {"/dev/fd/", "/dev/std", "self/", "thread-self/", "fd/", "task/"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (strncmp(path, starts[i], strlen(starts[i])) == 0)
            return true;
    return strstr(path, "proc/") != NULL;
}

/* Opens `path` from where the caller stands, as a handle; returns -1 with errno, which is 0 when Python must say. */
static int walk(const struct caller *caller, int dirfd, const char *path, int flags, uint64_t resolve)
{
    int base = AT_FDCWD; /* of no meaning for an absolute path */
    if (*path != '/') {
        char what[24] = "cwd";
        if (dirfd != AT_FDCWD)
            snprintf(what, sizeof what, "fd/%d", dirfd);
        base = open_of(caller, what, dirfd == AT_FDCWD ? O_DIRECTORY : 0);
        if (base < 0) {
            errno = dirfd != AT_FDCWD && errno == ENOENT ? EBADF : 0;
            return -1;
        }
    }
    struct open_how how = {.flags = (uint64_t)(O_PATH | O_CLOEXEC | flags), .resolve = resolve};
    int fd = (int)syscall(SYS_openat2, base, path, &how, sizeof how), error = errno;
    if (base >= 0)
        close(base);
    errno = error;
    return fd;
}

void caller_object(const struct caller *caller, int dirfd, const char *path, bool follow, struct place *place)
{
    if (!*path) {
        no_place(place, ENOENT);
        return;
    }
    int fd = walk(caller, dirfd, path, follow ? 0 : O_NOFOLLOW, RESOLVE_NO_MAGICLINKS), error = errno;
    if (fd >= 0)
        hold(caller, fd, place);
    else /* ELOOP: a magic link is on the way */
        no_place(place, error == ELOOP || (error == ENOENT && may_mean_itself(path)) ? 0 : error);
}

/* Writes the part of `path` before its last component, which begins at `last`; it ends with a slash, since it must be
 * a directory. */
static void directory_of(const char *path, const char *last, char *directory)
{
    size_t length = (size_t)(last - path);
    if (length)
        memcpy(directory, path, length);
    else
        memcpy(directory, "./", length = 2);
    directory[length] = 0;
}

void caller_name(const struct caller *caller, int dirfd, const char *path, struct name *name)
{
    const char *slash = strrchr(path, '/');
    const char *last = slash ? slash + 1 : path;
    size_t length = strlen(last);
    if (!*path || length == 0 || length > NAME_MAX || strcmp(last, ".") == 0 || strcmp(last, "..") == 0) {
        no_place(&name->parent, !*path ? ENOENT : length > NAME_MAX ? ENAMETOOLONG : 0);
        return;
    }
    char directory[PATH_MAX];
    directory_of(path, last, directory);
    caller_object(caller, dirfd, directory, true, &name->parent);
    if (name->parent.fd < 0)
        return;
    memcpy(name->last, last, length + 1);
    bool top = name->parent.length == 1;
    int total = snprintf(name->path, sizeof name->path, "%s/%s", top ? "" : name->parent.path, last);
    if (name->parent.path[0] != '/' || total < 0 || (size_t)total >= sizeof name->path) {
        close(name->parent.fd);
        no_place(&name->parent, 0);
        return;
    }
    name->length = (size_t)total;
}

void caller_gap(const struct caller *caller, int dirfd, char *path, struct name *gap)
{
    for (;;) {
        size_t length = strlen(path);
        while (length > 1 && path[length - 1] == '/')
            path[--length] = 0;
        caller_name(caller, dirfd, path, gap);
        char *slash = strrchr(path, '/');
        if (gap->parent.fd >= 0 || gap->parent.error != ENOENT)
            return;
        if (!slash || slash == path)
            break;
        *slash = 0;
    }
    no_place(&gap->parent, 0);
}

bool caller_walks_plainly(const struct caller *caller, int dirfd, const char *path)
{
    const char *slash = strrchr(path, '/');
    char directory[PATH_MAX];
    directory_of(path, slash ? slash + 1 : path, directory);
    int fd = walk(caller, dirfd, directory, 0, RESOLVE_NO_SYMLINKS);
    if (fd < 0)
        return false;
    close(fd);
    if (!caller_rights(caller, NULL))
        return false;
    caller_rights_back(caller);
    return true;
}

struct verdict caller_fault(const struct caller *caller, const struct place *place)
{
    /* As root we may see what the caller may not, and a link to /proc/self may lead it elsewhere than us: the error would
     * not be its own. */
    bool exact = place->error != 0 && place->error != ENOENT && !caller->own->is_root;
    return exact ? failed(place->error) : PUNTED;
}

bool caller_rights(const struct caller *caller, mode_t *mask)
{
    const struct own *own = caller->own;
    if (!own->is_root && !mask)
        return true; /* without privileges all of the tree has our ids: no_new_privs */
    char who[16], text[STATUS_SIZE], ids[sizeof own->ids];
    snprintf(who, sizeof who, "%d", caller->tid);
    if (read_status(who, text) <= 0)
        return false;
    if (mask) {
        const char *at = field_of(text, "\nUmask:");
        if (!at)
            return false;
        *mask = (mode_t)strtoul(at, NULL, 8);
    }
    if (!own->is_root)
        return true;
    /* The path was walked with our rights, so only a caller who may walk as we do is served here. */
    const uint64_t walker = 1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH;
    uint64_t effective;
    if (!ids_of(text, ids, sizeof ids) || strcmp(ids, own->ids) != 0 || !effective_of(text, &effective) ||
        (effective & walker) != walker)
        return false;
    return set_effective(own->effective & effective);
}

void caller_rights_back(const struct caller *caller)
{
    if (caller->own->is_root && !set_effective(caller->own->effective))
        abort(); /* cannot happen: the permitted set was left alone */
}
