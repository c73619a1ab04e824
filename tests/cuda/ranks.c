/* Ranks on GPUs, two threads of this program, over doubles of NCCL and CUDA (doubles/nccl_double.h): they
 * train what one network does, of Darknet built with GPU=1, each call of NCCL's that fails ends all of
 * them, with a line that names it, and -gpus starts them. */
#define _DEFAULT_SOURCE
#include "testing.h"

#include <math.h>
#include <unistd.h>

#include "comm/comm.h"
#include "host/darknet/room.h"
#include "host/program/random.h"
#include "host/network/resume.h"
#include "host/network/state.h"
#include "engine_params.h"
#include "network.h"
#include "gpu_networks.h"
#include "parser.h"
#include "rank_threads.h"
#include "test_folder.h"

enum { FLOATS = 300, UPDATES = 3 };

static amp_dtype wire;

static int begin(void **state)
{
    (void)state;
    gpu_index = 0;
    nccl_double_reset();
    amp_cuda_any_stream(1);
    wire = AMP_FP32;
    return 0;
}

static int end(void **state)
{
    (void)state;
    assert_int_equal(nccl_double.communicators, 0);
    if (amp_cuda_faults()) print_message("%s\n", amp_cuda_fault());
    int faults = amp_cuda_faults();
    amp_cuda_forget_faults();
    return faults;
}

/* ---- ranks as threads ---- */

static void *run(void *pointer)
{
    rank *r = pointer;
    omp_set_num_threads(1);
    nccl_double_take_turn();
    r->live(r);
    nccl_double_give_turn();
    return NULL;
}

static void run_ranks(void (*live)(rank *))
{
    pthread_t threads[RANKS];
    for (int i = 0; i < RANKS; i++) {
        ranks[i].live = live;
        assert_int_equal(pthread_create(&threads[i], NULL, run, &ranks[i]), 0);
    }
    for (int i = 0; i < RANKS; i++) pthread_join(threads[i], NULL);
}

/* What the program does when something fails. */
static void give_up(rank *r)
{
    amp_comm *comm = r->comm ? r->comm : &r->host;
    comm->abort(comm, 1);
}

static void join(rank *r)
{
    r->status = amp_comm_nccl(&r->host, r->backend, &r->comm, &r->error);
    if (r->status != AMP_OK) give_up(r);
}

static void free_ranks(void)
{
    for (int i = 0; i < RANKS; i++) {
        amp_comm *comm = ranks[i].comm ? ranks[i].comm : &ranks[i].host;
        comm->destroy(comm);
        if (ranks[i].backend) ranks[i].backend->destroy(ranks[i].backend);
    }
}

/* ---- sums alone ---- */

#define STEP(call) do { if (r->status == AMP_OK) r->status = (call); } while (0)

static void sum_steps(rank *r, float *memory)
{
    amp_backend *b = r->backend;
    amp_error *e = &r->error;
    float values[FLOATS];
    int all[RANKS] = { 0 };
    for (int step = 0; step < UPDATES && r->status == AMP_OK; step++) {
        for (int i = 0; i < FLOATS; i++) values[i] = (float)(i + step + r->host.rank);
        snprintf(r->comm->phase, sizeof r->comm->phase, "step %d", step);
        STEP(b->upload(b, memory, values, sizeof values, e));
        STEP(b->scale(b, memory, FLOATS, 2, e));
        r->comm->settled = step > 0;
        STEP(r->comm->sum_begin(r->comm, memory, 100, wire, e));
        STEP(r->comm->sum_begin(r->comm, memory + 100, FLOATS - 100, wire, e));
        STEP(r->comm->sum_end(r->comm, e));
        STEP(b->scale(b, memory, FLOATS, 3, e));
        STEP(b->download(b, values, memory, sizeof values, e));
        STEP(r->comm->gather(r->comm, &step, sizeof step, all, e));
        for (int i = 0; i < FLOATS; i++)
            if (values[i] != 6 * (float)(2 * (i + step) + 1))
                STEP(amp_fail(e, AMP_COMM_FAILED, "step %d: sum %d is %g", step, i, (double)values[i]));
    }
}

