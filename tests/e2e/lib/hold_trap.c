/* Preloaded into `darknet amp compare`: while there is a file `hold`, the training of bf16-seed1 makes a file
 * `held` after it has written twenty times to its log, and waits until `hold` is gone. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void hold(void)
{
    close(open("held", O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
    while (access("hold", F_OK) == 0) usleep(10000);
}

int dprintf(int file, const char *format, ...)
{
    static int rows;
    char link[32], path[4096];
    va_list arguments;
    va_start(arguments, format);
    int written = vdprintf(file, format, arguments);
    va_end(arguments);
    if (access("hold", F_OK) != 0) return written;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    if (strstr(path, "/runs/bf16-seed1/steps.csv") && ++rows == 20) hold();
    return written;
}
