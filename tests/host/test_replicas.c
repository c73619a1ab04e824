/* Replicas of one network, each trained by a thread of its own, as with -gpus: they are ranks that share each
 * step, train what one network does, and stay equal; a step that one cannot make is made by none. And
 * networks that have nothing to do with each other live, train and die at the same time.
 *
 * Darknet compiles train_networks for GPUs only; train_replicas below is its like. */
#define _DEFAULT_SOURCE /* mkstemps, mkdtemp */
#include "testing.h"

#include <omp.h>
#include <unistd.h>

#include "engine_testing.h"
#include "host/program/random.h"
#include "host/network/ranks_join.h"
#include "child.h"
#include "test_folder.h"
#include "threads.h"

enum { MOST = 4, SUBDIVISIONS = 12, NOWHERE = -1 };

/* A step of all images: of the subdivision `bad` one number is `poison`. */
typedef struct step { unsigned seed; int bad; float poison; } step;
typedef struct replica { network *net; const step *step; int first, passes; } replica;

static network *hangs;

static void *train_share(void *pointer)
{
    replica *r = pointer;
    while (r->net == hangs) pause();
    omp_set_num_threads(1); /* each thread asks for itself */
    for (int s = r->first; s < r->first + r->passes; s++) {
        feed(r->net, r->step->seed + (unsigned)s);
        if (s == r->step->bad) r->net->input[100] = r->step->poison;
        train_network_datum(r->net);
    }
    return NULL;
}

/* train_networks: a part of the step for each, in a thread of its own; and the hook behind it. */
static void train_replicas(network **nets, int n, step s)
{
    replica shares[MOST];
    int passes = SUBDIVISIONS / n;
    for (int i = 0; i < n; i++) shares[i] = (replica){ nets[i], &s, i * passes, passes };
    in_threads(train_share, shares, sizeof *shares, n);
    amp_sharing_end_step(nets[0]);
}

static void train_alone(network *net, step s)
{
    train_share(&(replica){ net, &s, 0, SUBDIVISIONS });
}

/* Three convolutions, all of whose weights together take an odd number of random ones. */
static network *make_one(const char *net_keys, const char *dtype)
{
    char text[2048];
    snprintf(text, sizeof text, "[net]\nbatch=24\nsubdivisions=12\nwidth=16\nheight=16\nchannels=3\n"
             "learning_rate=.0002\nmomentum=.9\ndecay=.01\nmax_batches=100\n%s" CONV(8, "") CONV(8, "")
             "[shortcut]\nfrom=-2\nactivation=linear\n[dropout]\nprobability=.3\n"
             "[convolutional]\nfilters=5\nsize=3\nactivation=linear\n"
             "[convolutional]\nfilters=5\nsize=1\nactivation=linear\n[cost]\ntype=sse\n", net_keys);
    return parse(text, dtype);
}

/* All are made of other weights than the first, which is *one's. one: NULL, or what stands for all. */
static void make_replicas(network **nets, int n, network **one, const char *net_keys, const char *dtype)
{
    for (int i = 0; i < n; i++) nets[i] = make_one(net_keys, dtype);
    if (one) {
        *one = make_one(net_keys, dtype);
        copy_weights(nets[0], *one);
    }
    if (n > 1) nets[n - 1]->layers[0].weights[0] += .5f;
    darknet_amp_resume(nets, n);
}

static void release_all(network **nets, int n) { for (int i = 0; i < n; i++) release(nets[i]); }

static const amp_scaler *scaler_of(network *net) { return &net->amp->engine->scaler; }

static void assert_same_state(network *a, network *b)
{
    assert_true(are_alike(a, b));
    assert_memory_equal(scaler_of(a), scaler_of(b), sizeof *scaler_of(a));
}

static void begin_numbers(void)
{
    amp_random_set_seed(7);
    srand(7);
}

/* ---- what one network trains ---- */

