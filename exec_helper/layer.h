/* One more Landlock layer for this process and what it becomes, out of the run's live denies.
 *
 * Rule: narrower or nothing. Landlock only knows grants, so everything beside a denied path is granted: at each ancestor
 * of a denied path every entry that does not lead to one. What cannot be granted (it vanished, it may not be listed)
 * stays refused. Only the kinds of access that some deny names are handled.
 *
 * What it does not do: an entry created later directly in an ancestor of a denied path is beside it and still refused by
 * this layer; the supervisor, which emulates such calls while denies exist, opens it from outside. Execution is not
 * handled, because nobody emulates it: handling it would break running a program just compiled beside a denied path.
 * Names in a denied directory are the supervisor's business too (its open for listing is a notified call).
 */
#ifndef ND7_LAYER_H
#define ND7_LAYER_H

#include "denies.h"

/* Narrows this process; sets no_new_privs. Returns NULL, or what went wrong, after which the command must not run. */
const char *layer_apply(const struct deny *denies, size_t count);

#endif
