/* Summarizes a training's log.
 *
 * Skipped steps have a loss but no gradient norm. Medians of losses and norms leave them out. They are
 * counted when the log is divided into quarters.
 *
 * docs/commands.md lists the signs of a failing training. A falling loss scale is one of them, but not in the
 * first COLLAPSE_STEPS rows, where the scale falls until it has found its level. */
#include "log.h"

#include "../../host/program/failure.h"
#include "../../amp/statistics.h"

#include <math.h>
#include <string.h>

enum { COLLAPSE_STEPS = 50 };
#define COLLAPSE_FALL 32.0
#define COLLAPSE_GROWTH 10.0

/* ---- medians ---- */

typedef double number_of(const amp_log_row *);

static double loss_of(const amp_log_row *row) { return row->found_inf ? NAN : row->loss; }
static double norm_of(const amp_log_row *row) { return row->found_inf ? NAN : row->grad_norm; }
static double speed_of(const amp_log_row *row) { return row->images_per_second; }

/* The median of the finite values of number(row) over rows [from, to); NaN: none. */
static double median_of(const amp_log_row *rows, size_t from, size_t to, number_of *number)
{
    double *values = amp_allocated(malloc((to - from + 1) * sizeof *values));
    size_t count = 0;
    for (size_t i = from; i < to; i++) {
        double value = number(&rows[i]);
        if (isfinite(value)) values[count++] = value;
    }
    double median = amp_median(values, count);
    free(values);
    return median;
}

/* ---- spikes ---- */

static double height(const amp_log_spike *spike) { return spike->value / spike->median; }

/* Adds a spike. If there are more than AMP_SPIKES_KEPT, drops the smallest. Keeps the order of the steps. */
static void keep_spike(amp_log_summary *s, amp_log_spike spike)
{
    size_t kept = s->spikes < AMP_SPIKES_KEPT ? s->spikes : AMP_SPIKES_KEPT, least = 0;
    s->spikes++;
    if (kept == AMP_SPIKES_KEPT) {
        for (size_t i = 1; i < kept; i++)
            if (height(&s->spike[i]) < height(&s->spike[least])) least = i;
        if (height(&spike) <= height(&s->spike[least])) return;
        memmove(s->spike + least, s->spike + least + 1, (--kept - least) * sizeof *s->spike);
    }
    s->spike[kept] = spike;
}

/* Describes a spike that the training marked. `rule` tells whether the norm or the loss was too large. If the
 * training used another factor, `rule` may find neither too large; then the spike is put down to the one that
 * is larger relative to its median. */
static amp_spike told_spike(const amp_spikes *rule, const amp_log_row *row, double norm, double loss)
{
    amp_spike spike = amp_spikes_judge(rule, norm, loss);
    spike.dropped = row->spike == AMP_LOG_DROPPED;
    if (spike.found) return spike;
    double norms = amp_spike_window_median(&rule->norms), losses = amp_spike_window_median(&rule->losses);
    int by_loss = !(norm * losses >= loss * norms);
    return (amp_spike){ .found = 1, .dropped = spike.dropped, .by_loss = by_loss,
                        .value = by_loss ? loss : norm, .median = by_loss ? losses : norms };
}

static void find_spikes(const amp_log_row *rows, size_t count, amp_log_summary *s)
{
    amp_spikes rule = { .factor = AMP_LOG_SPIKE_FACTOR };
    for (size_t i = 0; i < count; i++) {
        const amp_log_row *row = &rows[i];
        double norm = norm_of(row), loss = loss_of(row);
        amp_spike spike = { 0 };
        if (row->spike == AMP_LOG_NO_RULE) spike = amp_spikes_judge(&rule, norm, loss);
        else if (row->spike != AMP_LOG_NO_SPIKE) spike = told_spike(&rule, row, norm, loss);
        s->dropped += spike.dropped != 0;
        if (spike.found)
            keep_spike(s, (amp_log_spike){ row->iteration, spike.by_loss, spike.dropped, spike.value,
                                           spike.median });
        if (row->spike == AMP_LOG_DROPPED) continue;
        if (isfinite(norm)) amp_spike_window_add(&rule.norms, norm);
        if (isfinite(loss)) amp_spike_window_add(&rule.losses, loss);
    }
}