static void sum(rank *r)
{
    void *memory;
    join(r);
    if (r->status != AMP_OK) return;
    STEP(r->backend->allocate(r->backend, FLOATS * sizeof(float), &memory, &r->error));
    sum_steps(r, memory);
    if (r->status != AMP_OK) give_up(r);
    r->backend->release(r->backend, memory);
}

static int fails_in_cuda; /* the call of CUDA's that fails, counted from 1, of the function `what` */

/* Whether the ranks summed. If not, all of them failed, and one says `what`; no line has a second. */
static int sums_or_says(const char *what, void (*live)(rank *))
{
    amp_error error;
    int failed = 0, said = 0;
    make_ranks(0, NULL);
    for (int i = 0; i < RANKS; i++) {
        ranks[i].backend = amp_cuda_backend_create(&error);
        assert_non_null(ranks[i].backend);
    }
    amp_cuda_fail_call(what, fails_in_cuda, cudaErrorNotSupported);
    run_ranks(live);
    amp_cuda_fail_call(what, 0, cudaSuccess);
    for (int i = 0; i < RANKS; i++) {
        failed += ranks[i].status != AMP_OK;
        said += failed && strstr(ranks[i].error.message, what);
        if (failed) assert_null(strchr(ranks[i].error.message, '\n'));
    }
    if (failed && failed != RANKS) fail_msg("%s: one of the ranks alone failed", what);
    if (failed && !said)
        fail_msg("no rank says %s: %s; %s", what, ranks[0].error.message, ranks[1].error.message);
    free_ranks();
    assert_int_equal(amp_cuda_leaks(), 0);
    return !failed;
}

TEST_WITH(gpus_sum_what_was_queued_before_for_what_is_queued_after, begin, end)
{
    assert_true(sums_or_says("", sum));
    assert_int_equal(nccl_double.sums, 2 * UPDATES * RANKS);
}

TEST_WITH(each_call_of_nccls_that_fails_ends_all_ranks, begin, end)
{
    static const struct { const char *name; int times[RANKS]; } calls[] = {
        { "ncclGetVersion", { 2, 0 } }, /* both count as rank 0's */
        { "ncclGetUniqueId", { 1, 0 } },
        { "ncclCommInitRank", { 1, 1 } },
        { "ncclAllReduce", { 2 * UPDATES, 2 * UPDATES } },
        /* at each sum_end, gather and meeting of threads: two of these in the first step, else one */
        { "ncclCommGetAsyncError", { 3 * UPDATES + 1, 3 * UPDATES + 1 } },
    };
    for (size_t c = 0; c < COUNT(calls); c++)
        for (int r = 0; r < RANKS; r++)
            for (int nth = 1; nth <= calls[c].times[r] + 1; nth++) {
                nccl_double_reset();
                nccl_double.fails = calls[c].name;
                nccl_double.of_rank = r;
                nccl_double.nth = nth;
                assert_int_equal(sums_or_says(calls[c].name, sum), nth > calls[c].times[r]);
            }
}

TEST_WITH(a_connection_that_breaks_ends_all_ranks, begin, end)
{
    nccl_double.breaks = 1;
    assert_false(sums_or_says("ncclAllReduce failed in step 0 on rank", sum));
    assert_true(nccl_double.aborts > 0);
}

TEST_WITH(each_call_of_cudas_that_fails_ends_all_ranks, begin, end)
{
    static const struct { const char *name; int times; } calls[] = {
        { "cudaStreamCreate", RANKS }, { "cudaEventCreate", 2 * RANKS },
        { "cudaEventRecord", 3 * UPDATES * RANKS }, { "cudaStreamWaitEvent", 3 * UPDATES * RANKS },
    };
    for (size_t c = 0; c < COUNT(calls); c++)
        for (fails_in_cuda = 1; fails_in_cuda <= calls[c].times + 1; fails_in_cuda++)
            assert_int_equal(sums_or_says(calls[c].name, sum), fails_in_cuda > calls[c].times);
    fails_in_cuda = 0;
}

TEST_WITH(a_library_that_is_missing_or_old_is_said_with_what_to_do, begin, end)
{
    nccl_double.missing = 1;
    assert_false(sums_or_says("libnccl.so.2 was not found, but GPUs sum gradients with it: install", sum));
    nccl_double_reset();
    nccl_double.lacks = "ncclCommAbort";
    assert_false(sums_or_says("libnccl.so.2 has no ncclCommAbort: install NCCL 2.10 or later", sum));
}

