/* See bench_run.h. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "bench_run.h"

#include "../cfg_copy.h"
#include "../turns.h"

#include "../../host/common/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_ARGUMENTS = 20, FOLDER = 512, FILE_NAME = FOLDER + 16, NUMBER = 24 };

static const double slice_seconds = .1;

/* One program: its arguments, and the file that takes what Darknet prints. */
typedef struct program {
    char output[FILE_NAME], iters[NUMBER], warmup[NUMBER], seed[NUMBER], gpu[NUMBER];
    const char *argv[MOST_ARGUMENTS];
    int count;
} program;

typedef struct run {
    amp_bench *b;
    program programs[AMP_BENCH_SIDES];
    char folder[FOLDER], cfg[FILE_NAME]; /* temporary: what the programs print, and the .cfg they load */
    int named, shows_progress; /* named: the user named the dtypes */
} run;

static volatile sig_atomic_t interrupted;

/* The programs stop at the end of their step. Whoever cannot wait for a long one interrupts a third time: the system ends
 * them with this program. Not the second: some senders tell both a process and its group. */
static void interrupt(int signal)
{
    (void)signal;
    if (++interrupted > 2) _exit(1);
}

/* ---- arguments ---- */

static void add(program *p, const char *name, const char *value)
{
    p->argv[p->count++] = name;
    if (value) p->argv[p->count++] = value;
}

static void add_number(program *p, const char *name, char room[NUMBER], long value)
{
    snprintf(room, NUMBER, "%ld", value);
    add(p, name, room);
}

static void make_program(program *p, const amp_bench_request *r, const run *run, const char *dtype)
{
    *p = (program){ .count = 0 };
    snprintf(p->output, sizeof p->output, "%s/%s", run->folder, dtype);
    add(p, "amp", "bench");
    add(p, run->cfg, NULL);
    add(p, "-only", dtype);
    add(p, "-amp", strcmp(dtype, "stock") ? dtype : "off");
    if (r->iters) add_number(p, "-iters", p->iters, r->iters);
    if (r->warmup >= 0) add_number(p, "-warmup", p->warmup, r->warmup);
    add_number(p, "-seed", p->seed, (long)run->b->seed);
    add_number(p, "-i", p->gpu, amp_fork_device()); /* -1: the CPU */
}

/* ---- what the programs say, and how they end ---- */

static void show_progress(const run *r)
{
    if (!r->shows_progress) return;
    fprintf(stderr, "\r\033[K");
    for (int i = 0; i < r->b->count; i++) {
        const amp_bench_side *s = &r->b->sides[i];
        fprintf(stderr, "%s%s: %s", i ? ", " : "", s->dtype,
                s->layer_count || s->done ? "done" : s->peak_memory_mb > 0 ? "layers" : "");
        if (!(s->peak_memory_mb > 0)) fprintf(stderr, s->steps ? "%d steps" : "warming up", s->steps);
    }
}

static amp_status hear(void *context, int index, const char *line, amp_error *error)
{
    run *r = context;
    AMP_TRY(amp_bench_hear(r->b, &r->b->sides[index], line, error));
    show_progress(r);
    return AMP_OK;
}

/* The last line that is not blank, without the verb's name. Darknet's messages end there too. */
static void last_words(const char *file, char words[512])
{
    char line[512];
    FILE *in = fopen(file, "r");
    words[0] = 0;
    while (in && fgets(line, sizeof line, in)) {
        line[strcspn(line, "\n")] = 0;
        if (line[strspn(line, " \t\r")]) memcpy(words, line, sizeof line);
    }
    if (in) fclose(in);
    static const char verb[] = "amp bench: ";
    if (!strncmp(words, verb, strlen(verb))) memmove(words, words + strlen(verb), strlen(words + strlen(verb)) + 1);
}

static amp_status fail_of(const run *r, int index, const amp_turns_end *end, amp_error *error)
{
    const char *dtype = r->b->sides[index].dtype;
    char words[512];
    last_words(r->programs[index].output, words);
    if (strstr(words, "Darknet cannot make this network"))
        return amp_fail(error, AMP_BAD_NETWORK, "%s: Darknet cannot make this network (most detectors want a -size that is a "
                        "multiple of 32); `darknet amp plan` names the layer", dtype);
    if (!end->exited && end->status == SIGKILL)
        return amp_fail(error, AMP_NO_MEMORY, "%s: its program was killed, as the system does when memory runs out; try "
                        "a smaller -batch, or fewer -dtypes at a time", dtype);
    const char *hint = r->b->sides[index].warm ? "" : !strcmp(dtype, "stock") ? ": some of its layers do on a CPU"
                     : " before its first step; a smaller -batch or -size may fit into memory";
    if (!end->exited)
        return amp_fail(error, AMP_BACKEND_FAILED, "%s: its program crashed (signal %d: %s)%s%s%s", dtype, end->status,
                        strsignal(end->status), hint, words[0] ? "; it said last: " : "", words);
    return amp_fail(error, AMP_BACKEND_FAILED, "%s: %s", dtype, words[0] ? words : "its program ended without a result");
}