TEST(replicas_train_what_one_network_does_with_its_dropout)
{
    static const char *solvers[] = { "", "adam=1\n", "amp=1\nadam=1\nadamw=1\n", "amp=1\nclip_norm=.01\n" };
    for (size_t k = 0; k < sizeof solvers / sizeof *solvers; k++)
        for (int n = 2; n <= MOST; n++) {
            network *nets[MOST], *one;
            int next;
            make_replicas(nets, n, &one, solvers[k], "fp32");
            begin_numbers();
            for (unsigned i = 0; i < 5; i++) train_alone(one, (step){ 100 * i, NOWHERE, 0 });
            next = rand();
            begin_numbers();
            for (unsigned i = 0; i < 5; i++) train_replicas(nets, n, (step){ 100 * i, NOWHERE, 0 });
            assert_int_equal(rand(), next); /* the main thread goes on behind the numbers of all */
            for (int i = 0; i < n; i++) {
                assert_masters_near(nets[i], one, 1e-6);
                assert_int_equal(*nets[i]->seen, *one->seen);
                assert_int_equal(*nets[i]->t, 5);
                assert_int_equal(nets[i]->amp->images, one->amp->images);
                if (i) assert_same_state(nets[0], nets[i]);
            }
            release_all(nets, n);
            release(one);
        }
}

/* Sums of gradients begin while the last backward of a step runs, and not in an earlier one. */
typedef struct share_of_sums { replica share; size_t early, in_last; } share_of_sums;

static void *count_begun_sums(void *pointer)
{
    share_of_sums *s = pointer;
    network *net = s->share.net;
    const size_t *begun = &net->amp->engine->parallel.begun;
    omp_set_num_threads(1);
    net->train = 1;
    for (int i = s->share.first; i < s->share.first + s->share.passes; i++) {
        s->early += *begun;
        feed(net, (unsigned)i);
        *net->seen += (size_t)net->batch;
        forward_network(net);
        backward_network(net);
    }
    s->in_last = *begun;
    update_network(net);
    return NULL;
}

TEST(sums_of_gradients_begin_in_the_last_backward)
{
    enum { REPLICAS = 2, BUCKET = 100 };
    network *nets[REPLICAS];
    share_of_sums shares[REPLICAS];
    make_replicas(nets, REPLICAS, NULL, "", "fp32");
    train_replicas(nets, REPLICAS, (step){ 1, NOWHERE, 0 });
    for (int i = 0; i < REPLICAS; i++) {
        nets[i]->amp->engine->parallel.bucket = BUCKET;
        shares[i].share = (replica){ nets[i], NULL, i * SUBDIVISIONS / REPLICAS, SUBDIVISIONS / REPLICAS };
        shares[i].early = shares[i].in_last = 0;
    }
    in_threads(count_begun_sums, shares, sizeof *shares, REPLICAS);
    for (int i = 0; i < REPLICAS; i++) {
        assert_int_equal(shares[i].early, 0);
        assert_int_equal(shares[i].in_last, nets[i]->amp->engine->parameters.gradient_count);
    }
    release_all(nets, REPLICAS);
}

/* ---- 21 ---- */

static void check_skip(const char *net_keys, const char *dtype, float poison, int n, int bad)
{
    network *nets[MOST];
    make_replicas(nets, n, NULL, net_keys, dtype);
    train_replicas(nets, n, (step){ 1, NOWHERE, 0 });
    amp_scaler expected = *scaler_of(nets[0]);
    assert_int_equal(expected.skipped, 0);
    assert_int_equal(amp_scaler_update(&expected, 1), AMP_OK);
    kept_state before = snapshot(nets[0]);

    train_replicas(nets, n, (step){ 50, bad, poison });
    for (int i = 0; i < n; i++) {
        if (i) assert_true(are_alike(nets[0], nets[i]));
        assert_memory_equal(scaler_of(nets[i]), &expected, sizeof expected);
        assert_int_equal(nets[i]->amp->skipped, 1);
        assert_int_equal(get_current_batch(nets[i]), 1);
    }
    assert_true(is_as_before(nets[0], before));
    release_all(nets, n);
}

