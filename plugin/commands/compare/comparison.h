/* What the files of `darknet amp compare` share. compare.c runs the comparison. */
#pragma once

#include "../arguments.h"
#include "../json.h"
#include "../run_in_turns.h"
#include "../../amp/statistics.h"

#include "../../host/program/failure.h"
#include "../../host/program/machine.h"
#include "../../host/training/training_log.h"

#include <stdint.h>
#include <string.h>

/* ---- measurements and results, as input of the table and of the report in HTML, JSON and CSV ---- */

typedef enum amp_compared_kind { AMP_COMPARED_DETECTOR, AMP_COMPARED_CLASSIFIER } amp_compared_kind;

typedef enum amp_training_state {
    AMP_RUN_WAITING,     /* not begun */
    AMP_RUN_TRAINING,    /* under way, or interrupted */
    AMP_RUN_TRAINED,     /* trained, not validated yet */
    AMP_RUN_DONE,        /* trained and validated */
    AMP_RUN_FAILED       /* `failure` says why */
} amp_training_state;
extern const char *const amp_training_state_names[]; /* "waiting", ..., "failed" */

/* One training: a dtype and a seed. */
typedef struct amp_run {
    const char *dtype;       /* "stock", "fp32", "bf16" or "fp16"; the comparison owns it */
    unsigned seed;
    amp_training_state state;
    char failure[512];
    amp_log_row *rows;       /* its steps, including skipped steps */
    size_t count, room;
    long skipped;
    /* Medians over the speed_steps steps on which speed is measured (compare_statistics.c). */
    double images_per_second, compute_images_per_second; /* images/s with, and without, image loading */
    size_t speed_steps;
    double speed_seconds;    /* the total time of these steps */
    double peak_memory_mb;
    /* 0..1, once the run is done: mAP@0.5 and mAP@0.5:0.95, or top-1 and top-5 accuracy */
    double score[2];
} amp_run;

/* Whether the training is complete; it may have been validated too. */
static inline int amp_run_is_trained(const amp_run *run)
{
    return run->state == AMP_RUN_TRAINED || run->state == AMP_RUN_DONE;
}

/* A mean over seeds. spread: the largest minus the smallest value. count: the number of values; may be 0. */
typedef struct amp_mean { double mean, spread; int count; } amp_mean;

/* A dtype's value divided by the reference's. ratio: the quotient of the means. least, most: the smallest and
 * largest quotient of a seed. All are NaN if either value was not measured. */
typedef struct amp_times { double ratio, least, most; } amp_times;

/* Is a dtype's score as good as the reference's? */
typedef enum amp_accuracy {
    AMP_ACCURACY_UNKNOWN,    /* no seed is done in both dtypes, or neither dtype has learnt anything */
    AMP_ACCURACY_UNDECIDED,  /* the interval allows both answers, or only one seed is done */
    AMP_ACCURACY_AS_GOOD,    /* a loss of more than points_allowed is ruled out */
    AMP_ACCURACY_WORSE       /* a loss of more than points_allowed is shown */
} amp_accuracy;

/* The verdict on a dtype's speed-up over the reference.
 * FASTER: at least AMP_WORTHWHILE_SPEEDUP in every seed.
 * SLOWER: less than 1 / AMP_WORTHWHILE_SPEEDUP in every seed.
 * NOT_WORTH_IT: less than AMP_WORTHWHILE_SPEEDUP in every seed, but not SLOWER.
 * UNDECIDED: none of these, or too little was measured.
 * UNKNOWN: no step of the dtype or of the reference was measured. */
typedef enum amp_speed {
    AMP_SPEED_UNKNOWN, AMP_SPEED_UNDECIDED, AMP_SPEED_FASTER, AMP_SPEED_NOT_WORTH_IT, AMP_SPEED_SLOWER
} amp_speed;

/* The results of a dtype over its seeds. Means of speeds and of memory are geometric, because they are
 * compared as quotients: the quotient of two geometric means is the geometric mean of the seeds' quotients.
 * All other means are arithmetic. */
