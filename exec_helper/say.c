#include "say.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char *program_name = "nd7-exec";

__attribute__((format(printf, 1, 0))) static void say_list(const char *format, va_list arguments)
{
    char line[1000];
    int used = snprintf(line, sizeof line, "%s: ", program_name);
    int more = vsnprintf(line + used, sizeof line - (size_t)used, format, arguments);
    size_t length = (size_t)used + (size_t)(more < 0 ? 0 : more);
    if (length > sizeof line - 1)
        length = sizeof line - 1;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = '?';
    line[length] = '\n'; /* over the terminating NUL: one write, so that lines of two processes do not mix */
    if (write(STDERR_FILENO, line, length + 1) < 0)
        return;
}

void say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say_list(format, arguments);
    va_end(arguments);
}

void refuse(int status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say_list(format, arguments);
    va_end(arguments);
    exit(status);
}
