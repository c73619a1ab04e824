/* Weights and sidecar are saved as a pair: whenever a save is killed, there is a pair that matches, old or new. Each point
 * is a state of the folder, made by hand; then real saves are killed before and after each call that changes a file, and at random
 * moments. */
#define _DEFAULT_SOURCE /* mkstemps, mkdtemp, syscall */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "amp/checkpoint.h"
#include "engine_testing.h"
#include "tensor/checksum.h"

enum { SAVES = 3 }; /* the pairs at hand: of saves 0, 1 and 2 */

typedef struct content { char *bytes; size_t size; } content;

static char folder[] = "/tmp/amp_test_save_XXXXXX";
static network *net;
static content weights[SAVES], sidecars[SAVES];

static content bytes_of(const char *path)
{
    content c = { malloc(1 << 20), 0 };
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s is not there", path);
    c.size = fread(c.bytes, 1, 1 << 20, file);
    fclose(file);
    return c;
}

/* The first `size` bytes of c. */
static void put(const char *path, content c, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(c.bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static int holds(const char *path, content c)
{
    if (access(path, F_OK) != 0) return 0;
    content found = bytes_of(path);
    int same = found.size == c.size && !memcmp(found.bytes, c.bytes, c.size);
    free(found.bytes);
    return same;
}

static void clear(void)
{
    static const char *const names[] = { "w", "w.amp", "w.new", "w.amp.new", "link", "real", "real.amp", "real.new", "real.amp.new", "kept.amp" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (unlink(names[i]) != 0) rmdir(names[i]);
}

/* Save number `number`: what its files hold differs from any other's. */
static amp_status save_number(const char *name, unsigned number, amp_error *error)
{
    amp_checkpoint_save save;
    AMP_TRY(amp_checkpoint_begin(name, &save, error));
    *net->seen = number;
    amp_run_state run = { .seen = number };
    save_weights(net, save.weights.temporary);
    return amp_checkpoint_finish(&save, net->amp->engine, &run, error);
}

/* ---- the calls of a save, in the place of the library's ---- */

static int calls_left = -1;   /* a kill comes when this is 0 */
static char calls[1024];      /* what was flushed and renamed, in order */

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

/* The second half of what is written comes after the kill. */
ssize_t write(int file, const void *bytes, size_t size)
{
    may_be_killed();
    ssize_t half = calls_left >= 0 ? syscall(SYS_write, file, bytes, size / 2) : 0;
    may_be_killed();
    return half < 0 ? half : half + syscall(SYS_write, file, (const char *)bytes + half, size - (size_t)half);
}

static int make_pairs(void **state)
{
    (void)state;
    if (!mkdtemp(folder) || chdir(folder)) return -1;
    net = parse_branched("", "", "fp32");
    train_step(net, 1);
    for (unsigned i = 0; i < SAVES; i++) {
        if (save_number("w", i, NULL) != AMP_OK) return -1;
        weights[i] = bytes_of("w");
        sidecars[i] = bytes_of("w.amp");
    }
    clear();
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    clear();
    for (int i = 0; i < SAVES; i++) {
        free(weights[i].bytes);
        free(sidecars[i].bytes);
    }
    release(net);
    return chdir("/") || rmdir(folder);
}

/* ---- every point of a save ---- */

typedef enum old_files { OLD_NONE, OLD_WEIGHTS, OLD_PAIR, OLD_KINDS } old_files;

enum { POINTS = 8 }; /* 0 to 6 in the order of a save; 7: the second rename reached the disk without the first */

/* The folder when the save of pair 1 was killed at this point. */
static void make_killed(old_files old, int point)
{
    clear();
    if (old != OLD_NONE) put("w", weights[0], weights[0].size);
    if (old == OLD_PAIR) put("w.amp", sidecars[0], sidecars[0].size);
    if (point >= 1) put("w.new", weights[1], point == 1 ? weights[1].size / 2 : weights[1].size);
    if (point >= 3) put("w.amp.new", sidecars[1], point == 3 ? sidecars[1].size / 2 : sidecars[1].size);
    if (point == 5 || point == 6) assert_int_equal(rename("w.amp.new", "w.amp"), 0);
    if (point == 6 || point == 7) assert_int_equal(rename("w.new", "w"), 0);
}

/* Recovers, and checks that what is left is the pair `number`; -1: no sidecar, and the weights, if any, are the old ones. */
static void recovers_to(int number, old_files old, int renames)
{
    amp_error error;
    amp_checkpoint *c;
    char note[256];
    if (amp_checkpoint_recover("w", &c, note, &error) != AMP_OK) fail_msg("%s", error.message);
    if (number < 0) {
        assert_null(c);
        assert_true(old == OLD_NONE ? access("w", F_OK) != 0 : holds("w", weights[0]));
    } else {
        assert_non_null(c);
        assert_true(holds("w", weights[number]) && holds("w.amp", sidecars[number]));
        assert_int_equal(amp_checkpoint_run(c)->seen, number);
    }
    assert_int_equal(strstr(note, "killed between its two renames") != NULL, renames);
    if (!renames) assert_string_equal(note, "");
    amp_checkpoint_free(c);
}

static void a_save_killed_at_any_point_leaves_the_old_pair_or_the_new(void **state)
{
    (void)state;
    for (int old = OLD_NONE; old < OLD_KINDS; old++)
        for (int point = 0; point < POINTS; point++) {
            int before = old == OLD_PAIR ? 0 : -1, lasting = point >= 5;
            make_killed(old, point);
            recovers_to(lasting ? 1 : before, old, point == 5 || point == 7);
            recovers_to(lasting ? 1 : before, old, 0); /* nothing is left to do */
        }
}

/* The next save begins in such a folder, and is killed or given up in its turn before it renamed anything. */
static void a_save_that_begins_after_a_killed_one_loses_nothing(void **state)
{
    (void)state;
    for (int old = OLD_NONE; old < OLD_KINDS; old++)
        for (int point = 0; point < POINTS; point++)
            for (int given_up = 0; given_up < 2; given_up++) {
                amp_checkpoint_save save;
                make_killed(old, point);
                assert_int_equal(amp_checkpoint_begin("w", &save, NULL), AMP_OK);
                put("w.new", weights[2], weights[2].size / 3);
                if (given_up) amp_checkpoint_cancel(&save);
                recovers_to(point >= 5 ? 1 : old == OLD_PAIR ? 0 : -1, old, 0);
                if (!given_up) amp_checkpoint_cancel(&save);
                assert_int_equal(access("w.new", F_OK), -1);
                assert_int_equal(access("w.amp.new", F_OK), -1);
            }
}

static void a_save_after_a_killed_one_succeeds(void **state)
{
    (void)state;
    for (int old = OLD_NONE; old < OLD_KINDS; old++)
        for (int point = 0; point < POINTS; point++) {
            make_killed(old, point);
            assert_int_equal(save_number("w", 2, NULL), AMP_OK);
            recovers_to(2, old, 0);
            assert_int_equal(access("w.new", F_OK), -1);
            assert_int_equal(access("w.amp.new", F_OK), -1);
        }
}

/* ---- what recovering must not touch ---- */

static void refuses(const char *reason)
{
    amp_error error = { 0 };
    amp_checkpoint *c = (void *)&error;
    char note[256];
    assert_int_equal(amp_checkpoint_recover("w", &c, note, &error), AMP_BAD_CHECKPOINT);
    assert_null(c);
    if (!strstr(error.message, reason) || !strstr(error.message, "remove it to start with a fresh loss scale") || strchr(error.message, '\n'))
        fail_msg("\"%s\" does not say \"%s\"", error.message, reason);
}

static void a_sidecar_of_other_weights_is_refused(void **state)
{
    (void)state;
    clear();
    put("w", weights[1], weights[1].size);
    put("w.amp", sidecars[0], sidecars[0].size);
    refuses("w.amp: it belongs to other weights than w");
    put("w.new", weights[2], weights[2].size);
    put("w.amp.new", sidecars[2], sidecars[2].size);
    refuses("w.amp: it belongs to other weights than w");
    assert_true(holds("w", weights[1]) && holds("w.amp", sidecars[0]) && holds("w.new", weights[2]) && holds("w.amp.new", sidecars[2]));
    put("w.amp", sidecars[1], sidecars[1].size / 2);
    refuses("w.amp: it is cut off");
}

/* Between the renames a save was killed, and then somebody went on without AMP: those weights are not replaced. */
static void weights_written_after_a_killed_save_are_kept(void **state)
{
    (void)state;
    make_killed(OLD_PAIR, 5);
    struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = time(NULL) + 100 } };
    put("w", weights[2], weights[2].size);
    assert_int_equal(utimensat(AT_FDCWD, "w", times, 0), 0);
    refuses("w.new, which a killed save left, but w was written after that");
    assert_true(holds("w", weights[2]) && holds("w.amp", sidecars[1]) && holds("w.new", weights[1]));
    assert_int_equal(rename("w.new", "w"), 0); /* as the message says */
    recovers_to(1, OLD_PAIR, 0);
}

static void weights_without_a_sidecar_load(void **state)
{
    (void)state;
    clear();
    put("w", weights[0], weights[0].size);
    recovers_to(-1, OLD_WEIGHTS, 0);
    clear();
    recovers_to(-1, OLD_NONE, 0);
    put("w.amp", sidecars[0], sidecars[0].size); /* the weights were removed: the host says so when it opens them */
    recovers_to(-1, OLD_NONE, 0);
    amp_checkpoint *c;
    char note[256];
    assert_int_equal(amp_checkpoint_recover("/dev/null", &c, note, NULL), AMP_OK);
    assert_null(c);
}

/* ---- saves that fail ---- */

static void a_full_disk_keeps_the_pair_before(void **state)
{
    (void)state;
    struct rlimit old, tight;
    amp_error error;
    clear();
    assert_int_equal(save_number("w", 0, NULL), AMP_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_IGN);
    for (size_t limit = weights[0].size; limit < sidecars[0].size; limit += 97) {
        tight = (struct rlimit){ (rlim_t)limit, old.rlim_max };
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
        amp_status status = save_number("w", 1, &error);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        assert_int_equal(status, AMP_IO_FAILED);
        assert_string_equal(error.message, "cannot write w.amp.new: File too large");
        assert_true(holds("w", weights[0]) && holds("w.amp", sidecars[0]));
        assert_int_equal(access("w.new", F_OK), -1);
        assert_int_equal(access("w.amp.new", F_OK), -1);
    }
    assert_true(weights[0].size + 97 < sidecars[0].size);
}

static void a_state_with_nan_keeps_the_pair_before(void **state)
{
    (void)state;
    int count;
    amp_error error;
    clear();
    assert_int_equal(save_number("w", 0, NULL), AMP_OK);
    const amp_param *p = amp_engine_params(net->amp->engine, &count);
    float good = p[1].master[0];
    p[1].master[0] = NAN;
    assert_int_equal(save_number("w", 1, &error), AMP_DIVERGED);
    p[1].master[0] = good;
    assert_true(holds("w", weights[0]) && holds("w.amp", sidecars[0]));
    assert_int_equal(access("w.new", F_OK), -1);
}

static void a_save_that_cannot_begin_says_why(void **state)
{
    (void)state;
    amp_error error;
    clear();
    assert_int_equal(save_number("none/w", 0, &error), AMP_IO_FAILED);
    assert_string_equal(error.message, "cannot write none/w.new: No such file or directory");
    assert_int_equal(mkdir("w.amp", 0700), 0);
    assert_int_equal(save_number("w", 0, &error), AMP_IO_FAILED);
    assert_string_equal(error.message, "cannot write w.amp: Is a directory");
    assert_int_equal(access("w.new", F_OK), -1);
}

/* NAME cannot be replaced once its sidecar is: the new weights stay where recovering and the next save find them. */
static void weights_that_cannot_be_placed_are_kept_beside(void **state)
{
    (void)state;
    amp_error error;
    amp_checkpoint_save save;
    clear();
    assert_int_equal(amp_checkpoint_begin("w", &save, &error), AMP_OK);
    *net->seen = 1;
    amp_run_state run = { .seen = 1 };
    save_weights(net, save.weights.temporary);
    assert_int_equal(mkdir("w", 0700), 0);
    assert_int_equal(amp_checkpoint_finish(&save, net->amp->engine, &run, &error), AMP_IO_FAILED);
    assert_string_equal(error.message, "cannot rename w.new to w: Is a directory; the checkpoint is whole in w.new");
    assert_true(holds("w.new", weights[1]) && holds("w.amp", sidecars[1]));
    assert_int_equal(rmdir("w"), 0);
    recovers_to(1, OLD_NONE, 1);
}

/* ---- names ---- */

static void a_link_stays_and_the_pair_lies_beside_its_target(void **state)
{
    (void)state;
    amp_checkpoint *c;
    char note[256];
    clear();
    assert_int_equal(symlink("real", "link"), 0);
    assert_int_equal(save_number("link", 0, NULL), AMP_OK);
    assert_int_equal(save_number("link", 1, NULL), AMP_OK);
    assert_true(holds("real", weights[1]) && holds("real.amp", sidecars[1]));
    struct stat info;
    assert_int_equal(lstat("link", &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(amp_checkpoint_recover("link", &c, note, NULL), AMP_OK);
    assert_non_null(c);
    amp_checkpoint_free(c);
    assert_int_equal(access("link.amp", F_OK), -1);
}

static void a_fifo_is_written_directly_without_a_sidecar(void **state)
{
    (void)state;
    amp_checkpoint_save save;
    clear();
    assert_int_equal(mkfifo("w", 0600), 0);
    amp_run_state run = { 0 };
    assert_int_equal(amp_checkpoint_begin("w", &save, NULL), AMP_OK);
    assert_true(save.weights.direct);
    assert_string_equal(save.weights.temporary, "w");
    assert_int_equal(amp_checkpoint_finish(&save, net->amp->engine, &run, NULL), AMP_OK);
    assert_int_equal(access("w.amp", F_OK), -1);
    assert_int_equal(access("w.new", F_OK), -1);
}

/* ---- real kills ---- */

/* Nothing is renamed before it is on the disk, and the second rename waits until the first is. */
static void what_is_renamed_is_on_the_disk(void **state)
{
    (void)state;
    char expected[256];
    clear();
    calls[0] = 0;
    assert_int_equal(save_number("w", 0, NULL), AMP_OK);
    const char *name = strrchr(folder, '/') + 1;
    snprintf(expected, sizeof expected, "flush w.new\nflush w.amp.new\nrename w.amp\nflush %s\nrename w\nflush %s\n", name, name);
    assert_string_equal(calls, expected);
}

/* Save number 1 over the old files, killed at call number `call`; 0: it was over before. */
static int save_is_killed(int call)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        fclose(stderr);
        calls_left = call;
        if (save_number("w", 1, NULL) != AMP_OK) _exit(2);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) assert_int_equal(WEXITSTATUS(status), 0);
    return WIFSIGNALED(status);
}

static void a_save_killed_at_any_call_leaves_the_old_pair_or_the_new(void **state)
{
    (void)state;
    for (int old = OLD_NONE; old < OLD_KINDS; old++)
        for (int leftovers = 0; leftovers < 2; leftovers++) {
            int call = 0, killed = 1, is_new = 0;
            for (; killed; call++) {
                make_killed(old, leftovers ? 4 : 0);
                killed = save_is_killed(call);
                int renamed = holds("w.amp", sidecars[1]);
                assert_true(renamed >= is_new); /* calls come in order: once new, always new */
                is_new = renamed;
                recovers_to(is_new ? 1 : old == OLD_PAIR ? 0 : -1, old, is_new && !holds("w", weights[1]));
            }
            assert_true(is_new && call > 12);
        }
}

_Noreturn static void save_for_ever(unsigned from)
{
    fclose(stderr);
    for (unsigned n = from;; n++)
        if (save_number("w", n, NULL) != AMP_OK) _exit(1);
}

/* Whether recovered weights and sidecar are of one save; which one goes to *number. */
static int pair_matches(const amp_checkpoint *c, uint64_t *number)
{
    content w = bytes_of("w");
    uint64_t sum = amp_checksum_of(w.bytes, w.size);
    memcpy(number, w.bytes + 3 * sizeof(int), sizeof *number); /* .weights: three ints, then seen */
    free(w.bytes);
    return sum == amp_checkpoint_weights(c) && amp_checkpoint_run(c)->seen == *number;
}

static long nanoseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Each within the first three saves of a child, however fast this disk is. */
static void saves_killed_at_random_moments_leave_a_pair(void **state)
{
    (void)state;
    unsigned random = 12345, next = 10;
    uint64_t number = 0;
    int renames = 0, progress = 0;
    clear();
    long began = nanoseconds();
    for (int i = 0; i < 4; i++) assert_int_equal(save_number("w", next, NULL), AMP_OK);
    long save_time = (nanoseconds() - began) / 4;
    for (int kill_number = 0; kill_number < 60; kill_number++) {
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) save_for_ever(next + 1);
        random = random * 1664525u + 1013904223u;
        long wait = (long)(3.0 * (double)save_time * (random >> 8) / 16777216) + 1000000;
        nanosleep(&(struct timespec){ wait / 1000000000, wait % 1000000000 }, NULL);
        kill(child, SIGKILL);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        amp_error error;
        amp_checkpoint *c;
        char note[256];
        if (amp_checkpoint_recover("w", &c, note, &error) != AMP_OK) fail_msg("kill %d: %s", kill_number, error.message);
        assert_non_null(c);
        assert_true(pair_matches(c, &number));
        amp_checkpoint_free(c);
        assert_true(number >= next); /* what was saved before the child began is not lost */
        progress += number > next;
        renames += note[0] != 0;
        next = (unsigned)number;
    }
    print_message("60 kills, %u saves, %d of them ended by recovering\n", next - 10, renames);
    assert_true(progress > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_save_killed_at_any_point_leaves_the_old_pair_or_the_new),
        cmocka_unit_test(a_save_that_begins_after_a_killed_one_loses_nothing),
        cmocka_unit_test(a_save_after_a_killed_one_succeeds),
        cmocka_unit_test(a_sidecar_of_other_weights_is_refused),
        cmocka_unit_test(weights_written_after_a_killed_save_are_kept),
        cmocka_unit_test(weights_without_a_sidecar_load),
        cmocka_unit_test(a_full_disk_keeps_the_pair_before),
        cmocka_unit_test(a_state_with_nan_keeps_the_pair_before),
        cmocka_unit_test(a_save_that_cannot_begin_says_why),
        cmocka_unit_test(weights_that_cannot_be_placed_are_kept_beside),
        cmocka_unit_test(a_link_stays_and_the_pair_lies_beside_its_target),
        cmocka_unit_test(a_fifo_is_written_directly_without_a_sidecar),
        cmocka_unit_test(what_is_renamed_is_on_the_disk),
        cmocka_unit_test(a_save_killed_at_any_call_leaves_the_old_pair_or_the_new),
        cmocka_unit_test(saves_killed_at_random_moments_leave_a_pair),
    };
    return cmocka_run_group_tests_name("checkpoint save", tests, make_pairs, remove_folder);
}
