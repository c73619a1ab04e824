/* See waits.h. */
#include "waits.h"

#include <stdio.h>

#include "../program/clock.h"

#define LEAST_SHARE .1

int amp_waits_add(amp_waits *w, double images, double wait_seconds, double compute_seconds)
{
    if (++w->steps <= AMP_WAITS_LEFT_OUT) return 0;
    w->images += images;
    w->wait += wait_seconds;
    w->compute += compute_seconds;
    return w->steps == AMP_WAITS_LEFT_OUT + AMP_WAITS_COUNTED;
}

double amp_waits_share(const amp_waits *w)
{
    double all = w->wait + w->compute;
    return all > 0 ? w->wait / all : 0;
}

double amp_waits_step_rate(const amp_waits *w) { return amp_clock_rate(w->images, w->compute); }
double amp_waits_load_rate(const amp_waits *w) { return amp_clock_rate(w->images, w->wait + w->compute); }
int amp_waits_is_slow(const amp_waits *w) { return amp_waits_share(w) > LEAST_SHARE; }

const char *amp_waits_text(const amp_waits *w, int cores, char text[AMP_WAITS_TEXT])
{
    char on[32] = "";
    if (cores) snprintf(on, sizeof on, " (cores: %d)", cores);
    snprintf(text, AMP_WAITS_TEXT, "the loaders%s load %.4g images/s and the step could use %.4g", on,
             amp_waits_load_rate(w), amp_waits_step_rate(w));
    return text;
}
