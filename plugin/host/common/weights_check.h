/* Whether a .weights file can be this network's. Darknet's format has neither names nor sizes: its reader
 * takes whatever comes, and weights of another network become noise without a word. But each layer reads a
 * known number of bytes. */
#pragma once

#include "../../tensor/status.h"

struct network;

/* Bytes of a .weights file that Darknet reads for this layer. */
size_t amp_weights_bytes(const struct network *net, int layer);

/* start, cutoff: as load_weights_upto has them. A file that ends where a layer does holds the first layers on
 * purpose, as darknet53.conv.74 does: then *held says how many layers from the network's first (else it is
 * net->n). AMP_BAD_CONFIG: the file is missing, no file, too short for a header, ends within a layer, or is
 * longer than the whole network. What has no size, a pipe, is not looked at, nor with start > 0. */
amp_status amp_check_weights_size(const struct network *net, const char *file, int start, int cutoff,
                                  int *held, amp_error *error);

/* After loading: a rolling variance below 0 says that the numbers were another network's. AMP_BAD_CONFIG
 * names file and layer. */
amp_status amp_check_weights_sense(const struct network *net, const char *file, amp_error *error);
