/* The functions of spikes.h. */
#include "spikes.h"

#include <math.h>
#include <string.h>

#include "statistics.h"

void amp_spike_window_add(amp_spike_window *w, double value)
{
    w->values[w->seen++ % AMP_SPIKE_WINDOW] = value;
}

double amp_spike_window_median(const amp_spike_window *w)
{
    double values[AMP_SPIKE_WINDOW];
    size_t count = w->seen < AMP_SPIKE_WINDOW ? (size_t)w->seen : AMP_SPIKE_WINDOW;
    if (count < AMP_SPIKE_LEAST) return 0;
    memcpy(values, w->values, count * sizeof *values);
    return amp_median(values, count);
}

/* Returns the largest value that is not a spike. 0: no limit (off, too few steps, or no positive median). */
static double limit_of(const amp_spikes *s, const amp_spike_window *w)
{
    double median = s->factor > 0 ? amp_spike_window_median(w) : 0;
    return median > 0 ? s->factor * median : 0;
}

static int is_above(const amp_spikes *s, const amp_spike_window *w, double value)
{
    double limit = limit_of(s, w);
    return limit > 0 && value > limit;
}

amp_spike amp_spikes_judge(const amp_spikes *s, double norm, double loss)
{
    int by_norm = is_above(s, &s->norms, norm), by_loss = !by_norm && is_above(s, &s->losses, loss);
    if (!by_norm && !by_loss) return (amp_spike){ 0 };
    return (amp_spike){ .found = 1, .dropped = s->drop, .by_loss = by_loss, .value = by_loss ? loss : norm,
                        .median = amp_spike_window_median(by_loss ? &s->losses : &s->norms) };
}

double amp_spikes_norm_limit(const amp_spikes *s, double loss)
{
    if (!s->drop) return 0;
    return is_above(s, &s->losses, loss) ? -1 : limit_of(s, &s->norms);
}

void amp_spikes_take(amp_spikes *s, double norm, double loss)
{
    if (!(s->factor > 0)) return;
    amp_spike_window_add(&s->norms, norm);
    amp_spike_window_add(&s->losses, loss);
}

int amp_spikes_too_many(const amp_spikes *s)
{
    double steps = (double)s->norms.seen + (double)s->dropped;
    return s->dropped > AMP_SPIKE_FREE_DROPS && (double)s->dropped > AMP_SPIKE_SHARE * steps;
}

void amp_spikes_resume(amp_spikes *s, const amp_spikes *saved)
{
    amp_spikes settings = *s;
    *s = *saved;
    s->factor = settings.factor;
    s->drop = settings.drop;
}

static int all_finite(const double *values, size_t count)
{
    int finite = 1;
    for (size_t i = 0; i < count; i++) finite &= isfinite(values[i]) != 0;
    return finite;
}

const char *amp_spikes_problem(const amp_spikes *s)
{
    const amp_spike_window *norms = &s->norms;
    if (norms->seen != s->losses.seen || norms->seen > INT64_MAX || s->dropped > INT64_MAX)
        return "its counters are out of range";
    if (!all_finite(norms->values, AMP_SPIKE_WINDOW) || !all_finite(s->losses.values, AMP_SPIKE_WINDOW)
        || !all_finite(&s->loss, 1))
        return "a number is not finite";
    for (size_t i = 0; i < AMP_SPIKE_WINDOW; i++)
        if (norms->values[i] < 0) return "a norm is negative";
    return NULL;
}