static amp_status ended(void *context, int index, const amp_turns_end *end, amp_error *error)
{
    run *r = context;
    amp_bench_side *s = &r->b->sides[index];
    if (end->exited && end->status == 0 && s->support == AMP_SUPPORT_NONE) {
        s->left_out = 1;
        if (r->named) return amp_fail(error, AMP_UNSUPPORTED, "%s: this machine cannot run it: %s", s->dtype, s->note);
        return AMP_OK;
    }
    if (s->done || end->stopped || interrupted) return AMP_OK;
    return fail_of(r, index, end, error);
}

/* ---- running ---- */

static amp_status run_all(run *r, amp_error *error)
{
    amp_turns_program programs[AMP_BENCH_SIDES];
    const amp_turns_watcher watcher = { r, hear, ended };
    struct sigaction on_interrupt = { .sa_handler = interrupt }, before_int, before_term;
    for (int i = 0; i < r->b->count; i++) programs[i] = (amp_turns_program){ .argv = r->programs[i].argv, .output = r->programs[i].output };
    sigemptyset(&on_interrupt.sa_mask);
    sigaction(SIGINT, &on_interrupt, &before_int);
    sigaction(SIGTERM, &on_interrupt, &before_term);
    amp_status status = amp_turns_run(programs, r->b->count, slice_seconds, &interrupted, &watcher, error);
    sigaction(SIGINT, &before_int, NULL);
    sigaction(SIGTERM, &before_term, NULL);
    if (r->shows_progress) fprintf(stderr, "\r\033[K");
    if (status == AMP_OK && interrupted) return amp_fail(error, AMP_IO_FAILED, "interrupted; nothing is reported");
    return status;
}

static amp_status make_folder(char folder[FOLDER], amp_error *error)
{
    const char *parent = getenv("TMPDIR");
    if (!parent || !*parent) parent = "/tmp";
    if (snprintf(folder, FOLDER, "%s/amp-bench-XXXXXX", parent) >= FOLDER || !mkdtemp(folder))
        return amp_fail(error, AMP_IO_FAILED, "%s: cannot make a temporary folder: %s", parent, strerror(errno));
    return AMP_OK;
}

/* At its full rate a network so young jumps about; the time does not depend on the rate. The update that follows each pass
 * does the same work as one that follows many. */
static amp_status write_cfg(const amp_bench_request *r, const char *to, amp_error *error)
{
    amp_cfg_change changes[8] = { { "batch", (double)r->batch }, { "subdivisions", 1 }, { "burn_in", 0 },
                                  { "learning_rate", 1e-6 }, { "max_batches", 1e6 } };
    amp_error cause;
    int count = 5;
    if (r->size) {
        changes[count++] = (amp_cfg_change){ "width", (double)r->size };
        changes[count++] = (amp_cfg_change){ "height", (double)r->size };
    }
    AMP_TRY(amp_cfg_copy(r->cfg, to, changes, count, error));
    if (amp_host_check_cfg(to, CFG_FOR_ANYTHING, &cause) == AMP_OK) return AMP_OK;
    const char *what = strchr(cause.message + strlen(to), ' '); /* behind the file and line of the copy */
    return amp_fail(error, AMP_BAD_CONFIG,
                    "%.300s with this -batch and -size (most detectors want a multiple of 32):%s", r->cfg,
                    what ? what : "");
}

static amp_status run_in_folder(run *r, const amp_bench_request *request, amp_error *error)
{
    snprintf(r->cfg, sizeof r->cfg, "%s/cfg", r->folder);
    for (int i = 0; i < r->b->count; i++) make_program(&r->programs[i], request, r, r->b->sides[i].dtype);
    amp_status status = write_cfg(request, r->cfg, error);
    if (status == AMP_OK) status = run_all(r, error);
    for (int i = 0; i < r->b->count; i++) unlink(r->programs[i].output);
    unlink(r->cfg);
    rmdir(r->folder);
    return status;
}

amp_status amp_bench_run(const amp_bench_request *request, amp_bench *b, amp_error *error)
{
    run *r = calloc(1, sizeof *r);
    if (!r) return amp_fail(error, AMP_NO_MEMORY, "out of memory");
    r->b = b;
    r->named = request->dtypes != NULL;
    r->shows_progress = isatty(STDERR_FILENO);
    amp_status status = make_folder(r->folder, error);
    if (status == AMP_OK) status = run_in_folder(r, request, error);
    free(r);
    return status;
}
