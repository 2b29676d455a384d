#include "denies.h"

#include <stdlib.h>
#include <string.h>

static bool is_canonical(const char *path)
{
    if (path[0] != '/')
        return false;
    if (path[1] == 0)
        return true;
    for (const char *part = path; *part;) {
        part++; /* the '/' */
        size_t length = strcspn(part, "/");
        if (length == 0 || (length == 1 && part[0] == '.') || (length == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        part += length;
    }
    return true;
}

static bool parse_one(const char *text, struct deny *deny)
{
    if ((text[0] != 'r' && text[0] != 'w') || text[1] != ':' || !is_canonical(text + 2))
        return false;
    *deny = (struct deny){.write = text[0] == 'w', .path = text + 2};
    return true;
}

bool denies_parse(const char *bytes, size_t length, struct deny **denies, size_t *count)
{
    *denies = NULL;
    *count = 0;
    size_t capacity = 1;
    for (size_t i = 0; i < length; i++)
        capacity += bytes[i] == 0;
    struct deny *list = calloc(capacity, sizeof *list);
    if (!list)
        return false;
    /* A NUL after the last entry is allowed, it ends it; an empty entry elsewhere is malformed. */
    for (const char *at = bytes; at < bytes + length; at += strlen(at) + 1) {
        if (!parse_one(at, &list[*count])) {
            free(list);
            *count = 0;
            return false;
        }
        ++*count;
    }
    *denies = list;
    return true;
}
