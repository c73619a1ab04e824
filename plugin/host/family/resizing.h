/* The sizes that train_detector gives a network with random=. */
#pragma once

/* The size at its start is multiplied by a number between 1 and `random`, of which 1 stands for 1.4, or
 * divided by it (rand_scale). Returns the most that it is multiplied by. */
static inline double amp_own_resized_most(double random)
{
    if (random == 1 || random <= 0) return 1.4;
    return random < 1 ? 1 / random : random;
}
