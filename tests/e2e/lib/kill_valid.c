/* Preloaded: ends `darknet amp valid` by a signal before it has begun. */
#include <signal.h>
#include <string.h>

__attribute__((constructor)) static void end(int argc, char **argv)
{
    if (argc > 2 && !strcmp(argv[2], "valid")) raise(SIGKILL);
}
