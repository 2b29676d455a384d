/* nd7-exec and nd7-hook, one binary: the name it was started by chooses. */
#include "command.h"
#include "say.h"

#include <string.h>

int main(int argc, char **argv)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *name = slash ? slash + 1 : argc > 0 ? argv[0] : "";
    if (strcmp(name, "nd7-hook") == 0) {
        program_name = "nd7-hook";
        command_hook(argc, argv);
    }
    command_exec(argc, argv);
}
