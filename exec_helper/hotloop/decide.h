/* What becomes of one notified call.
 *
 * Rule: as `nd7tui/engine/sandbox/opens.py`, `names.py` and `metadata.py`, which are the oracle of its tests; what is
 * not plainly allowed is handed to them (PUNT). Continued is only what the Landlock floor judges again by itself, and in
 * strict mode nothing.
 */
#ifndef ND7_DECIDE_H
#define ND7_DECIDE_H

#include "caller.h"
#include "table.h"

struct ground {
    const struct table *table; /* NULL: no policy yet, Python decides */
    bool strict;
};

/* Decides about one call, whichever it is. */
struct verdict decide(const struct caller *caller, const struct ground *ground);

/* Decides about a call that fails because something on the way of `path` is not there, and that wants `wants` (by
 * access) of what it names. */
struct verdict decide_missing(const struct caller *caller, const struct ground *ground, int dirfd, const char *path,
                              const bool wants[2]);

struct verdict decide_open(const struct caller *caller, const struct ground *ground);
struct verdict decide_name(const struct caller *caller, const struct ground *ground);
struct verdict decide_metadata(const struct caller *caller, const struct ground *ground);

/* Whether the kernel may run a call with `access` beneath a path that was looked up. */
static inline bool may_continue(const struct ground *ground, const struct found *found, enum access access)
{
    return !ground->strict && table_covers(found, access);
}

/* 0, or the errno of a call that has just returned `result`. */
struct verdict done(long result);

#endif