TEST_WITH(gradients_travel_in_fp32_only, begin, end)
{
    wire = AMP_BF16;
    assert_false(sums_or_says("wire=bf16: GPUs exchange gradients in fp32 only", sum));
}

TEST_WITH(where_bits_are_promised_nccls_order_is_pinned, begin, end)
{
    setenv("AMP_CUDA_DETERMINISTIC", "1", 1);
    setenv("NCCL_ALGO", "Tree", 1);
    assert_true(sums_or_says("", sum));
    assert_string_equal(getenv("NCCL_NVLS_ENABLE"), "0");
    assert_string_equal(getenv("NCCL_ALGO"), "Tree");
    unsetenv("NCCL_NVLS_ENABLE");
    unsetenv("AMP_CUDA_DETERMINISTIC");
    assert_true(sums_or_says("", sum));
    assert_null(getenv("NCCL_NVLS_ENABLE"));
    unsetenv("NCCL_ALGO");
    unsetenv("NCCL_PROTO");
}

/* ---- a rank that does not come ---- */

static void note_lost(const char *line)
{
    nccl_double_take_turn();
    snprintf(ranks[0].lost, sizeof ranks[0].lost, "%s", line);
    nccl_double_is_gone();
    nccl_double_give_turn();
}

static void sum_without_rank_1(rank *r)
{
    r->host.one_program = 0; /* or the threads would wait for each other */
    r->host.seconds = .05;
    r->host.lost = note_lost;
    if (r->host.rank == 0) {
        sum(r);
        return;
    }
    join(r);
    if (r->status == AMP_OK) r->status = AMP_COMM_FAILED;
    r->error.message[0] = 0;
}

TEST_WITH(a_rank_that_does_not_come_is_told_of_after_the_time_limit, begin, end)
{
    assert_false(sums_or_says("ncclAllReduce failed in step 0 on rank 0", sum_without_rank_1));
    assert_non_null(strstr(ranks[0].lost, "ranks: step 0: rank 0's GPU got no answer"));
}

/* ---- which GPU ---- */

TEST_WITH(a_rank_takes_the_gpu_of_its_number_among_those_it_may_see, begin, end)
{
    static const char variable[] = "CUDA_VISIBLE_DEVICES";
    static const struct { const char *seen; int number, there; const char *taken; } cases[] = {
        { NULL, 3, 1, "3" }, { "4,5,GPU-7f", 0, 1, "4" }, { "4,5,GPU-7f", 2, 1, "GPU-7f" },
        { "4,5,GPU-7f", 3, 0, "4,5,GPU-7f" }, { "6", 3, 1, "6" },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        if (cases[i].seen) setenv(variable, cases[i].seen, 1);
        assert_int_equal(amp_fork_take_gpu(cases[i].number), cases[i].there);
        assert_string_equal(getenv(variable), cases[i].taken);
        unsetenv(variable);
    }
    amp_cuda_fail_call("cudaGetDeviceCount", 1, cudaErrorNoDevice);
    assert_false(amp_fork_take_gpu(9));
    cudaGetLastError();
    unsetenv(variable);
    amp_cuda_device_count = 2; /* of a CUDA that was started before, and does not read the variable again */
    assert_int_equal(amp_fork_take_gpu(0), -1);
    amp_cuda_device_count = 1;
    unsetenv(variable);
}

TEST_WITH(a_gpu_that_cuda_does_not_work_with_is_said_with_what_to_do, begin, end)
{
    amp_error error;
    assert_int_equal(amp_fork_find_gpu(0, &error), AMP_OK);
    amp_cuda_fail_call("cudaSetDevice", 1, cudaErrorInsufficientDriver);
    assert_int_equal(amp_fork_find_gpu(0, &error), AMP_UNSUPPORTED);
    assert_non_null(strstr(error.message, "cudaErrorInsufficientDriver"));
    assert_non_null(strstr(error.message, "install a newer driver (this machine may have none), or build"));
}

/* ---- a training; last, since Darknet leaves some memory behind ---- */

#define NET(more) NET_OF("4", more)
#define NET_OF(cut, more) "[net]\nbatch=4\nsubdivisions=" cut "\nlearning_rate=.01\nmomentum=.9\n" \
    "decay=.0005\nmax_batches=100\ninit_scale=8\n" more
