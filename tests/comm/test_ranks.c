/* Ranks in threads of this program train what one network would: the same step of the same images, whatever
 * number of ranks shares it. */
#define _DEFAULT_SOURCE /* mkstemps */
#include "testing.h"

#include <omp.h>

#include "optimizer_testing.h"
#include "comm/comm.h"
#include "comm/watchdog.h"
#include "threads.h"

enum { MOST = 4, SUBDIVISIONS = 12 };

/* A rank with its network; its comm counts what is asked of it. */
typedef struct rank {
    amp_comm comm, *real;
    network *net;
    int sums_in_backward, sums, in_backward;
    int steps;
    unsigned seed;
    void (*before_last_pass)(struct rank *);
} rank;

static rank ranks[MOST];
static int rank_count;

/* ---- a comm that counts ---- */

static amp_status sum_begin(amp_comm *comm, float *values, size_t count, amp_dtype wire, amp_error *error)
{
    rank *r = (rank *)comm;
    r->sums++;
    r->sums_in_backward += r->in_backward;
    return r->real->sum_begin(r->real, values, count, wire, error);
}

static amp_status sum_end(amp_comm *comm, amp_error *error)
{
    return ((rank *)comm)->real->sum_end(((rank *)comm)->real, error);
}

static amp_status gather(amp_comm *comm, const void *mine, size_t bytes, void *all, amp_error *error)
{
    return ((rank *)comm)->real->gather(((rank *)comm)->real, mine, bytes, all, error);
}

/* ---- ranks and the network that stands for all ---- */

#define KEYS "batch=12\nsubdivisions=%d\nlearning_rate=.0001\nmomentum=.8\ndecay=.3\n"

static network *load_cut(const char *kind, const char *solver, const char *dtype, int subdivisions)
{
    char keys[512];
    snprintf(keys, sizeof keys, KEYS "%s", subdivisions, solver);
    network *net = load(kind, keys, "", dtype);
    assert_int_equal(net->subdivisions, subdivisions);
    return net;
}

static network *load_one(const char *kind, const char *solver, const char *dtype)
{
    return load_cut(kind, solver, dtype, SUBDIVISIONS);
}

static void make_ranks(int n, network *one, const char *kind, const char *solver, const char *dtype,
                       amp_dtype wire, size_t bucket)
{
    amp_comm *comms[MOST];
    amp_error error;
    rank_count = n;
    assert_int_equal(amp_comm_threads(n, 0, NULL, comms, &error), AMP_OK);
    for (int i = 0; i < n; i++) {
        rank *r = &ranks[i];
        memset(r, 0, sizeof *r);
        r->real = comms[i];
        r->comm = *comms[i];
        r->comm.sum_begin = sum_begin;
        r->comm.sum_end = sum_end;
        r->comm.gather = gather;
        r->net = load_one(kind, solver, dtype);
        copy_weights(one, r->net);
        amp_engine *engine = r->net->amp->engine;
        amp_parallel_join(&engine->parallel, &r->comm, wire, bucket, engine->settings.sync_batchnorm);
    }
}

static void free_ranks(void)
{
    for (int i = 0; i < rank_count; i++) {
        release(ranks[i].net);
        ranks[i].real->destroy(ranks[i].real);
    }
}

/* Image i of the mini-batch is that of the pass `apart` times i later. */
static void feed_mini_batch(network *net, unsigned seed, int apart)
{
    network image = *net;
    image.batch = 1;
    for (int i = 0; i < net->batch; i++) {
        feed(&image, seed + (unsigned)(i * apart));
        image.input += net->inputs;
        image.truth += net->truths;
    }
}

/* A rank's share of some steps: its block of each step's subdivisions. As the host does it, `seen` counts the
 * images of all ranks behind a pass. One network with a mini-batch N times as large has in each pass the
 * images that N ranks have in theirs. */
static void *train(void *pointer)
{
    rank *r = pointer;
    omp_set_num_threads(1);
    for (int step = 0; step < r->steps; step++) {
        int n = r->real ? r->comm.size : 1, passes = r->net->subdivisions / n;
        for (int s = 0; s < passes; s++) {
            feed_mini_batch(r->net,
                            r->seed + 1000u * (unsigned)step + (unsigned)(r->comm.rank * passes + s), passes);
            r->net->train = 1;
            if (r->before_last_pass && s + 1 == passes) r->before_last_pass(r);
            *r->net->seen += (size_t)(r->net->batch * n);
            forward_network(r->net);
            r->in_backward = 1;
            backward_network(r->net);
            r->in_backward = 0;
        }
        update_network(r->net);
    }
    return NULL;
}

