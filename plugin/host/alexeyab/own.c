/* What only AlexeyAB's Darknet has: see ../darknet/own.h. */
#include "../darknet/room.h"

const char amp_fork_name[] = "AlexeyAB's; patches for its commit 59596d78";
const char amp_fork_log_option[] = "-log";

void amp_own_classifier_args(network *net, load_args *args)
{
    amp_own_common_args(net, args);
    args->min = net->min_crop;
    args->max = net->max_crop;
    args->aspect = net->aspect;
    args->size = net->w > net->h ? net->w : net->h;
    args->label_smooth_eps = net->label_smooth_eps;
}

/* The options of run_detector, run_classifier and main (-i and, with GPU=1, -cuda_debug_sync). */
const amp_fork_option amp_fork_options[] = {
    AMP_OWN_FAMILY_OPTIONS,
    { "-t", 1, 0, 1 }, { "-mjpeg_port", 1, 1, 1 }, { "-dontuse_opencv", 0, 0, 1 }, { "-topk", 0, 0, 1 },
    { "-dontdraw_bbox", 0, 1, 0 }, { "-json_port", 1, 1, 0 }, { "-json_file_output", 1, 1, 0 },
    { "-mAP_epochs", 1, 1, 0 }, { 0 } };

const size_t amp_fork_chart_bytes = 0;
const char amp_fork_names[] = "";
const char amp_fork_label_place[] =
    "labels beside their image (in labels/ for images in JPEGImages/, COCO's images/train2017/ and similar "
    "folders)";
const char amp_fork_label_images[] = ".jpg, .jpeg, .png, .bmp, .ppm, .tiff (or these in capitals)";
