/* See memory.h. */
#define _DEFAULT_SOURCE /* getrusage */
#include "memory.h"

#include <stdint.h>
#include <string.h>
#include <sys/resource.h>

#include "../fork.h"
#include "ranks.h"

/* Returns the number after `key` on the first line that begins with it. If key is NULL, returns the first
 * number in the file. 0: no number was found. */
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

/* ---- what is available ---- */

static void narrow(amp_available_memory *memory, size_t limit, size_t used, const char *what, size_t resident)
{
    size_t left = limit > used ? limit - used : 0;
    if (left < memory->bytes) *memory = (amp_available_memory){ left, limit, what, resident };
}

/* The files of control groups, first for version 2, then for version 1. If there is no limit, the file
 * `limit` contains "max" in version 2, and a number above any machine's memory in version 1. cache: the key,
 * in memory.stat, for page cache that the kernel frees on demand. */
static const struct group_files { const char *mount, *limit, *used, *cache; } groups[] = {
    { "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file " },
    { "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file " } };

static size_t number_of_group(const char *folder, const char *file, const char *key)
{
    char name[2048];
    snprintf(name, sizeof name, "%s/%s", folder, file);
    return number_in(name, key);
}

/* The limits of all parent groups apply too. In a container, `path` may belong to a group outside the
 * container; then only the root of the mount exists here. */
static void narrow_by_group(amp_available_memory *memory, const char *root, const char *path,
                            const struct group_files *files)
{
    char folder[1024];
    int shortest = snprintf(folder, sizeof folder, "%s%s", root, files->mount);
    snprintf(folder + shortest, sizeof folder - (size_t)shortest, "%s", path);
    for (char *end = folder; end; end = strlen(folder) > (size_t)shortest ? strrchr(folder, '/') : NULL) {
        if (end != folder) *end = 0;
        size_t used = number_of_group(folder, files->used, NULL);
        size_t limit = number_of_group(folder, files->limit, NULL);
        size_t cache = number_of_group(folder, "memory.stat", files->cache);
        used -= cache < used ? cache : used;
        /* not more than `used`, because pages of shared libraries may be charged to another group */
        size_t resident = memory->resident < used ? memory->resident : used;
        if (limit) narrow(memory, limit, used, "RAM that the control group allows", resident);
    }
}

/* Reads the lines of /proc/self/cgroup: "0::/path" in version 2; "4:memory:/path" in version 1, where a line
 * may also name controllers other than memory. */
static void narrow_by_groups(amp_available_memory *memory, const char *root)
{
    char line[900], controllers[128];
    snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
    FILE *in = fopen(line, "r");
    while (in && fgets(line, sizeof line, in)) {
        int path = 0;
        line[strcspn(line, "\n")] = 0;
        if (!strncmp(line, "0::", 3)) narrow_by_group(memory, root, line + 3, &groups[0]);
        else if (sscanf(line, "%*d:%127[^:]:%n", controllers, &path) == 1 && path &&
                 strstr(controllers, "memory"))
            narrow_by_group(memory, root, line + path, &groups[1]);
    }
    if (in) fclose(in);
}

amp_available_memory amp_available_ram(const char *root, int programs)
{
    char name[1024];
    struct rlimit space;
    snprintf(name, sizeof name, "%s/proc/meminfo", root);
    amp_available_memory memory = { .what = "RAM", .all = number_in(name, "MemTotal:") * 1024,
                                    .bytes = number_in(name, "MemAvailable:") * 1024,
                                    .resident = number_in("/proc/self/status", "VmRSS:") * 1024 };
    if (!memory.bytes) memory.bytes = SIZE_MAX;
    narrow_by_groups(&memory, root);
    if (programs > 1) {
        memory.bytes /= (size_t)programs;
        memory.what = "RAM for each rank on this machine";
    }
    if (!getrlimit(RLIMIT_AS, &space) && space.rlim_cur != RLIM_INFINITY)
        narrow(&memory, (size_t)space.rlim_cur,
               number_in("/proc/self/status", "VmSize:") * 1024 + (size_t)AMP_LOADERS * AMP_LOADER_STACK,
               "address space (ulimit -v)", 0);
    if (memory.bytes == SIZE_MAX) memory.bytes = 0;
    return memory;
}

amp_available_memory amp_host_available_ram(void)
{
    return amp_available_ram("", amp_ranks() ? amp_ranks()->local_size : 1);
}

amp_available_memory amp_host_available_memory(void)
{
    amp_available_memory memory = { .what = "GPU memory" };
    if (amp_fork_device() < 0) return amp_host_available_ram();
    memory.bytes = amp_fork_free_gpu_memory(&memory.all);
    return memory;
}

double amp_host_peak_resident_mb(void)
{
    struct rusage usage;
    /* prefer VmHWM: ru_maxrss may be the size of the parent process */
    size_t kilobytes = number_in("/proc/self/status", "VmHWM:");
    if (!kilobytes && !getrusage(RUSAGE_SELF, &usage)) kilobytes = (size_t)usage.ru_maxrss;
    return (double)kilobytes / 1024;
}

size_t amp_host_program_bytes(void)
{
    enum { OWN = 16 << 20, OWN_FILES = 12 << 20 };
    size_t files = number_in("/proc/self/status", "RssFile:") * 1024;
    return OWN + (files > OWN_FILES ? (files - OWN_FILES) * 7 / 4 : 0);
}
