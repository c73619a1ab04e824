/* Reads the lines of the child programs, and computes medians, spreads, ratios and shares. */
#include "bench.h"

#include "../../amp/statistics.h"
#include "../../host/program/failure.h"

#include <math.h>
#include <string.h>

/* ---- lines ---- */

static amp_status add_step(const amp_bench *b, amp_bench_side *s, const char *text)
{
    double f, k, u;
    if (sscanf(text, "%lf %lf %lf", &f, &k, &u) != 3) return AMP_IO_FAILED;
    const double ms[AMP_BENCH_PHASES] = { f, k, u, b->subdivisions * (f + k) + u };
    if (s->steps == s->room) {
        size_t room = s->room ? 2 * (size_t)s->room : 256;
        s->turn = amp_allocated(realloc(s->turn, room * sizeof *s->turn));
        for (int p = 0; p < AMP_BENCH_PHASES; p++)
            s->ms[p] = amp_allocated(realloc(s->ms[p], room * sizeof *s->ms[p]));
        s->room = (int)room;
    }
    s->turn[s->steps] = b->turn;
    for (int p = 0; p < AMP_BENCH_PHASES; p++) s->ms[p][s->steps] = ms[p];
    s->steps++;
    return AMP_OK;
}

static amp_status add_layer(amp_bench_side *s, const char *text)
{
    amp_bench_layer l = { 0 };
    if (sscanf(text, "%d %23s %d %d %lf %lf %lf %lf", &l.index, l.type, &l.in_half, &l.misaligned,
               &l.forward_ms, &l.backward_ms, &l.operations, &l.bytes) != 8
        || l.index != s->layer_count) return AMP_IO_FAILED;
    s->layers = amp_allocated(realloc(s->layers, ((size_t)s->layer_count + 1) * sizeof *s->layers));
    s->layers[s->layer_count++] = l;
    return AMP_OK;
}

static double share(double amount, double ms, double limit)
{
    return ms > 0 && limit > 0 ? 100 * amount / ms / limit : 0;
}

/* The `limits` line must have been read before. */
static amp_status add_operation(amp_bench_side *s, const char *text)
{
    amp_bench_operation o = { 0 };
    if (sscanf(text, "%31s %31s %lf %lf %lf %lf %d", o.layer, o.name, &o.calls, &o.ms, &o.bytes, &o.products,
               &o.in_half) != 7) return AMP_IO_FAILED;
    o.of_bandwidth = share(o.bytes, o.ms, s->bytes_per_ms);
    o.of_arithmetic = share(o.products, o.ms, o.in_half ? s->half_per_ms : s->fp32_per_ms);
    s->operations = amp_allocated(realloc(s->operations,
                                          ((size_t)s->operation_count + 1) * sizeof *s->operations));
    s->operations[s->operation_count++] = o;
    return AMP_OK;
}

static amp_status note_loss(amp_bench_side *s, const char *text, int skipped)
{
    float loss;
    if (sscanf(text, "%f", &loss) != 1) return AMP_IO_FAILED;
    if (!s->skipped && !s->warm++) s->first_loss = loss;
    s->skipped += skipped;
    return AMP_OK;
}

static amp_status add_loading(const amp_bench *b, amp_bench_side *s, const char *text)
{
    double wait, compute;
    if (sscanf(text, "%lf %lf", &wait, &compute) != 2) return AMP_IO_FAILED;
    amp_waits_add(&s->loading, b->batch, wait, compute);
    return AMP_OK;
}

static amp_status take(amp_bench *b, amp_bench_side *s, const char *name, const char *rest)
{
    if (!strcmp(name, "step")) return add_step(b, s, rest);
    if (!strcmp(name, "warm")) return note_loss(s, rest, 0);
    if (!strcmp(name, "skipped")) return note_loss(s, rest, 1);
    if (!strcmp(name, "pass")) return AMP_OK;
    if (!strcmp(name, "loading")) return add_loading(b, s, rest);
    if (!strcmp(name, "layer")) return add_layer(s, rest);
    if (!strcmp(name, "operation")) return add_operation(s, rest);
    if (!strcmp(name, "limits"))
        return sscanf(rest, "%lf %lf %lf", &s->bytes_per_ms, &s->half_per_ms, &s->fp32_per_ms) == 3
            ? AMP_OK : AMP_IO_FAILED;
    if (!strcmp(name, "memory"))
        return sscanf(rest, "%lf %lf", &s->peak_memory_mb, &s->loaded_mb) == 2 ? AMP_OK : AMP_IO_FAILED;
    if (!strcmp(name, "shape"))
        return sscanf(rest, "%d %d %d %d %d", &b->width, &b->height, &b->channels, &b->batch,
                      &b->on_gpu) == 5 ? AMP_OK : AMP_IO_FAILED;
    s->done = !strcmp(name, "done") && atol(rest) == s->steps;
    return s->done ? AMP_OK : AMP_IO_FAILED;
}