/* ---- the rest ---- */

static void count_skipped(const amp_log_row *rows, size_t count, amp_log_summary *s)
{
    size_t size = 0, last = 0;
    long first = 0;
    for (size_t i = 0; i < count; i++) {
        if (!amp_log_is_skipped(&rows[i])) continue;
        s->skipped++;
        if (!size || i - last > AMP_CLUSTER_GAP + 1) {
            s->clusters++;
            size = 0;
            first = rows[i].iteration;
        }
        last = i;
        if (++size <= s->largest_cluster) continue;
        s->largest_cluster = size;
        s->cluster_first = first;
        s->cluster_last = rows[i].iteration;
    }
}

/* Counts the steps after the last step whose gradient norm was not 0. Skipped steps are not counted. */
static void count_zero_norms(const amp_log_row *rows, size_t count, amp_log_summary *s)
{
    for (size_t i = count; i-- > 0;) {
        double norm = norm_of(&rows[i]);
        if (amp_log_is_skipped(&rows[i])) continue;
        if (norm != 0) return;
        s->zero_norms++;
        s->zero_since = rows[i].iteration;
    }
}

static void follow_scale(const amp_log_row *rows, size_t count, amp_log_summary *s)
{
    size_t fell_from = 0; /* index of the last row in which the scale grew; 0: none */
    s->first_scale = rows[0].scale;
    s->last_scale = rows[count - 1].scale;
    s->least_scale = s->most_scale = (amp_log_extreme){ rows[0].scale, rows[0].iteration };
    for (size_t i = 1; i < count; i++) {
        amp_log_extreme here = { rows[i].scale, rows[i].iteration };
        s->raised += rows[i].scale > rows[i - 1].scale;
        s->lowered += rows[i].scale < rows[i - 1].scale;
        if (rows[i].scale > rows[i - 1].scale) fell_from = i;
        if (here.value < s->least_scale.value) s->least_scale = here;
        if (here.value > s->most_scale.value) s->most_scale = here;
    }
    if (count < 2 * COLLAPSE_STEPS) return;
    size_t begin = count - COLLAPSE_STEPS;
    s->scale_falls = fell_from <= begin && rows[begin].scale >= COLLAPSE_FALL * rows[count - 1].scale;
}

void amp_log_summarize(const amp_log_row *rows, size_t count, amp_log_summary *s)
{
    *s = (amp_log_summary){ .rows = count, .first = rows[0].iteration, .last = rows[count - 1].iteration,
                            .least_rate = rows[0].learning_rate, .most_rate = rows[0].learning_rate,
                            .last_rate = rows[count - 1].learning_rate, .largest_norm = { NAN, 0 } };
    for (size_t i = 0; i < count; i++) {
        const amp_log_row *row = &rows[i];
        s->seconds += row->load_seconds + row->train_seconds;
        s->load_seconds += row->load_seconds;
        s->least_rate = fmin(s->least_rate, row->learning_rate);
        s->most_rate = fmax(s->most_rate, row->learning_rate);
        double norm = norm_of(row);
        if (isfinite(norm) && !(norm <= s->largest_norm.value))
            s->largest_norm = (amp_log_extreme){ norm, row->iteration };
    }
    s->images_per_second = median_of(rows, 0, count, speed_of);
    s->images_lately = median_of(rows, count - (count + 3) / 4, count, speed_of);
    for (size_t q = 0; q < 4; q++) {
        s->loss[q] = median_of(rows, q * count / 4, (q + 1) * count / 4, loss_of);
        s->norm[q] = median_of(rows, q * count / 4, (q + 1) * count / 4, norm_of);
    }
    double before = fmin(fmin(s->norm[0], s->norm[1]), s->norm[2]);
    if (count >= 2 * COLLAPSE_STEPS && s->norm[3] > COLLAPSE_GROWTH * before)
        s->norm_grows = s->norm[3] / before;
    count_skipped(rows, count, s);
    count_zero_norms(rows, count, s);
    follow_scale(rows, count, s);
    find_spikes(rows, count, s);
}
