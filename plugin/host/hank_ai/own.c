/* What only hank-ai's Darknet has: see ../darknet/own.h. */
#include "../darknet/room.h"

const char amp_fork_name[] = "hank-ai's; patches for its commit f684e1d7";
const char amp_fork_log_option[] = "-step_log"; /* hank-ai's -log names a file for all output */

/* The options that get_all_possible_arguments, run_detector and main (-i) know. */
const amp_fork_option amp_fork_options[] = {
    AMP_OWN_FAMILY_OPTIONS,
    { "-colour", 0, 1, 1 }, { "-color", 0, 1, 1 }, { "-nocolour", 0, 1, 1 }, { "-nocolor", 0, 1, 1 },
    { "-verbose", 0, 1, 1 }, { "-show_details", 0, 1, 1 }, { "-trace", 0, 1, 1 }, { "-noshow", 0, 1, 1 },
    { "-camera", 1, 1, 1 }, { "-threshold", 1, 1, 0 }, { "-nms", 1, 1, 0 }, { "-nms_thresh", 1, 1, 0 },
    { "-save_weights", 1, 1, 0 }, { "-random", 0, 1, 0 }, { "-heatmaps", 0, 1, 0 }, { "-heatmap", 0, 1, 0 },
    { "-skip_classes", 1, 1, 0 }, { "-log", 1, 1, 1 }, { "-fuse", 0, 1, 0 }, { "-dont_fuse", 0, 1, 0 },
    { 0 } };

/* hank-ai's Darknet reads images with OpenCV, which finds the size only by decoding. */
int amp_own_image_size(const char *path, int *w, int *h) { return 0; }

const size_t amp_fork_chart_bytes = 1000 * 940 * 3;
const char amp_fork_names[] = "unknown.names";
const char amp_fork_label_place[] = "labels beside their image";
const char amp_fork_label_images[] = "any";
