/* For tests of gradients: the slope of a loss by finite differences. Each test defines its own struct
 * subject, which the loss takes. */
#pragma once

#include <stdlib.h>

struct subject;
typedef double (*loss_of)(struct subject *);

static inline float uniform(float low, float high)
{
    return low + (high - low) * (float)rand() / (float)RAND_MAX;
}

/* d loss / d x: central differences at h and 2h, combined so that the h^2 error cancels. */
static inline double slope_at(struct subject *s, loss_of loss, float *x, float h)
{
    const float at = *x;
    double difference[2];
    for (int i = 0; i < 2; i++) {
        float up = at + (float)(i + 1) * h, down = at - (float)(i + 1) * h;
        *x = up;
        double above = loss(s);
        *x = down;
        difference[i] = (above - loss(s)) / ((double)up - down);
    }
    *x = at;
    return (4 * difference[0] - difference[1]) / 3;
}
