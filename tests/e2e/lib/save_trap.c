/* Preloaded into darknet: looks at the calls by which its main thread saves a file, from opening NAME.new to
 * the rename to NAME, and strikes at one of them.
 *   TRAP_KILL=N    SIGKILL just before the N-th such call
 *   TRAP_SAVE=N    SIGKILL just before the N-th save (a file and its sidecar are one save)
 *   TRAP_FULL=N    the disk is full in the N-th save: what it writes to is /dev/full
 *   TRAP_FULL_AMP=N  the same for the sidecar alone
 *   TRAP_GONE=N    the folder `backup` is renamed to `gone` as the N-th save begins
 *   TRAP_LOG=FILE  appends the calls' names */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int saving, calls, saves, trace = -1;
static struct { int kill, save, full, full_amp, gone; } trap;

#define REAL(name) static __typeof__(&name) real; if (!real) *(void **)&real = dlsym(RTLD_NEXT, #name)

static int number(const char *variable)
{
    const char *value = getenv(variable);
    return value ? atoi(value) : 0;
}

__attribute__((constructor)) static void read_environment(void)
{
    const char *log = getenv("TRAP_LOG");
    if (log) trace = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    trap.kill = number("TRAP_KILL");
    trap.save = number("TRAP_SAVE");
    trap.full = number("TRAP_FULL");
    trap.full_amp = number("TRAP_FULL_AMP");
    trap.gone = number("TRAP_GONE");
}

static int ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && !strcmp(text + length - tail, end);
}

static int is_main_thread(void) { return gettid() == getpid(); }

static void pass(const char *call)
{
    if (!saving || !is_main_thread()) return;
    calls++;
    if (trace >= 0) dprintf(trace, "%s\n", call);
    if (calls == trap.kill || saves == trap.save) kill(getpid(), SIGKILL);
}

/* The path to open in path's stead. made: it is only made, not written yet. */
static const char *opens(const char *path, int made, const char *call)
{
    if (!is_main_thread() || !ends_with(path, ".new")) return path;
    int sidecar = ends_with(path, ".amp.new");
    if (!saving) saves++;
    if (!saving && saves == trap.gone) syscall(SYS_renameat2, AT_FDCWD, "backup", AT_FDCWD, "gone", 0);
    saving = 1;
    pass(call);
    return !made && (saves == trap.full || (sidecar && saves == trap.full_amp)) ? "/dev/full" : path;
}

FILE *fopen(const char *path, const char *mode)
{
    REAL(fopen);
    return real(opens(path, 0, "fopen"), mode);
}

int open(const char *path, int flags, ...)
{
    static int (*real)(const char *, int, ...);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "open");
    va_list more;
    va_start(more, flags);
    int mode = flags & O_CREAT ? va_arg(more, int) : 0;
    va_end(more);
    /* Looks for a lock: no save yet. */
    if ((flags & O_ACCMODE) == O_WRONLY && flags & O_NONBLOCK) return real(path, flags, mode);
    return real(opens(path, (flags & O_EXCL) != 0, "open"), flags, mode);
}

ssize_t write(int file, const void *bytes, size_t size)
{
    REAL(write);
    pass("write");
    return real(file, bytes, size);
}

int fflush(FILE *file)
{
    REAL(fflush);
    if (file && file != stdout && file != stderr) pass("fflush");
    return real(file);
}

int fsync(int file)
{
    REAL(fsync);
    pass("fsync");
    return real(file);
}

int fclose(FILE *file)
{
    REAL(fclose);
    pass("fclose");
    return real(file);
}

int unlink(const char *path)
{
    REAL(unlink);
    int result = real(path);
    if (is_main_thread() && saving && ends_with(path, ".new") && !ends_with(path, ".amp.new")) saving = 0;
    return result;
}

int rename(const char *from, const char *to)
{
    REAL(rename);
    pass(ends_with(to, ".amp") ? "rename sidecar" : "rename weights");
    int result = real(from, to);
    if (!ends_with(to, ".amp")) {
        pass("after rename");
        if (is_main_thread()) saving = 0;
    }
    return result;
}
