/* Switches of the CUDA backend that belong to a machine or an experiment, not to a network, and so to the
 * environment:
 *   AMP_CUDA_TUNE engines of cuDNN that are timed for each pass of a convolution: 0 to 100, default 8
 *   AMP_CUDA_DETERMINISTIC 1: the same bits in every run, so nothing is timed either AMP_CUDA_RANGES 1:
 *   ranges with the layers' names for profilers such as Nsight Systems */
#ifndef AMP_BACKEND_CUDA_SETTINGS_H
#define AMP_BACKEND_CUDA_SETTINGS_H

#include "state.h"

/* AMP_BAD_CONFIG if a variable holds something else. */
amp_status amp_cuda_settings_read(amp_cuda_settings *settings, amp_error *error);

#endif