#define CONV(filters) "[convolutional]\nbatch_normalize=1\nfilters=" #filters "\nsize=3\nstride=1\npad=1\n" \
    "activation=leaky\n"

/* A detector; a classifier of which Darknet computes two layers itself, on the default stream. */
static const char *const cfgs[] = {
    NET("width=16\nheight=16\nchannels=3\n") CONV(8) "[maxpool]\nsize=2\nstride=2\n" CONV(16)
    "[convolutional]\nfilters=14\nsize=1\nstride=1\nactivation=linear\n"
    "[yolo]\nmask=0,1\nanchors=4,5, 8,9, 12,12\nclasses=2\nnum=3\n",
    NET("width=8\nheight=8\nchannels=3\nadam=1\n") CONV(8) "[normalization]\nalpha=0.1\nbeta=.75\nsize=5\n"
    "[l2norm]\n[connected]\noutput=6\nactivation=linear\n[softmax]\n",
};

/* For ranks, and for one whose mini-batch is as large as theirs together. Darknet runs nothing of it: its
 * work waits for all streams of a device, which is one for the ranks here. */
#define SYNCED(cut) NET_OF(cut, "width=16\nheight=16\nchannels=3\nsync_batchnorm=1\n") CONV(8) \
    "[maxpool]\nsize=2\nstride=2\n" \
    "[convolutional]\nbatch_normalize=1\nfilters=5\nsize=1\nstride=1\nactivation=logistic\n" \
    "[convolutional]\nfilters=14\nsize=1\nstride=1\nactivation=linear\n" \
    "[yolo]\nmask=0,1\nanchors=4,5, 8,9, 12,12\nclasses=2\nnum=3\n"

static network *make(const char *cfg)
{
    char name[32];
    put_cfg(name, cfg);
    darknet_amp_start(3, (char *[]){ "darknet", "-amp", "fp32", NULL });
    srand(5);
    network *net = parse_network_cfg(name);
    unlink(name);
    return net;
}

static void copy_masters(network *from, network *to)
{
    int count;
    const amp_param *a = engine_params(from->amp->engine, &count);
    const amp_param *b = engine_params(to->amp->engine, &count);
    for (int i = 0; i < count; i++)
        assert_int_equal(cudaMemcpy(b[i].master, a[i].master, a[i].count * sizeof(float), cudaMemcpyDefault),
                         cudaSuccess);
    darknet_amp_weights_changed(to);
}

static void feed(network *net, int image, unsigned seed)
{
    seed = random_floats(net->input + image * net->inputs, net->inputs, seed);
    set_truth(net, image, seed >> 8);
}

static long waits_in_backward; /* but for the first step's, where each sum is waited for */
static int measures;           /* rank 0 predicts at another size after each step, as -map does */

static void predict_at_another_size(network *net)
{
    int size = net->w;
    resize_network(net, 2 * size, 2 * size);
    amp_host_predict(net, net->input);
    resize_network(net, size, size);
}

/* As host/program/sharing.c has it: the rank's block of each step's subdivisions. A mini-batch of several
 * images has those that as many ranks have in the same pass. */
static void train_network_of(network *net, int rank_number, int size)
{
    int passes = net->subdivisions / size;
    for (int step = 0; step < UPDATES; step++) {
        for (int s = 0; s < passes; s++) {
            for (int i = 0; i < net->batch; i++)
                feed(net, i, 77u * (unsigned)step + (unsigned)((rank_number + i) * passes + s));
            net->train = 1;
            *net->seen += (size_t)(net->batch * size);
            forward_network(net);
            long before = nccl_double_own_waits();
            backward_network(net);
            long waits = nccl_double_own_waits() - before; /* one is for the losses of its forward */
            if (step && !measures && waits > 1) waits_in_backward += waits - 1;
        }
        update_network(net);
        if (measures && size > 1 && rank_number == 0) predict_at_another_size(net);
    }
}

static size_t bucket;

static void train(rank *r)
{
    r->backend = r->net->amp->engine->backend;
    join(r);
    r->backend = NULL; /* the engine's */
    if (r->status != AMP_OK) return;
    amp_engine *engine = r->net->amp->engine;
    amp_parallel_join(&engine->parallel, r->comm, wire, bucket, engine->settings.sync_batchnorm);
    train_network_of(r->net, r->host.rank, RANKS);
}

