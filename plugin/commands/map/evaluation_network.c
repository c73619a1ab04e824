#include "evaluation_network.h"

#include "../../host/common/weights_check.h"
#include "../../host/data/data_files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Darknet ends with status 0 where it cannot open a file, so what it will open is tried first. */
static amp_status check_cfg(const char *path, amp_error *error)
{
    if (amp_is_device(path))
        return amp_fail(error, AMP_BAD_CONFIG, "%s: cannot read the .cfg file: not a regular file", path);
    FILE *file = fopen(path, "r");
    if (!file)
        return amp_fail(error, AMP_BAD_CONFIG, "%s: cannot read the .cfg file: %s", path, strerror(errno));
    int empty = fgetc(file) == EOF;
    fclose(file);
    if (empty) return amp_fail(error, AMP_BAD_CONFIG, "%s: the .cfg file is empty or a folder", path);
    return AMP_OK;
}

/* A training may begin with the first layers' weights alone. What is measured must have all: Darknet would
 * draw the others. */
static amp_status load_all_weights(struct network *net, const char *file, amp_error *error)
{
    int held, layers = amp_fork_view(net).layers;
    AMP_TRY(amp_check_weights_size(net, file, 0, layers, &held, error));
    if (held < layers)
        return amp_fail(error, AMP_BAD_CONFIG, "%s: ends before the weights of layer %d: it was cut, or "
                        "holds a network's first layers alone, as those do that a training begins with",
                        file, held);
    amp_fork_load_weights(net, file);
    return amp_check_weights_sense(net, file, error);
}

amp_status amp_evaluation_open(const char *cfg_file, const char *weights_file, struct network **out,
                               amp_error *error)
{
    *out = NULL;
    AMP_TRY(check_cfg(cfg_file, error));
    *out = amp_fork_make_network(cfg_file, cfg_file, 1);
    amp_status status = load_all_weights(*out, weights_file, error);
    if (status == AMP_OK) return AMP_OK;
    amp_fork_free_network(*out);
    *out = NULL;
    return status;
}

amp_status amp_check_channels(const struct network *net, amp_error *error)
{
    int c = amp_fork_view(net).c;
    if (c == 3) return AMP_OK;
    return amp_fail(error, AMP_BAD_CONFIG, "the network has channels=%d; images come with 3", c);
}
