/* One row per training step, for `-log FILE.csv` and for the lines of a training that takes turns with
 * others. */
#pragma once

#include "../../tensor/tensor.h"
#include "log_file.h"

#define AMP_LOG_COLUMNS "iteration,loss,avg_loss,learning_rate,scale,found_inf,grad_norm,images_per_second," \
                        "load_seconds,train_seconds,peak_memory_mb,time,wire,spike"

/* Whether a step was a spike (../../amp/spikes.h). NO_RULE: it was not checked, without AMP or with
 * spike_factor=0. */
typedef enum amp_log_spike_word {
    AMP_LOG_NO_RULE = -1, AMP_LOG_NO_SPIKE, AMP_LOG_SPIKE, AMP_LOG_DROPPED
} amp_log_spike_word;

typedef struct amp_log_row {
    long iteration;           /* steps taken, including this one: Darknet's batch number. A skipped step
                                 repeats the last one */
    float loss, avg_loss;     /* as Darknet prints them */
    float learning_rate;
    float scale;              /* the loss scale of this step; 1 without AMP */
    int found_inf;            /* whether the step was skipped because of an overflow */
    double grad_norm;         /* L2, unscaled, averaged over the batch, before clipping; NaN without AMP or
                                 after an overflow */
    double images_per_second; /* of this step: the images of all ranks, divided by load_seconds +
                                 train_seconds. So loading is included; saving files, -map and waiting for a
                                 turn are not. NaN if the clock shows no time */
    double load_seconds, train_seconds; /* until the images are loaded (with random=1, resizing included); of
                                           the step after that */
    double peak_memory_mb;    /* of the process; on a GPU the most in use there at a step's end, by all
                                 programs */
    double time;              /* when the step ended, in seconds since 1970 */
    int wire;                 /* the amp_dtype in which gradients are sent between ranks; -1: there is one
                                 rank */
    int spike;                /* an amp_log_spike_word */
} amp_log_row;

/* Whether the step changed nothing: its iteration is that of the step before. */
static inline int amp_log_is_skipped(const amp_log_row *row)
{
    return row->found_inf || row->spike == AMP_LOG_DROPPED;
}

/* Bytes for one row's text. */
enum { AMP_LOG_TEXT = 256 };

/* As CSV, without newline. Numbers are as short as they can be to be read back exactly; nan and inf are
 * written so. An unknown grad_norm or images_per_second, the wire of one rank, and a spike that was not
 * checked are empty fields; else spike is 0, 1 or skipped. */
const char *amp_log_row_text(const amp_log_row *, char text[AMP_LOG_TEXT]);
/* The inverse. AMP_BAD_CONFIG: text is not a row of the log. */
amp_status amp_log_row_read(const char *text, amp_log_row *, amp_error *);

/* All rows of a file, which a training may be writing: an incomplete last line is ignored. */
typedef struct amp_log_rows { amp_log_row *row; size_t count, room; } amp_log_rows;

/* Pass *rows zeroed; the caller frees rows->row, also on failure. AMP_BAD_CONFIG: the file cannot be read, or
 * is not a training log; the message names file and line. */
amp_status amp_log_rows_read(const char *file, amp_log_rows *rows, amp_error *);

/* Opens or creates the log of a training that continues after `iteration`: rows of later steps are dropped.
 * steps, skipped: the backup's counts; 0 if the training begins. A log that cannot be used ends the
 * program. */
void amp_log_resume(amp_log_file *, const char *name, long iteration, unsigned long steps,
                    unsigned long skipped);
