/* The .cfg that is measured: a copy of the user's. */
#include "bench.h"

#include <string.h>

#include "../cfg_copy.h"
#include "../../host/common/request.h"

/* A low learning rate keeps a network with random weights from overflowing, and changes no time. A step of
 * one pass measures the update too: it does the same work after one pass as after many. */
amp_status amp_bench_write_cfg(const amp_bench_request *r, int batch, int subdivisions, char *name,
                               amp_error *error)
{
    const amp_cfg_change changes[] = { { "batch", batch }, { "subdivisions", subdivisions }, { "burn_in", 0 },
        { "learning_rate", 1e-6 }, { "max_batches", 1e6 }, { "width", (double)r->size },
        { "height", (double)r->size } };
    amp_error cause;
    AMP_TRY(amp_cfg_copy_in_memory(r->cfg, changes, r->size ? 7 : 5, name, error));
    if (amp_host_check_cfg(name, CFG_FOR_ANYTHING, &cause) == AMP_OK) return AMP_OK;
    const char *what = strchr(cause.message + strlen(name), ' '); /* behind the file and line of the copy */
    return amp_fail(error, AMP_BAD_CONFIG, "%.300s with this -batch and -size (most detectors want a "
                    "multiple of 32):%s", r->cfg, what ? what : "");
}
