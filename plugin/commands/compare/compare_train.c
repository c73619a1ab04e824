/* Runs the programs that train and validate, and shows their progress on stderr. Each training is `darknet
 * detector train` or `classifier train` with the options that a user would give by hand. The trainings run in
 * turns, and report each step as a row of their -log. `darknet amp valid` then measures each network in the
 * dtype in which it was trained. */
#define _DEFAULT_SOURCE /* winsize */
#include "comparison.h"

#include "../../host/fork.h"
#include "../../host/program/clock.h"

#include <sys/ioctl.h>
#include <unistd.h>

/* Length of a turn in seconds. It is long enough for many steps of a small network, and short compared with
 * the minutes for which other programs may keep the machine busy. */
static const double SLICE = 1;

typedef struct program {
    amp_compare *compare;
    amp_run *run;
    amp_run_files files;
    int resumed;
    size_t rows_before;         /* number of steps that the run had made before it was resumed */
    int scores;                 /* number of scores that the validation has sent so far */
    struct progress *progress;  /* shared by all trainings */
} program;

/* ---- progress: a line for each training, rewritten on a terminal, else printed every ten seconds ---- */

enum { RECENT = 20, LINE_TEXT = 200 };
static const double TERMINAL_SECONDS = .2, LOG_SECONDS = 10;

typedef struct progress {
    const program *trainings;
    int count, terminal, drawn;
    double began, last; /* clock times: when the trainings began; when the lines were last drawn */
    long steps;
} progress;

static double recent_rate(const amp_run *run)
{
    double values[RECENT];
    size_t n = 0;
    for (size_t i = run->count > RECENT ? run->count - RECENT : 0; i < run->count; i++)
        if (run->rows[i].images_per_second > 0) values[n++] = run->rows[i].images_per_second;
    return amp_median(values, n);
}

