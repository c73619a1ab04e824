/* Linked into Darknet's program over the doubles. Its own code and the downloads of `amp selftest` have a
 * stream each, unlike AMP's passes. */
#include "doubles/cuda_doubles.h"

__attribute__((constructor)) static void begin(void) { amp_cuda_any_stream(1); }
