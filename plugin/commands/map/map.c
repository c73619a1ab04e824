/* `darknet detector map <data> <cfg> <weights>`: how well a detector does on the .data file's `valid` images.
 *
 * pjreddie's Darknet has no such command; AlexeyAB's has, and its users know the words printed here. */
#include "../../include/darknet_amp.h"
#include "evaluation_network.h"
#include "map_measure.h"

#include <stdlib.h>
#include <string.h>

typedef struct request {
    char *data_file, *cfg_file, *weights_file;
    amp_map_request map;
} request;

static const char usage[] = "usage: darknet detector map DATA CFG WEIGHTS [-thresh .25] [-points 0|11|101]";

static amp_status read_confidence(const char *text, request *r, amp_error *error)
{
    char *end = NULL;
    float value = text ? strtof(text, &end) : 0;
    if (!text || end == text || *end || !(value >= 0 && value < 1))
        return amp_fail(error, AMP_BAD_CONFIG, "-thresh %s: expected a number from 0 to below 1; %s", text ? text : "",
                        usage);
    r->map.confidence = value;
    return AMP_OK;
}

static amp_status read_points(const char *text, request *r, amp_error *error)
{
    if (!text || (strcmp(text, "0") && strcmp(text, "11") && strcmp(text, "101")))
        return amp_fail(error, AMP_BAD_CONFIG,
                        "-points %s: expected 0 (area under the curve), 11 (VOC 2007) or 101 (COCO)", text ? text : "");
    r->map.points = amp_map_points(text);
    return AMP_OK;
}

/* Options may stand among the names, as everywhere in Darknet. Darknet blanks the end of argv when it takes an option
 * out. */
static amp_status read_request(int argc, char **argv, request *r, amp_error *error)
{
    char **names[] = {&r->data_file, &r->cfg_file, &r->weights_file};
    size_t named = 0;
    *r = (request){.map = amp_map_usual_request()};
    for (int i = 3; i < argc && argv[i]; ++i) {
        char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(argv[i], "-thresh")) {
            AMP_TRY(read_confidence(value, r, error));
            ++i;
        } else if (!strcmp(argv[i], "-points")) {
            AMP_TRY(read_points(value, r, error));
            ++i;
        } else if (argv[i][0] == '-' || named == 3) {
            return amp_fail(error, AMP_BAD_CONFIG, "%s: not an option of detector map; %s", argv[i], usage);
        } else {
            *names[named++] = argv[i];
        }
    }
    if (named < 3) return amp_fail(error, AMP_BAD_CONFIG, "detector map needs three files; %s", usage);
    return AMP_OK;
}

static amp_status check_network(const network *net, const char *cfg_file, amp_error *error)
{
    if (amp_is_detector(net)) return AMP_OK;
    return amp_fail(error, AMP_BAD_CONFIG, "%s: not a detector: its last section is not [yolo], [region] or [detection]; "
                    "`darknet amp valid` measures classifiers", cfg_file);
}

static amp_status measure(const request *r, amp_error *error)
{
    amp_detection_data data;
    amp_map_result result = {0};
    network *net = NULL;
    amp_status status = amp_detection_data_read(r->data_file, &data, error);
    if (status == AMP_OK) status = amp_evaluation_open(r->cfg_file, r->weights_file, &net, error);
    if (status == AMP_OK) status = check_network(net, r->cfg_file, error);
    if (status == AMP_OK) status = amp_map_measure(net, &data, &r->map, &result, error);
    if (status == AMP_OK) amp_map_print(&result, &data.names);
    amp_map_result_free(&result);
    amp_evaluation_close(net);
    amp_detection_data_free(&data);
    return status;
}

void darknet_amp_detector_map(int argc, char **argv)
{
    amp_error error;
    request r;
    amp_status status = read_request(argc, argv, &r, &error);
    if (status == AMP_OK) status = measure(&r, &error);
    if (status == AMP_OK) return;
    fprintf(stderr, "detector map: %s\n", error.message);
    exit(1);
}
