/* Measures whether a training's steps wait for their images.
 *
 * Loaders prefetch the next batch while a step computes. If they are slower than the step, they never pause;
 * then the loaders' speed is the number of images divided by the whole time of the counted steps, and the
 * step's speed is that number divided by the time without waiting. */
#pragma once

/* The first step makes the plan, and the second step's batch was loaded meanwhile, so both are left out. The
 * counted steps end before random=1 resizes the network, at the eleventh. */
enum { AMP_WAITS_LEFT_OUT = 2, AMP_WAITS_COUNTED = 5 };

typedef struct amp_waits {
    int steps;               /* all steps added, including those left out */
    double images;           /* of the counted steps */
    double wait, compute;    /* seconds of the counted steps: waiting for images, and everything else */
} amp_waits;

/* Adds a step. Returns 1 once: at the step after which waits can be judged. */
int amp_waits_add(amp_waits *, double images, double wait_seconds, double compute_seconds);

/* The share of the time that is spent waiting, 0 to 1; 0 if no time was measured. */
double amp_waits_share(const amp_waits *);
/* Images per second that the step could compute; NaN if no time was measured. */
double amp_waits_step_rate(const amp_waits *);
/* Images loaded per second. If steps do not wait for them (amp_waits_is_slow), this is a lower bound: the
 * loaders could load more. */
double amp_waits_load_rate(const amp_waits *);

/* Whether loading is slower than computing: steps wait for more than a tenth of the time. */
int amp_waits_is_slow(const amp_waits *);

/* Text about slow loading: "8 cores load 410 images/s and the step could use 1280". cores: 0: "the loaders
 * load ...". Returns text. */
enum { AMP_WAITS_TEXT = 128 };
const char *amp_waits_text(const amp_waits *, int cores, char text[AMP_WAITS_TEXT]);
