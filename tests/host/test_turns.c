/* Programs in turns: this very program, started with other arguments, is the players. */
#include "testing.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "commands/run_in_turns.h"
#include "host/program/turns.h"
#include "test_folder.h"

enum { PLAYERS = 3, MOST_LINES = 4000 };

/* ---- a player: `play NAME STEPS MILLISECONDS` ---- */

static void sleep_ms(long ms)
{
    struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
    while (nanosleep(&t, &t)) {}
}

static int play(int argc, char **argv)
{
    amp_error error;
    if (argc < 5 || amp_turns_take(&error) != AMP_OK || !amp_turns_taken() || getenv(AMP_TURNS)) return 90;
    int steps = atoi(argv[3]);
    printf("%s says hello\n", argv[2]);
    fflush(stdout);
    if (!strcmp(argv[2], "dies")) abort();
    int stop = amp_turns_ready();
    for (int i = 0; i < steps && !stop; i++) {
        char line[64];
        sleep_ms(atol(argv[4]));
        if (!strcmp(argv[2], "fails") && i == 2) return 7;
        snprintf(line, sizeof line, "step %d %.9f", i, amp_turns_waited());
        stop = amp_turns_yield("%s", line);
    }
    amp_turns_send("result 42");
    return stop ? 3 : 0;
}

/* ---- the watcher ---- */

typedef struct seen {
    int who[MOST_LINES], lines, steps[PLAYERS], results[PLAYERS], ended;
    amp_turns_end ends[PLAYERS];
    int fail_at, stop_at;
} seen;

static int stop;
static int is_stopped(void) { return stop; }

static amp_status on_line(void *context, int program, const char *line, amp_error *error)
{
    seen *s = context;
    if (!strcmp(line, "result 42")) {
        s->results[program]++;
        return AMP_OK;
    }
    assert_int_equal(strncmp(line, "step ", 5), 0);
    assert_int_equal(atoi(line + 5), s->steps[program]); /* none lost, none twice, in order */
    s->steps[program]++;
    s->who[s->lines++] = program;
    if (s->stop_at && s->lines == s->stop_at) stop = 1;
    if (s->fail_at && s->lines == s->fail_at)
        return amp_fail(error, AMP_IO_FAILED, "the watcher has had enough");
    return AMP_OK;
}

static amp_status on_end(void *context, int program, const amp_turns_end *end, amp_error *error)
{
    seen *s = context;
    (void)error;
    s->ends[program] = *end;
    s->ended++;
    return AMP_OK;
}

static const char *const a[] = { "play", "a", "40", "5", NULL },
    *const b[] = { "play", "b", "40", "5", NULL },
    *const c[] = { "play", "c", "8", "5", NULL },
    *const dies[] = { "play", "dies", "40", "5", NULL },
    *const fails[] = { "play", "fails", "40", "5", NULL };

static void add(amp_turns_program *program, const char *const *words)
{
    while (*words) amp_turns_add(program, *words++, NULL);
}

static amp_status run(seen *s, const char *const *first, const char *const *second, const char *const *third,
                      double slice, amp_error *error)
{
    amp_turns_program programs[PLAYERS] = { { .output = "turns-first.out" } };
    add(&programs[0], first);
    if (second) add(&programs[1], second);
    if (third) add(&programs[2], third);
    amp_turns_watcher watcher = { s, on_line, on_end };
    stop = 0;
    return amp_turns_run(programs, third ? 3 : second ? 2 : 1, slice, is_stopped, &watcher, error);
}

static int changes(const seen *s)
{
    int count = 0;
    for (int i = 1; i < s->lines; i++) count += s->who[i] != s->who[i - 1];
    return count;
}

/* ---- tests ---- */

/* Steps of at least 5 ms in slices of 50 ms: a slice holds ten of them or a few more, so that 40 take several
 * slices; and no turn ends before its slice but by its program's end. On a busy machine steps take longer,
 * and so does the whole. */
TEST(one_works_for_a_slice_then_the_next_and_all_steps_are_seen)
{
    seen s = { 0 };
    amp_error error;
    struct timespec began, ended;
    clock_gettime(CLOCK_MONOTONIC, &began);
    assert_int_equal(run(&s, a, b, c, .05, &error), AMP_OK);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    double seconds = (double)(ended.tv_sec - began.tv_sec) + 1e-9 * (double)(ended.tv_nsec - began.tv_nsec);
    assert_true(changes(&s) >= 4);
    assert_true(changes(&s) <= seconds / .05 + PLAYERS);
    assert_int_equal(s.ended, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(s.steps[i], i < 2 ? 40 : 8);
        assert_true(s.ends[i].exited && s.ends[i].status == 0 && !s.ends[i].stopped);
        assert_int_equal(s.results[i], 1);
    }
}

