/* The sizes to which train_detector resizes a network with random=. */
#pragma once

/* train_detector multiplies or divides the size at the start by a random factor (rand_scale). Returns the
 * largest factor: `random`, or 1.4 for random=1. */
static inline double amp_own_resized_most(double random)
{
    if (random == 1 || random <= 0) return 1.4;
    return random < 1 ? 1 / random : random;
}