static void add_distance(const float *there, const float *wanted, size_t count, double *apart, double *size)
{
    float *a = calloc(2 * count, sizeof *a), *b = a + count;
    cudaMemcpy(a, there, count * sizeof *a, cudaMemcpyDefault);
    cudaMemcpy(b, wanted, count * sizeof *b, cudaMemcpyDefault);
    for (size_t i = 0; i < count; i++) {
        *apart += pow((double)a[i] - (double)b[i], 2);
        *size += pow((double)b[i], 2);
    }
    free(a);
}

/* Layer by layer, weights and rolling statistics apart. */
static void assert_near(network *net, network *wanted, double bound)
{
    amp_parameters a = net->amp->engine->parameters;
    amp_parameters b = wanted->amp->engine->parameters;
    for (int layer = 0; layer < net->n; layer++) {
        double apart[2] = { 0, 0 }, size[2] = { 0, 0 };
        for (int i = 0; i < a.param_count; i++)
            if (a.params[i].layer == layer)
                add_distance(a.params[i].master, b.params[i].master, a.params[i].count, &apart[0], &size[0]);
        for (int i = 0; i < a.statistics_count; i++)
            if (a.statistics[i].layer == layer)
                add_distance(a.statistics[i].array, b.statistics[i].array, a.statistics[i].count, &apart[1],
                             &size[1]);
        for (int k = 0; k < 2; k++)
            if (!(sqrt(apart[k]) <= bound * sqrt(size[k])))
                fail_msg("%s of layer %d: %g of %g apart", k ? "statistics" : "weights", layer,
                         sqrt(apart[k]), sqrt(size[k]));
    }
}

static void compare_with_one(const char *of_one, const char *of_ranks)
{
    network *one = make(of_one);
    make_ranks(0, NULL);
    for (int i = 0; i < RANKS; i++) {
        ranks[i].net = make(of_ranks);
        copy_masters(one, ranks[i].net);
    }
    nccl_double.sums = 0;
    train_network_of(one, 0, 1);
    run_ranks(train);
    for (int i = 0; i < RANKS; i++) {
        if (ranks[i].status != AMP_OK) fail_msg("%s", ranks[i].error.message);
        assert_non_null(strstr(ranks[i].comm->name, "NCCL 2.32.3, threads"));
        assert_near(ranks[i].net, one, 1e-6);
    }
    assert_near(ranks[0].net, ranks[1].net, 0);
    assert_int_equal(ranks[0].net->amp->skipped, 0);
    assert_int_equal(waits_in_backward, 0);
    for (int i = 0; i < RANKS; i++) assert_int_equal(ranks[i].host.has_summed, 1); /* so its limit is 1 */
    for (int i = 0; i < RANKS; i++) free_network(ranks[i].net);
    free_ranks();
    free_network(one);
}

TEST_WITH(two_gpus_train_what_one_does, begin, end)
{
    for (size_t c = 0; c < COUNT(cfgs); c++) {
        bucket = c ? AMP_BUCKET : 100;
        compare_with_one(cfgs[c], cfgs[c]);
        /* Each step's statistics, and gradients in one or many buckets. */
        assert_true(nccl_double.sums >= (c ? 2 : 10) * RANKS * UPDATES);
    }
}

/* In each of two passes two batch norms sum twice, and the host waits for none of it. */
TEST_WITH(with_sync_batchnorm_two_gpus_train_what_one_does_with_twice_the_mini_batch, begin, end)
{
    bucket = AMP_BUCKET;
    compare_with_one(SYNCED("2"), SYNCED("4"));
    assert_int_equal(nccl_double.sums, (1 + 2 * 2 * 2) * RANKS * UPDATES);
}

/* It takes memory anew in the step behind that, while the other's GPU may be at a sum of batch norm: the
 * double of NCCL reports memory that is taken then. */
TEST_WITH(a_gpu_that_has_predicted_at_another_size_keeps_no_other_waiting, begin, end)
{
    bucket = AMP_BUCKET;
    measures = 1;
    compare_with_one(SYNCED("2"), SYNCED("4"));
    measures = 0;
}

