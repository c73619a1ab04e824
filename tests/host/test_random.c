/* -seed N: a loading job's part draws the same numbers whichever thread runs it and whenever;
 * without, rand() does. */
#include "testing.h"

#include "darknet_amp.h"
#include "host/program/random.h"
#include "threads.h"

enum { DRAWS = 1000 };

struct part {
    unsigned long job;
    int part;
    int draws[DRAWS];
};

static void *draw(void *pointer)
{
    struct part *p = pointer;
    amp_random_begin_job(p->job, p->part);
    for (int i = 0; i < DRAWS; i++) p->draws[i] = darknet_amp_rand();
    return NULL;
}

static struct part drawn(unsigned long job, int part)
{
    struct part p = { job, part, { 0 } };
    in_threads(draw, &p, 0, 1);
    return p;
}

static int same(struct part a, struct part b) { return !memcmp(a.draws, b.draws, sizeof a.draws); }

TEST(without_a_seed_it_is_the_c_library)
{
    srand(5);
    int expected = rand();
    srand(5);
    assert_int_equal(drawn(1, 0).draws[0], expected);
    unsigned char none[AMP_HOST_RANDOM_BYTES];
    assert_false(amp_random_save(none));
}

TEST(a_part_of_a_job_is_a_stream)
{
    amp_random_set_seed(7);
    assert_int_equal(darknet_amp_seed(), 7);
    struct part first = drawn(3, 2);
    assert_true(same(first, drawn(3, 2)));
    assert_false(same(first, drawn(3, 1)));
    assert_false(same(first, drawn(2, 2)));
    amp_random_set_seed(8);
    assert_false(same(first, drawn(3, 2)));
}

TEST(numbers_cover_rands_range_evenly)
{
    amp_random_set_seed(7);
    int upper_half = 0, odd = 0;
    for (int job = 1; job <= 20; job++) {
        struct part p = drawn((unsigned long)job, 0);
        for (int i = 0; i < DRAWS; i++) {
            assert_true(p.draws[i] >= 0 && p.draws[i] <= RAND_MAX);
            upper_half += p.draws[i] > RAND_MAX / 2;
            odd += p.draws[i] & 1;
        }
    }
    assert_in_range(upper_half, 9700, 10300); /* of 20000: four standard deviations and a bit */
    assert_in_range(odd, 9700, 10300);
}

TEST(the_main_thread_keeps_rand)
{
    amp_random_set_seed(7);
    srand(5);
    int expected = rand();
    srand(5);
    drawn(1, 0); /* takes nothing away from it */
    assert_int_equal(darknet_amp_rand(), expected);
}

/* At each place of the generator's ring, and over its end. */
TEST(a_saved_generator_goes_on_with_the_same_numbers)
{
    amp_random_set_seed(7);
    for (int place = 0; place < 70; place++) {
        unsigned char saved[AMP_HOST_RANDOM_BYTES], again[AMP_HOST_RANDOM_BYTES];
        int expected[100];
        srand(5);
        for (int i = 0; i < place; i++) rand();
        assert_true(amp_random_save(saved));
        for (int i = 0; i < 100; i++) expected[i] = rand();
        srand(9);
        for (int i = 0; i < 3; i++) rand();
        assert_true(amp_random_restore(saved));
        assert_true(amp_random_save(again));
        assert_memory_equal(saved, again, sizeof saved);
        for (int i = 0; i < 100; i++) assert_int_equal(rand(), expected[i]);
    }
}

TEST(a_generator_that_is_none_is_refused)
{
    unsigned char saved[AMP_HOST_RANDOM_BYTES], bad[AMP_HOST_RANDOM_BYTES];
    const int32_t heads[] = { 0, 1, 2, 4, 5 * 31 + 3, 5 * 1000 + 3, -2, INT32_MIN, INT32_MAX };
    amp_random_set_seed(7);
    srand(5);
    assert_true(amp_random_save(saved));
    int expected = rand();
    assert_true(amp_random_restore(saved));
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        memcpy(bad, saved, sizeof bad);
        memcpy(bad, &heads[i], sizeof heads[i]);
        assert_false(amp_random_restore(bad));
    }
    assert_int_equal(rand(), expected);
}

typedef struct drawing { size_t behind; int *numbers; } drawing;

static void *draw_from_a_branch(void *context)
{
    drawing *d = context;
    amp_random_branch(d->behind);
    for (int k = 0; k < DRAWS; k++) d->numbers[k] = darknet_amp_rand();
    return NULL;
}

/* In the main thread and in a thread with a branch of its generator. */
TEST(numbers_that_are_skipped_are_those_that_would_be_drawn)
{
    const size_t counts[] = { 0, 1, 30, 31, 99991 };
    unsigned char before[AMP_HOST_RANDOM_BYTES], after[AMP_HOST_RANDOM_BYTES];
    amp_random_set_seed(11);
    srand(11);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        int drawn[DRAWS], of_branch[DRAWS];
        drawing branch = { counts[i], of_branch };
        assert_true(amp_random_save(before));
        in_threads(draw_from_a_branch, &branch, 0, 1);
        assert_true(amp_random_save(after));
        assert_memory_equal(before, after, sizeof before);
        for (size_t k = 0; k < counts[i]; k++) (void)rand();
        for (int k = 0; k < DRAWS; k++) drawn[k] = rand();
        assert_memory_equal(drawn, of_branch, sizeof drawn);
        assert_true(amp_random_restore(before));
        amp_random_skip(counts[i]);
        for (int k = 0; k < DRAWS; k++) assert_int_equal(rand(), drawn[k]);
    }
}

TEST(jobs_go_on_from_a_number)
{
    amp_random_set_next_job(41);
    assert_int_equal(amp_random_jobs_begun(), 40);
    assert_int_equal(amp_random_next_job(), 41);
    assert_int_equal(amp_random_jobs_begun(), 41);
}

int main(void) { return run_listed_tests("tests", NULL, NULL); }
