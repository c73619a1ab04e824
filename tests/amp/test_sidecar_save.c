/* Weights and sidecar are saved as a pair: wherever a save is killed, there is a matching pair, old or new.
 * Each point is a state of the folder, constructed here; test_sidecar_kill.c really kills, and reads what is
 * left. */
#define _DEFAULT_SOURCE /* mkstemps, mkdtemp */
#include "testing.h"

#include <time.h>

#include "sidecar_pairs.h"

/* What recovery finds after a save that was killed at this point. */
static int pair_left(int old, int point)
{
    return point >= 5 || is_ended(old, point) ? 1 : old == OLD_PAIR ? 0 : -1;
}

/* The next save starts in this folder. It is itself killed or cancelled before it has renamed anything, or
 * succeeds. */
TEST(a_save_that_begins_after_a_killed_one_loses_nothing)
{
    for (int old = OLD_NONE; old < OLD_KINDS; old++)
        for (int point = 0; point < POINTS; point++) {
            for (int given_up = 0; given_up < 2; given_up++) {
                amp_sidecar_save save;
                make_killed(old, point);
                assert_int_equal(amp_sidecar_begin("w", &save, NULL), AMP_OK);
                put("w.new", weights[2], weights[2].size / 3);
                if (given_up) amp_sidecar_cancel(&save);
                if (!given_up) { /* killed */
                    amp_safe_file_leave(&save.weights);
                    amp_safe_file_leave(&save.sidecar);
                }
                recovers_to(pair_left(old, point), old, 0);
                if (!given_up) amp_sidecar_cancel(&save);
            }
            make_killed(old, point);
            assert_int_equal(save_number("w", 2, NULL), AMP_OK);
            recovers_to(2, old, 0);
        }
}

/* What a training finds under the names that it saves to. */
TEST(a_killed_save_is_ended_or_removed)
{
    for (int old = OLD_NONE; old < OLD_KINDS; old++)
        for (int point = 0; point < POINTS; point++) {
            char note[256];
            amp_error error;
            make_killed(old, point);
            int removed = old == OLD_NONE && point >= 1 && point <= 3;
            if (amp_sidecar_recover("w", NULL, note, &error) != AMP_OK) fail_msg("%s", error.message);
            assert_no_leftovers();
            assert_int_equal(strstr(note, ": completed a save that was killed") != NULL, is_ended(old,
                                          point));
            assert_int_equal(
                !strcmp(note,
                        "w.new: removed, since a training was killed before this file was complete"),
                removed);
            if (!removed && !is_ended(old, point)) assert_string_equal(note, "");
            recovers_to(pair_left(old, point), old, 0);
        }
}

/* ---- what recovery must not change ---- */

static void refuses(const char *reason)
{
    amp_error error = { 0 };
    amp_sidecar *c = (void *)&error;
    char note[256];
    assert_int_equal(amp_sidecar_recover("w", &c, note, &error), AMP_BAD_SIDECAR);
    assert_null(c);
    if (!strstr(error.message, reason) || !strstr(error.message, "remove the sidecar to start with a fresh")
        || strchr(error.message, '\n'))
        fail_msg("\"%s\" does not say \"%s\"", error.message, reason);
}

TEST(a_sidecar_of_other_weights_is_refused)
{
    clear();
    put("w", weights[1], weights[1].size);
    put("w.amp", sidecars[0], sidecars[0].size);
    refuses("w.amp: this sidecar does not belong to w");
    put("w.new", weights[2], weights[2].size);
    put("w.amp.new", sidecars[2], sidecars[2].size);
    refuses("w.amp: this sidecar does not belong to w");
    assert_true(holds("w", weights[1]) && holds("w.amp", sidecars[0]) && holds("w.new", weights[2])
                && holds("w.amp.new", sidecars[2]));
    put("w.amp", sidecars[1], sidecars[1].size / 2);
    refuses("w.amp: it is cut off");
}

/* A save was killed between the renames, and then a training continued without AMP: its weights are not
 * replaced. */
TEST(weights_written_after_a_killed_save_are_kept)
{
    make_killed(OLD_PAIR, 5);
    struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = time(NULL) + 100 } };
    put("w", weights[2], weights[2].size);
    assert_int_equal(utimensat(AT_FDCWD, "w", times, 0), 0);
    refuses("w.new, which an interrupted save left behind; w is newer");
    assert_true(holds("w", weights[2]) && holds("w.amp", sidecars[1]) && holds("w.new", weights[1]));
    assert_int_equal(rename("w.new", "w"), 0); /* as the message advises */
    recovers_to(1, OLD_PAIR, 0);
}