static void train_ranks(int steps, unsigned seed)
{
    for (int i = 0; i < rank_count; i++) {
        ranks[i].steps = steps;
        ranks[i].seed = seed;
    }
    in_threads(train, ranks, sizeof *ranks, rank_count);
}

static void train_one(network *net, int steps, unsigned seed)
{
    rank alone = { .net = net, .steps = steps, .seed = seed };
    train(&alone);
}

/* Sums of squares, of differences and of what they are of. */
typedef struct distance { double apart, size; } distance;

static void add_distance(distance *d, const float *a, const float *b, size_t count)
{
    for (size_t e = 0; e < count; e++) {
        d->apart += pow((double)a[e] - (double)b[e], 2);
        d->size += pow((double)b[e], 2);
    }
}

static void assert_near_in(const char *what, int layer, const distance *d, double bound)
{
    if (!(sqrt(d->apart) <= bound * sqrt(d->size)))
        fail_msg("%s of layer %d: %g of %g apart", what, layer, sqrt(d->apart), sqrt(d->size));
}

/* In the 2-norm of a layer's parameters, and of its rolling statistics. (Not of each array: where batch norm
 * follows, the gradient of a bias is 0, and what is there is rounding.) */
static void assert_networks_near(network *a, network *b, double bound)
{
    amp_network_desc x = described(a), y = described(b);
    for (int i = 0; i < x.count; i++) {
        const amp_layer_desc *l = &x.layers[i], *m = &y.layers[i];
        distance parameters = { 0 }, statistics = { 0 };
        for (int k = 0; k < l->param_count; k++)
            add_distance(&parameters, l->params[k].master, m->params[k].master, l->params[k].count);
        for (int k = 0; k < l->statistics_count; k++)
            if (l->statistics[k].rolling_factor > 0)
                add_distance(&statistics, l->statistics[k].array, m->statistics[k].array,
                             l->statistics[k].count);
        assert_near_in("parameters", i, &parameters, bound);
        assert_near_in("statistics", i, &statistics, bound);
    }
    amp_network_desc_free(&x);
    amp_network_desc_free(&y);
}

/* ---- the same training ---- */

/* Beside one network with a mini-batch `larger` times as large. */
static void compare_with_one(const char *kind, const char *keys, int n, int larger, size_t bucket, int steps)
{
    network *one = load_cut(kind, keys, "fp32", SUBDIVISIONS / larger);
    make_ranks(n, one, kind, keys, "fp32", AMP_FP32, bucket);
    train_one(one, steps, 7);
    train_ranks(steps, 7);
    assert_int_equal(ranks[0].net->amp->skipped, 0);
    for (int i = 0; i < n; i++) assert_networks_near(ranks[i].net, one, 1e-6);
    assert_networks_near(ranks[0].net, ranks[n - 1].net, 0);
    free_ranks();
    release(one);
}

TEST(ranks_train_what_one_network_does)
{
    static const char *const same[] = { "convolutional_batchnorm", "convolutional_groups", "connected",
        "batchnorm", "deconvolutional", "local" };
    for (size_t k = 0; k < COUNT(same); k++)
        for (int n = 2; n <= MOST; n++) compare_with_one(same[k], "", n, 1, AMP_BUCKET, n == 3 ? 5 : 1);
}

/* ---- batch norm over all ranks ---- */

#define SYNC "amp=1\nsync_batchnorm=1\n"

TEST(with_sync_batchnorm_ranks_train_what_one_does_with_a_mini_batch_as_large)
{
    static const char *const normed[] = { "convolutional_batchnorm", "connected", "batchnorm",
        "batchnorm_branched", "deconvolutional" };
    for (size_t k = 0; k < COUNT(normed); k++)
        for (int n = 2; n <= MOST; n++) compare_with_one(normed[k], SYNC, n, n, 100, 3);
    compare_with_one("convolutional_batchnorm", SYNC "adam=1\n", 2, 2, 100, 3);
    compare_with_one("convolutional_batchnorm", SYNC "checkpoint=2\n", 3, 3, 100, 3);
}

TEST(two_ranks_with_sync_batchnorm_repeat_to_the_bit)
{
    network *one = load_one("convolutional_batchnorm", SYNC, "bf16");
    kept_state after[2];
    for (int i = 0; i < 2; i++) {
        make_ranks(2, one, "convolutional_batchnorm", SYNC, "bf16", AMP_FP32, i ? 100 : AMP_BUCKET);
        train_ranks(3, 7);
        after[i] = snapshot(ranks[i].net);
        free_ranks();
    }
    assert_true(same_states(after[0], after[1]));
    release(one);
}

