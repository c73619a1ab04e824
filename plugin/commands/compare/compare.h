/* `darknet amp compare`, between its files. compare.c reads the command line and leads through it;
 * compare_input.c looks at what it was given; compare_folder.c and compare_runs.c keep the files;
 * compare_train.c starts the programs that do the work, and compare_progress.c shows how far they are;
 * compare_statistics.c and compare_verdict.c make numbers and sentences of it. */
#pragma once

#include "../arguments.h"
#include "../json.h"
#include "../run_in_turns.h"
#include "../statistics.h"

#include "../../host/common/failure.h"
#include "../../host/common/machine.h"
#include "../../host/training/training_log.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>

/* ---- what is measured: for the table, the report and its JSON and CSV ---- */

typedef enum amp_compared_kind { AMP_COMPARED_DETECTOR, AMP_COMPARED_CLASSIFIER } amp_compared_kind;

typedef enum amp_training_state {
    AMP_RUN_WAITING,     /* not begun */
    AMP_RUN_TRAINING,    /* interrupted on its way: it can be continued */
    AMP_RUN_TRAINED,     /* not validated yet */
    AMP_RUN_DONE,
    AMP_RUN_FAILED       /* `failure` says why */
} amp_training_state;
extern const char *const amp_training_state_names[]; /* "waiting", ..., "failed" */

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

/* Whether its training has come to its end; it may have been validated as well. */
static inline int amp_run_is_trained(const amp_run *run)
{
    return run->state == AMP_RUN_TRAINED || run->state == AMP_RUN_DONE;
}

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

/* ---- how ---- */

enum { AMP_COMPARE_MOST_SEEDS = 1000 };
/* Darknet's own buffers for file names hold 256 bytes; amp_compare_open sees to it */
enum { AMP_COMPARE_PATH = 512 };

typedef struct amp_compare {
    amp_comparison result;
    amp_lines dtypes;      /* what result.dtypes points at */
    amp_machine hardware;
    char *base;                /* the .cfg's name, as Darknet names .weights files by it */
    char *folder;              /* the report's, runs/ in it */
    int sequential, until; /* until: seeds are added until the scores are settled */
    int most_seeds;            /* that may be trained; result.seed_count of them are so far */
    int lock;                  /* descriptor; -1: not taken */
    int made_folder, made_runs; /* by this call */
    long steps_seen;           /* in this call, of all runs */
    const volatile sig_atomic_t *stop;
} amp_compare;

/* The names of one run's files. */
typedef struct amp_run_files {
    char folder[AMP_COMPARE_PATH];
    /* copies: -iters, and the backup folder */
    char cfg[AMP_COMPARE_PATH], data[AMP_COMPARE_PATH];
    char backup[AMP_COMPARE_PATH];                                  /* folder of .weights files */
    /* in it: NAME.backup, and what it ends with */
    char checkpoint[AMP_COMPARE_PATH], weights[AMP_COMPARE_PATH];
    char steps[AMP_COMPARE_PATH], train_log[AMP_COMPARE_PATH], valid_log[AMP_COMPARE_PATH];
    char result[AMP_COMPARE_PATH];
} amp_run_files;

/* ---- compare_input.c ---- */

/* Kind, size, classes, numbers of images, and the machine, into compare->result; iterations, where they are
 * 0, from the .cfg. AMP_BAD_CONFIG: what no training could begin with. */
amp_status amp_compare_inspect(amp_compare *, amp_error *);

/* ---- compare_folder.c ---- */

/* Makes the folder, or finds one of the same settings. AMP_BAD_CONFIG: of others. AMP_IO_FAILED: not
 * writable, or another comparison is at work there. */
amp_status amp_compare_open(amp_compare *, amp_error *);
/* Removes what this call has made, where nothing was trained. */
void amp_compare_undo(amp_compare *);
void amp_compare_close(amp_compare *);
/* Or finds it there; *made, which may be NULL, says which. */
amp_status amp_compare_make_folder(const char *path, int *made, amp_error *);

/* ---- compare_runs.c ---- */

void amp_compare_files(const amp_compare *, const amp_run *, amp_run_files *);

/* What all runs have come to so far, of the seeds from first_seed on. */
amp_status amp_runs_read(amp_compare *, int first_seed, amp_error *);
/* Everything a run's program needs. *resumed: it goes on from its checkpoint; else it begins anew, and old
 * files are gone. */
amp_status amp_run_prepare(const amp_compare *, amp_run *, int *resumed, amp_error *);
/* The state, with scores or the failure, for the next call to find. */
amp_status amp_run_keep(const amp_compare *, const amp_run *, amp_error *);
/* Its steps, from the file that its training wrote. None is no error. */
amp_status amp_run_read_steps(const amp_compare *, amp_run *, amp_error *);
/* Whether they are all of its iterations. */
int amp_run_is_over(const amp_compare *, const amp_run *);
void amp_run_add_row(amp_run *, const amp_log_row *);

/* ---- compare_train.c ---- */

/* Trains these runs side by side. A run that fails is marked; AMP_BAD_CONFIG where one failed before any run
 * of this call made its first step: then it is the input. */
amp_status amp_compare_train(amp_compare *, amp_run **runs, int count, amp_error *);
/* Scores of a trained run. */
amp_status amp_compare_validate(amp_compare *, amp_run *, amp_error *);

/* ---- compare_progress.c ---- */

typedef struct amp_progress amp_progress;
/* A line per run on stderr: rewritten in place on a terminal, else now and then a new one. */
amp_progress *amp_progress_begin(const amp_compare *, amp_run **runs, int count);
/* A run has made a step, or several. */
void amp_progress_step(amp_progress *);
void amp_progress_end(amp_progress *);

/* ---- compare_statistics.c ---- */

/* All numbers of c's runs that their rows give, and the summaries of all dtypes. */
void amp_compare_statistics(amp_comparison *c);
/* The summaries alone, from the runs' numbers. */
void amp_compare_summarize(amp_comparison *c);

/* ---- compare_verdict.c ---- */

/* What is thought as good as the reference, unless -until says: points of mAP and of accuracy; and worth
 * the trouble. */
#define AMP_DETECTOR_POINTS 1.0
#define AMP_CLASSIFIER_POINTS 0.5
#define AMP_COMPARE_ALPHA .05
#define AMP_WORTHWHILE_SPEEDUP 1.1
#define AMP_SPEED_STEPS 10          /* a training with fewer says nothing of speed */

/* What an interval of differences says of a loss of more than `allowed` points. */
amp_accuracy amp_compare_judge(const amp_interval *, double allowed);
/* How many more seeds would decide it with a probability of 80 %, if mean and spread stay as they are. 0:
 * not known, or more than AMP_COMPARE_MOST_SEEDS in all. */
int amp_compare_more_seeds(const amp_interval *, double allowed, double alpha);
/* Whether more seeds could not change what is said of the scores. From the summaries. */
int amp_compare_is_settled(const amp_comparison *);
/* Sentences into c->verdict, from its summaries. notes[dtype], which may be NULL: what the machine says of
 * it. */
void amp_compare_verdict(amp_comparison *, const char *const *notes);