/* Another program is between its two renames: it will complete its save itself. */
TEST(a_save_under_way_is_not_ended_for_it)
{
    amp_sidecar_save first, second;
    amp_sidecar *c;
    amp_error error;
    char note[256];
    clear();
    put("w", weights[0], weights[0].size);
    put("w.amp", sidecars[0], sidecars[0].size);
    assert_int_equal(amp_sidecar_begin("w", &first, &error), AMP_OK);
    put("w.new", weights[1], weights[1].size);
    put("w.amp", sidecars[1], sidecars[1].size);
    assert_int_equal(amp_sidecar_recover("w", &c, note, &error), AMP_IO_FAILED);
    assert_string_equal(error.message, "w: another program is saving it now; start again when that is done");
    assert_int_equal(amp_sidecar_begin("w", &second, &error), AMP_IO_FAILED);
    assert_non_null(strstr(error.message, "w.new: another program is writing it"));
    assert_true(holds("w", weights[0]) && holds("w.amp", sidecars[1]) && holds("w.new", weights[1]));
    amp_safe_file_leave(&first.weights); /* killed */
    amp_sidecar_cancel(&first);
    recovers_to(1, OLD_PAIR, 1);

    /* Another program has not renamed anything yet, and there is no older file. */
    for (int whole = 0; whole < 2; whole++) {
        clear();
        assert_int_equal(amp_sidecar_begin("w", &first, &error), AMP_OK);
        put("w.new", weights[1], weights[1].size);
        put("w.amp.new", sidecars[1], whole ? sidecars[1].size : 8);
        assert_int_equal(amp_sidecar_recover("w", NULL, note, &error), whole ? AMP_IO_FAILED : AMP_OK);
        if (whole)
            assert_string_equal(error.message,
                                "w: another program is saving it now; start again when that is done");
        assert_string_equal(note, "");
        assert_true(holds("w.new", weights[1]) && access("w.amp.new", F_OK) == 0);
        amp_sidecar_cancel(&first);
    }
}

TEST(weights_without_a_sidecar_load)
{
    clear();
    put("w", weights[0], weights[0].size);
    recovers_to(-1, OLD_WEIGHTS, 0);
    clear();
    recovers_to(-1, OLD_NONE, 0);
    /* The weights were removed: the host reports that when it opens them. */
    put("w.amp", sidecars[0], sidecars[0].size);
    recovers_to(-1, OLD_NONE, 0);
    amp_sidecar *c;
    char note[256];
    assert_int_equal(amp_sidecar_recover("/dev/null", &c, note, NULL), AMP_OK);
    assert_null(c);
}

/* ---- saves that fail ---- */

TEST(a_save_that_cannot_begin_says_why)
{
    amp_error error;
    clear();
    assert_int_equal(save_number("none/w", 0, &error), AMP_IO_FAILED);
    assert_string_equal(error.message, "cannot write none/w.new: No such file or directory");
    assert_int_equal(mkdir("w.amp", 0700), 0);
    assert_int_equal(save_number("w", 0, &error), AMP_IO_FAILED);
    assert_string_equal(error.message, "w.amp: Is a directory");
    assert_int_equal(access("w.new", F_OK), -1);
}

/* NAME cannot be replaced after its sidecar was: the new weights stay where recovery and the next save find
 * them. */
TEST(weights_that_cannot_be_placed_are_kept_beside)
{
    amp_error error;
    amp_sidecar_save save;
    clear();
    assert_int_equal(amp_sidecar_begin("w", &save, &error), AMP_OK);
    *net->seen = 1;
    amp_run_state run = { .seen = 1 };
    save_stock_weights(net, save.weights.temporary);
    assert_int_equal(mkdir("w", 0700), 0);
    assert_int_equal(amp_sidecar_finish(&save, net->amp->engine, &run, &error), AMP_IO_FAILED);
    assert_string_equal(error.message,
                        "cannot rename w.new to w: Is a directory; the complete weights are in w.new");
    assert_true(holds("w.new", weights[1]) && holds("w.amp", sidecars[1]));
    assert_int_equal(rmdir("w"), 0);
    recovers_to(1, OLD_NONE, 1);
}

/* ---- names ---- */

TEST(a_link_stays_and_the_pair_lies_beside_its_target)
{
    amp_sidecar *c;
    char note[256];
    clear();
    assert_int_equal(symlink("real", "link"), 0);
    assert_int_equal(save_number("link", 0, NULL), AMP_OK);
    assert_int_equal(save_number("link", 1, NULL), AMP_OK);
    assert_true(holds("real", weights[1]) && holds("real.amp", sidecars[1]));
    struct stat info;
    assert_int_equal(lstat("link", &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(amp_sidecar_recover("link", &c, note, NULL), AMP_OK);
    assert_non_null(c);
    amp_sidecar_free(c);
    assert_int_equal(access("link.amp", F_OK), -1);
}

TEST(a_fifo_is_written_directly_without_a_sidecar)
{
    amp_sidecar_save save;
    clear();
    assert_int_equal(mkfifo("w", 0600), 0);
    amp_run_state run = { 0 };
    assert_int_equal(amp_sidecar_begin("w", &save, NULL), AMP_OK);
    assert_true(save.weights.direct);
    assert_string_equal(save.weights.temporary, "w");
    assert_int_equal(amp_sidecar_finish(&save, net->amp->engine, &run, NULL), AMP_OK);
    assert_int_equal(access("w.amp", F_OK), -1);
    assert_int_equal(access("w.new", F_OK), -1);
}

int main(void) { return run_listed_tests("sidecar save", make_pairs, remove_folder); }
