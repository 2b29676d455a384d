/* Paths with an answer of their own: what policy says beneath each, and what the Landlock floor grants there.
 *
 * Rule: the answer for a path is that of its deepest ancestor in the table. Where a pattern might speak, the table has
 * no answer. It never allows what `nd7tui/engine/policy/table.py` does not; tests compare the two.
 */
#ifndef ND7_TABLE_H
#define ND7_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

enum access { READ = 0, WRITE = 1 };
enum { MOST_ROOTS = 8 };

/* One granted directory or device, and the inode that the grant is bound to. */
struct root {
    const char *path;
    dev_t device;
    ino_t inode;
    bool top_level; /* directly below "/": nothing inside can replace it */
};

struct entry {
    char *path;
    size_t length;
    uint64_t hash;
    bool has_verdict;      /* else the entry only holds what else is known of the path */
    bool allowed[2];       /* by access, for the path and all beneath it that has no entry */
    bool stricter_beneath[2]; /* by access: something beneath is not allowed, so the tree cannot be moved as one */
    bool granted[2];       /* by access: the floor grants this tree */
    struct root root[2];
    char **patterns;       /* what direct children may be called to have an answer of their own; only the text before
                            * the first special character is compared, so more is handed on than matches */
    size_t pattern_count;
};

struct table {
    struct entry **slots; /* open addressing, a power of two of them */
    size_t mask;
    struct entry *entries;
    size_t count;
};

/* What the table knows of one path. */
struct found {
    bool unknown; /* no answer here */
    bool allowed[2];
    bool stricter_beneath[2];
    const struct root *roots[2][MOST_ROOTS]; /* outermost first */
    size_t root_count[2];
};

/* Takes `entries` (allocated, as are their paths and patterns) and makes them findable. Returns NULL without memory;
 * the entries are then freed. */
struct table *table_new(struct entry *entries, size_t count);
void table_free(struct table *table);

/* Looks up a canonical absolute path. */
struct found table_find(const struct table *table, const char *path, size_t length);

/* True when the floor grants `access` to a path that was looked up: an ancestor is granted and still has its inode. */
bool table_covers(const struct found *found, enum access access);

#endif
