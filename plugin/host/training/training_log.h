/* One row per training step: `-log FILE.csv`, and the lines that a training which takes turns writes. */
#pragma once

#include "../../tensor/tensor.h"
#include "log_file.h"

#define AMP_LOG_COLUMNS "iteration,loss,avg_loss,learning_rate,scale,found_inf,grad_norm,images_per_second," \
                        "load_seconds,train_seconds,peak_memory_mb,time,wire,spike"

/* Of a step: whether it was a spike (../../amp/spikes.h). NO_RULE: nobody looked, without AMP or with
 * spike_factor=0. */
typedef enum amp_log_spike_word {
    AMP_LOG_NO_RULE = -1, AMP_LOG_NO_SPIKE, AMP_LOG_SPIKE, AMP_LOG_DROPPED
} amp_log_spike_word;

typedef struct amp_log_row {
    long iteration;           /* steps that count, this one included: Darknet's batch number. A skipped step
                                 repeats the last */
    float loss, avg_loss;     /* as Darknet prints them */
    float learning_rate;
    float scale;              /* with which this step was made; 1 without AMP */
    int found_inf;            /* the step was skipped, of an overflow */
    double grad_norm;         /* L2, unscaled, averaged over the batch, before clipping; NaN without AMP or
                                 after an overflow */
    double images_per_second; /* of this step: the images of all ranks by load_seconds + train_seconds. So
                                 loading is included; saving files, -map and waiting for a turn are not.
                                 NaN where the clock says that no time went by */
    double load_seconds, train_seconds; /* until the images are there (with random=1 resizing too); the step
                                           after that */
    double peak_memory_mb;    /* of the process; on a GPU the most in use there at a step's end, by whatever
                                 program */
    double time;              /* when the step ended, in seconds since 1970 */
    int wire;                 /* what gradients travelled in from rank to rank, an amp_dtype; -1: there is one
                                 rank */
    int spike;                /* an amp_log_spike_word */
} amp_log_row;

/* Whether the step changed nothing: its iteration is the one before. */
static inline int amp_log_is_skipped(const amp_log_row *row)
{
    return row->found_inf || row->spike == AMP_LOG_DROPPED;
}

/* Room for one row's text. */
enum { AMP_LOG_TEXT = 256 };

/* As CSV, without newline: numbers as short as they can be read back exactly; nan and inf as such, an
 * unknown grad_norm or images_per_second empty, and so are the wire of one rank and a spike that nobody
 * looked for; else that is 0, 1 or skipped. */
const char *amp_log_row_text(const amp_log_row *, char text[AMP_LOG_TEXT]);
/* The inverse. AMP_BAD_CONFIG: no such row. */
amp_status amp_log_row_read(const char *text, amp_log_row *, amp_error *);

/* All rows of a file, which a training may be writing: a last line that is not whole yet is left out. */
typedef struct amp_log_rows { amp_log_row *row; size_t count, room; } amp_log_rows;

/* Starts zeroed; the caller frees rows->row, also on failure. AMP_BAD_CONFIG: the file cannot be read, or is
 * no training log; the message names file and line. */
amp_status amp_log_rows_read(const char *file, amp_log_rows *rows, amp_error *);

/* Opens or makes the log of a training that goes on after `iteration`: rows of later steps are dropped.
 * steps, skipped: what the backup counts; 0 where the training begins. A log that cannot be used ends the
 * program. */
void amp_log_resume(amp_log_file *, const char *name, long iteration, unsigned long steps,
                    unsigned long skipped);
