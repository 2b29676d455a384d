/* The two programs in this binary. Each ends the process; none returns. */
#ifndef ND7_COMMAND_H
#define ND7_COMMAND_H

/* nd7-exec -c COMMAND [NAME [ARGUMENTS]]: announces the command, narrows itself, becomes the shell. */
__attribute__((noreturn)) void command_exec(int argc, char **argv);

/* nd7-hook: hands the payload on stdin to the supervisor and repeats its reply. */
__attribute__((noreturn)) void command_hook(int argc, char **argv);

#endif