/* A recurrent layer's batch norm is Darknet's own: statistics of each rank, which are combined. */
TEST(batch_norm_that_darknet_computes_stays_each_ranks_own)
{
    network *one = load_one("crnn", SYNC, "fp32");
    make_ranks(2, one, "crnn", SYNC, "fp32", AMP_FP32, AMP_BUCKET);
    train_ranks(1, 7);
    assert_int_equal(ranks[0].net->amp->skipped, 0);
    assert_true(ranks[0].net->layers[1].self_layer->rolling_variance[0] > 0);
    assert_networks_near(ranks[0].net, ranks[1].net, 0);
    free_ranks();
    release(one);
}

/* ---- what a sum is ---- */

/* Buckets of 100: the block of gradients has thousands. */
TEST(sums_begin_while_backward_goes_on_and_have_the_bits_of_those_at_its_end)
{
    network *one = load_one("convolutional_batchnorm", "", "fp32");
    make_ranks(2, one, "convolutional_batchnorm", "", "fp32", AMP_FP32, 100);
    train_ranks(3, 7);
    assert_true(ranks[0].sums_in_backward > 3 * 5);
    assert_int_equal(ranks[0].sums_in_backward, ranks[1].sums_in_backward);
    kept_state cut = snapshot(ranks[1].net);
    free_ranks();
    make_ranks(2, one, "convolutional_batchnorm", "", "fp32", AMP_FP32, AMP_BUCKET);
    train_ranks(3, 7);
    assert_int_equal(ranks[0].sums_in_backward, 3); /* the whole block, with the first layer */
    assert_true(is_as_before(ranks[0].net, cut));
    free_ranks();
    release(one);
}

/* A gradient in 16 bits has that much of its digits: half a unit each in what is sent and in the sum. Weights
 * move by rate/batch times it, and are compared as a step. */
TEST(gradients_travel_in_16_bits_where_wire_says_so)
{
    static const struct { amp_dtype wire; double epsilon; } wires[] = { { AMP_BF16, 0x1p-8 },
                                                                        { AMP_FP16, 0x1p-11 } };
    for (size_t w = 0; w < COUNT(wires); w++) {
        network *one = load_one("connected", "", "fp32");
        make_ranks(2, one, "connected", "", "fp32", wires[w].wire, AMP_BUCKET);
        train_one(one, 1, 7);
        train_ranks(1, 7);
        int count, differ = 0;
        const amp_param *a = engine_params(ranks[0].net->amp->engine, &count),
            *b = engine_params(one->amp->engine, &count),
            *c = engine_params(ranks[1].net->amp->engine, &count);
        for (int i = 0; i < count; i++) {
            distance d = { 0 };
            add_distance(&d, a[i].momentum, b[i].momentum, a[i].count);
            if (!(sqrt(d.apart) <= 2 * wires[w].epsilon * sqrt(d.size)))
                fail_msg("%s of layer %d: %g of %g apart", a[i].name, a[i].layer, sqrt(d.apart),
                         sqrt(d.size));
            assert_memory_equal(a[i].master, c[i].master, a[i].count * sizeof(float));
            differ |= sqrt(d.apart) > wires[w].epsilon / 16 * sqrt(d.size); /* more than fp32 would */
        }
        assert_true(differ);
        free_ranks();
        release(one);
    }
}

/* ---- all step, or none ---- */

static int poisoned_rank;

static void poison_gradient(rank *r)
{
    int count;
    if (r->comm.rank == poisoned_rank) engine_params(r->net->amp->engine, &count)[0].grad[0] = INFINITY;
}

static void poison_statistics(rank *r)
{
    if (r->comm.rank == poisoned_rank) r->net->layers[0].rolling_variance[1] = NAN;
}

static void poison_labels(rank *r)
{
    if (r->comm.rank == poisoned_rank)
        amp_engine_reject_step(r->net->amp->engine,
                               &(amp_anomaly){ .found = 1, .layer = -1, .pass = "forward",
                                                                   .tensor = "labels" });
}