/* Estimates the remaining wall time, which includes the turns of other trainings. text: "  ETA 1:02:03". */
static void remaining(const progress *p, const program *training, long iterations_left, char text[32])
{
    size_t made = training->run->count - training->rows_before;
    if (!made || iterations_left <= 0) {
        text[0] = 0;
        return;
    }
    long seconds = (long)((amp_clock_seconds() - p->began) / (double)made * (double)iterations_left + .5);
    snprintf(text, 32, "  ETA %ld:%02ld:%02ld", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

static void describe(const progress *p, const program *training, char text[LINE_TEXT])
{
    static const char *const ends[] = { "", "", "  trained", "  done", "  failed" };
    const amp_run *run = training->run;
    char eta[32];
    long all = training->compare->result.iterations;
    if (!run->count) {
        snprintf(text, LINE_TEXT, "%-5s seed %u  waiting%s", run->dtype, run->seed, ends[run->state]);
        return;
    }
    const amp_log_row *row = &run->rows[run->count - 1];
    long skips = 0;
    for (size_t i = 0; i < run->count; i++) skips += amp_log_is_skipped(&run->rows[i]);
    remaining(p, training, all - row->iteration, eta);
    double rate = recent_rate(run);
    snprintf(text, LINE_TEXT, "%-5s seed %u  %ld/%ld  loss %.4g  scale %g  skipped %ld  %.*f images/s%s%s",
             run->dtype, run->seed, row->iteration, all, (double)row->avg_loss, (double)row->scale, skips,
             rate < 100, rate, eta, ends[run->state]);
}

static int terminal_columns(void)
{
    struct winsize size;
    return !ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_col > 20 ? size.ws_col - 1 : 79;
}

static void draw(progress *p)
{
    char text[LINE_TEXT];
    int columns = p->terminal ? terminal_columns() : LINE_TEXT;
    if (p->terminal && p->drawn) fprintf(stderr, "\033[%dA", p->count); /* move up to the first line */
    for (int k = 0; k < p->count; k++) {
        describe(p, &p->trainings[k], text);
        fprintf(stderr, p->terminal ? "\r%.*s\033[K\n" : "%.*s\n", columns, text);
    }
    p->drawn = 1;
    p->last = amp_clock_seconds();
}

static void count_step(progress *p)
{
    ++p->steps;
    if (amp_clock_seconds() - p->last >= (p->terminal ? TERMINAL_SECONDS : LOG_SECONDS)) draw(p);
}

/* ---- training ---- */

/* Prepares the files and the arguments of one training. -clear makes the training start at step 0 from the
 * given weights, even if they have a sidecar. */
static amp_status prepare(amp_compare *compare, program *p, amp_run *run, amp_turns_program *started,
                          amp_error *error)
{
    const amp_comparison *c = &compare->result;
    const char *kind = c->kind == AMP_COMPARED_DETECTOR ? "detector" : "classifier";
    *p = (program){ .compare = compare, .run = run };
    amp_compare_files(compare, run, &p->files);
    AMP_TRY(amp_run_prepare(compare, run, &p->resumed, error));
    *started = (amp_turns_program){ .output = p->files.train_log, .append = p->resumed };
    amp_turns_add(started, kind, "train", p->files.data, p->files.cfg, NULL);
    if (p->resumed) amp_turns_add(started, p->files.saved, NULL);
    else if (c->weights) amp_turns_add(started, c->weights, "-clear", NULL);
    amp_turns_add_usual(started, run->dtype, run->seed);
    amp_turns_add(started, amp_fork_log_option, p->files.steps, amp_fork_dont_show, NULL);
    return AMP_OK;
}

static amp_status take_step(void *context, int k, const char *line, amp_error *error)
{
    program *p = (program *)context + k;
    amp_log_row row;
    AMP_TRY(amp_log_row_read(line, &row, error));
    amp_run_add_row(p->run, &row);
    ++p->compare->steps_seen;
    count_step(p->progress);
    return AMP_OK;
}

/* Writes to run->failure why a program failed. what: "training" or "validation". */
static void explain(amp_run *run, const char *what, const amp_turns_end *end, const char *log)
{
    char *words = run->failure;
    words[0] = 0;
    if (!end->exited)
        snprintf(words, sizeof run->failure, "%s was killed by signal %d (%s); see %.400s", what, end->status,
                 strsignal(end->status), log);
    else amp_turns_last_message(log, NULL, words, sizeof run->failure);
    if (!words[0])
        snprintf(words, sizeof run->failure, "%s ended with status %d; see %.400s", what, end->status, log);
}

/* Sets the state of a run whose program has ended. If a run fails before any program of this call has made a
 * step, the comparison ends, because the input is bad. A later failure, or the failure of a resumed run, ends
 * only this run. */
static amp_status take_end(void *context, int k, const amp_turns_end *end, amp_error *error)
{
    program *p = (program *)context + k;
    amp_run *run = p->run;
    int well = end->exited && end->status == 0;
    run->state = well && end->stopped ? AMP_RUN_TRAINING : AMP_RUN_FAILED;
    if (well && amp_run_is_over(p->compare, run) && !access(p->files.weights, R_OK))
        run->state = AMP_RUN_TRAINED;
    if (run->state != AMP_RUN_FAILED) return AMP_OK;
    explain(run, "training", end, p->files.train_log);
    if (p->resumed || p->compare->steps_seen) return AMP_OK;
    return amp_fail(error, AMP_BAD_CONFIG, "%s", run->failure);
}

amp_status amp_compare_train(amp_compare *compare, amp_run **runs, int count, amp_error *error)
{
    program trainings[count];
    amp_turns_program programs[count];
    amp_turns_watcher watcher = { trainings, take_step, take_end };
    progress shown = { .trainings = trainings, .count = count, .terminal = isatty(STDERR_FILENO) };
    for (int k = 0; k < count; k++) {
        program *p = &trainings[k];
        AMP_TRY(prepare(compare, p, runs[k], &programs[k], error));
        p->rows_before = p->run->count;
        p->progress = &shown;
    }
    shown.began = shown.last = amp_clock_seconds();
    amp_status status = amp_turns_run(programs, count, SLICE, amp_turns_interrupted, &watcher, error);
    if (shown.steps) draw(&shown);
    for (int k = 0; k < count; k++) {
        amp_error later, *to = status == AMP_OK ? error : &later;
        /* take the steps from the log file, as a later call would */
        amp_status kept = amp_run_read_steps(compare, runs[k], to);
        if (kept == AMP_OK) kept = amp_run_keep(compare, runs[k], to);
        if (status == AMP_OK) status = kept;
    }
    return status;
}

/* ---- validation ---- */

/* Reads "score 0.97": first mAP@0.5 or top-1, then mAP@0.5:0.95 or top-5. */
static amp_status take_score(void *context, int k, const char *line, amp_error *error)
{
    program *p = context;
    double value;
    if (p->scores < 2 && sscanf(line, "score %lf", &value) == 1) p->run->score[p->scores++] = value;
    return AMP_OK;
}

amp_status amp_compare_validate(amp_compare *compare, amp_run *run, amp_error *error)
{
    program p = { .compare = compare, .run = run };
    amp_turns_program valid = { .output = p.files.valid_log };
    const amp_turns_watcher watcher = { &p, take_score, NULL };
    amp_compare_files(compare, run, &p.files);
    amp_turns_add(&valid, "amp", "valid", p.files.data, p.files.cfg, p.files.weights, NULL);
    amp_turns_add_usual(&valid, run->dtype, run->seed);
    AMP_TRY(amp_turns_run(&valid, 1, 1, amp_turns_interrupted, &watcher, error));
    if (p.scores == 2 && valid.end.exited && valid.end.status == 0) {
        run->state = AMP_RUN_DONE;
    } else if (!amp_turns_interrupted()) {
        run->state = AMP_RUN_FAILED;
        explain(run, "validation", &valid.end, p.files.valid_log);
    }
    return amp_run_keep(compare, run, error);
}
