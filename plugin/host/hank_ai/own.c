/* What hank-ai's Darknet alone has: see ../darknet/own.h. */
#include "../darknet/room.h"

#include "../fork_commands.h"

const char amp_fork_name[] = "hank-ai's; patches for its commit f684e1d7";
const char amp_fork_log_option[] = "-step_log"; /* its own -log names a file for all that it prints */

/* It has no `classifier valid`, whose .data file may name leaves. */
void amp_fork_take_leaves(struct network *net, const char *file)
{
    (void)net;
    darknet_amp_refuse("%.500s: this Darknet cannot take leaves= of the .data file", file);
}

/* get_all_possible_arguments has them, and run_detector and main's -i. */
const amp_fork_option amp_fork_options[] = {
    { "-i", 1, 1, 1 }, { "-cuda_debug_sync", 0, 1, 1 }, { "-gpus", 1, 1, 1 }, { "-clear", 0, 1, 1 },
    { "-colour", 0, 1, 1 }, { "-color", 0, 1, 1 }, { "-nocolour", 0, 1, 1 }, { "-nocolor", 0, 1, 1 },
    { "-verbose", 0, 1, 1 }, { "-show_details", 0, 1, 1 }, { "-trace", 0, 1, 1 }, { "-dont_show", 0, 1, 1 },
    { "-noshow", 0, 1, 1 }, { "-map", 0, 1, 0 }, { "-camera", 1, 1, 1 }, { "-c", 1, 1, 1 },
    { "-thresh", 1, 1, 0 }, { "-threshold", 1, 1, 0 }, { "-nms", 1, 1, 0 }, { "-nms_thresh", 1, 1, 0 },
    { "-save_weights", 1, 1, 0 }, { "-avgframes", 1, 1, 0 }, { "-benchmark", 0, 1, 1 },
    { "-benchmark_layers", 0, 1, 1 }, { "-letter_box", 0, 1, 0 }, { "-points", 1, 1, 0 },
    { "-random", 0, 1, 0 }, { "-show", 0, 1, 0 }, { "-heatmaps", 0, 1, 0 }, { "-heatmap", 0, 1, 0 },
    { "-show_imgs", 0, 1, 1 }, { "-http_post_host", 1, 1, 0 }, { "-time_limit_sec", 1, 1, 0 },
    { "-out_filename", 1, 1, 0 }, { "-out", 1, 1, 0 }, { "-prefix", 1, 1, 0 }, { "-iou_thresh", 1, 1, 0 },
    { "-hier", 1, 1, 0 }, { "-s", 1, 1, 0 }, { "-ext_output", 0, 1, 0 }, { "-save_labels", 0, 1, 0 },
    { "-chart", 1, 1, 1 }, { "-num_of_clusters", 1, 1, 0 }, { "-width", 1, 1, 0 }, { "-height", 1, 1, 0 },
    { "-skip_classes", 1, 1, 0 }, { "-log", 1, 1, 1 }, { "-fuse", 0, 1, 0 }, { "-dont_fuse", 0, 1, 0 },
    { 0 } };

const char amp_fork_label_place[] = "labels beside their image";
const char amp_fork_label_images[] = "any ending, which becomes .txt";
