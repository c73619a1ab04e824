/* What the rules of shapes must know of pjreddie's loops and loaders: see ../darknet/cfg_rules.h. */
#include <string.h>

#include "../darknet/cfg_rules.h"
#include "../fork.h"

enum { YOLO_BOXES = 90, REGION_BOXES = 30 };

double cfg_own_truths(const cfg_walk *walk, double coords, int is_region)
{
    (void)walk;
    return (is_region ? REGION_BOXES : YOLO_BOXES) * (coords + 1);
}

void cfg_own_wrong_anchors(cfg_walk *walk, int numbers, double num)
{
    cfg_walk_fail(walk, "anchors", NULL, "anchors has %d numbers, but num=%.0f needs %.0f", numbers, num,
                  2 * num);
}

void cfg_own_unlike_head(cfg_walk *walk, double reads, double loaded)
{
    cfg_walk_refuse(walk, NULL, NULL, "reads %.0f numbers of truth an image, and for the last layer %.0f are "
                    "loaded; give all heads the kind of the last one, and coords=4", reads, loaded);
}

int cfg_own_lays_out_1x1(double stride_x, double dilation) { return (void)stride_x, (void)dilation, 0; }

/* load_image_color */
int amp_fork_loads_channels(int channels, int classifier) { return (void)classifier, channels == 3; }

void cfg_own_finish(cfg_walk *walk) { (void)walk; }
void cfg_own_loader(cfg_walk *walk, int classifier) { (void)walk, (void)classifier; }

/* examples/detector.c and classifier.c */
size_t cfg_own_sizes(const cfg_walk *walk, int classifier, double random, double sizes[CFG_OWN_SIZES])
{
    static const double detector[] = { 320, 352, 384, 416, 448, 480, 512, 544, 576, 608 };
    static const double of_classifier[] = { 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448 };
    (void)walk, (void)random;
    memcpy(sizes, classifier ? of_classifier : detector, classifier ? sizeof of_classifier : sizeof detector);
    return classifier ? sizeof of_classifier / sizeof *of_classifier : sizeof detector / sizeof *detector;
}
