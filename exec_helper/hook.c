/* nd7-hook: Rule: inside a run a payload that does not reach the supervisor blocks the tool call (status 2). Agents take
 * every other failure of a hook for consent. */
#include "command.h"
#include "run.h"
#include "say.h"
#include "wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Below the shortest timeout that an agent gives a hook that can block (Codex, 3 s): a hook that is timed out by the
 * agent counts as consent. */
enum { PATIENCE_MS = 2500 };

enum { FIRST_CAPACITY = 64 << 10 };

/* Reads stdin to its end. Returns malloc'd bytes. */
static char *read_payload(size_t *length)
{
    size_t capacity = FIRST_CAPACITY;
    char *payload = malloc(capacity);
    *length = 0;
    while (payload) {
        ssize_t got = read(STDIN_FILENO, payload + *length, capacity - *length);
        if (got == 0)
            return payload;
        if (got < 0 && errno != EINTR)
            refuse(STATUS_BLOCK, "cannot read the payload: %s", strerror(errno));
        *length += got > 0 ? (size_t)got : 0;
        if (*length > WIRE_LIMIT)
            refuse(STATUS_BLOCK, "the payload is longer than 64 MiB");
        if (*length == capacity) {
            char *larger = realloc(payload, capacity *= 2);
            if (!larger)
                break;
            payload = larger;
        }
    }
    refuse(STATUS_BLOCK, "out of memory");
}

static void write_all(int file, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t written = write(file, bytes, length);
        if (written < 0 && errno != EINTR)
            refuse(STATUS_BLOCK, "cannot hand on the supervisor's reply: %s", strerror(errno));
        bytes += written > 0 ? written : 0;
        length -= written > 0 ? (size_t)written : 0;
    }
}

/* Outside a run: `nd7 record` beside this program writes the log itself. */
__attribute__((noreturn)) static void become_record(int argc, char **argv)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof "nd7");
    char *slash = length > 0 ? memrchr(path, '/', (size_t)length) : NULL;
    char **arguments = calloc((size_t)argc + 2, sizeof *arguments);
    if (!slash || !arguments)
        refuse(1, "cannot find nd7: %s", strerror(errno));
    strcpy(slash + 1, "nd7");
    arguments[0] = path;
    arguments[1] = "record";
    for (int i = 1; i < argc; i++)
        arguments[i + 1] = argv[i];
    execv(path, arguments);
    refuse(1, "cannot start %s: %s", path, strerror(errno));
}

void command_hook(int argc, char **argv)
{
    struct run run;
    if (!run_find(&run, STATUS_BLOCK)) {
        if (run_hinted())
            refuse(STATUS_BLOCK, "the run's supervisor is gone; nothing is recorded, so nothing may run");
        become_record(argc, argv);
    }
    size_t length;
    char *payload = read_payload(&length);
    struct reply reply;
    const char *fault = wire_ask(&run, WIRE_HOOK, payload, length, PATIENCE_MS, &reply);
    free(payload);
    if (fault)
        refuse(STATUS_BLOCK, "run %d: %s; nothing is recorded, so nothing may run", (int)run.supervisor, fault);
    write_all(STDOUT_FILENO, reply.out, reply.out_length);
    write_all(STDERR_FILENO, reply.err, reply.err_length);
    int status = reply.status;
    reply_release(&reply);
    run_release(&run);
    exit(status);
}