TEST(behaviour_21_a_step_that_overflows_in_one_replica_is_skipped_by_all)
{
    static const struct { const char *dtype, *net_keys; float poison; } table[] = {
        { "fp32", "", NAN }, { "bf16", "", INFINITY }, { "bf16", "adam=1\n", NAN },
        { "fp16", "amp=1\ninit_scale=16\n", INFINITY },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        for (int n = 2; n <= 3; n++)
            for (int bad = 1; bad < SUBDIVISIONS; bad += SUBDIVISIONS / n)
                check_skip(table[i].net_keys, table[i].dtype, table[i].poison, n, bad);
}

TEST(behaviour_21_scalers_follow_any_replicas_overflow_over_many_steps)
{
    enum { STEPS = 60 };
    network *nets[3];
    make_replicas(nets, 3, NULL, "amp=1\ninit_scale=16\ngrowth_interval=2\n", "fp16");
    amp_scaler reference = *scaler_of(nets[0]);
    unsigned random = 12345, skipped = 0;
    for (unsigned i = 0; i < STEPS; i++) {
        random = random * 1664525u + 1013904223u;
        int poisoned = (random >> 16) % 3 == 0, bad = poisoned ? (int)(random >> 20) % SUBDIVISIONS : NOWHERE;
        skipped += (unsigned)poisoned;
        train_replicas(nets, 3, (step){ i, bad, random & 0x8000 ? INFINITY : NAN });
        assert_int_equal(amp_scaler_update(&reference, poisoned), AMP_OK);
        for (int k = 0; k < 3; k++) assert_memory_equal(scaler_of(nets[k]), &reference, sizeof reference);
    }
    for (int k = 0; k < 3; k++) {
        assert_int_equal(nets[k]->amp->skipped, skipped);
        assert_int_equal(get_current_batch(nets[k]), STEPS - skipped);
    }
    assert_true(skipped > STEPS / 6 && skipped < STEPS / 2);
    release_all(nets, 3);
}

TEST(networks_without_amp_are_left_alone)
{
    network *nets[2] = { make_one("", "off"), make_one("", "off") };
    darknet_amp_resume(nets, 2);
    darknet_amp_weights_changed(nets[0]);
    assert_null(nets[0]->amp);
    release_all(nets, 2);
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

TEST(behaviour_22_weights_stay_finite_whichever_replica_overflows)
{
    for (int t = 0; t < 3; t++) {
        network *nets[3], *initial;
        make_replicas(nets, 3, &initial, "amp=1\ninit_scale=1024\n", dtype_names[t]);
        for (unsigned i = 0; i < 12; i++) {
            int bad = i % 4 == 3 ? (int)(i / 4 % 3) * SUBDIVISIONS / 3 : NOWHERE;
            train_replicas(nets, 3, (step){ 20 * i, bad, i & 4 ? NAN : INFINITY });
            for (int k = 0; k < 3; k++) assert_network_finite(nets[k]);
        }
        for (int k = 0; k < 3; k++)
            assert_true(memcmp(nets[k]->layers[0].weights, initial->layers[0].weights,
                               8 * 27 * sizeof(float)));
        release_all(nets, 3);
        release(initial);
    }
}

/* Both feed themselves the same images. One that has not trained would fold its batch norm, and round
 * otherwise. */
static void assert_same_prediction(network *a, network *b, unsigned seed)
{
    a->amp->measures = b->amp->measures = 1;
    feed(a, seed);
    feed(b, seed);
    const float *x = amp_host_predict(a, a->input), *y = amp_host_predict(b, b->input);
    assert_memory_equal(x, y, (size_t)a->outputs * (size_t)a->batch * sizeof *x);
}

/* Each replica has predicted: the half copies of that plan were in use, and are of other weights. */
TEST(behaviour_23_half_copies_are_refreshed_after_weights_are_shared_or_loaded)
{
    for (int t = 0; t < 3; t++) {
        network *nets[2], *loaded;
        make_replicas(nets, 2, &loaded, "amp=1\ninit_scale=64\n", dtype_names[t]);
        for (int i = 0; i < 2; i++) {
            nets[i]->amp->measures = 1; /* by copies that are not folded, as a training's */
            feed(nets[i], 7);
            amp_host_predict(nets[i], nets[i]->input);
        }
        feed(loaded, 7);
        amp_host_predict(loaded, loaded->input);
        train_replicas(nets, 2, (step){ 1, 0, NAN }); /* skipped: the second has the first one's weights */
        for (int i = 0; i < 2; i++) assert_same_prediction(nets[i], loaded, 5);
        train_replicas(nets, 2, (step){ 1, NOWHERE, 0 });
        save_weights(nets[1], "a.weights");
        load_weights(loaded, "a.weights");
        for (int i = 0; i < 2; i++) assert_same_prediction(nets[i], loaded, 5);
        /* Nor do copies of other weights stay in a network that trains, of which no prediction notices it. */
        train_replicas(nets, 2, (step){ 2, NOWHERE, 0 });
        feed(nets[0], 7);
        amp_host_predict(nets[0], nets[0]->input);
        load_weights(nets[0], "a.weights");
        assert_same_prediction(nets[0], loaded, 5);
        release_all(nets, 2);
        release(loaded);
    }
}

/* A step that is skipped right after puts back what was loaded, not what was there before. */
TEST(loaded_state_is_what_a_skipped_step_goes_back_to)
{
    network *net = make_one("", "bf16"), *other = make_one("", "bf16");
    for (unsigned i = 0; i < 3; i++) train_alone(other, (step){ 300 + 20 * i, NOWHERE, 0 });
    for (unsigned i = 0; i < 2; i++) train_alone(net, (step){ 20 * i, NOWHERE, 0 });
    save_weights(other, "a.weights");
    unlink("a.weights.amp");
    load_weights(net, "a.weights");
    kept_state before = snapshot(net);
    train_alone(net, (step){ 77, SUBDIVISIONS - 1, INFINITY });
    assert_true(is_as_before(net, before));
    assert_int_equal(net->amp->skipped, 1);
    release(net);
    release(other);
}

/* ---- what a sidecar holds of each ---- */

static network *make_recurrent(void)
{
    return parse("[net]\nbatch=12\nsubdivisions=12\ninputs=10\ntime_steps=3\nlearning_rate=.01\n"
                 "max_batches=100\n[gru]\noutput=8\n[connected]\noutput=10\nactivation=leaky\n"
                 "[softmax]\n",
                 "bf16");
}

TEST(a_sidecar_holds_what_each_replicas_recurrent_layers_carry)
{
    network *nets[2], *resumed[2];
    for (int i = 0; i < 2; i++) nets[i] = make_recurrent();
    darknet_amp_resume(nets, 2);
    for (unsigned i = 0; i < 2; i++) train_replicas(nets, 2, (step){ 100 * i, NOWHERE, 0 });
    save_weights(nets[0], "a.weights");
    for (int i = 0; i < 2; i++) load_weights(resumed[i] = make_recurrent(), "a.weights");
    darknet_amp_resume(resumed, 2);
    const layer *gru = nets[0]->layers, *other = nets[1]->layers;
    size_t bytes = (size_t)gru->batch * (size_t)gru->outputs * sizeof *gru->state;
    assert_memory_not_equal(gru->state, other->state, bytes);
    assert_memory_equal(resumed[0]->layers->state, gru->state, bytes);
    assert_memory_equal(resumed[1]->layers->state, other->state, bytes);
    release_all(nets, 2);
    release_all(resumed, 2);
}

/* ---- networks that share nothing ---- */

typedef struct life { int seed, team; kept_state state, prediction; } life;

static void *live(void *pointer)
{
    life *l = pointer;
    omp_set_num_threads(l->team);
    network *net = parse_network_cfg("life.cfg");
    load_weights(net, "life.weights"); /* initial weights come from a generator that all threads share */
    for (unsigned i = 0; i < 4; i++) train_step(net, (unsigned)l->seed + 10 * i);
    resize_network(net, 24, 20);
    feed(net, 3);
    amp_host_predict(net, net->input);
    feed(net, 5);
    net->input[100] = NAN;
    for (int s = 0; s < net->subdivisions; s++) train_network_datum(net); /* skipped */
    resize_network(net, 16, 16);
    train_step(net, (unsigned)l->seed + 100);
    l->state = snapshot(net);
    feed(net, 4);
    keep(&l->prediction, amp_host_predict(net, net->input),
         (size_t)net->outputs * (size_t)net->batch * sizeof(float));
    release(net);
    return NULL;
}

/* team: OpenMP threads of each. */
static void check_lives(const char *dtype, int team)
{
    life together[MOST], in_turn[MOST];
    char text[4096];
    snprintf(text, sizeof text, branched, "", "");
    put_file("life.cfg", text);
    network *net = parse_branched("", "", dtype); /* its -amp stands for all that follow */
    save_weights(net, "life.weights");
    release(net);
    for (int i = 0; i < MOST; i++) together[i] = in_turn[i] = (life){ .seed = 1000 * i, .team = team };
    in_threads(live, together, sizeof *together, MOST);
    for (int i = 0; i < MOST; i++) {
        live(&in_turn[i]);
        assert_true(same_states(together[i].state, in_turn[i].state));
        assert_true(same_states(together[i].prediction, in_turn[i].prediction));
    }
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

/* How a training of three replicas ends: all meet the floor in one step; the second drifts away; the second
 * cannot make a step, while the others wait for it; it hangs. */
static const struct { const char *name, *says; } ends[] = {
    { "diverge", "amp: training has collapsed: gradients stay inf or NaN at the smallest loss scale, 8" },
    { "drift", "amp: step 2: the weights of rank 1 differ from those of rank 0; start again from the last "
               "saved weights" },
    { "fail", "amp: this command cuts the network to 6 of its 7 layers; run it with -amp off" },
    { "hang", "ranks: sharing rank 0's weights: rank " },
};

static int train_to_the_end(const char *how)
{
    network *nets[3];
    if (!strcmp(how, "hang")) setenv("AMP_COMM_TIMEOUT", ".01", 1);
    make_replicas(nets, 3, NULL, "amp=1\nmin_scale=8\ninit_scale=16\n", "fp16");
    if (!strcmp(how, "hang")) hangs = nets[1];
    for (unsigned i = 0; i < 10; i++) {
        train_replicas(nets, 3, (step){ i, strcmp(how, "diverge") ? NOWHERE : 5, INFINITY });
        for (int w = 0; w < nets[1]->layers[0].nweights && !strcmp(how, "drift"); w++)
            nets[1]->layers[0].weights[w] += 1;
        if (!strcmp(how, "fail")) nets[1]->n--;
    }
    return 0;
}

/* Each time: those that compute must not crash in what the program's end takes from under them. */
TEST(what_goes_wrong_in_one_replica_ends_all_with_one_line)
{
    enum { ENDS = sizeof ends / sizeof *ends };
    for (int i = 0; i < 10 * ENDS; i++) {
        int lines = 0, found = 0;
        const char *name = ends[i % ENDS].name, *says = ends[i % ENDS].says;
        const char *const arguments[] = { "test_replicas", name, NULL };
        char said[1 << 16];
        assert_int_equal(this_program_again(arguments, said, sizeof said), 1);
        for (char *line = strtok(said, "\n"); line; line = strtok(NULL, "\n")) {
            found += !strncmp(line, says, strlen(says));
            /* beside those that tell of skips, and how halves are computed on this processor */
            lines += (!strncmp(line, "amp: ", 5) && !strstr(line, " on ") &&
                      !strstr(line, "skipped the step") && !strstr(line, ": stored in ")) ||
                     strstr(line, "got no answer from another");
        }
        if (found != 1 || lines != 1) fail_msg("%s: %d lines, %d of them as expected", name, lines, found);
    }
}

int main(int argc, char **argv)
{
    gpu_index = -1;
    omp_set_num_threads(1);
    if (argc > 1) return train_to_the_end(argv[1]);
    return run_listed_tests("tests", enter_folder, leave_folder);
}
