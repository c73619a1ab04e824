/* Darknet networks, their state and their sidecars in a separate folder, for the tests of sidecars. Include
 * CMocka first. */
#ifndef SIDECAR_NETWORKS_H
#define SIDECAR_NETWORKS_H

#include "amp/sidecar.h"
#include "sidecar_testing.h"
#include "engine_testing.h"
#include "stock_weights.h"
#include "test_folder.h"

static const char sidecar[] = "x.weights.amp", weights[] = "x.weights"; /* in the test's folder */

/* ---- networks and their state ---- */

static network *make(const char *net_keys, const char *dtype) { return parse_branched(net_keys, "", dtype); }

static amp_engine *engine_of(network *net) { return net->amp->engine; }

/* Everything that apply may change: what snapshot() holds, gradients, committed statistics and the scaler. */
static inline kept_state whole_state(network *net)
{
    kept_state s = snapshot(net);
    assert_int_equal(amp_parameters_take(&engine_of(net)->parameters, NULL), AMP_OK);
    amp_parameters e = engine_of(net)->parameters;
    for (int i = 0; i < e.param_count; i++) keep(&s, e.params[i].grad, e.params[i].count * sizeof(float));
    for (int i = 0; i < e.statistics_count; i++)
        keep(&s, e.statistics[i].committed, e.statistics[i].count * sizeof(float));
    keep(&s, &engine_of(net)->scaler, sizeof(amp_scaler));
    return s;
}

static inline void assert_same_state(network *a, network *b)
{
    assert_true(same_states(whole_state(a), whole_state(b)));
}

static inline amp_run_state run_of(network *net, int window)
{
    amp_run_state run = { .seen = *net->seen, .t = *net->t, .steps = 7, .skipped = 2, .width = net->w,
                          .height = net->h, .batch = net->batch, .subdivisions = net->subdivisions,
                          .window = window, .seeded = 1, .seed = 4294967295u, .next_job = 0x123456789abcdefu,
                          .looped = 1, .loop_count = 3, .average_loss = 0.125f };
    for (int i = 0; i < AMP_RANDOM_STATE_BYTES; i++) run.random[i] = (unsigned char)(i * 37);
    return run;
}

static inline void save(network *net, int window)
{
    amp_error error;
    amp_run_state run = run_of(net, window);
    uint64_t sum;
    save_stock_weights(net, weights);
    assert_int_equal(amp_file_checksum(weights, &sum, &error), AMP_OK);
    if (amp_sidecar_write(sidecar, engine_of(net), &run, sum, &error) != AMP_OK)
        fail_msg("%s", error.message);
}

static inline amp_sidecar *read_back(void)
{
    amp_error error;
    amp_sidecar *c;
    if (amp_sidecar_read(sidecar, &c, &error) != AMP_OK) fail_msg("%s", error.message);
    return c;
}

/* Loads the pair into net, as a resumed training does. note may be NULL: then there must be no note. */
static inline void resume(network *net, char note[256])
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

#endif
