/* nd7-exec: Rule: the command runs under the run's live denies or not at all (status 126). */
#include "command.h"
#include "layer.h"
#include "run.h"
#include "say.h"
#include "shell.h"
#include "wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A stopped or busy supervisor also holds every other call of the run; longer than this is a fault to tell. */
enum { PATIENCE_MS = 30000 };

static void announce_and_narrow(const struct run *run, const char *text)
{
    struct reply reply;
    const char *fault = wire_ask(run, WIRE_ANNOUNCE, text, strlen(text), PATIENCE_MS, &reply);
    if (fault)
        refuse(STATUS_REFUSED, "run %d: %s; the command was not run", (int)run->supervisor, fault);
    reply.err[strcspn(reply.err, "\n")] = 0; /* say() prints one line */
    if (reply.status != 0)
        refuse(STATUS_REFUSED, "run %d: %s; the command was not run", (int)run->supervisor,
               reply.err[0] ? reply.err : "the supervisor refused");
    struct deny *denies;
    size_t count;
    if (!denies_parse(reply.out, reply.out_length, &denies, &count))
        refuse(STATUS_REFUSED, "run %d: cannot read its list of denies; the command was not run",
               (int)run->supervisor);
    fault = layer_apply(denies, count);
    if (fault)
        refuse(STATUS_REFUSED, "cannot apply the run's denies: %s; the command was not run", fault);
    free(denies);
    reply_release(&reply);
}

void command_exec(int argc, char **argv)
{
    if (argc < 3 || strcmp(argv[1], "-c") != 0)
        refuse(STATUS_USAGE, "usage: nd7-exec -c COMMAND [NAME [ARGUMENTS]]");
    struct run run;
    if (!run_find(&run, STATUS_REFUSED)) {
        if (run_hinted())
            refuse(STATUS_REFUSED, "the run's supervisor is gone; the command was not run");
        say("not inside a run; the command was not run");
        refuse(STATUS_REFUSED, "hint: start the program with `nd7 run` or `nd7 tui`");
    }
    announce_and_narrow(&run, argv[2]);
    run_release(&run);
    const char *shell;
    shell_become(argv[2], argv + 3, &shell);
    refuse(STATUS_REFUSED, "cannot start %s: %s", shell, strerror(errno));
}
