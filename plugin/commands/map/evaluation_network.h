/* A network that `detector map` and `amp valid` measure: opened with its weights, one image at a time. */
#ifndef AMP_COMMANDS_MAP_EVALUATION_NETWORK_H
#define AMP_COMMANDS_MAP_EVALUATION_NETWORK_H

#include "../../host/fork_commands.h"

/* With AMP and without. AMP_BAD_CONFIG: a file that is missing or empty, weights that are cut or cannot be
 * this network's (host/common/weights_check.h); what is wrong inside a .cfg ends the program. Closed by
 * amp_fork_free_network. */
amp_status amp_evaluation_open(const char *cfg_file, const char *weights_file, struct network **,
                               amp_error *);

/* Images come with three channels. */
amp_status amp_check_channels(const struct network *, amp_error *);

#endif
