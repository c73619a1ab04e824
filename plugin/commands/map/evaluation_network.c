#include "evaluation_network.h"

#include "../../host/pjreddie/device.h"
#include "../../host/common/weights_check.h"
#include "../../host/data/data_files.h"

#include <errno.h>
#include <stdlib.h>
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
static amp_status load_all_weights(network *net, const char *file, amp_error *error)
{
    int held;
    AMP_TRY(amp_check_weights_size(net, file, 0, net->n, &held, error));
    if (held < net->n)
        return amp_fail(error, AMP_BAD_CONFIG, "%s: ends before the weights of layer %d: it was cut, or "
                        "holds a network's first layers alone, as those do that a training begins with",
                        file, held);
    load_weights(net, (char *)file);
    return amp_check_weights_sense(net, file, error);
}

amp_status amp_evaluation_open(const char *cfg_file, const char *weights_file, network **out, amp_error *error)
{
    *out = NULL;
    AMP_TRY(check_cfg(cfg_file, error));
    *out = load_network((char *)cfg_file, NULL, 0);
    amp_status status = load_all_weights(*out, weights_file, error);
    if (status == AMP_OK) return AMP_OK;
    amp_evaluation_close(*out);
    *out = NULL;
    return status;
}

void amp_evaluation_close(network *net)
{
    if (!net) return;
    void *forgotten[] = {net->seen, net->t, net->cost}; /* by free_network, as the workspace is */
    amp_host_give_back_workspace(net);
    free_network(net);
    for (size_t i = 0; i < sizeof forgotten / sizeof *forgotten; ++i) free(forgotten[i]);
}

int amp_gives_boxes(const layer *l) { return l->type == YOLO || l->type == REGION || l->type == DETECTION; }

int amp_is_detector(const network *net) { return net->n > 0 && amp_gives_boxes(&net->layers[net->n - 1]); }

amp_status amp_check_channels(const network *net, amp_error *error)
{
    if (net->c == 3) return AMP_OK;
    return amp_fail(error, AMP_BAD_CONFIG, "the network has channels=%d; images come with 3", net->c);
}
