/* Helpers for the scaler's tests. Include it after CMocka. */
#ifndef SCALER_TESTING_H
#define SCALER_TESTING_H

#include <math.h>
#include <string.h>

#include "amp/scaler.h"
#include "tensor/half.h"

static inline amp_scaler made(amp_scaler params)
{
    amp_scaler scaler;
    amp_error error = { 0 };
    if (amp_scaler_init(&scaler, &params, &error) != AMP_OK) fail_msg("init: %s", error.message);
    return scaler;
}

/* without our cap, as in torch */
static inline amp_scaler dynamic(double scale, int interval, double growth, double backoff)
{
    amp_scaler params = amp_scaler_defaults();
    params.max_scale = INFINITY;
    params.scale = scale;
    params.growth_interval = interval;
    params.growth_factor = growth;
    params.backoff_factor = backoff;
    return made(params);
}

static inline amp_scaler fixed(double scale)
{
    return made((amp_scaler){ .enabled = 1, .dynamic = 0, .scale = scale });
}

static inline void update(amp_scaler *scaler, int found_inf)
{
    assert_int_equal(amp_scaler_update(scaler, found_inf), AMP_OK);
}

static inline void same_float(float got, double expected)
{
    if (amp_float_bits(got) != amp_float_bits((float)expected))
        fail_msg("%.9g instead of %.9g", got, expected);
}

#endif