typedef struct amp_dtype_summary {
    const char *dtype;
    amp_mean score[2], images_per_second, compute_images_per_second, peak_memory_mb, loss, skipped;
    amp_times speedup, compute_speedup, memory_ratio; /* above 1: faster; memory_ratio below 1: less memory */
    /* for each score: its difference from the reference's with the same seed, in points (0..100) */
    amp_interval difference[2];
    amp_accuracy accuracy[2];    /* the verdict on each score */
    amp_accuracy both;           /* AS_GOOD if both accuracies are AS_GOOD, WORSE if one is WORSE */
    amp_speed speed;             /* set by amp_compare_verdict */
    int more_seeds;              /* estimate: how many more seeds would settle the accuracy; 0: unknown */
    int failed;
} amp_dtype_summary;

typedef struct amp_comparison {
    amp_compared_kind kind;
    const char *title;       /* "bccd.cfg on bccd.data" */
    const char *data, *cfg, *weights; /* the names given; weights NULL: trainings start from random weights */
    /* processor and engine: "AMD EPYC (2 threads of 2), AVX512_BF16; oneDNN 2.6" */
    const char *machine;
    const char *version;     /* the version of this program */
    const char *date;        /* ISO 8601 */
    long iterations;
    int batch, width, height, classes, boxes;
    long train_images, valid_images;
    int dtype_count, seed_count;
    const char **dtypes;
    /* the dtype that the others are compared with */
    int reference;
    amp_run *runs;           /* [dtype_count][seed_count] */
    amp_dtype_summary *summaries; /* [dtype_count] */
    amp_lines advice;        /* sentences for the user, each with the name of its dtype */
    int interrupted;
    double points_allowed;   /* a score that loses at most this many points counts as equally good */
    double alpha;            /* intervals of differences have the confidence level 1 - alpha */
    /* Set by amp_compare_statistics. together_seconds: total time of the steps during which every dtype of
     * the same seed was training. apart is 1 if the dtypes of some seed never trained at the same time; that
     * seed's speeds are then measured on all its steps. */
    double together_seconds;
    int apart;
} amp_comparison;

static inline amp_run *amp_comparison_run(const amp_comparison *c, int dtype, int seed)
{
    return &c->runs[dtype * c->seed_count + seed];
}

/* The name of score[i]: "mAP@0.5", "mAP@0.5:0.95", or "top-1", "top-5". */
const char *amp_score_name(const amp_comparison *, int i);

/* Write an amp_comparison in the report's formats (commands/report). CSV has a line per run. */
amp_output_writer amp_report_html, amp_report_json, amp_report_csv, amp_report_table;

/* ---- the comparison under way ---- */

enum { AMP_COMPARE_MOST_SEEDS = 1000 };
/* A buffer for a file name. amp_compare_open rejects names beyond Darknet's 256 bytes. */
enum { AMP_COMPARE_PATH = 512 };

typedef struct amp_compare {
    amp_comparison result;
    amp_lines dtypes;          /* owns the names in result.dtypes */
    amp_machine hardware;
    /* buffers that result.title, result.machine and result.date point to */
    char title[600], machine[700], date[32];
    char *base;                /* the .cfg's name without folder and ending, as in names of .weights files */
    char *folder;              /* the report's folder, which contains runs/ */
    char list[256];            /* the training list's name without folder */
    int sequential;            /* -sequential: dtypes train one after the other, not in turns */
    int until;                 /* -until: seeds are added until the scores are settled */
    int most_seeds;            /* the limit on the number of seeds; result.seed_count is the number so far */
    int lock;                  /* descriptor of the locked folder; -1: not locked */
    int made_folder, made_runs; /* 1: this call made the folder; 1: it made runs/ in the folder */
    long steps_seen;           /* total number of steps that the runs have made during this call */
} amp_compare;

typedef struct amp_run_files {
    char folder[AMP_COMPARE_PATH];
    /* the .cfg with -iters applied; the .data file with the run's own backup folder */
    char cfg[AMP_COMPARE_PATH], data[AMP_COMPARE_PATH];
    char backup[AMP_COMPARE_PATH];                                  /* folder of .weights files */
    /* in the backup folder: NAME.backup, from which the run resumes; the final weights */
    char saved[AMP_COMPARE_PATH], weights[AMP_COMPARE_PATH];
    char steps[AMP_COMPARE_PATH], train_log[AMP_COMPARE_PATH], valid_log[AMP_COMPARE_PATH];
    char result[AMP_COMPARE_PATH];
} amp_run_files;

