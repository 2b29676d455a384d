/* Receives notified calls and answers those that `decide` has an answer for.
 *
 * Rule: a call is answered once. The rule file is looked at after each call was received, so that no call is decided by
 * rules that a person has already changed. Needs no interpreter; serves one thread.
 */
#ifndef ND7_LOOP_H
#define ND7_LOOP_H

#include "decide.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct seen {
    bool there;
    struct timespec changed;
    ino_t inode;
    off_t size;
};

struct loop {
    struct own own;
    struct ground ground;
    char *rules_path; /* NULL: none */
    struct seen rules;
    bool hung_up;     /* no process of the tree is left */
    uint64_t continued, answered;
};

/* What ended a wait. */
enum ending { NOTHING, A_CALL, BROKEN };

bool loop_init(struct loop *loop, int listener, char *rules_path);

/* Serves until a call is for somebody else (`caller` is then filled in; the first call after the rule file has changed
 * always is), `wake` is readable, `timeout_ms` are over, a signal came, or the tree has ended. BROKEN: errno says why the
 * listener cannot be served. */
enum ending loop_next(struct loop *loop, int timeout_ms, int wake, struct caller *caller);

#endif
