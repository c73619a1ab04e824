/* One training's folder, DIR/runs/DTYPE-seedS: copies of the .cfg and the .data file, with which the training
 * can be repeated by hand; the output of its programs; steps.csv; backup/; and result.txt, its state and
 * scores:
 *
 *     state done
 *     score mAP@0.5 0.973
 *     score mAP@0.5:0.95 0.612 */
#include "comparison.h"

#include "../cfg_copy.h"
#include "../../host/data/text_lines.h"
#include "../../host/program/cfg.h"

#include <unistd.h>

/* ---- names ---- */

__attribute__((format(printf, 2, 3)))
static void name_it(char path[AMP_COMPARE_PATH], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(path, AMP_COMPARE_PATH, format, args);
    va_end(args);
}

void amp_compare_files(const amp_compare *compare, const amp_run *run, amp_run_files *f)
{
    const char *folder = f->folder, *base = compare->base;
    /* train_detector, train_classifier */
    const char *end = compare->result.kind == AMP_COMPARED_DETECTOR ? "_final" : "";
    name_it(f->folder, "%s/runs/%s-seed%u", compare->folder, run->dtype, run->seed);
    name_it(f->cfg, "%s/%s.cfg", folder, base);
    name_it(f->data, "%s/run.data", folder);
    name_it(f->backup, "%s/backup", folder);
    name_it(f->saved, "%s/backup/%s.backup", folder, base);
    name_it(f->weights, "%s/backup/%s%s.weights", folder, base, end);
    name_it(f->steps, "%s/steps.csv", folder);
    name_it(f->train_log, "%s/train.log", folder);
    name_it(f->valid_log, "%s/valid.log", folder);
    name_it(f->result, "%s/result.txt", folder);
}

/* ---- its steps ---- */

void amp_run_add_row(amp_run *run, const amp_log_row *row)
{
    run->rows = amp_grow(run->rows, run->count, &run->room, sizeof *row);
    run->rows[run->count++] = *row;
}

int amp_run_is_over(const amp_compare *compare, const amp_run *run)
{
    return run->count && run->rows[run->count - 1].iteration >= compare->result.iterations;
}

amp_status amp_run_read_steps(const amp_compare *compare, amp_run *run, amp_error *error)
{
    amp_run_files files;
    amp_log_rows rows = { 0 };
    amp_compare_files(compare, run, &files);
    run->count = 0;
    if (access(files.steps, F_OK)) return AMP_OK;
    amp_status status = amp_log_rows_read(files.steps, &rows, error);
    for (size_t i = 0; i < rows.count; i++) amp_run_add_row(run, &rows.row[i]);
    free(rows.row);
    return status;
}

/* ---- its result ---- */

amp_status amp_run_keep(const amp_compare *compare, const amp_run *run, amp_error *error)
{
    amp_run_files files;
    amp_output out;
    amp_compare_files(compare, run, &files);
    AMP_TRY(amp_output_begin(files.result, &out, error));
    fprintf(out.stream, "state %s\n", amp_training_state_names[run->state]);
    for (int k = 0; k < 2 && run->state == AMP_RUN_DONE; k++)
        fprintf(out.stream, "score %s %.17g\n", amp_score_name(&compare->result, k), run->score[k]);
    if (run->state == AMP_RUN_FAILED) fprintf(out.stream, "failure %s\n", run->failure);
    return amp_output_end(&out, AMP_OK, error);
}

static void read_result(const amp_lines *lines, amp_run *run)
{
    int scores = 0;
    for (size_t i = 0; i < lines->count; i++) {
        const char *line = lines->line[i];
        for (amp_training_state state = AMP_RUN_TRAINED; state <= AMP_RUN_FAILED; state++)
            if (!strncmp(line, "state ", 6) && !strcmp(line + 6, amp_training_state_names[state]))
                run->state = state;
        if (scores < 2 && sscanf(line, "score %*s %lf", &run->score[scores]) == 1) scores++;
        if (!strncmp(line, "failure ", 8)) snprintf(run->failure, sizeof run->failure, "%s", line + 8);
    }
    if (run->state == AMP_RUN_DONE && scores != 2) run->state = AMP_RUN_TRAINED;
}

