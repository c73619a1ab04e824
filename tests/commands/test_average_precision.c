/* average_precision.c against the definitions of COCO and PASCAL VOC, over random scenes, and against cases
 * worked out by hand. */
#include "testing.h"

#include "commands/map/average_precision.h"
#include "random_numbers.h"

#include <math.h>

enum { MOST_CLASSES = 8 };

typedef struct outcome {
    amp_class_score per_class[MOST_CLASSES];
    amp_map_score total;
} outcome;

static outcome run(const amp_detected *detections, size_t detection_count, const amp_truth *truths,
                   size_t truth_count, int classes, amp_ap_points points, float confidence)
{
    outcome o;
    amp_map_request request = {confidence, points, .5};
    o.total = amp_average_precision(detections, detection_count, truths, truth_count, classes, &request,
                                    o.per_class);
    return o;
}

static void assert_near(double a, double b)
{
    if (!(fabs(a - b) < 1e-9)) fail_msg("%.12f is not %.12f", a, b);
}

/* A unit square in column `column`: squares of different columns never touch. */
static amp_box at(int column) { return (amp_box){2.f * (float)column, 0, 1, 1}; }

TEST(iou_of_boxes_is_shared_area_over_all_area)
{
    assert_near(amp_box_iou(at(0), at(0)), 1);
    assert_near(amp_box_iou(at(0), at(1)), 0);
    assert_near(amp_box_iou((amp_box){0, 0, 2, 1}, (amp_box){1, 0, 2, 1}), 1. / 3);
    assert_near(amp_box_iou((amp_box){0, 0, 1, 1}, (amp_box){1, 0, 1, 1}), 0); /* they share an edge */
    assert_near(amp_box_iou((amp_box){0, 0, 4, 4}, (amp_box){0, 0, 2, 2}), .25);
}

/* One box is .625 of the other, so that .5, .55 and .6 are reached. */
TEST(any_overlap_can_be_asked_for)
{
    const double asked[] = {.05, .5, .62, .63, .99};
    const amp_ap_points ways[] = {AMP_AP_AREA, AMP_AP_VOC2007, AMP_AP_COCO};
    const amp_detected detected = {0, 0, .9f, {0, 0, 8, 5}};
    const amp_truth truth = {0, 0, {0, 0, 8, 8}, 0};
    for (size_t i = 0; i < COUNT(ways) * COUNT(asked); i++) {
        outcome o;
        amp_map_request request = {.25f, ways[i / COUNT(asked)], asked[i % COUNT(asked)]};
        o.total = amp_average_precision(&detected, 1, &truth, 1, 1, &request, o.per_class);
        assert_near(o.total.map, request.iou < .625);
        assert_near(o.total.true_positives, request.iou < .625);
        assert_near(o.total.map50, 1);
        assert_near(o.total.map50_95, .3);
    }
}

/* Three objects; hit, miss, hit. Precision 1, 1/2, 2/3 at recall 1/3, 1/3, 2/3; the
 * envelope is 1, 2/3, 2/3. */
TEST(the_three_ways_to_take_the_area)
{
    const amp_detected detected[] = {{0, 0, .9f, at(0)}, {0, 0, .8f, at(7)}, {0, 0, .7f, at(1)}};
    const amp_truth truths[] = {{0, 0, at(0), 0}, {0, 0, at(1), 0}, {0, 0, at(2), 0}};
    outcome o = run(detected, 3, truths, 3, 1, AMP_AP_AREA, .25f);
    assert_near(o.per_class[0].ap[0], 5. / 9);
    o = run(detected, 3, truths, 3, 1, AMP_AP_VOC2007, .25f);
    assert_near(o.per_class[0].ap[0], (4 + 3 * 2. / 3) / 11); /* 0 .1 .2 .3 | .4 .5 .6 */
    o = run(detected, 3, truths, 3, 1, AMP_AP_COCO, .25f);
    assert_near(o.per_class[0].ap[0], (34 + 33 * 2. / 3) / 101); /* 0 .. .33 | .34 .. .66 */
    assert_near(o.total.precision, 2. / 3);
    assert_near(o.total.recall, 2. / 3);
    assert_near(o.total.f1, 2. / 3);
}

TEST(confidence_is_a_lower_bound_not_included)
{
    const amp_detected detected[] = {{0, 0, .25f, at(0)}, {0, 0, .5f, at(1)}};
    const amp_truth truths[] = {{0, 0, at(0), 0}, {0, 0, at(1), 0}};
    outcome o = run(detected, 2, truths, 2, 1, AMP_AP_COCO, .25f);
    assert_int_equal(o.total.true_positives, 1);
    assert_near(o.total.recall, .5);
    assert_near(o.total.map50, 1); /* which knows no confidence */
}