/* ---- compare_files.c: the report's folder and the files of each training ---- */

/* Makes and locks the report's folder, or opens the folder of an earlier call. AMP_BAD_CONFIG: the earlier
 * call had other settings. AMP_IO_FAILED: the folder cannot be written, or another comparison is using it. */
amp_status amp_compare_open(amp_compare *, amp_error *);
/* Removes the folders that amp_compare_open has made. Call this only if nothing was trained. */
void amp_compare_undo(amp_compare *);
/* Writes the names of a run's files. */
void amp_compare_files(const amp_compare *, const amp_run *, amp_run_files *);

/* Reads the state of the runs from their files, for the seeds with index first_seed and above. */
amp_status amp_runs_read(amp_compare *, int first_seed, amp_error *);
/* Makes the files that a run's program needs. *resumed: 1: the run will resume from its backup; 0: the run
 * starts from the beginning, and its old files have been removed. */
amp_status amp_run_prepare(const amp_compare *, amp_run *, int *resumed, amp_error *);
/* Writes the run's state, and scores or failure, to its file. */
amp_status amp_run_keep(const amp_compare *, const amp_run *, amp_error *);
/* Reads the run's steps from its training's log. A missing log is no error. */
amp_status amp_run_read_steps(const amp_compare *, amp_run *, amp_error *);
/* Whether the run has made all of its iterations. */
int amp_run_is_over(const amp_compare *, const amp_run *);
void amp_run_add_row(amp_run *, const amp_log_row *);

/* ---- compare_train.c: the programs that train and validate ---- */

/* Trains these runs in turns. A run that fails is marked as failed. AMP_BAD_CONFIG: a run failed before any
 * run had made a step in this call, so the input is at fault. */
amp_status amp_compare_train(amp_compare *, amp_run **runs, int count, amp_error *);
/* Measures the scores of a trained run. */
amp_status amp_compare_validate(amp_compare *, amp_run *, amp_error *);

/* ---- compare_statistics.c ---- */

/* Computes the runs' numbers from their rows, and the summaries. */
void amp_compare_statistics(amp_comparison *c);
/* Computes only the summaries, from the runs' numbers. */
void amp_compare_summarize(amp_comparison *c);

/* ---- compare_verdict.c ---- */

/* Defaults of points_allowed, in points of mAP or of accuracy. */
#define AMP_DETECTOR_POINTS 1.0
#define AMP_CLASSIFIER_POINTS 0.5
/* The significance level. -until divides it by the number of times that it looks at the scores. */
#define AMP_COMPARE_ALPHA .05
/* The smallest speed-up that is worth it. */
#define AMP_WORTHWHILE_SPEEDUP 1.1
/* What a verdict on speed needs at least: steps in each training, seeds, and seconds in total. With less,
 * other work on the machine would decide the result. */
#define AMP_SPEED_STEPS 10
#define AMP_SPEED_SEEDS 2
#define AMP_SPEED_SECONDS 30

/* Judges a score by the interval of its differences: is a loss of more than `allowed` points ruled out,
 * shown, or neither? */
amp_accuracy amp_compare_judge(const amp_interval *, double allowed);
/* Estimates how many more seeds would make amp_compare_judge decide with a probability of 80 %, if mean and
 * spread stay the same. 0: unknown, or more than AMP_COMPARE_MOST_SEEDS seeds in total. */
int amp_compare_more_seeds(const amp_interval *, double allowed, double alpha);
/* Returns 0 if some accuracy is UNDECIDED. Call amp_compare_summarize first. */
int amp_compare_is_settled(const amp_comparison *);
/* Judges the speed of each dtype, and fills c->advice. notes[dtype]: the machine's note on it, or NULL. */
void amp_compare_verdict(amp_comparison *, const char *const *notes);
