/* The functions of the backend that costs.h names, each wrapped in a clock. CPU time, not wall time: on a
 * busy machine it still says what a step costs; with one thread on an idle machine the two are equal. */
#define _POSIX_C_SOURCE 199309L
#include "costs.h"

#include <stdlib.h>
#include <time.h>

#include "../plugin/host/darknet/room.h"
#include "gpu_parts.h"

static struct { amp_backend real; costs spent; } watched;
static amp_backend unwatched;

double costs_now(void)
{
#ifdef GPU
    gpu_wait();
    return gpu_now();
#else
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
#endif
}

#define TIMED(part, call) do { \
        double began = costs_now(); \
        amp_status status = call; \
        watched.spent.part += costs_now() - began; \
        return status; \
    } while (0)

static amp_status check_gradients(amp_backend *b, const amp_param *params, int count, float inverse_scale,
                                  int *found_inf, double *sum_squares, amp_error *error)
{
    TIMED(check_update, watched.real.check_gradients(b, params, count, inverse_scale, found_inf, sum_squares,
                                                     error));
}

static amp_status finish_step(amp_backend *b, const amp_step_end *end, amp_step_outcome *out,
                              amp_error *error)
{
    TIMED(check_update, watched.real.finish_step(b, end, out, error));
}

static amp_status conv_load_weights(amp_backend *b, const amp_conv_weights *all, int count, int *failed,
                                    amp_error *error)
{
    TIMED(half_copies, watched.real.conv_load_weights(b, all, count, failed, error));
}

static amp_status cast(amp_backend *b, const amp_tensor *src, const amp_tensor *dst, int accumulate,
                       amp_error *error)
{
    TIMED(casts, watched.real.cast(b, src, dst, accumulate, error));
}

int costs_watch(network *net)
{
    if (!net->amp) return 0;
    amp_backend *backend = net->amp->engine->backend;
    watched.real = *backend;
    watched.spent = (costs){ 0 };
    backend->check_gradients = check_gradients;
    backend->finish_step = finish_step;
    backend->conv_load_weights = conv_load_weights;
    backend->cast = cast;
    return 1;
}

costs costs_take(void)
{
    costs spent = watched.spent;
    watched.spent = (costs){ 0 };
    return spent;
}

void costs_operations_begin(network *net)
{
    if (net->amp) unwatched = *net->amp->engine->backend;
}

void costs_print_operations(network *net, int steps, float (*step)(network *), FILE *result)
{
    amp_operation_times t;
    amp_error error;
    if (!net->amp || !unwatched.operation_times || !steps) return;
    amp_backend *backend = net->amp->engine->backend;
    *backend = unwatched;
    amp_status status = backend->operation_times(backend, &t, &error);
    for (int i = 0; i < steps && status == AMP_OK; i++) step(net);
    if (status == AMP_OK) status = backend->operation_times(backend, &t, &error);
    if (status != AMP_OK) {
        fprintf(stderr, "step: no times of operations: %s\n", error.message);
        return;
    }
    fprintf(result, "\"limits\": [%.1f, %.1f, %.1f], \"operations\": [", t.bytes_per_ms * 1e-6,
            t.half_per_ms * 1e-6, t.fp32_per_ms * 1e-6);
    for (int i = 0; i < t.count; i++) {
        const amp_operation_time *o = &t.rows[i];
        fprintf(result, "%s[\"%s\", \"%s\", %g, %.4f, %.3f, %.3f, %d]", i ? ", " : "", o->layer, o->operation,
                (double)o->calls / steps, o->ms / steps, o->bytes / steps * 1e-6, o->products / steps * 1e-9,
                o->half);
    }
    fprintf(result, "], ");
    free(t.rows);
}
