/* Helpers for the tests of optimizers: every kind of layer with parameters, networks from tests/cfg with
 * other keys, and steps that stop before the update. Include CMocka first. */
#ifndef OPTIMIZER_TESTING_H
#define OPTIMIZER_TESTING_H

#include "engine_testing.h"

/* All except the first have layers whose backward is Darknet's own. */
static const char *const kinds[] = { "convolutional_batchnorm", "convolutional_groups", "connected",
    "batchnorm", "local",
#ifndef DARKNET_AMP_ALEXEYAB /* it has no deconvolutional layer, and trains these only with -amp off */
    "deconvolutional", "rnn", "lstm", "gru", "crnn", "recurrent_batchnorm",
#endif
};

/* ---- networks ---- */

/* Loads tests/cfg/NAME.cfg with more keys at the start of [net] and of the first layer, where Darknet's
 * parser finds them first. */
static inline network *load(const char *name, const char *net_keys, const char *layer_keys, const char *dtype)
{
    static char text[1 << 16], more[1 << 17];
    char path[5000];
    snprintf(path, sizeof path, "%s/%s.cfg", networks_folder(), name);
    FILE *file = fopen(path, "r");
    if (!file) fail_msg("cannot read %s", path);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    char *net = strstr(text, "[net]\n") + 6, *first = strchr(strchr(net, '['), '\n') + 1;
    snprintf(more, sizeof more, "%.*s%s%.*s%s%s", (int)(net - text), text, net_keys, (int)(first - net), net,
             layer_keys, first);
    return parse(more, dtype);
}

/* Forward and backward of one step, all subdivisions; the caller makes the update. */
static inline void gradients_of_step(network *net, unsigned seed)
{
    for (int s = 0; s < net->subdivisions; s++) {
        feed(net, seed + (unsigned)s);
        *net->seen += (size_t)net->batch;
        both_passes(net);
    }
}

static inline const amp_param *param_at(network *net, const float *master)
{
    int count;
    const amp_param *params = engine_params(net->amp->engine, &count);
    for (int i = 0; i < count; i++) if (params[i].master == master) return &params[i];
    fail_msg("an array that Darknet trains is not among the engine's parameters");
    return NULL;
}

static inline void assert_near(const char *kind, const amp_param *p, const char *what,
                               const float *got, const double *want, double tolerance)
{
    double size = 0;
    for (size_t e = 0; e < p->count; e++) size = fmax(size, fabs(want[e]));
    for (size_t e = 0; e < p->count; e++)
        if (!(fabs((double)got[e] - want[e]) <= tolerance * size))
            fail_msg("%s, layer %d, %s: %s[%zu] is %.9g, not %.9g", kind, p->layer, p->name, what, e,
                     (double)got[e], want[e]);
}

#endif
