/* What ../darknet/cfg_rules.h needs to know about AlexeyAB's and hank-ai's training loops and loaders. */
#include <math.h>

#include "../darknet/cfg_rules.h"
#include "../fork.h"
#include "resizing.h"

enum { LABEL_NUMBERS = 6 };

/* A label has 6 numbers: its box's 4, its class and its track. An image has max= labels. */
double cfg_own_truths(const cfg_walk *walk, double coords, int is_region)
{
    return LABEL_NUMBERS * cfg_walk_number(walk, "max");
}

/* Darknet's parser ignores anchors beyond num=, and sets the sides of missing ones to 0.5. */
void cfg_own_wrong_anchors(cfg_walk *walk, int numbers, double num)
{
    if (numbers > 2 * num)
        cfg_walk_warn(walk, "anchors", NULL, "anchors has %d numbers, but num=%.0f uses only the first %.0f",
                      numbers, num, 2 * num);
    else
        cfg_walk_warn(walk, "anchors", NULL,
                      "anchors has %d numbers, but num=%.0f needs %.0f: the missing ones are 0.5", numbers,
                      num, 2 * num);
}

void cfg_own_unlike_head(cfg_walk *walk, double reads, double loaded)
{
    cfg_walk_refuse(walk, cfg_walk_given(walk, "max") ? "max" : NULL, NULL,
                    "has room for %.0f boxes per image, but the last layer has room for %.0f; give all heads "
                    "the same max= (default: 200)", reads / LABEL_NUMBERS, loaded / LABEL_NUMBERS);
}

int cfg_own_lays_out_1x1(double stride_x) { return stride_x > 1; }

/* Warns if ema_alpha averages nothing: train_network_waitkey averages the weights from step max_batches / 2
 * on, and replaces the weights by the averages at step max_batches - 1000, which must be later than step
 * max_batches / 2. */
static void check_averaging(cfg_walk *walk)
{
    double steps = cfg_walk_number(walk, "max_batches"), from = trunc(steps / 2), to = steps - 1000;
    if (cfg_walk_number(walk, "ema_alpha") == 0 || walk->resized || from < to) return;
    cfg_walk_warn(walk, "ema_alpha", NULL, "has no effect, since weights are averaged from step %.0f "
                                           "(max_batches / 2) to step %.0f (max_batches - 1000); set "
                                           "max_batches above 2000, or remove ema_alpha",
                  from, to);
}

/* Rejects what makes hank-ai's parser end the program: first, a key of [net] that the parser reads only with
 * another policy= or with adam=1; second, a yolo or region as the last layer, if the network's width or
 * height is not a multiple of 32. */
static void check_strictly(cfg_walk *walk, int finds_boxes)
{
    enum { STEP = 1 << POLICY_STEP, STEPS = 1 << POLICY_STEPS | 1 << POLICY_SGDR,
           GAMMA = 1 << POLICY_EXP | 1 << POLICY_SIGMOID };
    static const struct { const char *key; int policies; } asked[] = {
        { "step", STEP | 1 << POLICY_SIGMOID }, { "scale", STEP }, { "steps", STEPS }, { "scales", STEPS },
        { "seq_scales", STEPS }, { "gamma", GAMMA }, { "B1", 0 }, { "B2", 0 }, { "eps", 0 },
    };
    int policy = 1 << (int)cfg_walk_number(walk, "policy"), adam = cfg_walk_number(walk, "adam") != 0;
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        if (cfg_walk_given(walk, asked[i].key) && !(asked[i].policies ? asked[i].policies & policy : adam))
            cfg_walk_refuse(walk, asked[i].key, NULL, "is not used with this %s=, and Darknet's parser would "
                                                      "end the program; remove it",
                                                      asked[i].policies ? "policy" : "adam");
    for (int i = 0; i < 2 && finds_boxes; i++) {
        const char *side = i ? "height" : "width";
        if (fmod(cfg_walk_number(walk, side), 32) != 0)
            cfg_walk_refuse(walk, side, "multiples of 32", "a network with a yolo or region layer needs "
                                                           "multiples of 32 in this Darknet");
    }
}

/* Darknet's parser divides by the number of layers whose input is an image wider and higher than 1. Rejects a
 * network in which this number is 0. */
void cfg_own_finish(cfg_walk *walk)
{
    int images = 0, finds_boxes = 0;
    for (int i = 0; i < walk->count; i++) {
        const cfg_shape *in = i ? &walk->layers[i - 1] : &walk->net;
        cfg_walk_enter(walk, i);
        images |= (cfg_walk_traits(walk) & IMAGE) && in->w > 1 && in->h > 1;
        /* excludes Gaussian_yolo, the only section with uc_normalizer= */
        finds_boxes = walk->layers[i].classes > 0 && !cfg_walk_number(walk, "uc_normalizer");
    }
    cfg_walk_enter(walk, -1);
    check_averaging(walk);
    if (cfg_walk_number(walk, "try_fix_nan") && !walk->resized)
        cfg_walk_warn(walk, "try_fix_nan", NULL,
                      "has no effect under AMP, which skips steps with inf or NaN");
    if (amp_cfg_fork.strict && !walk->resized) check_strictly(walk, finds_boxes);
    if (!images)
        cfg_walk_fail(walk, NULL, NULL,
                      "no layer's input is an image, and Darknet's parser cannot handle that");
}

