/* Trainings side by side: each is a program of its own, `darknet detector train` with the options that a user would give it by
 * hand, and they take turns. What one says of a step is what it writes into its -log. */
#include "compare.h"

#include <stdlib.h>
#include <unistd.h>

enum { MOST_WORDS = 24, SEED_TEXT = 16 };

/* Seconds of a turn: many steps of a small network, and still short against the moods of a machine. */
static const double SLICE = 1;

typedef struct trainee {
    amp_run *run;
    amp_run_files files;
    const char *argv[MOST_WORDS], *device[2];
    char seed[SEED_TEXT], number[16];
    int resumed;
    size_t steps; /* in this call */
} trainee;

typedef struct training {
    amp_compare *compare;
    trainee *trainees;
    amp_progress *progress;
} training;

static const char *amp_option(const char *dtype) { return strcmp(dtype, "stock") ? dtype : "off"; }

static void add_words(trainee *t, int *count, const char *const *words)
{
    while (*words) t->argv[(*count)++] = *words++;
    t->argv[*count] = NULL;
}

/* -clear: a training of its own begins at given weights, whatever lies beside them. */
static void put_command_together(const amp_compare *compare, trainee *t)
{
    const amp_comparison *c = &compare->result;
    int count = 0;
    snprintf(t->seed, sizeof t->seed, "%u", t->run->seed);
    add_words(t, &count, (const char *[]){ c->kind == AMP_COMPARED_DETECTOR ? "detector" : "classifier", "train", t->files.data,
                                           t->files.cfg, NULL });
    if (t->resumed) add_words(t, &count, (const char *[]){ t->files.checkpoint, NULL });
    else if (c->weights) add_words(t, &count, (const char *[]){ c->weights, "-clear", NULL });
    add_words(t, &count, (const char *[]){ "-amp", amp_option(t->run->dtype), "-seed", t->seed, "-log", t->files.steps, NULL });
    for (int k = 0, n = amp_machine_device_arguments(t->device, t->number); k < n; ++k)
        add_words(t, &count, (const char *[]){ t->device[k], NULL });
}

static amp_status prepare(amp_compare *compare, trainee *t, amp_run *run, amp_error *error)
{
    t->run = run;
    amp_compare_files(compare, run, &t->files);
    AMP_TRY(amp_run_prepare(compare, run, &t->resumed, error));
    put_command_together(compare, t);
    return amp_run_note_command(&t->files, t->argv, t->resumed, error);
}

/* ---- what is heard of them ---- */

static amp_status take_line(void *context, int k, const char *line, amp_error *error)
{
    training *all = context;
    trainee *t = &all->trainees[k];
    amp_log_row row;
    AMP_TRY(amp_log_row_read(line, &row, error));
    AMP_TRY(amp_run_add_row(t->run, &row, error));
    ++t->steps;
    ++all->compare->steps_seen;
    amp_progress_step(all->progress);
    return AMP_OK;
}

static int has_ended_well(const amp_compare *compare, const trainee *t, const amp_turns_end *end)
{
    return end->exited && end->status == 0 && amp_run_is_over(compare, t->run) && !access(t->files.weights, R_OK);
}

static void say_why(trainee *t, const amp_turns_end *end)
{
    char *words = t->run->failure;
    if (end->exited) amp_last_words(t->files.train_log, words, sizeof t->run->failure);
    else snprintf(words, sizeof t->run->failure, "killed by signal %d (%s)", end->status, strsignal(end->status));
    if (!words[0]) snprintf(words, sizeof t->run->failure, "ended with status %d; see %.400s", end->status, t->files.train_log);
}

/* A program that ended before its first step, with nothing trained yet, was given what no training can begin with: bad input, and
 * not one dtype's misfortune. */
static amp_status take_end(void *context, int k, const amp_turns_end *end, amp_error *error)
{
    training *all = context;
    trainee *t = &all->trainees[k];
    if (has_ended_well(all->compare, t, end)) t->run->state = AMP_RUN_TRAINED;
    else if (end->stopped && end->exited && end->status == 0) t->run->state = AMP_RUN_TRAINING;
    else t->run->state = AMP_RUN_FAILED;
    if (t->run->state == AMP_RUN_FAILED) say_why(t, end);
    if (t->run->state == AMP_RUN_FAILED && !t->resumed && !all->compare->steps_seen)
        return amp_fail(error, AMP_BAD_CONFIG, "%s", t->run->failure);
    return AMP_OK;
}

static amp_status keep_all(amp_compare *compare, trainee *trainees, int count, amp_error *error)
{
    for (int k = 0; k < count; ++k) {
        AMP_TRY(amp_run_read_steps(compare, trainees[k].run, error)); /* what is on the disk is what can be gone on with */
        AMP_TRY(amp_run_keep(compare, trainees[k].run, error));
    }
    return AMP_OK;
}

static amp_status train(training *all, int count, amp_error *error)
{
    amp_turns_program programs[count];
    const amp_turns_watcher watcher = { all, take_line, take_end };
    for (int k = 0; k < count; ++k) {
        const trainee *t = &all->trainees[k];
        programs[k] = (amp_turns_program){ .argv = t->argv, .output = t->files.train_log, .append = t->resumed };
    }
    return amp_turns_run(programs, count, SLICE, all->compare->stop, &watcher, error);
}

amp_status amp_compare_train(amp_compare *compare, amp_run **runs, int count, amp_error *error)
{
    training all = { .compare = compare, .trainees = calloc((size_t)count + 1, sizeof *all.trainees) };
    amp_status status = AMP_OK;
    amp_error later;
    if (!all.trainees) return amp_fail(error, AMP_NO_MEMORY, "no memory for %d trainings", count);
    for (int k = 0; status == AMP_OK && k < count; ++k) status = prepare(compare, &all.trainees[k], runs[k], error);
    if (status == AMP_OK) {
        all.progress = amp_progress_begin(compare, runs, count);
        status = train(&all, count, error);
        amp_progress_end(all.progress);
        amp_status kept = keep_all(compare, all.trainees, count, status == AMP_OK ? error : &later);
        if (status == AMP_OK) status = kept;
    }
    free(all.trainees);
    return status;
}
