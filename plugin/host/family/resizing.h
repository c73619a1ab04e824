/* The sizes to which train_detector resizes a network with random=. */
#pragma once

/* train_detector multiplies or divides the size that the network has at the start by a number between 1 and
 * `random` (rand_scale); random=1 means 1.4. Returns the largest factor. */
static inline double amp_own_resized_most(double random)
{
    if (random == 1 || random <= 0) return 1.4;
    return random < 1 ? 1 / random : random;
}