amp_status amp_bench_read_line(amp_bench *b, amp_bench_side *s, const char *line, amp_error *error)
{
    char name[16] = "";
    size_t length = strcspn(line, " ");
    if (length < sizeof name) memcpy(name, line, length);
    int side = (int)(s - b->sides);
    b->turn += side < b->last_side;
    b->last_side = side;
    if (take(b, s, name, line + length + (line[length] == ' ')) == AMP_OK) return AMP_OK;
    return amp_fail(error, AMP_IO_FAILED, "the %s program wrote an unexpected line: %s", s->dtype, line);
}

/* ---- numbers ---- */

amp_bench_spread amp_bench_spread_of(double *values, int count)
{
    if (count < 1) return (amp_bench_spread){ .count = 0 };
    size_t n = (size_t)count;
    amp_sort(values, n);
    return (amp_bench_spread){ .count = count, .least = values[0], .most = values[n - 1],
                               .lower = amp_quantile(values, n, .25), .median = amp_quantile(values, n, .5),
                               .upper = amp_quantile(values, n, .75) };
}

const amp_bench_side *amp_bench_side_of(const amp_bench *b, const char *dtype)
{
    for (int i = 0; i < b->count; i++)
        if (!strcmp(b->sides[i].dtype, dtype) && b->sides[i].steps && !b->sides[i].left_out)
            return &b->sides[i];
    return NULL;
}

double amp_bench_layer_ms(const amp_bench_layer *l) { return l->forward_ms + l->backward_ms; }

double amp_bench_layers_ms(const amp_bench_side *s)
{
    double sum = 0;
    for (int i = 0; i < s->layer_count; i++) sum += amp_bench_layer_ms(&s->layers[i]);
    return sum;
}

/* ---- rounds: one turn of each dtype ---- */

/* The rounds in which all sides made steps. */
typedef struct rounds {
    int count;
    double *logs[AMP_BENCH_SIDES]; /* for each round: the logarithm of the median time of the side's steps */
    double *scratch;             /* buffer; has room for the steps of any one side */
} rounds;

/* The median time of a side's steps in one round; 0 if the side made no step. Call it before the times are
 * sorted. */
static double turn_median(const amp_bench_side *s, int turn, double *scratch)
{
    int count = 0;
    for (int i = 0; i < s->steps; i++) if (s->turn[i] == turn) scratch[count++] = s->ms[AMP_BENCH_STEP][i];
    return amp_bench_spread_of(scratch, count).median;
}

static void find_rounds(const amp_bench *b, rounds *r)
{
    size_t room = (size_t)b->turn + 1;
    for (int i = 0; i < b->count; i++) if ((size_t)b->sides[i].steps > room) room = (size_t)b->sides[i].steps;
    *r = (rounds){ .scratch = amp_allocated(calloc((AMP_BENCH_SIDES + 1) * room, sizeof *r->scratch)) };
    for (int i = 0; i < AMP_BENCH_SIDES; i++) r->logs[i] = r->scratch + (size_t)(i + 1) * room;
    for (int turn = 0; turn <= b->turn; turn++) {
        int all_worked = 1;
        for (int i = 0; i < b->count; i++) {
            double median = b->sides[i].left_out ? 1 : turn_median(&b->sides[i], turn, r->scratch);
            all_worked &= median > 0;
            r->logs[i][r->count] = log(median);
        }
        r->count += all_worked;
    }
}

/* ---- a side ---- */

static double sum_of(const double *values, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++) sum += values[i];
    return sum;
}

/* A layer with fewer operations per byte is memory-bound. While a processor reads one byte, it makes about
 * ten operations in fp32, or several times as many in half precision. */
static const double operations_per_byte = 32;

static void measure_layers(amp_bench_side *s, int subdivisions)
{
    double all = amp_bench_layers_ms(s), step = s->spread[AMP_BENCH_STEP].typical;
    double passes = step - s->spread[AMP_BENCH_UPDATE].typical;
    for (int i = 0; i < s->layer_count && all > 0; i++) {
        amp_bench_layer *l = &s->layers[i];
        double part = amp_bench_layer_ms(l) / all;
        l->forward_ms *= passes / all;
        l->backward_ms *= passes / all;
        l->share = amp_bench_layer_ms(l) / step;
        if (!l->in_half) s->fp32_share += part;
        else if (l->bytes > 0 && l->operations < operations_per_byte * l->bytes) s->moving_share += part;
        if (l->misaligned) s->misaligned_share += part;
    }
    if (all > 0) s->call_us = 1e3 * passes / (2 * s->layer_count * subdivisions);
}

static void measure_side(const amp_bench *b, amp_bench_side *s, const rounds *r)
{
    const double *logs = r->logs[s - b->sides];
    double all = sum_of(s->ms[AMP_BENCH_STEP], s->steps);
    for (int p = 0; p < AMP_BENCH_PHASES; p++) s->spread[p] = amp_bench_spread_of(s->ms[p], s->steps);
    double step = r->count > 1 ? exp(sum_of(logs, r->count) / r->count) : s->spread[AMP_BENCH_STEP].median;
    for (int p = 0; p < AMP_BENCH_PHASES; p++) s->spread[p].typical = step * sum_of(s->ms[p], s->steps) / all;
    s->images_per_second = 1e3 * b->batch * b->subdivisions / step;
    s->training_mb = s->peak_memory_mb > 0 ? s->peak_memory_mb + b->subdivisions * s->loaded_mb : 0;
    measure_layers(s, b->subdivisions);
    s->waiting = -1;
    if (!s->loading.steps) return;
    s->trained = s->load_rate = amp_waits_load_rate(&s->loading);
    s->step_rate = amp_waits_step_rate(&s->loading);
    s->waiting = amp_waits_share(&s->loading);
}

