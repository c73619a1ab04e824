/* Checks whether a .weights file can belong to a network. Darknet's format holds neither names nor sizes, and
 * its reader takes whatever comes: weights of another network become noise without a message. But each layer
 * reads a known number of bytes, so the file's size shows it. */
#pragma once

#include "../../tensor/status.h"

struct network;

/* start, cutoff: the range of layers, as load_weights_upto has them; nothing is checked with start > 0.
 * *held: how many layers, from the network's first, the file holds: all of them (net->n), or fewer where
 * it ends with a layer, as darknet53.conv.74 does on purpose. AMP_BAD_CONFIG: the file is missing,
 * not a file, too short for a header, ends within a layer, or is longer than the whole network. */
amp_status amp_check_weights_size(const struct network *net, const char *file, int start, int cutoff,
                                  int *held, amp_error *error);

/* How many images the weights of a file have seen; 0: it is missing, or too short for a header. */
size_t amp_weights_file_seen(const char *file);

/* Called after loading. A negative rolling variance shows that the numbers belong to another network:
 * AMP_BAD_CONFIG, which names file and layer. */
amp_status amp_check_weights_sense(const struct network *net, const char *file, amp_error *error);
