/* Shows on stderr how far the trainings are: on a terminal, a line for each that is rewritten; elsewhere, a
 * line for each every ten seconds, so that a log stays readable. */
#define _DEFAULT_SOURCE /* winsize */
#include "comparison.h"
#include "../../host/program/clock.h"

#include <sys/ioctl.h>
#include <unistd.h>

enum { RECENT = 20, LINE_TEXT = 200 };
static const double TERMINAL_SECONDS = .2, LOG_SECONDS = 10;

struct amp_progress {
    const amp_compare *compare;
    amp_run **runs;
    int count, terminal, drawn;
    double began, last;
    long steps;
    size_t *before; /* for each run: rows it had at the start */
};

amp_progress *amp_progress_begin(const amp_compare *compare, amp_run **runs, int count)
{
    amp_progress *p = amp_allocated(calloc(1, sizeof *p));
    size_t *before = amp_allocated(calloc((size_t)count + 1, sizeof *before));
    for (int k = 0; k < count; k++) before[k] = runs[k]->count;
    *p = (amp_progress){ .compare = compare, .runs = runs, .count = count, .terminal = isatty(STDERR_FILENO),
                         .before = before };
    p->began = p->last = amp_clock_seconds();
    return p;
}

static double recent_rate(const amp_run *run)
{
    double values[RECENT];
    size_t n = 0;
    for (size_t i = run->count > RECENT ? run->count - RECENT : 0; i < run->count; i++)
        if (run->rows[i].images_per_second > 0) values[n++] = run->rows[i].images_per_second;
    return amp_median(values, n);
}

/* The remaining time by the wall clock, other trainings' turns included. */
static void remaining(const amp_progress *p, int k, long iterations_left, char text[32])
{
    const amp_run *run = p->runs[k];
    size_t made = run->count - p->before[k];
    if (!made || iterations_left <= 0) {
        text[0] = 0;
        return;
    }
    long seconds = (long)((amp_clock_seconds() - p->began) / (double)made * (double)iterations_left + .5);
    snprintf(text, 32, "  ETA %ld:%02ld:%02ld", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

static void describe(const amp_progress *p, int k, char text[LINE_TEXT])
{
    static const char *const ends[] = { "", "", "  trained", "  done", "  failed" };
    const amp_run *run = p->runs[k];
    char eta[32];
    long all = p->compare->result.iterations;
    if (!run->count) {
        snprintf(text, LINE_TEXT, "%-5s seed %u  waiting%s", run->dtype, run->seed, ends[run->state]);
        return;
    }
    const amp_log_row *row = &run->rows[run->count - 1];
    long skips = 0;
    for (size_t i = 0; i < run->count; i++) skips += amp_log_is_skipped(&run->rows[i]);
    remaining(p, k, all - row->iteration, eta);
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

static void draw(amp_progress *p)
{
    char text[LINE_TEXT];
    int columns = p->terminal ? terminal_columns() : LINE_TEXT;
    if (p->terminal && p->drawn) fprintf(stderr, "\033[%dA", p->count); /* move up to the first line */
    for (int k = 0; k < p->count; k++) {
        describe(p, k, text);
        fprintf(stderr, p->terminal ? "\r%.*s\033[K\n" : "%.*s\n", columns, text);
    }
    p->drawn = 1;
    p->last = amp_clock_seconds();
}

void amp_progress_step(amp_progress *p)
{
    ++p->steps;
    if (amp_clock_seconds() - p->last >= (p->terminal ? TERMINAL_SECONDS : LOG_SECONDS)) draw(p);
}

void amp_progress_end(amp_progress *p)
{
    if (p->steps) draw(p);
    free(p->before);
    free(p);
}