/* There is no limit of 100 detections of an image, as pycocotools has by default. */
TEST(the_hundred_and_first_detection_counts)
{
    amp_detected detected[101];
    const amp_truth truths[] = {{0, 0, at(0), 0}};
    for (int i = 0; i < 101; i++)
        detected[i] = (amp_detected){0, 0, .9f - (float)i / 200, at(i < 100 ? 7 : 0)};
    outcome o = run(detected, 101, truths, 1, 1, AMP_AP_COCO, .25f);
    assert_near(o.total.map50, 1. / 101);
}

/* ---- the definitions, over random scenes ----
 *
 * pycocotools 2.0.11 gives what is written down here, in 397 scenes with 1767 average precisions. */

enum { MOST_TRUTHS = 12, MOST_DETECTIONS = 30 };

typedef struct scene {
    int classes, images, truth_count, detection_count;
    amp_truth truths[MOST_TRUTHS];
    amp_detected detections[MOST_DETECTIONS];
} scene;

static double shared(double a, double a_size, double b, double b_size)
{
    double s = fmin(a + a_size / 2, b + b_size / 2) - fmax(a - a_size / 2, b - b_size / 2);
    return s > 0 ? s : 0;
}

/* Of boxes on a grid of 1/16, so that equal overlaps are equal. */
static double overlap(amp_box a, amp_box b)
{
    double both = shared(a.x, a.w, b.x, b.w) * shared(a.y, a.h, b.y, b.h);
    return both > 0 ? both / ((double)(a.w * a.h) + (double)(b.w * b.h) - both) : 0;
}

/* Threshold t is (10 + t)/20; an equal overlap reaches it. */
static int reaches(double iou, int t) { return iou >= (10 + t) / 20.; }

static int may_take(const amp_detected *d, const amp_truth *t)
{
    return d->image == t->image && d->class_id == t->class_id;
}

/* pycocotools' COCOeval.evaluateImg: the best of the free objects, the later of equal ones, a difficult one
 * only if there is no other. -1: none. */
static int coco_takes(const scene *s, const amp_detected *d, const int *taken, int t)
{
    int best = -1;
    for (int difficult = 0; difficult < 2 && best < 0; difficult++)
        for (int g = 0; g < s->truth_count; g++) {
            double iou = overlap(d->box, s->truths[g].box);
            if (taken[g] || !may_take(d, &s->truths[g]) || s->truths[g].difficult != difficult) continue;
            if (reaches(iou, t) && (best < 0 || iou >= overlap(d->box, s->truths[best].box))) best = g;
        }
    return best;
}

/* The development kit's VOCevaldet: the best object, the first of equal ones, whether or not it is free. */
static int voc_takes(const scene *s, const amp_detected *d, int t)
{
    int best = -1;
    for (int g = 0; g < s->truth_count; g++)
        if (may_take(d, &s->truths[g])
            && overlap(d->box, s->truths[g].box) > (best < 0 ? 0 : overlap(d->box, s->truths[best].box)))
            best = g;
    return best >= 0 && reaches(overlap(d->box, s->truths[best].box), t) ? best : -1;
}

/* The detections of a class that count, by falling score: how many there are, and after each how many objects
 * were found. Of those above a score of .25: the true and the false ones, and the true ones' overlaps. */
typedef struct curve {
    int count, found[MOST_DETECTIONS], objects, true_positives, false_positives;
    double overlaps;
} curve;

static curve curve_of(const scene *s, int class_id, amp_ap_points points, int t)
{
    curve c = { 0 };
    int taken[MOST_TRUTHS] = { 0 }, seen[MOST_DETECTIONS] = { 0 }, found = 0;
    for (int g = 0; g < s->truth_count; g++)
        c.objects += s->truths[g].class_id == class_id && !s->truths[g].difficult;
    for (;;) {
        const amp_detected *d = NULL; /* the next; of equal scores that of the first image */
        for (int i = 0; i < s->detection_count; i++) {
            const amp_detected *other = &s->detections[i];
            if (seen[i] || other->class_id != class_id) continue;
            if (!d || other->score > d->score || (other->score == d->score && other->image < d->image))
                d = other;
        }
        if (!d) return c;
        seen[d - s->detections] = 1;
        int g = points == AMP_AP_COCO ? coco_takes(s, d, taken, t) : voc_takes(s, d, t);
        int hit = g >= 0 && !taken[g];
        if (g >= 0) taken[g] = 1;
        if (g >= 0 && s->truths[g].difficult) continue;
        c.found[c.count++] = found += hit;
        if (d->score <= .25f) continue;
        c.true_positives += hit;
        c.false_positives += !hit;
        c.overlaps += hit ? overlap(d->box, s->truths[g].box) : 0;
    }
}

/* The highest precision at rank `first` or later. */
static double envelope(const curve *c, int first)
{
    double highest = 0;
    for (int i = first; i < c->count; i++) highest = fmax(highest, (double)c->found[i] / (i + 1));
    return highest;
}

