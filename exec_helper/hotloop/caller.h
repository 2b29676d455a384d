/* One notified call, and what can be known of the thread that made it.
 *
 * Rule: all that is read from the caller may change while it is looked at; what was decided about is held by a
 * descriptor of ours, and the action is done on that. `caller_waits` must be true between reading and acting.
 */
#ifndef ND7_CALLER_H
#define ND7_CALLER_H

#include <limits.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The supervisor's side. */
struct own {
    int listener;
    bool is_root;
    uint64_t effective;    /* own effective capabilities, when root */
    char ids[512];         /* own Uid, Gid and Groups lines of /proc/thread-self/status, when root */
    char proc[32];         /* "/proc/<own pid>" */
    size_t proc_length;
};

struct caller {
    const struct own *own;
    uint64_t id;
    pid_t tid;
    uint64_t args[6];
    int nr;
};

/* What is to become of a call. */
struct verdict {
    enum { PUNT, CONTINUE, RETURN, FAIL, INJECT } kind; /* PUNT: Python decides */
    int value;    /* RETURN: the result; FAIL: the errno; INJECT: a descriptor of ours, closed afterwards */
    bool cloexec; /* INJECT */
};

#define PUNTED ((struct verdict){.kind = PUNT})
#define CONTINUED ((struct verdict){.kind = CONTINUE})

static inline struct verdict failed(int error)
{
    return (struct verdict){.kind = FAIL, .value = error};
}

/* An object we hold, or why there is none. */
struct place {
    int fd;    /* O_PATH; -1 when `error` says why not */
    int error; /* an errno that the caller may be told; 0 with fd -1: Python decides */
    size_t length;
    char path[PATH_MAX]; /* canonical; does not begin with '/' for what has no name */
};

/* A name in a directory we hold. */
struct name {
    struct place parent;
    char last[NAME_MAX + 1];
    size_t length;       /* of `path` */
    char path[PATH_MAX]; /* canonical path of the entry */
};

bool caller_init(struct own *own, int listener);
bool caller_waits(const struct caller *caller);

/* Reads exactly `size` bytes; returns 0 or an errno. */
int caller_read(const struct caller *caller, uint64_t address, void *buffer, size_t size);

/* Reads a NUL-terminated path into `path` (PATH_MAX bytes); returns 0 or an errno. */
int caller_path(const struct caller *caller, uint64_t address, char *path);

/* Resolves to an object; `fd` of the result is the caller's to close. `dirfd` as in openat(2). */
void caller_object(const struct caller *caller, int dirfd, const char *path, bool follow, struct place *place);

/* Holds what the caller's descriptor holds. */
void caller_descriptor(const struct caller *caller, int fd, struct place *place);

/* Resolves to a directory entry, its last component not followed; `name->parent` as in caller_object. */
void caller_name(const struct caller *caller, int dirfd, const char *path, struct name *name);

/* Resolves to the first entry on the way of `path` that could not be found, in a directory that could; `gap->parent`
 * as in caller_object. `path` is cut to end with that entry. */
void caller_gap(const struct caller *caller, int dirfd, char *path, struct name *gap);

/* True when no symbolic link leads to the directory of the last component of `path`, and the caller has our rights: then
 * it finds there what we do. */
bool caller_walks_plainly(const struct caller *caller, int dirfd, const char *path);

/* The verdict for a place or name that could not be had. */
struct verdict caller_fault(const struct caller *caller, const struct place *place);

/* Takes the caller's rights for this thread, or returns false: Python decides. `umask` (may be NULL) receives the
 * caller's file mode creation mask. Undone by caller_rights_back. */
bool caller_rights(const struct caller *caller, mode_t *mask);
void caller_rights_back(const struct caller *caller);

#endif
