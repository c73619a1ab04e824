/* Saves NAME and NAME.amp as a pair, in these steps:
 *
 *     1  the weights are written to NAME.new and flushed to disk
 *     2  the sidecar is written to NAME.amp.new and flushed
 *     3  NAME.amp.new is renamed to NAME.amp, and the folder flushed
 *     4  NAME.new is renamed to NAME, and the folder flushed
 *
 * Wherever a save is killed, sidecar_recover.c finds the old pair or completes the new one. A new save would
 * overwrite the NAME.new that it needs for that, so a killed save is completed first. */
#include "sidecar_format.h"

#include "../files/checksum.h"

amp_status amp_sidecar_begin(const char *name, amp_sidecar_save *save, amp_error *error)
{
    *save = (amp_sidecar_save){ 0 };
    AMP_TRY(amp_sidecar_before_save(name, error));
    AMP_TRY(amp_safe_file_begin(name, &save->weights, error));
    if (save->weights.direct) return AMP_OK;
    char *sidecar = amp_sidecar_name(save->weights.target);
    amp_status status = amp_safe_file_begin(sidecar, &save->sidecar, error);
    free(sidecar);
    if (status == AMP_OK && save->sidecar.direct) /* a FIFO would wait for a reader, and a device would not
                                                     keep the data */
        status = amp_fail(error, AMP_IO_FAILED, "cannot write %.500s: it is not a regular file; remove it",
                          save->sidecar.target);
    if (status != AMP_OK) amp_sidecar_cancel(save);
    return status;
}

static amp_status write_pair(amp_sidecar_save *save, amp_engine *engine, const amp_run_state *run,
                             amp_error *error)
{
    uint64_t sum;
    AMP_TRY(amp_safe_file_flush(&save->weights, error));
    AMP_TRY(amp_file_checksum(save->weights.temporary, &sum, error));
    return amp_sidecar_write(save->sidecar.temporary, engine, run, sum, error);
}

/* After the sidecar is renamed there is no way back: the weights are renamed too, or stay where recovery
 * finds them. */
static amp_status place_pair(amp_sidecar_save *save, amp_error *error)
{
    amp_error why;
    amp_status status = amp_safe_file_place(&save->sidecar, error);
    if (status != AMP_OK && save->sidecar.pending) return status;
    if (amp_safe_file_place(&save->weights, &why) == AMP_OK) return status;
    if (!save->weights.pending) return amp_fail(error, why.status, "%.900s", why.message);
    amp_safe_file_leave(&save->weights);
    return amp_fail(error, why.status, "%.700s; the complete weights are in %.200s", why.message,
                    save->weights.temporary);
}

amp_status amp_sidecar_finish(amp_sidecar_save *save, amp_engine *engine,
                                 const amp_run_state *run, amp_error *error)
{
    amp_status status = AMP_OK;
    if (!save->weights.direct) {
        status = write_pair(save, engine, run, error);
        if (status == AMP_OK) status = place_pair(save, error);
    }
    amp_sidecar_cancel(save);
    return status;
}