/* Bounds that are too far apart become NaN: two rounds may give 0.00 and 7,000. */
static amp_bench_ratio bounded(double ratio, double least, double most, int rounds)
{
    static const double widest = 4;
    if (most > widest * least) least = most = NAN;
    return (amp_bench_ratio){ ratio, least, most, rounds };
}

/* The speed-up of s over the reference; both were measured. */
static amp_bench_ratio compare(const amp_bench *b, const amp_bench_side *reference, const amp_bench_side *s,
                               const rounds *r)
{
    const amp_bench_spread *theirs = &reference->spread[AMP_BENCH_STEP], *ours = &s->spread[AMP_BENCH_STEP];
    double ratio = reference->spread[AMP_BENCH_STEP].typical / s->spread[AMP_BENCH_STEP].typical;
    if (r->count < 2)
        return bounded(ratio, theirs->least / ours->most, theirs->most / ours->least, 0);
    const double *their_logs = r->logs[reference - b->sides], *our_logs = r->logs[s - b->sides];
    for (int i = 0; i < r->count; i++) r->scratch[i] = their_logs[i] - our_logs[i];
    amp_interval logs = amp_interval_of(r->scratch, r->count, .05);
    return bounded(ratio, exp(logs.least), exp(logs.most), r->count);
}

/* ---- layers ---- */

/* Whether fewer than AMP_BENCH_TOP layers of this side take longer than this layer. */
static int is_top(const amp_bench_side *s, int layer)
{
    int longer = 0;
    if (layer >= s->layer_count) return 0;
    for (int i = 0; i < s->layer_count; i++) {
        double difference = amp_bench_layer_ms(&s->layers[i]) - amp_bench_layer_ms(&s->layers[layer]);
        longer += difference > 0 || (difference == 0 && i < layer);
    }
    return longer < AMP_BENCH_TOP;
}

static void find_top_layers(amp_bench *b)
{
    const amp_bench_side *first = NULL;
    for (int k = 0; k < b->count && !first; k++) if (b->sides[k].layer_count) first = &b->sides[k];
    for (int i = 0; first && i < first->layer_count; i++) {
        int top = 0;
        for (int k = 0; k < b->count; k++) top |= is_top(&b->sides[k], i);
        if (!top) continue;
        int at = b->top_count++;
        double ms = amp_bench_layer_ms(&first->layers[i]);
        for (; at > 0 && amp_bench_layer_ms(&first->layers[b->top[at - 1]]) < ms; at--)
            b->top[at] = b->top[at - 1];
        b->top[at] = i;
    }
}

/* ---- the whole ---- */

static void judge_all(amp_bench *b)
{
    const amp_bench_side *fp32 = amp_bench_side_of(b, "fp32");
    b->verdict_count = 0;
    for (int i = 0; fp32 && i < b->count; i++) {
        const amp_bench_side *s = &b->sides[i];
        if (s->left_out || (strcmp(s->dtype, "bf16") && strcmp(s->dtype, "fp16"))) continue;
        amp_bench_judge(fp32, s, b->cores, &b->verdicts[b->verdict_count++]);
    }
}

amp_status amp_bench_summarize(amp_bench *b, amp_error *error)
{
    for (int i = 0; i < b->count; i++)
        if (!b->sides[i].left_out && !b->sides[i].steps)
            return amp_fail(error, AMP_IO_FAILED, "%s: no step was measured", b->sides[i].dtype);
    rounds r;
    find_rounds(b, &r); /* before the steps are sorted */
    for (int i = 0; i < b->count; i++) if (!b->sides[i].left_out) measure_side(b, &b->sides[i], &r);
    const amp_bench_side *stock = amp_bench_side_of(b, "stock"), *fp32 = amp_bench_side_of(b, "fp32");
    for (int i = 0; i < b->count; i++) {
        amp_bench_side *s = &b->sides[i];
        if (stock && !s->left_out) s->over_stock = compare(b, stock, s, &r);
        if (fp32 && !s->left_out) s->over_fp32 = compare(b, fp32, s, &r);
    }
    free(r.scratch);
    judge_all(b);
    find_top_layers(b);
    return AMP_OK;
}

void amp_bench_free(amp_bench *b)
{
    for (int i = 0; i < b->count; i++) {
        for (int p = 0; p < AMP_BENCH_PHASES; p++) free(b->sides[i].ms[p]);
        free(b->sides[i].turn);
        free(b->sides[i].layers);
        free(b->sides[i].operations);
    }
    b->count = 0;
}
