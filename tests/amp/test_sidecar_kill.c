/* Saves that are killed: before and after each call that changes a file, and in the middle of each write. At
 * any moment there is a matching pair of weights and sidecar, old or new. */
#define _DEFAULT_SOURCE /* mkstemps, mkdtemp, syscall */
#include "testing.h"

#include <signal.h>
#include <sys/syscall.h>

#include "child.h"
#include "sidecar_pairs.h"

/* ---- the calls of a save, replacing the library's ---- */

static int calls_left = -1;   /* the kill happens when this is 0 */
static char calls[1024];      /* the flushes and renames, in order */

static void may_be_killed(void)
{
    if (calls_left >= 0 && calls_left-- == 0) raise(SIGKILL);
}

static void note_call(const char *what, const char *path)
{
    size_t used = strlen(calls);
    snprintf(calls + used, sizeof calls - used, "%s %s\n", what, path);
}

int rename(const char *from, const char *to)
{
    may_be_killed();
    note_call("rename", to);
    int result = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    may_be_killed();
    return result;
}

int fsync(int file)
{
    char link[32], path[256];
    may_be_killed();
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    note_call("flush", strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
    int result = (int)syscall(SYS_fsync, file);
    may_be_killed();
    return result;
}

int unlink(const char *path)
{
    may_be_killed();
    int result = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    may_be_killed();
    return result;
}

/* A kill comes before the second half of what is written. */
ssize_t write(int file, const void *bytes, size_t size)
{
    may_be_killed();
    ssize_t half = calls_left >= 0 ? syscall(SYS_write, file, bytes, size / 2) : 0;
    may_be_killed();
    return half < 0 ? half : half + syscall(SYS_write, file, (const char *)bytes + half, size - (size_t)half);
}

/* ---- the tests ---- */

/* Nothing is renamed before it is on disk, and the second rename waits until the first is. */
TEST(what_is_renamed_is_on_the_disk)
{
    char expected[256];
    clear();
    calls[0] = 0;
    assert_int_equal(save_number("w", 0, NULL), AMP_OK);
    const char *name = strrchr(test_folder, '/') + 1;
    snprintf(expected, sizeof expected,
             "flush w.new\nflush w.amp.new\nrename w.amp\nflush %s\nrename w\nflush %s\n", name, name);
    assert_string_equal(calls, expected);
}

static void save_number_1(void *call)
{
    calls_left = *(int *)call;
    if (save_number("w", 1, NULL) != AMP_OK) _exit(2);
}

/* Makes save number 1 over the old files, killed at call number `call`. Returns 0 if it was finished
 * before. */
static int save_is_killed(int call)
{
    char said[1000];
    int status = in_child(save_number_1, &call, said, sizeof said);
    assert_true(status == 0 || status == -1);
    return status == -1;
}

TEST(a_save_killed_at_any_call_leaves_the_old_pair_or_the_new)
{
    for (int old = OLD_NONE; old < OLD_KINDS; old++)
        for (int leftovers = 0; leftovers < 2; leftovers++) {
            int call = 0, killed = 1, is_new = 0;
            for (; killed; call++) {
                make_killed(old, leftovers ? 4 : 0);
                killed = save_is_killed(call);
                int on_disk = old == OLD_NONE && holds("w.new", weights[1]) &&
                              holds("w.amp.new", sidecars[1]);
                int now_new = on_disk || holds("w.amp", sidecars[1]);
                assert_true(now_new >= is_new); /* calls are in order: once new, always new */
                is_new = now_new;
                recovers_to(is_new ? 1 : old == OLD_PAIR ? 0 : -1, old, is_new && !holds("w", weights[1]));
            }
            assert_true(is_new && call > 12);
        }
}

int main(void) { return run_listed_tests("sidecar kill", make_pairs, remove_folder); }
