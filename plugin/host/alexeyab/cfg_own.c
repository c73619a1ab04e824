/* What the rules of shapes must know of AlexeyAB's loops and loaders: see ../darknet/cfg_rules.h. */
#include <math.h>

#include "../darknet/cfg_rules.h"
#include "resizing.h"

/* A label has 6 numbers: a box, its class and its track. There are max= of them, whatever coords= says. */
double cfg_own_truths(const cfg_walk *walk, double coords, int is_region)
{
    (void)coords, (void)is_region;
    return 6 * cfg_walk_number(walk, "max");
}

/* Darknet's parser ignores anchors beyond num=, and gives missing ones sides of 0.5. */
void cfg_own_wrong_anchors(cfg_walk *walk, int numbers, double num)
{
    if (numbers > 2 * num)
        cfg_walk_warn(walk, "anchors", NULL, "anchors has %d numbers, of which num=%.0f takes the first %.0f",
                      numbers, num, 2 * num);
    else
        cfg_walk_warn(walk, "anchors", NULL,
                      "anchors has %d numbers, but num=%.0f needs %.0f: the others are 0.5", numbers, num,
                      2 * num);
}

/* Darknet's train_network_waitkey begins to average at step max_batches / 2. 1000 steps before the end the
 * averages become the weights. */
static void check_averaging(cfg_walk *walk)
{
    double steps = cfg_walk_number(walk, "max_batches"), from = trunc(steps / 2), to = steps - 1000;
    if (cfg_walk_number(walk, "ema_alpha") == 0 || walk->resized || from < to) return;
    cfg_walk_warn(walk, "ema_alpha", NULL, "averages weights from step %.0f (max_batches / 2) to step %.0f "
                  "(max_batches - 1000), so never; let max_batches be more than 2000, or leave ema_alpha out",
                  from, to);
}

/* Darknet's parser divides by the number of layers whose input is wider and higher than 1, which may be 0. */
void cfg_own_finish(cfg_walk *walk)
{
    int images = walk->net.w > 1 && walk->net.h > 1;
    for (int i = 0; i + 1 < walk->count; i++) images |= walk->layers[i].w > 1 && walk->layers[i].h > 1;
    cfg_walk_enter(walk, -1);
    check_averaging(walk);
    if (!images)
        cfg_walk_fail(walk, NULL, NULL,
                      "no layer has an image to look at, which AlexeyAB's parser cannot make");
}

/* All multiples of resize_step between the least and the largest size. None where width and height differ:
 * both are multiplied by one factor then, while cfg_walk_again checks square inputs only. */
size_t cfg_own_sizes(const cfg_walk *walk, int classifier, double random, double sizes[CFG_OWN_SIZES])
{
    double coefficient = amp_own_resized_most(random), step = floor(cfg_walk_number(walk, "resize_step"));
    size_t count = 0;
    if (classifier || walk->net.w != walk->net.h || !(step >= 1)) return 0;
    double least = (round(walk->net.w / coefficient / step) + 1) * step;
    double most = (round(walk->net.w * coefficient / step) + 1) * step;
    for (double size = fmin(least, walk->net.w); size <= most && count < CFG_OWN_SIZES; size += step)
        sizes[count++] = size;
    return count;
}
