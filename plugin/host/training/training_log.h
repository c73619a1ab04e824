/* The log of a training, with one row per step: for `-log FILE.csv`, and for the lines that a training sends
 * when it takes turns with others. */
#pragma once

#include "../../tensor/tensor.h"
#include "log_file.h"

#define AMP_LOG_COLUMNS "iteration,loss,avg_loss,learning_rate,scale,found_inf,grad_norm,images_per_second," \
                        "load_seconds,train_seconds,peak_memory_mb,time,wire,spike"

/* Whether a step was a spike (../../amp/spikes.h). NO_RULE: not checked (no AMP, or spike_factor=0). */
typedef enum amp_log_spike_word {
    AMP_LOG_NO_RULE = -1, AMP_LOG_NO_SPIKE, AMP_LOG_SPIKE, AMP_LOG_DROPPED
} amp_log_spike_word;

typedef struct amp_log_row {
    long iteration;           /* Darknet's batch number; a skipped step has its predecessor's number */
    float loss, avg_loss;     /* the losses that Darknet prints */
    float learning_rate;
    float scale;              /* the loss scale of this step; 1 without AMP */
    int found_inf;            /* 1: the step was skipped because of an overflow */
    double grad_norm;         /* L2 norm of the unscaled mean gradient of the batch, before clipping; NaN
                                 without AMP or after an overflow */
    double images_per_second; /* number of the step's images on all ranks, divided by load_seconds +
                                 train_seconds; NaN if the clock has not advanced */
    /* load_seconds: from the step's start until the images are loaded (includes resizing with random=1).
     * train_seconds: the rest of the step */
    double load_seconds, train_seconds;
    double peak_memory_mb;    /* peak RAM of the process so far. On a GPU: the memory that all programs use,
                                 measured at the end of each step; the maximum so far */
    double time;              /* when the step ended, in seconds since 1970 */
    int wire;                 /* the amp_dtype in which ranks send gradients; -1: one rank */
    int spike;                /* an amp_log_spike_word */
} amp_log_row;

/* Whether the step was skipped and changed no weights. */
static inline int amp_log_is_skipped(const amp_log_row *row)
{
    return row->found_inf || row->spike == AMP_LOG_DROPPED;
}

/* Bytes for one row's text. */
enum { AMP_LOG_TEXT = 256 };

/* Writes the row as CSV, without newline, and returns text. Each number has the fewest digits from which its
 * exact value can be read back, or is nan or inf. A spike is 0, 1 or skipped. Four fields may be empty:
 * grad_norm and images_per_second if they are unknown, wire if there is only one rank, and spike if the step
 * was not checked. */
const char *amp_log_row_text(const amp_log_row *, char text[AMP_LOG_TEXT]);
/* Reads what amp_log_row_text writes. AMP_BAD_CONFIG: text is not a row of the log. */
amp_status amp_log_row_read(const char *text, amp_log_row *, amp_error *);

/* All rows of a file. A training may still be writing the file, so an incomplete last line is ignored. */
typedef struct amp_log_rows { amp_log_row *row; size_t count, room; } amp_log_rows;

/* Pass *rows zeroed; the caller frees rows->row, also on failure. AMP_BAD_CONFIG: the file cannot be read, or
 * is not a training log; the message names file and line. */
amp_status amp_log_rows_read(const char *file, amp_log_rows *rows, amp_error *);

/* Opens or creates the log of a training that continues after `iteration`, and drops rows of later steps.
 * steps, skipped: taken and skipped steps that the backup counts; 0 without a backup. A log that cannot be
 * used ends the program. */
void amp_log_resume(amp_log_file *, const char *name, long iteration, unsigned long steps,
                    unsigned long skipped);
