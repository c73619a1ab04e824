/* A benchmark for machines: all that was measured. */
#include "bench.h"

#include "../json.h"

#include <stdlib.h>

/* typical: what the table shows, and ratios are made of. */
static void write_phase(amp_json *j, const char *name, double typical, const amp_bench_spread *s)
{
    amp_json_object(j, name);
    amp_json_number(j, "typical", typical);
    amp_json_number(j, "median", s->median);
    amp_json_number(j, "min", s->least);
    amp_json_number(j, "lower_quartile", s->lower);
    amp_json_number(j, "upper_quartile", s->upper);
    amp_json_number(j, "max", s->most);
    amp_json_close(j);
}

static void write_layer(amp_json *j, const amp_bench_layer *l, double step_ms)
{
    amp_json_object(j, NULL);
    amp_json_integer(j, "layer", l->index);
    amp_json_text(j, "type", l->type);
    amp_json_boolean(j, "half", l->in_half);
    amp_json_boolean(j, "misaligned", l->misaligned);
    amp_json_number(j, "forward_ms", l->forward_ms);
    amp_json_number(j, "backward_ms", l->backward_ms);
    amp_json_number(j, "cast_ms", l->cast_ms);
    amp_json_number(j, "share", amp_bench_layer_ms(l) / step_ms);
    amp_json_number(j, "operations", l->operations);
    amp_json_number(j, "bytes", l->bytes);
    amp_json_close(j);
}

static void write_ratio(amp_json *j, const char *name, double ratio)
{
    if (ratio > 0) amp_json_number(j, name, ratio);
    else amp_json_text(j, name, NULL);
}

static void write_side(amp_json *j, const amp_bench_side *s)
{
    static const char *const support[] = { "none", "storage", "native" };
    amp_json_object(j, NULL);
    amp_json_text(j, "dtype", s->dtype);
    amp_json_text(j, "support", support[s->support]);
    amp_json_text(j, "note", s->note[0] ? s->note : NULL);
    amp_json_text(j, "machine", s->machine[0] ? s->machine : NULL);
    amp_json_boolean(j, "left_out", s->left_out);
    if (!s->left_out) {
        amp_json_integer(j, "steps", s->steps);
        amp_json_integer(j, "skipped", s->skipped);
        amp_json_number(j, "first_loss", (double)s->first_loss);
        amp_json_object(j, "ms");
        for (int p = 0; p < AMP_BENCH_PHASES; p++)
            write_phase(j, amp_bench_phase_names[p], s->phase_ms[p], &s->spread[p]);
        amp_json_close(j);
        amp_json_number(j, "images_per_second", s->images_per_second);
        amp_json_number(j, "peak_memory_mb", s->peak_memory_mb);
        amp_json_number(j, "training_memory_mb", s->training_mb);
        write_ratio(j, "speedup_over_stock", s->over_stock.ratio);
        write_ratio(j, "speedup_over_fp32", s->over_fp32.ratio);
        amp_json_array(j, "layers");
        for (int i = 0; i < s->layer_count; i++) write_layer(j, &s->layers[i], s->phase_ms[AMP_BENCH_STEP]);
        amp_json_close(j);
    }
    amp_json_close(j);
}

static void write_verdict(amp_json *j, const amp_bench_verdict *v)
{
    static const char *const worth[] = { "worth it", "cannot tell", "not worth it" };
    amp_json_object(j, NULL);
    amp_json_text(j, "dtype", v->dtype);
    amp_json_text(j, "verdict", worth[v->worth]);
    amp_json_number(j, "speedup", v->speedup.ratio);
    amp_json_number(j, "speedup_least", v->speedup.least);
    amp_json_number(j, "speedup_most", v->speedup.most);
    amp_json_integer(j, "paired_rounds", v->speedup.rounds);
    write_ratio(j, "memory_ratio", v->memory_ratio);
    amp_json_boolean(j, "saves_memory", v->saves_memory);
    amp_json_array(j, "reasons");
    for (int i = 0; i < AMP_BENCH_REASONS; i++) if (v->reason[i]) amp_json_text(j, NULL, amp_bench_reason_names[i]);
    amp_json_close(j);
    amp_json_text(j, "text", v->text);
    amp_json_close(j);
}

static void write_top(amp_json *j, const amp_bench *b)
{
    int most = 0;
    for (int i = 0; i < b->count; i++) if (b->sides[i].layer_count > most) most = b->sides[i].layer_count;
    int *layers = calloc((size_t)most + 1, sizeof *layers);
    int count = layers ? amp_bench_top_layers(b, layers) : 0;
    amp_json_array(j, "most_expensive_layers");
    for (int k = 0; k < count; k++) amp_json_integer(j, NULL, layers[k]);
    amp_json_close(j);
    free(layers);
}

void amp_bench_write_json(const amp_bench *b, FILE *stream)
{
    amp_json j = amp_json_begin(stream);
    amp_json_object(&j, NULL);
    amp_json_text(&j, "cfg", b->cfg);
    amp_json_boolean(&j, "gpu", b->on_gpu);
    amp_json_integer(&j, "threads", b->threads);
    amp_json_integer(&j, "processors", b->processors);
    amp_json_integer(&j, "seed", b->seed);
    amp_json_integer(&j, "batch", b->batch);
    amp_json_integer(&j, "subdivisions", b->subdivisions);
    amp_json_integer(&j, "width", b->width);
    amp_json_integer(&j, "height", b->height);
    amp_json_integer(&j, "channels", b->channels);
    amp_json_array(&j, "dtypes");
    for (int i = 0; i < b->count; i++) write_side(&j, &b->sides[i]);
    amp_json_close(&j);
    write_top(&j, b);
    amp_json_array(&j, "verdicts");
    for (int i = 0; i < b->verdict_count; i++) write_verdict(&j, &b->verdicts[i]);
    amp_json_close(&j);
    amp_json_close(&j);
}
