/* Measures whether a training's steps wait for their images.
 *
 * Loaders prefetch the next batch while a step computes. If they are slower than the step, they never pause,
 * so their speed is the images divided by the whole time of the counted steps. The step's speed is the images
 * divided by the time without waiting. */
#pragma once

/* Two steps are left out: the first, which makes the plan, and the second, whose batch is loaded while the
 * plan is made. The counted steps end before the eleventh, where random=1 first resizes the network. */
enum { AMP_WAITS_LEFT_OUT = 2, AMP_WAITS_COUNTED = 5 };

typedef struct amp_waits {
    int steps;               /* all steps added, including those left out */
    double images;           /* number of images of the counted steps */
    double wait, compute;    /* seconds in the counted steps: waiting for images; everything else */
} amp_waits;

/* Adds a step. Returns 1 only at the final counted step; from then on the waits can be judged. */
int amp_waits_add(amp_waits *, double images, double wait_seconds, double compute_seconds);

/* The share of the time that is spent waiting, 0 to 1; 0 if no time was measured. */
double amp_waits_share(const amp_waits *);
/* Images per second that the step could compute without waiting; NaN if no time was measured. */
double amp_waits_step_rate(const amp_waits *);
/* Images loaded per second; a lower bound unless amp_waits_is_slow. */
double amp_waits_load_rate(const amp_waits *);

/* Whether loading is slower than computing: steps wait for more than a tenth of the time. */
int amp_waits_is_slow(const amp_waits *);

/* Writes and returns a text about slow loading: "the loaders (cores: 8) load 410 images/s and the step could
 * use 1280". If cores is 0, the text does not name the number of cores. */
enum { AMP_WAITS_TEXT = 128 };
const char *amp_waits_text(const amp_waits *, int cores, char text[AMP_WAITS_TEXT]);
