/* Darknet networks, their state and their sidecars in a folder of their own, for the tests of sidecars.
 * Include CMocka first. */
#ifndef SIDECAR_NETWORKS_H
#define SIDECAR_NETWORKS_H

#include <stdio.h>
#include <sys/stat.h>

#include "amp/sidecar.h"
#include "sidecar_testing.h"
#include "engine_testing.h"
#include "stock_weights.h"

static char folder[] = "/tmp/amp_test_sidecar_XXXXXX";
static char sidecar[64], weights[64];

__attribute__((unused)) static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(sidecar, sizeof sidecar, "%s/x.weights.amp", folder);
    snprintf(weights, sizeof weights, "%s/x.weights", folder);
    return 0;
}

__attribute__((unused)) static int remove_folder(void **state)
{
    (void)state;
    unlink(sidecar);
    unlink(weights);
    return rmdir(folder);
}

/* ---- networks and their state ---- */

static network *make(const char *net_keys, const char *dtype) { return parse_branched(net_keys, "", dtype); }

static amp_engine *engine_of(network *net) { return net->amp->engine; }

/* All that apply may change: what snapshot() holds, gradients, committed statistics and the scaler. */
__attribute__((unused)) static char *whole_state(network *net, size_t *size)
{
    char *block = snapshot(net, size);
    assert_int_equal(amp_engine_prepare_training(engine_of(net), NULL), AMP_OK);
    amp_parameters e = *amp_engine_parameters(engine_of(net));
    for (int i = 0; i < e.param_count; i++) {
        block = realloc(block, *size + e.params[i].count * sizeof(float));
        memcpy(block + *size, e.params[i].grad, e.params[i].count * sizeof(float));
        *size += e.params[i].count * sizeof(float);
    }
    for (int i = 0; i < e.statistics_count; i++) {
        block = realloc(block, *size + e.statistics[i].count * sizeof(float));
        memcpy(block + *size, e.statistics[i].committed, e.statistics[i].count * sizeof(float));
        *size += e.statistics[i].count * sizeof(float);
    }
    block = realloc(block, *size + sizeof(amp_scaler));
    memcpy(block + *size, amp_engine_scaler(engine_of(net)), sizeof(amp_scaler));
    *size += sizeof(amp_scaler);
    return block;
}

__attribute__((unused)) static void assert_same_state(network *a, network *b)
{
    size_t m, n;
    char *x = whole_state(a, &m), *y = whole_state(b, &n);
    assert_int_equal(m, n);
    assert_memory_equal(x, y, n);
    free(x);
    free(y);
}

__attribute__((unused)) static amp_run_state run_of(network *net, int window)
{
    amp_run_state run = { .seen = *net->seen, .t = *net->t, .steps = 7, .skipped = 2, .width = net->w,
                          .height = net->h, .batch = net->batch, .subdivisions = net->subdivisions,
                          .window = window, .seeded = 1, .seed = 4294967295u, .next_job = 0x123456789abcdefu,
                          .looped = 1, .loop_count = 3, .average_loss = 0.125f };
    for (int i = 0; i < AMP_RANDOM_STATE_BYTES; i++) run.random[i] = (unsigned char)(i * 37);
    return run;
}

__attribute__((unused)) static void save(network *net, int window)
{
    amp_error error;
    amp_run_state run = run_of(net, window);
    uint64_t sum;
    save_stock_weights(net, weights);
    assert_int_equal(amp_file_checksum(weights, &sum, &error), AMP_OK);
    if (amp_sidecar_write(sidecar, engine_of(net), &run, sum, &error) != AMP_OK)
        fail_msg("%s", error.message);
}

__attribute__((unused)) static amp_sidecar *read_back(void)
{
    amp_error error;
    amp_sidecar *c;
    if (amp_sidecar_read(sidecar, &c, &error) != AMP_OK) fail_msg("%s", error.message);
    return c;
}

/* Load the pair into net, as a resumed training does; note may be NULL: there must be none. */
__attribute__((unused)) static void resume(network *net, char note[256])
{
    amp_error error;
    char mine[256];
    amp_sidecar *c = read_back();
    load_stock_weights(net, weights);
    if (amp_sidecar_apply(c, engine_of(net), note ? note : mine, &error) != AMP_OK)
        fail_msg("%s", error.message);
    if (!note) assert_string_equal(mine, "");
    *net->t = (int)amp_sidecar_run(c)->t;
    assert_int_equal(*net->seen, amp_sidecar_run(c)->seen);
    amp_sidecar_free(c);
}

__attribute__((unused)) static unsigned char *bytes_of(const char *path, size_t *size)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    unsigned char *bytes = malloc((size_t)info.st_size + 64);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    *size = fread(bytes, 1, (size_t)info.st_size, file);
    fclose(file);
    return bytes;
}

__attribute__((unused)) static void put_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

#endif
