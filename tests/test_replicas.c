/* Replicas of one network, each trained by a thread of its own: the scalers agree, the averaged weights are
 * finite and are what the next forward uses, and `seen` counts the steps that were taken. And networks that
 * have nothing to do with each other live, train and die at the same time.
 *
 * Darknet compiles train_networks and sync_nets for GPUs only; train_replicas and average below are their
 * like. */
#define _DEFAULT_SOURCE /* mkstemps */
#include "testing.h"

#include <omp.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine_testing.h"

enum { MOST = 4 };

typedef struct replica { network *net; unsigned seed; float poison; } replica;

/* One step on one share. A poison that is not 0 goes into an image of the last subdivision: the ones
 * before it are clean. */
static void *train_share(void *pointer)
{
    replica *r = pointer;
    omp_set_num_threads(1); /* each thread asks for itself */
    for (int s = 0; s < r->net->subdivisions; s++) {
        feed(r->net, r->seed + (unsigned)s);
        if (r->poison != 0 && s + 1 == r->net->subdivisions) r->net->input[100] = r->poison;
        train_network_datum(r->net);
    }
    return NULL;
}

static void in_threads(void *(*work)(void *), void *parts, size_t size, int n)
{
    pthread_t threads[MOST];
    assert_true(n <= MOST);
    for (int i = 0; i < n; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, (char *)parts + (size_t)i * size), 0);
    for (int i = 0; i < n; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/* sync_layer: the sum of all replicas' parameters, times 1/n, for each of them. Rolling
 * statistics are not averaged. */
static void average_parameters(network **nets, int n)
{
    amp_network_desc d[MOST];
    for (int i = 0; i < n; i++) d[i] = described(nets[i]);
    for (int l = 0; l < d[0].count; l++)
        for (int k = 0; k < d[0].layers[l].param_count; k++)
            for (size_t e = 0; e < d[0].layers[l].params[k].count; e++) {
                float sum = 0;
                for (int i = 0; i < n; i++) sum += d[i].layers[l].params[k].master[e];
                for (int i = 0; i < n; i++) d[i].layers[l].params[k].master[e] = sum * (float)(1. / n);
            }
    for (int i = 0; i < n; i++) amp_network_desc_free(&d[i]);
}

/* sync_nets */
static void average(network **nets, int n, int interval)
{
    *nets[0]->seen += (size_t)(interval * (n - 1) * nets[0]->batch * nets[0]->subdivisions);
    for (int i = 0; i < n; i++) *nets[i]->seen = *nets[0]->seen;
    average_parameters(nets, n);
    darknet_amp_synced(nets, n, interval);
}

/* train_networks: one step of each. poisons: NULL, or one per replica. Whether the weights were averaged. */
static int train_replicas(network **nets, int n, unsigned seed, const float *poisons, int interval)
{
    replica shares[MOST];
    for (int i = 0; i < n; i++)
        shares[i] = (replica){ nets[i], seed + 1000u * (unsigned)i, poisons ? poisons[i] : 0 };
    in_threads(train_share, shares, sizeof *shares, n);
    if (!(nets[0]->amp ? darknet_amp_step_agreed(nets, n, interval)
          : get_current_batch(nets[0]) % (size_t)interval == 0)) return 0;
    average(nets, n, interval);
    return 1;
}

static void make_replicas(network **nets, int n, const char *net_keys, const char *dtype)
{
    for (int i = 0; i < n; i++) nets[i] = parse_branched(net_keys, "", dtype);
}

static void release_all(network **nets, int n) { for (int i = 0; i < n; i++) release(nets[i]); }

static const amp_scaler *scaler_of(network *net) { return amp_engine_scaler(net->amp->engine); }

static void assert_scalers_are(network **nets, int n, const amp_scaler *expected)
{
    for (int i = 0; i < n; i++) assert_memory_equal(scaler_of(nets[i]), expected, sizeof *expected);
}

static void assert_same_state(network *a, network *b)
{
    size_t a_bytes, b_bytes;
    char *x = snapshot(a, &a_bytes), *y = snapshot(b, &b_bytes);
    assert_int_equal(a_bytes, b_bytes);
    assert_memory_equal(x, y, a_bytes);
    free(x);
    free(y);
}

/* ---- 21 ---- */

static void check_lone_skip(const char *net_keys, const char *dtype, float poison, int n, int victim)
{
    network *nets[MOST], *alone[MOST];
    make_replicas(nets, n, net_keys, dtype);
    make_replicas(alone, n, net_keys, dtype);
    train_replicas(nets, n, 1, NULL, 100);
    amp_scaler expected = *scaler_of(nets[0]);
    assert_int_equal(expected.skipped, 0);
    assert_int_equal(amp_scaler_update(&expected, 1), AMP_OK);

    float poisons[MOST] = { 0 };
    poisons[victim] = poison;
    train_replicas(nets, n, 50, poisons, 100);
    assert_scalers_are(nets, n, &expected);

    /* the others are where the same steps, taken alone, lead; the victim is where it was */
    for (int i = 0; i < n; i++) {
        train_step(alone[i], 1 + 1000u * (unsigned)i);
        if (i != victim) train_step(alone[i], 50 + 1000u * (unsigned)i);
        assert_same_state(nets[i], alone[i]);
        assert_int_equal(nets[i]->amp->skipped, i == victim);
        assert_int_equal(*nets[i]->t, i == victim ? 1 : 2);
        assert_int_equal(get_current_batch(nets[i]), i == victim ? 1 : 2);
    }
    release_all(nets, n);
    release_all(alone, n);
}

TEST(behaviour_21_a_replica_that_overflows_skips_alone_and_the_scalers_agree)
{
    static const struct { const char *dtype, *net_keys; float poison; } table[] = {
        { "fp32", "", NAN }, { "bf16", "", INFINITY }, { "bf16", "adam=1\n", NAN },
        { "fp16", "amp=1\ninit_scale=16\n", INFINITY },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        for (int n = 2; n <= 3; n++)
            for (int victim = 0; victim < n; victim++)
                check_lone_skip(table[i].net_keys, table[i].dtype, table[i].poison, n, victim);
}

TEST(behaviour_21_scalers_follow_any_replicas_overflow_over_many_steps)
{
    enum { STEPS = 200 };
    network *nets[3];
    make_replicas(nets, 3, "amp=1\ninit_scale=16\ngrowth_interval=2\n", "fp16");
    amp_scaler reference = *scaler_of(nets[0]);
    unsigned random = 12345, overflows[3] = { 0 };
    int apart = 0;
    for (unsigned step = 0; step < STEPS; step++) {
        float poisons[3];
        int any = 0, all = 1;
        for (int i = 0; i < 3; i++) {
            random = random * 1664525u + 1013904223u;
            int poisoned = (random >> 16) % 8 == 0;
            poisons[i] = poisoned ? (random & 0x8000 ? INFINITY : NAN) : 0;
            overflows[i] += (unsigned)poisoned;
            any |= poisoned;
            all &= poisoned;
        }
        apart += any && !all;
        train_replicas(nets, 3, step, poisons, 4);
        assert_int_equal(amp_scaler_update(&reference, any), AMP_OK);
        assert_scalers_are(nets, 3, &reference);
    }
    for (int i = 0; i < 3; i++) assert_int_equal(nets[i]->amp->skipped, overflows[i]);
    assert_true(apart > STEPS / 4);
    assert_true(reference.skipped < STEPS / 2);
    release_all(nets, 3);
}

TEST(networks_without_amp_are_left_alone)
{
    network *nets[3] = { parse_branched("", "", "off"), parse_branched("amp=1\ninit_scale=16\n", "", "fp16"),
                         parse_branched("", "", "off") };
    float poisons[3] = { 0, INFINITY, 0 };
    amp_scaler expected = *scaler_of(nets[1]);
    assert_int_equal(amp_scaler_update(&expected, 1), AMP_OK);
    train_replicas(nets, 3, 1, poisons, 4);
    assert_scalers_are(nets + 1, 1, &expected);
    network *stock[2] = { nets[0], nets[2] };
    for (unsigned step = 1; step < 8; step++)
        assert_int_equal(train_replicas(stock, 2, step, NULL, 4), step == 3 || step == 7);
    assert_int_equal(get_current_batch(nets[0]), 16); /* Darknet's own count: two replicas, eight steps */
    release_all(nets, 3);
}

/* ---- seen ---- */

TEST(seen_advances_as_stocks_while_no_step_is_skipped)
{
    for (int n = 2; n <= MOST; n++) {
        network *nets[MOST];
        make_replicas(nets, n, "", "bf16");
        size_t batch = 0;
        for (unsigned step = 0; step < 13; step++) {
            int due = ++batch % 4 == 0; /* train_networks; then sync_nets */
            if (due) batch += 4 * (size_t)(n - 1);
            assert_int_equal(train_replicas(nets, n, step, NULL, 4), due);
            for (int i = 0; i < n; i++) assert_int_equal(get_current_batch(nets[i]), batch);
            if (step == 5) average(nets, n, 0); /* what train_detector does before it saves */
        }
        release_all(nets, n);
    }
}

/* Of four replicas and more, one skipped step would have stock average after every step from then on. */
TEST(seen_counts_the_steps_that_were_taken_and_no_other)
{
    for (int n = 2; n <= MOST; n++) {
        network *nets[MOST];
        unsigned random = 99;
        unsigned long taken = 0, averaged = 0, longest = 0;
        make_replicas(nets, n, "amp=1\nburn_in=1000\n", "bf16");
        for (unsigned step = 0; step < 60; step++) {
            float poisons[MOST] = { 0 };
            for (int i = 0; i < n; i++) {
                random = random * 1664525u + 1013904223u;
                if (step < 3 || (random >> 16) % 5 == 0) poisons[i] = NAN; /* the first three: all of them */
            }
            if (step == 20) average(nets, n, 0);
            int due = train_replicas(nets, n, step, poisons, 4);
            unsigned long now = 0;
            for (int i = 0; i < n; i++) now += nets[i]->amp->steps;
            taken = now;
            longest += 1;
            assert_true(get_current_batch(nets[0]) <= taken);
            if (!due) continue;
            averaged++;
            assert_true(step > 3 && longest >= 4); /* never for a step that was skipped, never early */
            longest = 0;
            for (int i = 0; i < n; i++) {
                assert_int_equal(*nets[i]->seen, taken * (size_t)(nets[i]->batch * nets[i]->subdivisions));
                assert_true(get_current_rate(nets[i]) == get_current_rate(nets[0]));
            }
        }
        assert_true(averaged >= 9);
        release_all(nets, n);
    }
}

/* ---- 22 and 23 ---- */

static void assert_finite(const float *array, size_t count)
{
    for (size_t e = 0; e < count; e++) assert_true(amp_is_finite(array[e]));
}

static void assert_network_finite(network *net)
{
    amp_network_desc d = described(net);
    for (int l = 0; l < d.count; l++) {
        for (int k = 0; k < d.layers[l].param_count; k++) {
            assert_finite(d.layers[l].params[k].master, d.layers[l].params[k].count);
            assert_finite(*d.layers[l].params[k].gradient_slot, d.layers[l].params[k].count);
        }
        for (int k = 0; k < d.layers[l].statistics_count; k++)
            assert_finite(d.layers[l].statistics[k].array, d.layers[l].statistics[k].count);
    }
    amp_network_desc_free(&d);
}

TEST(behaviour_22_averaged_weights_stay_finite)
{
    static const char *dtypes[] = { "fp32", "bf16", "fp16" };
    for (int t = 0; t < 3; t++) {
        network *nets[3], *initial = parse_branched("", "", dtypes[t]);
        make_replicas(nets, 3, "amp=1\ninit_scale=1024\n", dtypes[t]);
        int averaged = 0;
        for (unsigned step = 0; step < 16; step++) {
            float poisons[3] = { 0 };
            if (step % 4 == 3) poisons[step / 4 % 3] = step & 4 ? NAN : INFINITY; /* just before averaging */
            averaged += train_replicas(nets, 3, step, poisons, 4);
            for (int i = 0; i < 3; i++) assert_network_finite(nets[i]);
        }
        assert_true(averaged >= 3);
        for (int i = 0; i < 3; i++)
            assert_true(memcmp(nets[i]->layers[0].weights, initial->layers[0].weights,
                               8 * 27 * sizeof(float)));
        release_all(nets, 3);
        release(initial);
    }
}

static void write_weights(network *net, char name[])
{
    int file = mkstemps(name, 8);
    assert_true(file >= 0);
    close(file);
    save_weights(net, name);
}

/* Both feed themselves the same images. One that has not trained would fold its batch norm, and round
 * otherwise. */
static void assert_same_prediction(network *a, network *b, unsigned seed)
{
    a->amp->measures = b->amp->measures = 1;
    feed(a, seed);
    feed(b, seed);
    const float *x = network_predict(a, a->input), *y = network_predict(b, b->input);
    assert_memory_equal(x, y, (size_t)a->outputs * (size_t)a->batch * sizeof *x);
}

/* Each replica predicts before and after: the half copies of the same plan were in use, and
 * are of other weights. */
TEST(behaviour_23_half_copies_are_refreshed_after_weights_are_averaged_or_loaded)
{
    static const char *dtypes[] = { "fp32", "bf16", "fp16" };
    for (int t = 0; t < 3; t++) {
        network *nets[3], *loaded = parse_branched("", "", dtypes[t]);
        make_replicas(nets, 3, "amp=1\ninit_scale=64\n", dtypes[t]);
        feed(loaded, 7);
        network_predict(loaded, loaded->input);
        for (unsigned round = 0; round < 2; round++) {
            for (unsigned step = 0; step < 3; step++)
                assert_false(train_replicas(nets, 3, 10 * round + step, NULL, 100));
            float *before[3];
            size_t bytes = (size_t)nets[0]->outputs * (size_t)nets[0]->batch * sizeof(float);
            for (int i = 0; i < 3; i++) {
                before[i] = malloc(bytes);
                assert_non_null(before[i]);
                feed(nets[i], 5);
                memcpy(before[i], network_predict(nets[i], nets[i]->input), bytes);
            }
            average(nets, 3, 100);
            for (int i = 0; i < 3; i++) {
                char name[] = "/tmp/replicas-XXXXXX.weights";
                write_weights(nets[i], name);
                load_weights(loaded, name);
                unlink(name);
                assert_same_prediction(nets[i], loaded, 5);
                feed(nets[i], 5);
                /* The average is another network. */
                assert_true(memcmp(before[i], network_predict(nets[i], nets[i]->input), bytes));
                free(before[i]);
            }
        }
        assert_int_equal(nets[0]->amp->skipped + nets[1]->amp->skipped + nets[2]->amp->skipped, 0);
        release_all(nets, 3);
        release(loaded);
    }
}

/* A step that is skipped right after puts back what was averaged or loaded, not what was there before. */
TEST(averaged_and_loaded_state_is_what_a_skipped_step_goes_back_to)
{
    network *nets[2], *other = parse_branched("", "", "bf16");
    make_replicas(nets, 2, "", "bf16");
    float poisons[2] = { INFINITY, NAN };
    size_t before_bytes, after_bytes;
    for (unsigned step = 0; step < 3; step++) train_step(other, 300 + 10 * step);
    for (unsigned step = 0; step < 4; step++) train_replicas(nets, 2, step, NULL, 4);
    char name[] = "/tmp/replicas-XXXXXX.weights";
    write_weights(other, name);
    load_weights(nets[0], name);
    unlink(name);
    for (int i = 0; i < 2; i++) { /* loaded; averaged */
        char *before = snapshot(nets[i], &before_bytes);
        train_share(&(replica){ nets[i], 77, poisons[i] });
        char *after = snapshot(nets[i], &after_bytes);
        assert_int_equal(before_bytes, after_bytes);
        assert_memory_equal(before, after, before_bytes);
        assert_int_equal(nets[i]->amp->skipped, 1);
        free(before);
        free(after);
    }
    release_all(nets, 2);
    release(other);
}

/* ---- networks that share nothing ---- */

typedef struct life {
    const char *cfg, *weights; int seed, team; char *state; size_t bytes; float *prediction;
} life;

static void *live(void *pointer)
{
    life *l = pointer;
    omp_set_num_threads(l->team);
    network *net = parse_network_cfg((char *)l->cfg);
    load_weights(net, (char *)l->weights); /* initial weights come from a generator that all threads share */
    for (unsigned step = 0; step < 4; step++) train_step(net, (unsigned)l->seed + 10 * step);
    resize_network(net, 24, 20);
    feed(net, 3);
    network_predict(net, net->input);
    feed(net, 5);
    net->input[100] = NAN;
    for (int s = 0; s < net->subdivisions; s++) train_network_datum(net); /* skipped */
    resize_network(net, 16, 16);
    train_step(net, (unsigned)l->seed + 100);
    l->state = snapshot(net, &l->bytes);
    feed(net, 4);
    size_t bytes = (size_t)net->outputs * (size_t)net->batch * sizeof(float);
    l->prediction = malloc(bytes);
    memcpy(l->prediction, network_predict(net, net->input), bytes);
    release(net);
    return NULL;
}

/* team: OpenMP threads of each. */
static void check_lives(const char *dtype, int team)
{
    char cfg[] = "/tmp/replicas-XXXXXX.cfg", weights[] = "/tmp/replicas-XXXXXX.weights", text[4096];
    int file = mkstemps(cfg, 4);
    snprintf(text, sizeof text, branched, "", "");
    assert_true(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text) && close(file) == 0);
    network *net = parse_branched("", "", dtype); /* its -amp stands for all that follow */
    write_weights(net, weights);
    size_t prediction = (size_t)net->outputs * (size_t)net->batch * sizeof(float);
    release(net);

    life together[MOST], in_turn[MOST];
    for (int i = 0; i < MOST; i++)
        together[i] = in_turn[i] = (life){ .cfg = cfg, .weights = weights, .seed = 1000 * i, .team = team };
    in_threads(live, together, sizeof *together, MOST);
    for (int i = 0; i < MOST; i++) {
        live(&in_turn[i]);
        assert_int_equal(together[i].bytes, in_turn[i].bytes);
        assert_memory_equal(together[i].state, in_turn[i].state, in_turn[i].bytes);
        assert_memory_equal(together[i].prediction, in_turn[i].prediction, prediction);
        free(together[i].state);
        free(together[i].prediction);
        free(in_turn[i].state);
        free(in_turn[i].prediction);
    }
    unlink(cfg);
    unlink(weights);
}

TEST(networks_made_trained_and_freed_in_threads_equal_those_in_turn)
{
#ifdef __SANITIZE_THREAD__
    int team = 1; /* it cannot see libgomp's barriers */
#else
    int team = 2;
#endif
    check_lives("fp32", team);
    check_lives("bf16", 1);
    check_lives("fp16", 1);
    omp_set_num_threads(1);
}

/* ---- the end ---- */

/* Three replicas, two of which meet the floor in the same step while the third computes. */
static int diverge(void)
{
    network *nets[3];
    float poisons[3] = { 0, INFINITY, NAN };
    make_replicas(nets, 3, "amp=1\nmin_scale=8\ninit_scale=16\n", "fp16");
    for (unsigned step = 0; step < 10; step++) train_replicas(nets, 3, step, poisons, 4);
    return 0;
}

/* Each time: the one that computes must not crash in what the program's end takes from under it. */
TEST(replicas_that_diverge_end_the_program_with_status_1)
{
    for (int i = 0; i < 30; i++) {
        int status;
        pid_t child = fork();
        assert_true(child >= 0);
        if (!child) {
            assert_non_null(freopen("/dev/null", "w", stderr));
            execl("/proc/self/exe", "test_replicas", "diverge", (char *)NULL);
            _exit(127);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 1);
    }
}

int main(int argc, char **argv)
{
    gpu_index = -1;
    omp_set_num_threads(1);
    if (argc > 1 && !strcmp(argv[1], "diverge")) return diverge();
    return run_listed_tests("tests", NULL, NULL);
}
