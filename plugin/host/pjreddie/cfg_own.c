/* What the rules of ../darknet/cfg_rules.h need to know about pjreddie's training loops and loaders. */
#include "../darknet/cfg_rules.h"
#include "../fork.h"

enum { YOLO_BOXES = 90, REGION_BOXES = 30 };

double cfg_own_truths(const cfg_walk *walk, double coords, int is_region)
{
    return (is_region ? REGION_BOXES : YOLO_BOXES) * (coords + 1);
}

void cfg_own_wrong_anchors(cfg_walk *walk, int numbers, double num)
{
    cfg_walk_fail(walk, "anchors", NULL, "anchors has %d numbers, but num=%.0f needs %.0f", numbers, num,
                  2 * num);
}

void cfg_own_unlike_head(cfg_walk *walk, double reads, double loaded)
{
    cfg_walk_refuse(walk, NULL, NULL, "reads %.0f numbers of truth per image, but Darknet loads the %.0f of "
                                      "the last layer; give all heads the last layer's type, and coords=4",
                    reads, loaded);
}

int cfg_own_lays_out_1x1(double stride_x) { return 0; }

/* load_image_color always makes 3 channels. */
int amp_fork_loads_channels(int channels, int classifier) { return channels == 3; }

void cfg_own_finish(cfg_walk *walk) {}
void cfg_own_loader(cfg_walk *walk, int classifier) {}

/* The sizes that examples/detector.c and examples/classifier.c choose with random=1. */
size_t cfg_own_sizes(const cfg_walk *walk, int classifier, double random, double sizes[CFG_OWN_SIZES][2])
{
    int count = 0;
    for (int size = classifier ? 128 : 320; size <= (classifier ? 448 : 608); size += 32)
        sizes[count][0] = sizes[count][1] = size, count++;
    return (size_t)count;
}
