/* Which run this process belongs to.
 *
 * Rule: ancestry decides. The environment (ND7_RUN, ND7_SESSION) is only a hint that a run was expected, because the
 * caller can set it; the parents of a process it cannot choose.
 */
#ifndef ND7_RUN_H
#define ND7_RUN_H

#include <stdbool.h>
#include <sys/types.h>

struct run {
    pid_t supervisor; /* its pid is the run's name */
    int directory;    /* O_PATH descriptor of ~/.nd7/sessions/<supervisor>, close-on-exec */
    char *path;       /* the same as an absolute path */
};

/* Finds the nearest run among the ancestors. Returns false when there is none; ends the program with `status` when
 * ancestry cannot be read at all, for then nobody can say that there is none. */
bool run_find(struct run *run, int status);

/* True when the environment says that there should be a run. */
bool run_hinted(void);

void run_release(struct run *run);

#endif