/* ---- images ---- */

#ifdef OPENCV
enum { HAS_OPENCV = 1 };
#else
enum { HAS_OPENCV = 0 };
#endif

/* The detector's loader reads images with 1 channel, 3 and, with stb_image instead of OpenCV, 2 (grey and
 * alpha), but cannot augment 4 channels. The classifier's loader reads only colour. */
int amp_fork_loads_channels(int channels, int classifier)
{
    return channels == 3 || (!classifier && (channels == 1 || (channels == 2 && !HAS_OPENCV)));
}

#define BUILD_WITH_OPENCV "0, or a build with OPENCV=1"

/* The values to which Darknet's parser sets `mixup` if the .cfg has cutmix=1, mosaic=1, or both. */
enum { CUTMIX = 2, MOSAIC = 3, BOTH = 4 };

static void check_mixing(cfg_walk *walk)
{
    int cutmix = cfg_walk_number(walk, "cutmix") != 0, mosaic = cfg_walk_number(walk, "mosaic") != 0;
    int mixup = (int)cfg_walk_number(walk, "mixup");
    if (cutmix || mosaic) mixup = cutmix && mosaic ? BOTH : cutmix ? CUTMIX : MOSAIC;
    if (mixup == MOSAIC || mixup == BOTH) {
        if (!HAS_OPENCV)
            cfg_walk_refuse(walk, mosaic ? "mosaic" : "mixup", BUILD_WITH_OPENCV,
                            "needs OpenCV to join images, but this Darknet was built without it");
        if (cfg_walk_number(walk, "letter_box"))
            cfg_walk_refuse(walk, "letter_box", "0, or no mosaic",
                            "cannot be combined with mosaic in `detector train`");
    }
    if (mixup != CUTMIX && mixup != BOTH) return;
    const char *key = cutmix ? "cutmix" : "mixup", *why = "is for `classifier train` only";
    if (HAS_OPENCV && !amp_cfg_fork.strict) /* hank-ai's Darknet (strict) ends the program */
        cfg_walk_warn(walk, key, NULL, "%s; `detector train` ignores it", why);
    else cfg_walk_refuse(walk, key, "0", "%s; it would end `detector train`", why);
}

/* Rejects an effect that the loader would silently skip. */
static void check_effect(cfg_walk *walk, const char *key)
{
    if (!HAS_OPENCV && cfg_walk_number(walk, key))
        cfg_walk_refuse(walk, key, BUILD_WITH_OPENCV,
                        "needs OpenCV, but this Darknet was built without it");
}

/* Rejects settings that load_data_detection and load_data_augment do not support, and steps of one image, for
 * which train_detector ends the program. */
void cfg_own_loader(cfg_walk *walk, int classifier)
{
    check_effect(walk, "blur");
    if (classifier) return;
    if (walk->batch * cfg_walk_number(walk, "subdivisions") == 1)
        cfg_walk_refuse(walk, "batch", "2 or more, best 64 with subdivisions=64",
                        "makes a step of one image, which `detector train` rejects");
    check_effect(walk, "gaussian_noise");
    check_mixing(walk);
}

/* ---- sizes ---- */

/* train_detector multiplies both sides by the same random factor, and rounds them to multiples of
 * resize_step. For a square input, lists all sizes. For other inputs, lists the sizes that result from
 * factors evenly spaced on a logarithmic scale. */
size_t cfg_own_sizes(const cfg_walk *walk, int classifier, double random, double sizes[CFG_OWN_SIZES][2])
{
    double most = amp_own_resized_most(random), step = floor(cfg_walk_number(walk, "resize_step"));
    double w = walk->net.w, h = walk->net.h;
    size_t count = 0;
    if (classifier || !(step >= 1)) return 0;
    double least_w = fmin((round(w / most / step) + 1) * step, w);
    double most_w = (round(w * most / step) + 1) * step;
    for (double size = least_w; w == h && size <= most_w && count < CFG_OWN_SIZES; size += step, count++)
        sizes[count][0] = sizes[count][1] = size;
    for (; w != h && count < CFG_OWN_SIZES; count++) {
        double factor = pow(most, 2. * (double)count / (CFG_OWN_SIZES - 1) - 1);
        sizes[count][0] = (round(factor * w / step) + 1) * step;
        sizes[count][1] = (round(factor * h / step) + 1) * step;
        if (factor < 1 && (sizes[count][0] > w || sizes[count][1] > h))
            sizes[count][0] = w, sizes[count][1] = h;
    }
    return count;
}
