/* How a training step depends on the number of OpenMP threads: with the same number runs are identical,
 * and with another number only the order of sums differs. The plugin's own sums are cut into blocks that
 * do not depend on it (test_backend_kernels_*.c); oneDNN sums the gradients of a convolution's weights per
 * thread. */
#define _DEFAULT_SOURCE /* mkstemps */
#include "testing.h"

#include <omp.h>

#include "engine_testing.h"

enum { MOST_THREADS = 3 };

/* Large enough for every loop to be divided among threads. */
static const char cfg[] = "[net]\nbatch=4\nwidth=48\nheight=48\nchannels=3\nlearning_rate=0.0002\n"
    "momentum=0.9\ndecay=0.01\n"
    "max_batches=100\namp=1\ninit_scale=64\n" CONV(16, "") "[maxpool]\nsize=2\nstride=2\n"
    CONV(32, "") CONV(32, "")
    "[shortcut]\nfrom=-2\nactivation=linear\n[route]\nlayers=-1,-3\n" TAIL;

/* oneDNN reads the number of threads when a convolution is created. */
static network *trained(const char *dtype, int threads, unsigned steps)
{
    omp_set_num_threads(threads);
    network *net = parse(cfg, dtype);
    for (unsigned step = 0; step < steps; step++) train_step(net, 10 * step);
    return net;
}

TEST(a_training_repeats_bit_for_bit_with_the_same_number_of_threads)
{
    int before = omp_get_max_threads();
    for (int t = 0; t < 3; t++)
        for (int threads = 1; threads <= MOST_THREADS; threads++) {
            network *a = trained(dtype_names[t], threads, 4), *b = trained(dtype_names[t], threads, 4);
            assert_true(are_alike(a, b));
            assert_int_equal(a->amp->steps, 4);
            release(a);
            release(b);
        }
    omp_set_num_threads(before);
}

static void run_to_gradients(network *net)
{
    feed(net, 3);
    both_passes(net);
}

TEST(other_numbers_of_threads_change_gradients_by_rounding_only)
{
    int before = omp_get_max_threads(), count;
    for (int t = 0; t < 3; t++) {
        network *one = trained(dtype_names[t], 1, 0);
        run_to_gradients(one);
        const amp_param *p = engine_params(one->amp->engine, &count);
        for (int threads = 2; threads <= MOST_THREADS; threads++) {
            network *many = trained(dtype_names[t], threads, 0);
            run_to_gradients(many);
            const amp_param *q = engine_params(many->amp->engine, &count);
            for (int i = 0; i < count; i++) {
                double apart = relative_distance(q[i].grad, p[i].grad, p[i].count);
                if (!(apart < 1e-5) && memcmp(q[i].grad, p[i].grad, p[i].count * sizeof(float)))
                    fail_msg("%s, %d threads: gradient of layer %d %s is %g apart", dtype_names[t], threads,
                             p[i].layer, p[i].name, apart);
            }
            release(many);
        }
        release(one);
    }
    omp_set_num_threads(before);
}

int main(void)
{
    gpu_index = -1;
    return run_listed_tests("tests", NULL, NULL);
}
