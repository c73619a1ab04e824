/* Checks whether a .weights file can belong to a network. Darknet's format has neither names nor sizes, and
 * Darknet reads any file, so the weights of another network load as noise without a message. But each layer
 * reads a known number of bytes, so the file's size shows whether the file can belong to the network. */
#pragma once

#include "../../tensor/status.h"

struct network;

/* Checks the file's size. start, cutoff: the range of layers, as in load_weights_upto; with start > 0 the
 * size is not checked. *held: the number of layers, from the first, whose weights are in the file: net->n, or
 * fewer if the file ends early but after a complete layer, as darknet53.conv.74 does on purpose.
 * AMP_BAD_CONFIG: the file is missing, is not a regular file, is too short for a header, ends within a layer,
 * or is longer than the weights of the whole network. */
amp_status amp_check_weights_size(const struct network *net, const char *file, int start, int cutoff,
                                  int *held, amp_error *error);

/* Returns the number of images on which the weights of a file were trained (`seen` in its header); 0: the
 * file is missing, or too short for a header. */
size_t amp_weights_file_seen(const char *file);

/* Call it after loading. AMP_BAD_CONFIG: a rolling variance is negative, so the weights belong to another
 * network; the error names the file and the layer. */
amp_status amp_check_weights_sense(const struct network *net, const char *file, amp_error *error);
