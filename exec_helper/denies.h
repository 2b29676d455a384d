/* The supervisor's list of live denies, as it comes: NUL-separated `r:/path` and `w:/path`, canonical absolute paths.
 *
 * Rule: strict. One entry that cannot be understood makes the whole list an error, never a shorter list.
 */
#ifndef ND7_DENIES_H
#define ND7_DENIES_H

#include <stdbool.h>
#include <stddef.h>

struct deny {
    bool write;       /* else read */
    const char *path; /* into the caller's bytes; "/" or a path without "//", "." or ".." and without a final "/" */
};

/* Splits `bytes` (a NUL must follow bytes[length]). Returns false when an entry is malformed or memory is short.
 * *denies is malloc'd and points into `bytes`. An empty list is *count 0. */
bool denies_parse(const char *bytes, size_t length, struct deny **denies, size_t *count);

#endif