static amp_status read_run(const amp_compare *compare, amp_run *run, amp_error *error)
{
    amp_run_files files;
    amp_lines lines = { 0 };
    amp_compare_files(compare, run, &files);
    run->state = AMP_RUN_WAITING;
    AMP_TRY(amp_run_read_steps(compare, run, error));
    if (run->count) run->state = AMP_RUN_TRAINING;
    if (access(files.result, F_OK)) return AMP_OK;
    amp_status status = amp_lines_read(files.result, "the result of a training", &lines, error);
    if (status == AMP_OK) read_result(&lines, run);
    amp_lines_free(&lines);
    int there = !access(files.weights, R_OK);
    if (amp_run_is_trained(run) && !there) run->state = run->count ? AMP_RUN_TRAINING : AMP_RUN_WAITING;
    if (run->state == AMP_RUN_FAILED && there && amp_run_is_over(compare, run))
        run->state = AMP_RUN_TRAINED; /* validation failed */
    return status;
}

amp_status amp_runs_read(amp_compare *compare, int first_seed, amp_error *error)
{
    amp_comparison *c = &compare->result;
    for (int d = 0; d < c->dtype_count; d++)
        for (int s = first_seed; s < c->seed_count; s++)
            AMP_TRY(read_run(compare, amp_comparison_run(c, d, s), error));
    return AMP_OK;
}

/* ---- before it ---- */

static amp_status copy_data(const char *from, const amp_run_files *files, amp_error *error)
{
    cfg_document *data;
    amp_output out;
    AMP_TRY(amp_data_document(from, &data, error));
    amp_status status = amp_output_begin(files->data, &out, error);
    if (status == AMP_OK) {
        fprintf(out.stream, "backup=%s\n", files->backup);
        for (const cfg_item *line = data->items; line < data->items + data->count; line++)
            if (line->kind == CFG_OPTION && strcmp(line->text, "backup"))
                fwrite(line->raw, 1, line->raw_size, out.stream);
        status = amp_output_end(&out, AMP_OK, error);
    }
    amp_document_give_back(data);
    return status;
}

/* Only AMP's trainings resume exactly: stock Darknet saves neither momentum nor the order of the images. */
static int can_resume(const amp_run *run, const amp_run_files *files)
{
    char sidecar[AMP_COMPARE_PATH + 8];
    snprintf(sidecar, sizeof sidecar, "%s.amp", files->saved);
    return strcmp(run->dtype, "stock") && !access(files->saved, R_OK) && !access(sidecar, R_OK);
}

static void remove_with_sidecar(const char *weights)
{
    char sidecar[AMP_COMPARE_PATH + 8];
    snprintf(sidecar, sizeof sidecar, "%s.amp", weights);
    unlink(weights);
    unlink(sidecar);
}

static void begin_anew(amp_run *run, const amp_run_files *files)
{
    remove_with_sidecar(files->saved);
    remove_with_sidecar(files->weights);
    unlink(files->steps);
    run->count = 0;
}

amp_status amp_run_prepare(const amp_compare *compare, amp_run *run, int *resumed, amp_error *error)
{
    const amp_comparison *c = &compare->result;
    const amp_cfg_change iterations = { "max_batches", (double)c->iterations };
    amp_run_files files;
    amp_compare_files(compare, run, &files);
    AMP_TRY(amp_compare_make_folder(files.folder, NULL, error));
    AMP_TRY(amp_compare_make_folder(files.backup, NULL, error));
    AMP_TRY(amp_cfg_copy(c->cfg, files.cfg, &iterations, 1, error));
    AMP_TRY(copy_data(c->data, &files, error));
    unlink(files.result);
    *resumed = can_resume(run, &files);
    if (!*resumed) begin_anew(run, &files);
    run->failure[0] = 0;
    run->state = AMP_RUN_TRAINING;
    return AMP_OK;
}
