/* Becoming the shell: exec, not spawn, so that signals, the terminal and the exit status need no relay. */
#ifndef ND7_SHELL_H
#define ND7_SHELL_H

/* Replaces this process by a shell running `command`, with `rest` (NULL-terminated: $0, $1, …) passed on. Returns only
 * on failure, with errno set and *shell naming what was tried. */
void shell_become(char *command, char **rest, const char **shell);

#endif
