/* Checks whether a .weights file can belong to a network. Darknet's format has neither names nor sizes, and
 * its reader accepts anything: weights of another network load as noise without a message. But each layer
 * reads a known number of bytes, so the file's size shows it. */
#pragma once

#include "../../tensor/status.h"

struct network;

/* start, cutoff: the range of layers, as in load_weights_upto; with start > 0 nothing is checked. *held: the
 * number of layers, from the first, that the file holds: all of them (net->n), or fewer if it ends after a
 * layer, as darknet53.conv.74 does on purpose. AMP_BAD_CONFIG: the file is missing, not a file, too short for
 * a header, ends within a layer, or is longer than the whole network. */
amp_status amp_check_weights_size(const struct network *net, const char *file, int start, int cutoff,
                                  int *held, amp_error *error);

/* How many images the weights of a file have seen; 0: it is missing, or too short for a header. */
size_t amp_weights_file_seen(const char *file);

/* Called after loading. A negative rolling variance shows that the numbers belong to another network:
 * AMP_BAD_CONFIG, with file and layer. */
amp_status amp_check_weights_sense(const struct network *net, const char *file, amp_error *error);
