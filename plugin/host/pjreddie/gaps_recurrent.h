/* Inner header of gaps.c: the recurrent layers' own forms, in gaps_recurrent.c. */
#pragma once

#include "darknet.h"

void amp_gap_forward_rnn(layer l, network net);
void amp_gap_backward_rnn(layer l, network net);
void amp_gap_backward_gru(layer l, network net);

/* n zeroed floats for the length of one call. Never NULL: out of memory ends the process, as
 * everywhere in Darknet. */
float *amp_gap_scratch(size_t n);
