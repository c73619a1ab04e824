/* Checks whether a .weights file can belong to a network, mainly by its size. Darknet's format has neither
 * names nor sizes, so the weights of another network would load as noise without a message. */
#pragma once

#include "../../tensor/status.h"

struct network;

/* Checks the file's size. start, cutoff: as in load_weights_upto; with start > 0 the size is not checked.
 * *held: the number of layers, from the first, whose weights are in the file: fewer than net->n if the file
 * ends early, after a complete layer (darknet53.conv.74). AMP_BAD_CONFIG: the file cannot be read, ends
 * within its header or a layer, or is longer than all weights. */
amp_status amp_check_weights_size(const struct network *net, const char *file, int start, int cutoff,
                                  int *held, amp_error *error);

/* Returns the number of images on which the weights of a file were trained (`seen` in its header); 0: the
 * file is missing, or too short for a header. */
size_t amp_weights_file_seen(const char *file);

/* Call it after loading. AMP_BAD_CONFIG: a rolling variance is negative, so the weights belong to another
 * network; the error names the file and the layer. */
amp_status amp_check_weights_sense(const struct network *net, const char *file, amp_error *error);
