#include "table.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* FNV-1a, 64 bits. Source: draft-eastlake-fnv. The paths are the policy's; nobody inside chooses the table's. */
static const uint64_t HASH_START = 0xcbf29ce484222325u, HASH_FACTOR = 0x100000001b3u;

static uint64_t hash_more(uint64_t hash, char byte)
{
    return (hash ^ (unsigned char)byte) * HASH_FACTOR;
}

static uint64_t hash_of(const char *path, size_t length)
{
    uint64_t hash = HASH_START;
    for (size_t i = 0; i < length; i++)
        hash = hash_more(hash, path[i]);
    return hash;
}

static void entry_release(struct entry *entry)
{
    for (size_t i = 0; i < entry->pattern_count; i++)
        free(entry->patterns[i]);
    free(entry->patterns);
    free(entry->path);
}

void table_free(struct table *table)
{
    if (!table)
        return;
    for (size_t i = 0; i < table->count; i++)
        entry_release(&table->entries[i]);
    free(table->entries);
    free(table->slots);
    free(table);
}

struct table *table_new(struct entry *entries, size_t count)
{
    size_t size = 64;
    while (size < 2 * count)
        size *= 2;
    struct table *table = calloc(1, sizeof *table);
    struct entry **slots = calloc(size, sizeof *slots);
    if (!table || !slots) {
        free(table);
        free(slots);
        for (size_t i = 0; i < count; i++)
            entry_release(&entries[i]);
        free(entries);
        return NULL;
    }
    *table = (struct table){.slots = slots, .mask = size - 1, .entries = entries, .count = count};
    for (size_t i = 0; i < count; i++) {
        entries[i].hash = hash_of(entries[i].path, entries[i].length);
        size_t at = entries[i].hash & table->mask;
        while (slots[at])
            at = (at + 1) & table->mask;
        slots[at] = &entries[i];
    }
    return table;
}

static const struct entry *entry_at(const struct table *table, uint64_t hash, const char *path, size_t length)
{
    for (size_t at = hash & table->mask; table->slots[at]; at = (at + 1) & table->mask) {
        const struct entry *entry = table->slots[at];
        if (entry->hash == hash && entry->length == length && memcmp(entry->path, path, length) == 0)
            return entry;
    }
    return NULL;
}

/* True when a pattern of `entry` may mean the child that follows it in `path`. */
static bool may_match(const struct entry *entry, const char *path, size_t length)
{
    size_t start = entry->length == 1 ? 1 : entry->length + 1; /* "/" ends with its own separator */
    for (size_t i = 0; i < entry->pattern_count; i++) {
        size_t plain = strcspn(entry->patterns[i], "*?[");
        if (start + plain <= length && memcmp(path + start, entry->patterns[i], plain) == 0)
            return true;
    }
    return false;
}

static void take_roots(struct found *found, const struct entry *entry)
{
    for (int access = READ; access <= WRITE; access++) {
        if (!entry->granted[access])
            continue;
        size_t *count = &found->root_count[access];
        if (*count == MOST_ROOTS) { /* keep the deepest */
            memmove(found->roots[access], found->roots[access] + 1, (MOST_ROOTS - 1) * sizeof found->roots[0][0]);
            --*count;
        }
        found->roots[access][(*count)++] = &entry->root[access];
    }
}

struct found table_find(const struct table *table, const char *path, size_t length)
{
    struct found found = {.unknown = true};
    const struct entry *deepest = NULL, *entry = entry_at(table, hash_of("/", 1), "/", 1);
    uint64_t hash = HASH_START;
    if (entry) {
        deepest = entry->has_verdict ? entry : NULL;
        take_roots(&found, entry);
    }
    for (size_t i = 0; i < length; i++) {
        hash = hash_more(hash, path[i]);
        if (i == 0 || (i + 1 < length && path[i + 1] != '/'))
            continue;
        entry = entry_at(table, hash, path, i + 1);
        if (!entry)
            continue;
        deepest = entry->has_verdict ? entry : deepest;
        take_roots(&found, entry);
    }
    /* `entry` is that of the whole path now, if there is one. */
    if (entry)
        memcpy(found.stricter_beneath, entry->stricter_beneath, sizeof found.stricter_beneath);
    if (!deepest)
        return found;
    found.unknown = deepest->pattern_count > 0 && length > deepest->length && may_match(deepest, path, length);
    found.allowed[READ] = deepest->allowed[READ];
    found.allowed[WRITE] = deepest->allowed[WRITE];
    return found;
}

bool table_covers(const struct found *found, enum access access)
{
    for (size_t i = found->root_count[access]; i-- > 0;) {
        const struct root *root = found->roots[access][i];
        struct stat status;
        if (root->top_level)
            return true;
        if (lstat(root->path, &status) == 0 && status.st_ino == root->inode && status.st_dev == root->device)
            return true;
    }
    return false;
}
