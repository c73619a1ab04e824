/* Preloaded: /proc/meminfo is the file of that name in the working folder. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

FILE *fopen(const char *name, const char *mode)
{
    FILE *(*real)(const char *, const char *);
    *(void **)&real = dlsym(RTLD_NEXT, "fopen");
    return real(strcmp(name, "/proc/meminfo") ? name : "meminfo", mode);
}
