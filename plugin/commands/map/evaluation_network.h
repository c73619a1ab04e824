/* A network that `detector map` and `amp valid` measure: opened with its weights, one image at a time. */
#ifndef AMP_COMMANDS_MAP_EVALUATION_NETWORK_H
#define AMP_COMMANDS_MAP_EVALUATION_NETWORK_H

#include "../../tensor/status.h"

#include "darknet.h"

/* With AMP and without. AMP_BAD_CONFIG: a file that is missing or empty, weights that are cut or cannot be
 * this network's (host/common/weights_check.h); what is wrong inside a .cfg ends the program. */
amp_status amp_evaluation_open(const char *cfg_file, const char *weights_file, network **, amp_error *);
/* For the line about outputs that are inf or NaN: a file of the right size may still hold anything. */
#define AMP_WHY_NOT_FINITE "the weights are another network's or damaged, or their training diverged or " \
                           "was too short for fp16 (then bf16 and fp32 do)"

/* Frees all that Darknet's free_network does and what it forgets. NULL is fine. */
void amp_evaluation_close(network *);

/* Its last section is [yolo], [region] or [detection]. */
int amp_is_detector(const network *);
int amp_gives_boxes(const layer *);

/* Images come with three channels. */
amp_status amp_check_channels(const network *, amp_error *);

#endif
