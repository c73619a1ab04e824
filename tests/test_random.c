/* -seed N: a loading job's part draws the same numbers whichever thread runs it and whenever; without, rand() does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>

#include "darknet_amp.h"
#include "host/host_random.h"

enum { DRAWS = 1000 };

struct part {
    unsigned long job;
    int part;
    int draws[DRAWS];
};

static void *draw(void *pointer)
{
    struct part *p = pointer;
    darknet_amp_begin_job(p->job, p->part);
    for (int i = 0; i < DRAWS; i++) p->draws[i] = darknet_amp_rand();
    return NULL;
}

static struct part drawn(unsigned long job, int part)
{
    struct part p = { job, part, { 0 } };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, draw, &p), 0);
    pthread_join(thread, NULL);
    return p;
}

static int same(struct part a, struct part b)
{
    for (int i = 0; i < DRAWS; i++) {
        if (a.draws[i] != b.draws[i]) return 0;
    }
    return 1;
}

static void without_a_seed_it_is_the_c_library(void **state)
{
    (void)state;
    srand(5);
    int expected = rand();
    srand(5);
    assert_int_equal(drawn(1, 0).draws[0], expected);
}

static void a_part_of_a_job_is_a_stream(void **state)
{
    (void)state;
    amp_random_set_seed(7);
    assert_int_equal(darknet_amp_seed(), 7);
    struct part first = drawn(3, 2);
    assert_true(same(first, drawn(3, 2)));
    assert_false(same(first, drawn(3, 1)));
    assert_false(same(first, drawn(2, 2)));
    amp_random_set_seed(8);
    assert_false(same(first, drawn(3, 2)));
}

static void numbers_cover_rands_range_evenly(void **state)
{
    (void)state;
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

static void the_main_thread_keeps_rand(void **state)
{
    (void)state;
    amp_random_set_seed(7);
    srand(5);
    int expected = rand();
    srand(5);
    drawn(1, 0); /* takes nothing away from it */
    assert_int_equal(darknet_amp_rand(), expected);
}

static void jobs_are_numbered_from_one(void **state)
{
    (void)state;
    assert_int_equal(darknet_amp_next_job(), 1);
    assert_int_equal(darknet_amp_next_job(), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_seed_it_is_the_c_library), /* first: a seed stays */
        cmocka_unit_test(a_part_of_a_job_is_a_stream),
        cmocka_unit_test(numbers_cover_rands_range_evenly),
        cmocka_unit_test(the_main_thread_keeps_rand),
        cmocka_unit_test(jobs_are_numbered_from_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
