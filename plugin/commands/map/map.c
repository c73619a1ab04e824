/* `darknet detector map <data> <cfg> <weights>`: how well a detector does on the .data file's `valid` images.
 *
 * pjreddie's Darknet has no such command; AlexeyAB's has, and its users know the words printed here. */
#include "../command.h"
#include "../arguments.h"
#include "evaluation_network.h"
#include "map_measure.h"

#include <stdlib.h>

typedef struct request {
    const char *data_file, *cfg_file, *weights_file;
    amp_map_request map;
} request;

static amp_status read_request(int argc, char **argv, request *r, amp_error *error)
{
    const char *points = "101";
    double confidence = (double)amp_map_usual_request().confidence;
    const amp_argument arguments[] = {
        AMP_MAP_ARGUMENTS(&r->data_file, &r->cfg_file, &r->weights_file, &points, &confidence),
        { 0 } };
    AMP_TRY(amp_arguments_read("detector map", argc - 3, argv + 3, arguments, error));
    r->map = (amp_map_request){ .confidence = (float)confidence, .points = amp_map_points(points) };
    return AMP_OK;
}

static amp_status check_network(const struct network *net, const char *cfg_file, amp_error *error)
{
    if (amp_fork_box_classes(net) >= 0) return AMP_OK;
    return amp_fail(error, AMP_BAD_CONFIG, "%s: not a detector: its last section is not [yolo], [region] or [detection]; "
                    "`darknet amp valid` measures classifiers", cfg_file);
}

static amp_status measure(const request *r, amp_error *error)
{
    amp_detection_data data;
    amp_map_result result = {0};
    struct network *net = NULL;
    amp_status status = amp_detection_data_read(r->data_file, &data, error);
    if (status == AMP_OK) status = amp_evaluation_open(r->cfg_file, r->weights_file, &net, error);
    if (status == AMP_OK) status = check_network(net, r->cfg_file, error);
    if (status == AMP_OK) status = amp_map_measure(net, &data, &r->map, &result, error);
    if (status == AMP_OK) amp_map_print(&result, &data.names);
    amp_map_result_free(&result);
    amp_fork_free_network(net);
    amp_detection_data_free(&data);
    return status;
}

int amp_detector_map(int argc, char **argv)
{
    amp_error error;
    request r;
    amp_status status = read_request(argc, argv, &r, &error);
    if (status == AMP_OK) status = measure(&r, &error);
    if (status == AMP_OK || status == AMP_HELP_PRINTED) return 0;
    fflush(stdout);
    fprintf(stderr, "detector map: %s\n", error.message);
    return 1;
}