TEST(a_slice_of_nothing_is_one_step_each)
{
    seen s = { 0 };
    amp_error error;
    assert_int_equal(run(&s, a, b, NULL, 0, &error), AMP_OK);
    assert_in_range(changes(&s), 70, 79); /* strictly in turns while both are there */
}

TEST(a_failure_does_not_stop_the_others)
{
    seen s = { 0 };
    amp_error error;
    assert_int_equal(run(&s, dies, fails, a, .01, &error), AMP_OK);
    assert_true(!s.ends[0].exited && s.ends[0].status == SIGABRT);
    assert_true(s.ends[1].exited && s.ends[1].status == 7);
    assert_true(s.ends[2].exited && s.ends[2].status == 0);
    assert_int_equal(s.steps[2], 40);
}

TEST(stop_reaches_all_at_their_next_line)
{
    seen s = { .stop_at = 10 };
    amp_error error;
    assert_int_equal(run(&s, a, b, NULL, .01, &error), AMP_OK);
    for (int i = 0; i < 2; i++) assert_true(s.ends[i].exited && s.ends[i].status == 3 && s.ends[i].stopped);
    assert_in_range(s.lines, 10, 13);
    assert_int_equal(s.results[0] + s.results[1], 2); /* they end in good order */
}

TEST(a_watcher_that_fails_stops_all_and_is_heard)
{
    seen s = { .fail_at = 5 };
    amp_error error;
    assert_int_equal(run(&s, a, b, NULL, .01, &error), AMP_IO_FAILED);
    assert_string_equal(error.message, "the watcher has had enough");
    assert_int_equal(s.ended, 2);
}

/* Nobody watches it, as a training's first check does not. */
TEST(a_program_that_takes_too_long_is_killed)
{
    static const char *const slow[] = { "play", "a", "1", "600000", NULL };
    static const amp_turns_watcher nobody;
    amp_turns_program program = { .most_seconds = .2 };
    amp_error error;
    add(&program, slow);
    assert_int_equal(amp_turns_run(&program, 1, 0, NULL, &nobody, &error), AMP_OK);
    assert_true(!program.end.exited && program.end.status == SIGKILL);
}

TEST(one_program_alone_runs_and_its_output_goes_to_its_file)
{
    seen s = { 0 };
    amp_error error;
    char text[64] = "";
    assert_int_equal(run(&s, a, NULL, NULL, .01, &error), AMP_OK);
    assert_int_equal(s.steps[0], 40);
    FILE *file = fopen("turns-first.out", "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    unlink("turns-first.out");
    assert_string_equal(text, "a says hello\n");
}

TEST(an_output_that_cannot_be_written_starts_nothing)
{
    seen s = { 0 };
    amp_error error;
    amp_turns_program programs[2] = { [1] = { .output = "no/such/folder/out" } };
    amp_turns_watcher watcher = { &s, on_line, on_end };
    add(&programs[0], a);
    add(&programs[1], b);
    assert_int_equal(amp_turns_run(programs, 2, .01, NULL, &watcher, &error), AMP_IO_FAILED);
    assert_non_null(strstr(error.message, "no/such/folder/out"));
    assert_int_equal(s.lines, 0);
}

TEST(descriptors_that_are_not_open_are_refused)
{
    static const char *const bad[] = { "", "3", "x,y", "900,901", "0", "0,", ",1", "0,1x", "-1,1",
                                       "99999999999,1" };
    amp_error error;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(setenv(AMP_TURNS, bad[i], 1), 0);
        assert_int_equal(amp_turns_take(&error), AMP_BAD_CONFIG);
    }
    unsetenv(AMP_TURNS);
    assert_int_equal(amp_turns_take(&error), AMP_OK);
    assert_false(amp_turns_taken());
    assert_int_equal(amp_turns_yield("nobody listens"), 0);
}

/* The last line of a program's output that can be the reason why it failed. */
TEST_WITH(what_every_training_prints_at_its_end_is_no_reason, enter_folder, leave_folder)
{
    char words[512];
    put_file("log", "amp: backup/a_final.weights could not be written: No space left on device\n"
                    "amp: summary dtype=fp32 steps=2\n 2: 0.5, 0.5 avg\n"
                    "amp: cache=disk: 8 of 8 images were kept, 0.1 MiB\n"
                    "amp: loading is slower than computing: 1 core\n");
    amp_turns_last_message("log", NULL, words, sizeof words);
    assert_string_equal(words, "backup/a_final.weights could not be written: No space left on device");
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "play")) return play(argc, argv);
    return run_listed_tests("tests", NULL, NULL);
}