/* ---- -gpus 0,1: Darknet's own train_networks ---- */

enum { STEP_IMAGES = 4 }; /* images, each a mini-batch, as cfgs have it */

static data make_data(const network *net, unsigned seed)
{
    data d = { .X = make_matrix(STEP_IMAGES, net->inputs), .y = make_matrix(STEP_IMAGES, net->truths) };
    for (int row = 0; row < STEP_IMAGES; row++) {
        network one = *net;
        one.input = d.X.vals[row];
        one.truth = d.y.vals[row];
        feed(&one, 0, seed + (unsigned)row);
    }
    return d;
}

static void train_both(network *one, network **nets, data d, int skipped)
{
    float alone = train_network(one, d), together = train_networks(nets, RANKS, d, 1);
    if (!skipped && fabsf(alone - together) > 1e-5f * fabsf(alone))
        fail_msg("a loss of %g, and of %g together", (double)alone, (double)together);
    for (int i = 0; i < RANKS; i++) {
        assert_near(nets[i], one, 1e-6);
        assert_near(nets[i], nets[0], 0);
        assert_int_equal(*nets[i]->seen, *one->seen);
        assert_true(get_current_rate(nets[i]) == get_current_rate(one));
        assert_int_equal(nets[i]->amp->step_skipped, skipped);
    }
}

TEST_WITH(darknets_train_networks_makes_the_steps_of_one_gpu, begin, end)
{
    for (size_t c = 0; c < COUNT(cfgs); c++) {
        network *one = make(cfgs[c]), *nets[RANKS];
        for (int i = 0; i < RANKS; i++) nets[i] = make(cfgs[c]);
        copy_masters(one, nets[0]); /* the others' come from there */
        darknet_amp_resume(nets, RANKS);
        for (unsigned step = 0; step < UPDATES + 1; step++) {
            data d = make_data(one, 77 * step);
            int skipped = step == 1;
            if (skipped) d.X.vals[STEP_IMAGES - 1][3] = NAN; /* rank 1's */
            train_both(one, nets, d, skipped);
            free_data(d);
        }
        assert_non_null(strstr(nets[1]->amp->comm->name, "NCCL 2.32.3, threads"));
        sync_nets(nets, RANKS, 0); /* as train_detector does before it saves: nothing happens */
        assert_near(nets[1], one, 1e-6);
        for (int i = 0; i < RANKS; i++) free_network(nets[i]);
        free_network(one);
    }
}

static const network *in_use;
void __real_amp_fork_use_device(const network *);
void __wrap_amp_fork_use_device(const network *);

void __wrap_amp_fork_use_device(const network *net)
{
    in_use = net;
    __real_amp_fork_use_device(net);
}

/* What is saved behind them is rank 0's: its kernels would fail on another GPU. */
TEST_WITH(recurrent_states_are_gathered_from_all_gpus_and_rank_0s_is_in_use_again, begin, end)
{
    network *nets[RANKS];
    for (int i = 0; i < RANKS; i++)
        nets[i] = make("[net]\nbatch=4\nsubdivisions=4\ninputs=10\ntime_steps=3\n[gru]\noutput=8\n"
                       "[connected]\noutput=10\n[softmax]\n");
    darknet_amp_resume(nets, RANKS);
    amp_fork_use_device(nets[0]);
    amp_resume_gather_states(nets[0]);
    assert_non_null(nets[0]->amp->resume->rank_states);
    assert_ptr_equal(in_use, nets[0]);
    for (int i = 0; i < RANKS; i++) free_network(nets[i]);
}

/* ---- the whole of it: `detector train ... -gpus 0,0`, and classifier ---- */

typedef void loop(char *data_file, char *cfg, char *weights, int *gpus, int count, int clear);
loop train_detector, train_classifier; /* Darknet's */

static const struct { const char *command; loop *train; const char *data, *final; int classes; } loops[] = {
    { "detector", train_detector, "boxes.data", "my_final.weights", 2 },
    { "classifier", train_classifier, "classes.data", "my.weights", 6 },
};

enum { IMAGES = 6, SIDE = 16 };

