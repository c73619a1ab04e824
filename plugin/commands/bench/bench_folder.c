/* The temporary folder of a measurement, and the .cfg in it that is measured. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../cfg_copy.h"

#include "../../host/common/request.h"

/* At its full rate a network so young jumps about; the time does not depend on the rate. The update that
 * follows each pass does the same work as one that follows many. */
amp_status amp_bench_write_cfg(const amp_bench_request *r, int batch, int subdivisions, const char *to,
                               amp_error *error)
{
    const amp_cfg_change changes[] = { { "batch", batch }, { "subdivisions", subdivisions }, { "burn_in", 0 },
        { "learning_rate", 1e-6 }, { "max_batches", 1e6 }, { "width", (double)r->size },
        { "height", (double)r->size } };
    amp_error cause;
    AMP_TRY(amp_cfg_copy(r->cfg, to, changes, r->size ? 7 : 5, error));
    if (amp_host_check_cfg(to, CFG_FOR_ANYTHING, &cause) == AMP_OK) return AMP_OK;
    const char *what = strchr(cause.message + strlen(to), ' '); /* behind the file and line of the copy */
    return amp_fail(error, AMP_BAD_CONFIG, "%.300s with this -batch and -size (most detectors want a "
                    "multiple of 32):%s", r->cfg, what ? what : "");
}

amp_status amp_bench_make_folder(char folder[AMP_BENCH_FOLDER], amp_error *error)
{
    const char *parent = getenv("TMPDIR");
    if (!parent || !*parent) parent = "/tmp";
    if (snprintf(folder, AMP_BENCH_FOLDER, "%s/amp-bench-XXXXXX", parent) < AMP_BENCH_FOLDER
        && mkdtemp(folder)) return AMP_OK;
    return amp_fail(error, AMP_IO_FAILED, "%s: cannot make a temporary folder: %s", parent, strerror(errno));
}
