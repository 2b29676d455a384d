/* What the helpers say: one line on stderr, `<name>: …`, and nothing at all when things go well. */
#ifndef ND7_SAY_H
#define ND7_SAY_H

enum {
    STATUS_USAGE = 2,
    STATUS_BLOCK = 2,     /* a hook's status that blocks the tool call, in both agents */
    STATUS_REFUSED = 126, /* the command was not run */
};

/* The name in front of every line: "nd7-exec" or "nd7-hook". */
extern const char *program_name;

/* Prints `<name>: <text>`, cut at one line of 1000 bytes. Control bytes become '?': paths come from anywhere. */
__attribute__((format(printf, 1, 2))) void say(const char *format, ...);

/* say(), then ends with `status`. */
__attribute__((format(printf, 2, 3), noreturn)) void refuse(int status, const char *format, ...);

#endif
