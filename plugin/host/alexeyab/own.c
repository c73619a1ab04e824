/* What AlexeyAB's Darknet alone has: see ../darknet/own.h. */
#include "../darknet/room.h"

#include "../fork_commands.h"
#include "tree.h"
#include "utils.h"

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

/* run_detector and run_classifier read them, main -i and, with GPU=1, -cuda_debug_sync. */
const amp_fork_option amp_fork_options[] = {
    { "-i", 1, 1, 1 }, { "-cuda_debug_sync", 0, 1, 1 }, { "-gpus", 1, 1, 1 }, { "-clear", 0, 1, 1 },
    { "-c", 1, 1, 1 }, { "-t", 1, 0, 1 }, { "-dont_show", 0, 1, 1 }, { "-benchmark", 0, 1, 1 },
    { "-benchmark_layers", 0, 1, 1 }, { "-show_imgs", 0, 1, 1 }, { "-mjpeg_port", 1, 1, 1 },
    { "-chart", 1, 1, 1 }, { "-dontuse_opencv", 0, 0, 1 }, { "-topk", 0, 0, 1 }, { "-show", 0, 1, 0 },
    { "-letter_box", 0, 1, 0 }, { "-map", 0, 1, 0 }, { "-dontdraw_bbox", 0, 1, 0 },
    { "-ext_output", 0, 1, 0 }, { "-save_labels", 0, 1, 0 }, { "-points", 1, 1, 0 },
    { "-avgframes", 1, 1, 0 }, { "-json_port", 1, 1, 0 }, { "-http_post_host", 1, 1, 0 },
    { "-time_limit_sec", 1, 1, 0 }, { "-out_filename", 1, 1, 0 }, { "-json_file_output", 1, 1, 0 },
    { "-out", 1, 1, 0 }, { "-prefix", 1, 1, 0 }, { "-thresh", 1, 1, 0 }, { "-iou_thresh", 1, 1, 0 },
    { "-hier", 1, 1, 0 }, { "-s", 1, 1, 0 }, { "-num_of_clusters", 1, 1, 0 }, { "-width", 1, 1, 0 },
    { "-height", 1, 1, 0 }, { "-mAP_epochs", 1, 1, 0 }, { 0 } };

const char amp_fork_label_place[] =
    "labels beside their image (in labels/ for one in JPEGImages/, or COCO's images/train2017/ and the like)";
const char amp_fork_label_images[] = ".jpg, .jpeg, .png, .bmp, .ppm or .tiff, or all that in capitals";
