/* The probe's result for machines. What weight gradients lose is what a GPU loses of them; the CPU loses nothing. */
#include "probe_advice.h"

#include <limits.h>
#include <math.h>

static void write_lost(const amp_exponents *e, amp_dtype dtype, float scale, amp_json *json)
{
    amp_lost lost = amp_numerics_lost(e, dtype, scale);
    amp_json_object(json, amp_dtype_name(dtype));
    amp_json_number(json, "overflow", lost.overflow);
    amp_json_number(json, "zero", lost.zero);
    amp_json_number(json, "subnormal", lost.subnormal);
    amp_json_number(json, "rounding", lost.error);
    amp_json_close(json);
}

/* The bins from the first to the last that are not empty: exponents[i] numbers are from 2^(first + i) to twice that. */
static void write_bins(const amp_exponents *e, amp_json *json)
{
    int first = 0, last = AMP_EXPONENTS - 1;
    while (first < last && !e->bins[first]) first++;
    while (last > first && !e->bins[last]) last--;
    amp_json_integer(json, "first_exponent", first + AMP_LEAST_EXPONENT);
    amp_json_array(json, "exponents");
    for (int b = first; b <= last; b++) amp_json_integer(json, NULL, (long long)e->bins[b]);
    amp_json_close(json);
}

static void write_numbers(const char *key, const amp_exponents *e, float fp16_scale, float bf16_scale, amp_json *json)
{
    unsigned long long count = amp_exponents_count(e);
    if (!count && !e->not_finite && !e->zeros) return;
    amp_json_object(json, key);
    amp_json_integer(json, "numbers", (long long)count);
    amp_json_integer(json, "zeros", (long long)e->zeros);
    amp_json_integer(json, "inf_or_nan", (long long)e->not_finite);
    amp_json_number(json, "largest", (double)e->largest);
    if (count) {
        write_lost(e, AMP_FP16, fp16_scale, json);
        write_lost(e, AMP_BF16, bf16_scale, json);
        write_bins(e, json);
    }
    amp_json_close(json);
}

/* A scale as a number; null where nothing bounds it. */
static void write_scale(const char *key, int exponent, amp_json *json)
{
    amp_json_number(json, key, exponent == INT_MIN || exponent == INT_MAX ? INFINITY : ldexp(1, exponent));
}

static void write_scales(const char *key, amp_probe_scales s, amp_json *json)
{
    amp_json_object(json, key);
    write_scale("least", s.least, json);
    write_scale("most", s.most, json);
    amp_json_close(json);
}

static void write_layer(const amp_probe_result *r, int i, amp_json *json)
{
    const amp_probe_layer *layer = &r->layers[i];
    const amp_layer_numerics *n = &layer->numerics;
    amp_json_object(json, NULL);
    amp_json_integer(json, "layer", i);
    amp_json_text(json, "type", r->network.layers[i].type);
    amp_json_boolean(json, "half", layer->low);
    amp_json_boolean(json, "pinned", r->network.layers[i].pinned);
    amp_json_boolean(json, "pin", layer->pin);
    write_scales("loss_scales", layer->scales, json);
    write_numbers("outputs", &n->output, 1, 1, json);
    write_numbers("sums", &n->inner_output, 1, 1, json);
    write_numbers("deltas", &n->delta, r->scale, r->bf16_scale, json);
    write_numbers("inner_deltas", &n->inner_delta, r->scale, r->bf16_scale, json);
    write_numbers("weight_gradients", &n->gradient, ldexpf(r->scale, amp_probe_gradient_shift(r, i)), r->bf16_scale, json);
    amp_json_close(json);
}

void amp_probe_json(const amp_probe_result *r, amp_json *json, const char *key)
{
    static const char *const sources[] = { "sidecar", "cfg", "highest without overflow" };
    amp_json_object(json, key);
    amp_json_text(json, "cfg", r->cfg);
    amp_json_text(json, "data", r->data);
    amp_json_text(json, "weights", r->weights);
    amp_json_integer(json, "steps", r->iterations);
    amp_json_integer(json, "images_per_step", r->images);
    amp_json_integer(json, "width", r->width);
    amp_json_integer(json, "height", r->height);
    amp_json_number(json, "seconds", r->seconds);
    amp_json_number(json, "first_loss", (double)r->first_loss);
    amp_json_number(json, "last_loss", (double)r->last_loss);
    amp_json_number(json, "loss_scale", (double)r->scale);
    amp_json_text(json, "loss_scale_from", sources[r->scale_source]);
    amp_json_boolean(json, "loss_scale_dynamic", r->scale_moves);
    amp_json_number(json, "bf16_loss_scale", (double)r->bf16_scale);
    amp_json_number(json, "share", r->share);
    write_scales("loss_scales", r->scales, json);
    write_scale("most_on_gpu", r->most_on_gpu, json);
    amp_json_array(json, "pins");
    for (int i = 0; i < r->network.count; i++) if (r->layers[i].pin) amp_json_integer(json, NULL, i);
    amp_json_close(json);
    amp_json_array(json, "advice");
    for (int i = 0; i < r->advice_count; i++) amp_json_text(json, NULL, r->advice[i]);
    amp_json_close(json);
    amp_json_array(json, "layers");
    for (int i = 0; i < r->network.count; i++) write_layer(r, i, json);
    amp_json_close(json);
    amp_json_close(json);
}

amp_status amp_probe_write(const amp_probe_result *r, const char *file, amp_error *error)
{
    struct amp_output *output;
    FILE *stream;
    AMP_TRY(amp_output_begin(file, &output, &stream, error));
    amp_json json = amp_json_begin(stream);
    amp_probe_json(r, &json, NULL);
    return amp_output_end(output, error);
}
