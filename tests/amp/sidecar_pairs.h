/* Pairs of weights and sidecar, and the folders after killed saves. Include CMocka first. */
#ifndef SIDECAR_PAIRS_H
#define SIDECAR_PAIRS_H

#include <fcntl.h>

#include "amp/sidecar.h"
#include "engine_testing.h"
#include "stock_weights.h"
#include "test_folder.h"

enum { SAVES = 3 }; /* the existing pairs: of saves 0, 1 and 2 */

typedef struct content { char *bytes; size_t size; } content;

static network *net;
static content weights[SAVES], sidecars[SAVES];

static content content_of(const char *path)
{
    content c;
    c.bytes = file_bytes(path, &c.size);
    return c;
}

/* The first `size` bytes of c. */
static void put(const char *path, content c, size_t size) { put_bytes(path, c.bytes, size); }

static inline int holds(const char *path, content c)
{
    if (access(path, F_OK) != 0) return 0;
    content found = content_of(path);
    int same = found.size == c.size && !memcmp(found.bytes, c.bytes, c.size);
    free(found.bytes);
    return same;
}

static inline void clear(void)
{
    static const char *const names[] = { "w", "w.amp", "w.new", "w.amp.new", "link", "real", "real.amp",
                                         "real.new", "real.amp.new", "kept.amp" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (unlink(names[i]) != 0) rmdir(names[i]);
}

/* Makes save number `number`: its files' contents differ from those of all other saves. */
static inline amp_status save_number(const char *name, unsigned number, amp_error *error)
{
    amp_sidecar_save save;
    AMP_TRY(amp_sidecar_begin(name, &save, error));
    *net->seen = number;
    amp_run_state run = { .seen = number };
    save_stock_weights(net, save.weights.temporary);
    return amp_sidecar_finish(&save, net->amp->engine, &run, error);
}

static inline int make_pairs(void **state)
{
    if (enter_folder(state)) return -1;
    net = parse_branched("", "", "fp32");
    train_step(net, 1);
    for (unsigned i = 0; i < SAVES; i++) {
        if (save_number("w", i, NULL) != AMP_OK) return -1;
        weights[i] = content_of("w");
        sidecars[i] = content_of("w.amp");
    }
    clear();
    return 0;
}

static inline int remove_folder(void **state)
{
    for (int i = 0; i < SAVES; i++) {
        free(weights[i].bytes);
        free(sidecars[i].bytes);
    }
    release(net);
    return leave_folder(state);
}

/* ---- every point of a save ---- */

typedef enum old_files { OLD_NONE, OLD_WEIGHTS, OLD_PAIR, OLD_KINDS } old_files;

/* 0 to 6 are in the order of a save; 7: the second rename reached the disk without the first. */
enum { POINTS = 8 };

/* Creates the folder as it is when the save of pair 1 is killed at this point. */
static inline void make_killed(old_files old, int point)
{
    clear();
    if (old != OLD_NONE) put("w", weights[0], weights[0].size);
    if (old == OLD_PAIR) put("w.amp", sidecars[0], sidecars[0].size);
    if (point >= 1) put("w.new", weights[1], point == 1 ? weights[1].size / 2 : weights[1].size);
    if (point >= 3) put("w.amp.new", sidecars[1], point == 3 ? sidecars[1].size / 2 : sidecars[1].size);
    if (point == 5 || point == 6) assert_int_equal(rename("w.amp.new", "w.amp"), 0);
    if (point == 6 || point == 7) assert_int_equal(rename("w.new", "w"), 0);
}

/* Whether all of pair 1 was on disk, so that recovery completes its save. */
static inline int is_ended(old_files old, int point)
{
    return point == 5 || point == 7 || (point == 4 && old == OLD_NONE);
}

static inline void assert_no_leftovers(void)
{
    assert_int_equal(access("w.new", F_OK), -1);
    assert_int_equal(access("w.amp.new", F_OK), -1);
}

/* Recovers, and checks that the result is pair `number`; -1: no sidecar, and the weights, if any, are the old
 * ones. */
static inline void recovers_to(int number, old_files old, int renames)
{
    amp_error error;
    amp_sidecar *c;
    char note[256];
    if (amp_sidecar_recover("w", &c, note, &error) != AMP_OK) fail_msg("%s", error.message);
    if (number < 0) {
        assert_null(c);
        assert_true(old == OLD_NONE ? access("w", F_OK) != 0 : holds("w", weights[0]));
    } else {
        assert_non_null(c);
        assert_true(holds("w", weights[number]) && holds("w.amp", sidecars[number]));
        assert_int_equal(amp_sidecar_run(c)->seen, number);
        assert_no_leftovers();
    }
    assert_int_equal(strstr(note, "w.amp: completed a save that was killed") ||
                         strstr(note, "w.amp.new: completed a save that was killed"),
                     renames);
    if (!renames) assert_string_equal(note, "");
    amp_sidecar_free(c);
}

#endif
