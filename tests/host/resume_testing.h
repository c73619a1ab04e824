/* Networks that are saved and loaded in a folder of their own, for the tests of resuming.
 * Include CMocka first. */
#ifndef RESUME_TESTING_H
#define RESUME_TESTING_H

#include <string.h>
#include <sys/stat.h>

#include "engine_testing.h"
#include "host/network/resume.h"

#define STEP(net, i) train_step(net, 100u * (unsigned)(i))

/* An empty folder for one test. */
static char folder[] = "/tmp/resume-XXXXXX";

__attribute__((unused)) static const char *in_folder(const char *file)
{
    static char path[4][300];
    static int next;
    char *at = path[next++ % 4];
    snprintf(at, 300, "%s/%s", folder, file);
    return at;
}

__attribute__((unused)) static int exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

__attribute__((unused)) static void save(network *net, const char *file)
{
    save_weights(net, (char *)in_folder(file));
}
__attribute__((unused)) static void load(network *net, const char *file)
{
    load_weights(net, (char *)in_folder(file));
}

__attribute__((unused)) static int empty_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/resume-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

__attribute__((unused)) static int remove_folder(void **state)
{
    (void)state;
    char command[400];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

__attribute__((unused)) static void assert_same_state(network *a, network *b)
{
    size_t size_a, size_b;
    char *x = snapshot(a, &size_a), *y = snapshot(b, &size_b);
    assert_int_equal(size_a, size_b);
    assert_memory_equal(x, y, size_a);
    const amp_scaler *s = amp_engine_scaler(a->amp->engine), *t = amp_engine_scaler(b->amp->engine);
    assert_memory_equal(&s->scale, &t->scale, sizeof s->scale);
    assert_int_equal(s->growth_tracker, t->growth_tracker);
    assert_int_equal(a->amp->steps, b->amp->steps);
    assert_int_equal(a->amp->skipped, b->amp->skipped);
    free(x);
    free(y);
}

/* Two networks in bf16: whole has made four steps; second has loaded a.weights, saved after the
 * first three of them. */
__attribute__((unused)) static void stopped_after_three_of_four(network **whole, network **second)
{
    *whole = parse_branched("", "", "bf16");
    network *first = parse_branched("", "", "bf16");
    for (int i = 0; i < 4; i++) STEP(*whole, i);
    for (int i = 0; i < 3; i++) STEP(first, i);
    save(first, "a.weights");
    release(first);
    *second = parse_branched("", "", "bf16");
    load(*second, "a.weights");
}

#endif
