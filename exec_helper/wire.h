/* One request to the supervisor over the run's hook.sock, and its reply.
 *
 * Request: "ND7\x01", kind, u32be length, payload. Reply: status, u32be length, stdout bytes, u32be length, stderr bytes.
 * The other side is nd7tui/engine/run/hooks.py, the framing in one place there: nd7tui/engine/run/wire.py.
 */
#ifndef ND7_WIRE_H
#define ND7_WIRE_H

#include "run.h"

#include <stddef.h>

enum wire_kind {
    WIRE_HOOK = 1,     /* payload: an agent's hook payload, JSON */
    WIRE_ANNOUNCE = 2, /* payload: the text of a command about to run; stdout of the reply: live denies */
};

enum { WIRE_LIMIT = 64 << 20 }; /* bytes of a payload, and of each part of a reply */

struct reply {
    unsigned char status;
    size_t out_length, err_length;
    char *out, *err; /* malloc'd, each followed by a NUL that the length does not count */
};

/* Sends and receives within `patience_ms`. Returns NULL, or what went wrong (a static text or strerror's). */
const char *wire_ask(const struct run *run, enum wire_kind kind, const void *payload, size_t length, int patience_ms,
                     struct reply *reply);

void reply_release(struct reply *reply);

#endif
