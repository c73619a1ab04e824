/* The parameters of an engine, in .cfg order; *count: their number. */
#pragma once

#include "amp/engine.h"

static inline const amp_param *engine_params(const amp_engine *engine, int *count)
{
    amp_parameters state = engine->parameters;
    *count = state.param_count;
    return state.params;
}
