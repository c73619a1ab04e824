/* See memory.h. */
#define _DEFAULT_SOURCE /* getrusage */
#include "memory.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "device.h"

/* The first number of a file, after `key` if that is not NULL; 0 if there is none. */
static size_t number_in(const char *file, const char *key)
{
    char line[256];
    unsigned long long number = 0;
    FILE *in = fopen(file, "r");
    while (in && fgets(line, sizeof line, in)) {
        size_t skipped = key ? strlen(key) : 0;
        if (key && strncmp(line, key, skipped)) continue;
        if (sscanf(line + skipped, "%llu", &number) == 1) break;
    }
    if (in) fclose(in);
    return (size_t)number;
}

/* What this program may still take of the machine's memory: of its control group's too, where that has a limit. */
static size_t free_ram(void)
{
    static const struct { const char *limit, *used, *statistics, *cache; } groups[] = {
        { "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat", "inactive_file " },
        { "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes",
          "/sys/fs/cgroup/memory/memory.stat", "total_inactive_file " } };
    size_t free_bytes = number_in("/proc/meminfo", "MemAvailable:") * 1024;
    for (size_t k = 0; k < sizeof groups / sizeof *groups; k++) {
        size_t limit = number_in(groups[k].limit, NULL), used = number_in(groups[k].used, NULL); /* no limit: "max", or huge */
        size_t cache = number_in(groups[k].statistics, groups[k].cache); /* of files: given up when memory is wanted */
        used -= cache < used ? cache : used;
        if (limit && limit < free_bytes + used) free_bytes = limit > used ? limit - used : 0;
    }
    return free_bytes;
}

size_t amp_host_free_memory(const char **where)
{
#ifdef GPU
    size_t all;
    if (amp_host_gpu() >= 0) {
        *where = "GPU memory";
        return amp_host_gpu_free(amp_host_gpu(), &all);
    }
#endif
    *where = "RAM";
    return free_ram();
}

double amp_host_peak_resident_mb(void)
{
    struct rusage usage;
    size_t kilobytes = number_in("/proc/self/status", "VmHWM:"); /* ru_maxrss is the parent's at first, if that was larger */
    if (!kilobytes && !getrusage(RUSAGE_SELF, &usage)) kilobytes = (size_t)usage.ru_maxrss;
    return (double)kilobytes / 1024;
}

double amp_host_memory_mb(const network *net)
{
#ifdef GPU
    size_t all = 0;
    if (net->gpu_index >= 0) {
        size_t available = amp_host_gpu_free(net->gpu_index, &all);
        return (double)(all - available) / (1 << 20);
    }
#endif
    (void)net;
    return amp_host_peak_resident_mb();
}
