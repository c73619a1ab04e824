/* The scores of a trained network, measured by `darknet amp valid` in its own dtype. */
#include "compare.h"

typedef struct validation { amp_run *run; int told; } validation;

/* "score 0.97": first mAP@0.5 or top-1, then mAP@0.5:0.95 or top-5. The rest is of no use here. */
static amp_status take_line(void *context, int program, const char *line, amp_error *error)
{
    validation *v = context;
    double value;
    (void)program, (void)error;
    if (v->told < 2 && sscanf(line, "score %lf", &value) == 1) v->run->score[v->told++] = value;
    return AMP_OK;
}

typedef struct ending { validation told; amp_turns_end end; } ending;

static amp_status take_end(void *context, int program, const amp_turns_end *end, amp_error *error)
{
    ending *e = context; /* told comes first */
    (void)program, (void)error;
    e->end = *end;
    return AMP_OK;
}

amp_status amp_compare_validate(amp_compare *compare, amp_run *run, amp_error *error)
{
    amp_run_files files;
    ending e = { .told = { .run = run } };
    char number[16];
    const char *device[2] = { NULL, NULL };
    const amp_turns_watcher watcher = { &e, take_line, take_end };
    amp_compare_files(compare, run, &files);
    amp_machine_device_arguments(device, number);
    const char *argv[] = { "amp", "valid", files.data, files.cfg, files.weights, "-amp",
                           strcmp(run->dtype, "stock") ? run->dtype : "off", device[0], device[1], NULL };
    const amp_turns_program program = { .argv = argv, .output = files.valid_log };
    AMP_TRY(amp_run_note_command(&files, argv, 1, error));
    AMP_TRY(amp_turns_run(&program, 1, 1, compare->stop, &watcher, error));
    if (e.told.told == 2 && e.end.exited && e.end.status == 0) {
        run->state = AMP_RUN_DONE;
    } else if (!*compare->stop) {
        run->state = AMP_RUN_FAILED;
        amp_last_words(files.valid_log, run->failure, sizeof run->failure);
        if (!run->failure[0])
            snprintf(run->failure, sizeof run->failure, "validation ended without scores; see %.400s", files.valid_log);
    }
    return amp_run_keep(compare, run, error);
}
