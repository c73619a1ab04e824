/* `darknet amp compare`, between its files. compare.c reads the command line and leads through it;
 * compare_input.c looks at what it was given; compare_folder.c and compare_runs.c keep the files;
 * compare_train.c starts the programs that do the work, and compare_progress.c shows how far they are;
 * compare_statistics.c and compare_verdict.c make numbers and sentences of it. */
#pragma once

#include "../arguments.h"
#include "comparison.h"
#include "../json.h"
#include "../run_in_turns.h"

#include "../../host/common/failure.h"
#include "../../host/common/machine.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>

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
