/* What `darknet amp compare` has measured: filled by compare.c and its neighbours, read by the report, the
 * table, JSON and CSV. */
#pragma once

#include "../../host/training/training_log.h"
#include "../statistics.h"

#include <stddef.h>

typedef enum amp_compared_kind { AMP_COMPARED_DETECTOR, AMP_COMPARED_CLASSIFIER } amp_compared_kind;

typedef enum amp_training_state {
    AMP_RUN_WAITING,     /* not begun */
    AMP_RUN_TRAINING,    /* interrupted on its way: it can be continued */
    AMP_RUN_TRAINED,     /* not validated yet */
    AMP_RUN_DONE,
    AMP_RUN_FAILED       /* `failure` says why */
} amp_training_state;

/* One training: a dtype and a seed. */
typedef struct amp_run {
    const char *dtype;       /* "stock", "fp32", "bf16", "fp16"; the comparison's */
    unsigned seed;
    amp_training_state state;
    char failure[512];
    amp_log_row *rows;       /* its steps, skipped ones included */
    size_t count, room;
    long skipped;            /* of them */
    /* Medians over those of its steps that speeds rest on (amp_compare_statistics), and how many these
     * are. */
    double images_per_second, compute_images_per_second; /* with loading and without */
    size_t speed_steps;
    double speed_seconds;    /* that these took */
    double peak_memory_mb;
    /* Once done. Detector: mAP@0.5 and mAP@0.5:0.95; classifier: top-1 and top-5 accuracy. 0..1. */
    double score[2];
} amp_run;

/* spread: largest - smallest; count 0: no value. */
typedef struct amp_mean { double mean, spread; int count; } amp_mean;

/* How many times the reference's: the quotient of the two means, and the least and the most of the single
 * seeds' quotients. NaN where one of the two was not measured. */
typedef struct amp_times { double ratio, least, most; } amp_times;

/* What the seeds say of the question whether the score is as good as the reference's. */
typedef enum amp_accuracy {
    AMP_ACCURACY_UNKNOWN,    /* nothing to judge by */
    AMP_ACCURACY_UNDECIDED,  /* the interval allows both answers, or there is none with one seed */
    AMP_ACCURACY_AS_GOOD,    /* a loss of more than points_allowed is ruled out */
    AMP_ACCURACY_WORSE       /* such a loss is shown */
} amp_accuracy;

/* One dtype over all seeds that are done. Rates and memory are compared as quotients, so their means are
 * geometric: then the quotient of two means is the mean of the quotients within the seeds. The other means
 * are arithmetic. */
typedef struct amp_dtype_summary {
    const char *dtype;
    amp_mean score[2], images_per_second, compute_images_per_second, peak_memory_mb, loss, skipped;
    amp_times speedup, compute_speedup, memory_ratio; /* above 1 is faster; below 1 is less memory */
    /* of the score to the reference's run of the same seed, in points (0..100), over the seeds */
    amp_interval difference[2];
    amp_accuracy accuracy[2];    /* of each score */
    int more_seeds;              /* that would tell, where a score is undecided: an estimate; 0: not known */
    int failed;                  /* runs */
} amp_dtype_summary;

typedef struct amp_comparison {
    amp_compared_kind kind;
    char *title;             /* "bccd.cfg on bccd.data" */
    const char *data, *cfg, *weights; /* as given; weights NULL: from random ones */
    /* "AMD EPYC (2 threads of 2), AVX512_BF16; oneDNN 2.6": what the engine says of itself */
    char *machine;
    const char *version;     /* of this program */
    char *date;              /* ISO 8601 */
    long iterations;
    int batch, width, height, classes;
    long train_images, valid_images;
    int dtype_count, seed_count;
    const char **dtypes;
    /* index into dtypes that the others are compared with: fp32, else stock, else the first */
    int reference;
    amp_run *runs;           /* [dtype_count][seed_count] */
    amp_dtype_summary *summaries; /* [dtype_count] */
    char **verdict;          /* sentences, with the numbers behind them */
    int verdict_count;
    int interrupted;
    double points_allowed;   /* a score that loses no more than so many points is as good */
    double alpha;            /* intervals of differences hold the truth with a probability of 1 - alpha */
    /* By amp_compare_statistics. Speeds are of steps that were made while all dtypes of the seed trained:
     * so many seconds' work. apart: in some seed there was no such time, and its speeds are of all steps. */
    double together_seconds;
    int apart;
} amp_comparison;

static inline amp_run *amp_comparison_run(const amp_comparison *c, int dtype, int seed)
{
    return &c->runs[dtype * c->seed_count + seed];
}

/* The names of score[i]: "mAP@0.5", "mAP@0.5:0.95", or "top-1", "top-5". */
const char *amp_score_name(const amp_comparison *, int i);

/* The report (commands/report): its three forms; csv has one line per run. amp_report_write writes the file
 * as a whole or not at all. */
typedef void amp_report_writer(FILE *, const amp_comparison *);
amp_report_writer amp_report_html, amp_report_json, amp_report_csv;
amp_status amp_report_write(const amp_comparison *, const char *file, amp_report_writer *, amp_error *);
/* For the terminal: a line per dtype, then the verdict. */
void amp_report_table(const amp_comparison *, FILE *);