TEST(if_one_rank_must_skip_its_step_all_do)
{
    static void (*const poisons[])(rank *) = { poison_gradient, poison_statistics, poison_labels };
    network *one = load_one("convolutional_batchnorm", "", "fp32");
    for (size_t p = 0; p < COUNT(poisons); p++) {
        make_ranks(3, one, "convolutional_batchnorm", "amp=1\nloss_scale=dynamic\ninit_scale=1024\n", "fp32",
                   AMP_FP32, 1000);
        train_ranks(2, 7);
        kept_state before[3];
        for (int i = 0; i < 3; i++) before[i] = snapshot(ranks[i].net);
        poisoned_rank = (int)p;
        for (int i = 0; i < 3; i++) ranks[i].before_last_pass = poisons[p];
        train_ranks(1, 9);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(ranks[i].net->amp->skipped, 1);
            assert_float_equal(ranks[i].net->amp->engine->scaler.scale, 512, 0);
            assert_true(is_as_before(ranks[i].net, before[i]));
            ranks[i].before_last_pass = NULL;
        }
        train_ranks(1, 9);
        for (int i = 0; i < 3; i++) assert_int_equal(ranks[i].net->amp->skipped, 1);
        assert_networks_near(ranks[0].net, ranks[2].net, 0);
        free_ranks();
    }
    release(one);
}

/* ---- ranks that do not start from the same ---- */

static amp_status statuses[MOST];
static amp_error errors[MOST];

static void *update_alone(void *pointer)
{
    rank *r = pointer;
    amp_step_report report;
    amp_update_args args = { .learning_rate = .001f, .momentum = .9f, .batch = 12, .t = 1 };
    statuses[r->comm.rank] = amp_engine_update(r->net->amp->engine, &args, 0, &report, &errors[r->comm.rank]);
    return NULL;
}

/* A 64th of the weights is compared at each step. */
TEST(other_weights_on_one_rank_end_the_training)
{
    network *one = load_one("connected", "", "fp32");
    int steps = 0;
    make_ranks(2, one, "connected", "", "fp32", AMP_FP32, AMP_BUCKET);
    ranks[1].net->layers[1].weights[5] += .5f;
    for (statuses[0] = AMP_OK; statuses[0] == AMP_OK && steps < AMP_DRIFT_STEPS; steps++) {
        in_threads(update_alone, ranks, sizeof *ranks, 2);
        assert_int_equal(statuses[0], statuses[1]);
    }
    assert_int_equal(statuses[0], AMP_COMM_FAILED);
    assert_non_null(strstr(errors[0].message, "the weights of rank 1 differ from those of rank 0"));
    free_ranks();
    make_ranks(2, one, "connected", "", "fp32", AMP_FP32, AMP_BUCKET);
    ranks[1].net->amp->engine->scaler.scale *= 2;
    in_threads(update_alone, ranks, sizeof *ranks, 2);
    assert_non_null(strstr(errors[0].message, "rank 1 has loss scale 2, but rank 0 has 1"));
    free_ranks();
    release(one);
}

/* ---- a rank that gives up ---- */

static amp_comm *waiting[2];

static void note_lost(const char *line)
{
    snprintf(errors[1].message, sizeof errors[1].message, "%s", line);
    waiting[0]->abort(waiting[0], 1);
}

TEST(a_rank_that_does_not_come_is_told_of_after_the_time_limit)
{
    amp_error error;
    float x = 1;
    assert_int_equal(amp_comm_threads(2, .01, note_lost, waiting, &error), AMP_OK);
    snprintf(waiting[0]->phase, sizeof waiting[0]->phase, "step 3, gradients");
    assert_int_equal(waiting[0]->sum_begin(waiting[0], &x, 1, AMP_FP32, &error), AMP_COMM_FAILED);
    for (int i = 0; i < 2; i++) waiting[i]->destroy(waiting[i]);
    assert_non_null(strstr(errors[1].message, "ranks: step 3, gradients: rank 0 got no answer from another"));
}

TEST(a_time_limit_that_is_no_number_is_refused)
{
    static const char *const wrong[] = { "soon", "-1", "1e7", "nan", "3s" };
    amp_error error;
    double seconds;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        setenv("AMP_COMM_TIMEOUT", wrong[i], 1);
        assert_int_equal(amp_comm_time_limit(&seconds, &error), AMP_BAD_CONFIG);
        assert_non_null(strstr(error.message, wrong[i]));
    }
    setenv("AMP_COMM_TIMEOUT", "", 1);
    assert_int_equal(amp_comm_time_limit(&seconds, &error), AMP_OK);
    assert_true(seconds == 300);
    setenv("AMP_COMM_TIMEOUT", "0", 1);
    assert_int_equal(amp_comm_time_limit(&seconds, &error), AMP_OK);
    assert_true(seconds == 0);
    unsetenv("AMP_COMM_TIMEOUT");
}

int main(void) { return run_listed_tests("ranks", NULL, NULL); }