/* COCO's point k/100 is what numpy.linspace makes of it, and its recall a double; VOC's are exact. */
static int is_at(const curve *c, int rank, amp_ap_points points, int k)
{
    if (points == AMP_AP_COCO) return (double)c->found[rank] / c->objects >= (k == 100 ? 1 : k * .01);
    return c->found[rank] * 10 >= k * c->objects;
}

static double average_precision(const curve *c, amp_ap_points points)
{
    double sum = 0;
    if (points == AMP_AP_AREA) {
        for (int i = 0; i < c->count; i++)
            if (c->found[i] > (i ? c->found[i - 1] : 0)) sum += envelope(c, i) / c->objects;
        return sum;
    }
    for (int k = 0; k < (int)points; k++) {
        int rank = 0;
        while (rank < c->count && !is_at(c, rank, points, k)) rank++;
        sum += envelope(c, rank);
    }
    return sum / points;
}

/* x and y in sixteenths; w and h are even. */
static amp_box box_at(int x, int y, int w, int h)
{
    return (amp_box){(float)x / 16, (float)y / 16, (float)w / 16, (float)h / 16};
}

static int around(float value, int most) { return (int)(value * 16) + below(2 * (uint64_t)most + 1) - most; }

/* Objects anywhere, some of them close together, difficult or flat; detections near them, or within one so
 * that their overlap is a whole number of twentieths, or anywhere; few different scores. */
static scene random_scene(void)
{
    scene s = {.classes = 1 + below(3), .images = 1 + below(3), .truth_count = below(MOST_TRUTHS + 1),
               .detection_count = below(MOST_DETECTIONS + 1)};
    for (int i = 0; i < s.truth_count; i++) {
        amp_truth *t = &s.truths[i];
        *t = (amp_truth){below(s.images), below(s.classes),
                         box_at(below(65), below(65), 40, 2 * (1 + below(12))), below(4) == 0};
        if (i && below(2)) t->box = t[-1].box, t->box.x = (float)around(t->box.x, 4) / 16;
        if (below(12) == 0) t->box.h = 0;
    }
    for (int i = 0; i < s.detection_count; i++) {
        amp_detected *d = &s.detections[i];
        const amp_truth *t = &s.truths[s.truth_count ? below(s.truth_count) : 0];
        amp_box at = t->box;
        int kind = s.truth_count ? below(5) : 4;
        *d = (amp_detected){t->image, t->class_id, (float)(1 + below(9)) / 10, at};
        if (kind < 2) d->box = box_at(around(at.x, 4), around(at.y, 1), 40, (int)(at.h * 16) + 2 * below(2));
        if (kind == 2) {
            int w = 2 * (9 + below(12));
            d->box = box_at((int)(at.x * 16) - 20 + w / 2, (int)(at.y * 16), w, (int)(at.h * 16));
        }
        if (kind == 4)
            *d = (amp_detected){below(s.images), below(s.classes), (float)(1 + below(9)) / 10,
                                box_at(below(65), below(65), 2 * (1 + below(12)), 2 * (1 + below(12)))};
    }
    return s;
}

static void compare(const scene *s, amp_ap_points points, int number)
{
    outcome o = run(s->detections, (size_t)s->detection_count, s->truths, (size_t)s->truth_count, s->classes,
                    points, .25f);
    double sums[2] = {0, 0}, overlaps = 0;
    int counted = 0, hits = 0, misses = 0, objects = 0;
    for (int class_id = 0; class_id < s->classes; class_id++) {
        curve half = curve_of(s, class_id, points, 0);
        hits += half.true_positives, misses += half.false_positives, objects += half.objects;
        counted += half.objects > 0;
        overlaps += half.overlaps;
        for (int t = 0; t < AMP_AP_THRESHOLDS && half.objects; t++) {
            curve c = curve_of(s, class_id, points, t);
            double want = average_precision(&c, points), got = o.per_class[class_id].ap[t];
            if (!(fabs(got - want) < 1e-9))
                fail_msg("scene %d, points %d: class %d, threshold %d is %.9f and not %.9f", number, points,
                         class_id, t, got, want);
            sums[0] += t == 0 ? want : 0;
            sums[1] += want / AMP_AP_THRESHOLDS;
        }
    }
    assert_int_equal(o.total.classes_counted, counted);
    assert_near(o.total.map50, counted ? sums[0] / counted : 0);
    assert_near(o.total.map50_95, counted ? sums[1] / counted : 0);
    assert_int_equal(o.total.true_positives, hits);
    assert_int_equal(o.total.false_positives, misses);
    assert_int_equal(o.total.false_negatives, objects - hits);
    assert_near(o.total.average_iou, hits ? overlaps / hits : 0);
}

TEST(random_scenes_score_as_coco_and_voc_define_it)
{
    random_state = 1;
    for (int number = 0; number < 600; number++) {
        scene s = random_scene();
        compare(&s, AMP_AP_COCO, number);
        compare(&s, AMP_AP_VOC2007, number);
        compare(&s, AMP_AP_AREA, number);
    }
}

int main(void) { return run_listed_tests("tests", NULL, NULL); }
