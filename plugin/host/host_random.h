/* Reproducible random numbers for Darknet: see darknet_amp_seed and its neighbours in darknet_amp.h. */
#ifndef AMP_HOST_RANDOM_H
#define AMP_HOST_RANDOM_H

/* `-seed N`: call before any network is made and before any thread is started. */
void amp_random_set_seed(unsigned seed);

#endif
