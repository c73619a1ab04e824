#include "evaluation_network.h"

#include "../../host/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Darknet ends with status 0 where it cannot open a file, so what it will open is tried first. */
static amp_status check_readable(const char *path, const char *what, amp_error *error)
{
    FILE *file = fopen(path, "r");
    if (!file) return amp_fail(error, AMP_BAD_CONFIG, "%s: cannot read %s: %s", path, what, strerror(errno));
    int empty = fgetc(file) == EOF;
    fclose(file);
    if (empty) return amp_fail(error, AMP_BAD_CONFIG, "%s: %s is empty or a folder", path, what);
    return AMP_OK;
}

amp_status amp_evaluation_open(const char *cfg_file, const char *weights_file, network **out, amp_error *error)
{
    *out = NULL;
    AMP_TRY(check_readable(cfg_file, "the .cfg file", error));
    AMP_TRY(check_readable(weights_file, "the weights", error));
    *out = load_network((char *)cfg_file, (char *)weights_file, 0);
    return AMP_OK;
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