static void write_data(int l)
{
    static const char head[] = "P6 16 16 255\n", label[] = "1 .5 .4 .3 .2\n", data_file[] =
        "classes=%d\nlabels=labels.txt\ntrain=train.txt\nbackup=.\n", labels[] = "a\nb\nc\nd\ne\nf\n";
    char list[IMAGES * 32] = "", name[32], text[sizeof data_file + 8];
    unsigned seed = 3;
    for (int i = 0; i < IMAGES; i++) {
        char image[sizeof head - 1 + 3 * SIDE * SIDE];
        memcpy(image, head, sizeof head - 1);
        for (size_t k = sizeof head - 1; k < sizeof image; k++)
            image[k] = (char)((seed = seed * 1664525u + 1013904223u) >> 24);
        snprintf(name, sizeof name, "%c_%d.jpg", 'a' + i, i);
        put_bytes(name, image, sizeof image);
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s\n", name);
        snprintf(name, sizeof name, "%c_%d.txt", 'a' + i, i);
        put_bytes(name, label, sizeof label - 1);
    }
    put_bytes("train.txt", list, strlen(list));
    put_bytes("labels.txt", labels, strlen(labels));
    snprintf(text, sizeof text, data_file, loops[l].classes);
    put_bytes(loops[l].data, text, strlen(text));
}

/* So many steps; weights: where to begin, or NULL. Returns the network that they end with. */
static network *train_as_user(int l, const char *gpus, int steps, char *weights)
{
    char cfg[2048], *end = strstr(cfgs[l], "max_batches=100\n"), *arguments[] = {
        "darknet", (char *)loops[l].command, "train", (char *)loops[l].data, "my.cfg", "-amp", "fp32",
        "-seed", "7", "-gpus", (char *)gpus, NULL };
    int numbers[] = { 0, 0 };
    snprintf(cfg, sizeof cfg, "%.*smax_batches=%d\n%s", (int)(end - cfgs[l]), cfgs[l], steps,
             strchr(end, '\n') + 1);
    put_bytes("my.cfg", cfg, strlen(cfg));
    darknet_amp_start(COUNT(arguments) - 1, arguments);
    amp_random_set_next_job(1); /* as in a program of its own */
    loops[l].train((char *)loops[l].data, "my.cfg", weights, numbers, 1 + (strchr(gpus, ',') != NULL), 0);
    darknet_amp_start(3, (char *[]){ "darknet", "-amp", "fp32", NULL });
    network *net = parse_network_cfg("my.cfg");
    load_weights(net, (char *)loops[l].final);
    return net;
}

static void check_loop(int l)
{
    network *one = train_as_user(l, "0", 4, NULL);
    for (int first = 0; first < 2; first++) {
        static const char *const gpus[] = { "0", "0,0" };
        network *half = train_as_user(l, gpus[first], 2, NULL);
        /* train_detector frees no network, train_classifier the first one */
        assert_int_equal(nccl_double.communicators, first ? RANKS - l : 0);
        nccl_double_reset();
        char sidecar[64];
        snprintf(sidecar, sizeof sidecar, "%s.amp", loops[l].final);
        rename(loops[l].final, "half.weights");
        rename(sidecar, "half.weights.amp");
        network *whole = train_as_user(l, gpus[!first], 4, "half.weights");
        nccl_double_reset();
        assert_near(whole, one, 1e-6);
        assert_int_equal(*whole->seen, *one->seen);
        free_network(half);
        free_network(whole);
    }
    free_network(one);
}

TEST_WITH(training_on_two_gpus_is_that_on_one_and_each_goes_on_from_the_other, begin, end)
{
    setenv("OMP_WAIT_POLICY", "passive", 1); /* or the program would start itself again */
    for (int l = 0; l < (int)COUNT(loops); l++) {
        write_data(l);
        check_loop(l);
    }
}

/* As a program for GPUs: `detector train DATA CFG [WEIGHTS] -gpus 0,0 ...`, for e2e_ranks. */
static int train_on_two(int argc, char **argv)
{
    int numbers[RANKS] = { 0 };
    begin(NULL);
    darknet_amp_start(argc, argv);
    train_detector(argv[3], argv[4], *argv[5] == '-' ? NULL : argv[5], numbers, RANKS, 0);
    return amp_cuda_faults() != 0;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1) return train_on_two(argc, argv);
    return run_listed_tests("ranks on GPUs", enter_folder, leave_folder);
}
