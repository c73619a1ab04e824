/* Computes average precision (average_precision.h): sorts the detections, matches them with the ground truth,
 * and computes the area under each class's precision-recall curve. */
#include "average_precision.h"

#include "../../host/program/failure.h"

#include <stdint.h>
#include <string.h>

/* Indices of the IoU thresholds: COCO's ten come first, then the requested one. */
enum { ASKED = AMP_AP_THRESHOLDS, THRESHOLDS };

typedef struct ranked { /* one detection, and how it was matched */
    const amp_detected *detected; /* the detection, in the caller's array, whose order breaks ties of
                                     scores */
    uint16_t matched;             /* bit t: a true positive at threshold t */
    uint16_t ignored;             /* bit t: matches a difficult object at threshold t, so it is not counted */
    double iou;                   /* IoU with its ground truth at threshold ASKED; 0: no true positive
                                     there */
} ranked;

/* COCO's ten thresholds are the same doubles as numpy.linspace(.5, .95, 10). */
static void set_thresholds(double asked, double thresholds[THRESHOLDS])
{
    for (int t = 0; t < AMP_AP_THRESHOLDS; t++)
        thresholds[t] = t * ((.95 - .5) / (AMP_AP_THRESHOLDS - 1)) + .5;
    thresholds[AMP_AP_THRESHOLDS - 1] = .95;
    thresholds[ASKED] = asked;
}

double amp_box_iou(amp_box a, amp_box b)
{
    double left = a.x - a.w / 2. > b.x - b.w / 2. ? a.x - a.w / 2. : b.x - b.w / 2.;
    double right = a.x + a.w / 2. < b.x + b.w / 2. ? a.x + a.w / 2. : b.x + b.w / 2.;
    double top = a.y - a.h / 2. > b.y - b.h / 2. ? a.y - a.h / 2. : b.y - b.h / 2.;
    double bottom = a.y + a.h / 2. < b.y + b.h / 2. ? a.y + a.h / 2. : b.y + b.h / 2.;
    if (!(right > left && bottom > top)) return 0;
    double both = (right - left) * (bottom - top);
    double either = (double)a.w * a.h + (double)b.w * b.h - both;
    return either > 0 ? both / either : 0;
}

/* Compares two numbers for qsort: -1, 0 or 1. */
#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

/* Sorts by class, then descending score, then image, then position in the caller's array. */
static int by_score(const void *left, const void *right)
{
    const amp_detected *a = ((const ranked *)left)->detected, *b = ((const ranked *)right)->detected;
    int class_id = ORDER(a->class_id, b->class_id), image = ORDER(a->image, b->image);
    int score = ORDER(b->score, a->score);
    return class_id ? class_id : score ? score : image ? image : ORDER(a, b);
}

/* Sorts by class, then image, then position in the caller's array. */
static int by_place(const void *left, const void *right)
{
    const amp_truth *a = *(const amp_truth *const *)left, *b = *(const amp_truth *const *)right;
    int class_id = ORDER(a->class_id, b->class_id), image = ORDER(a->image, b->image);
    return class_id ? class_id : image ? image : ORDER(a, b);
}

static int is_before(const amp_truth *t, const amp_detected *d)
{
    return t->class_id < d->class_id || (t->class_id == d->class_id && t->image < d->image);
}

/* Returns the index of the first truth of the detection's class and image, or where it would be inserted. The
 * truths are sorted by by_place. */
static size_t first_truth_of(const amp_detected *d, const amp_truth *const *truths, size_t count)
{
    size_t low = 0;
    for (size_t high = count; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (is_before(truths[middle], d)) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Records that the detection takes this truth at threshold t. */
static void take(ranked *detection, const amp_truth *truth, uint16_t *taken, int t, double iou)
{
    *taken |= (uint16_t)(1u << t);
    if (truth->difficult) detection->ignored |= (uint16_t)(1u << t);
    else detection->matched |= (uint16_t)(1u << t);
    if (t == ASKED && !truth->difficult) detection->iou = iou;
}

/* Whether COCO prefers `truth` to `best`, the best truth so far (NULL: none). It prefers, in this order:
 * truths that are not difficult; a higher overlap; the later truth. */
static int is_better(const amp_truth *truth, double iou, const amp_truth *best, double best_iou)
{
    if (!best) return 1;
    if (truth->difficult != best->difficult) return best->difficult;
    return iou >= best_iou;
}

/* Matches a detection with a ground truth of its image and class, separately at each threshold. Call it in
 * order of descending score. COCO considers the truths that are not yet taken. VOC considers only the truth
 * with the highest overlap; if several have the same overlap, the first. taken[i]: bit t: truth i is taken at
 * threshold t. */
static void match(ranked *detection, const amp_truth *const *truths, size_t truth_count, amp_ap_points points,
                  const double *thresholds, uint16_t *taken)
{
    const amp_detected *d = detection->detected;
    const int is_coco = points == AMP_AP_COCO;
    size_t best[THRESHOLDS];
    double best_iou[THRESHOLDS] = {0};
    for (size_t i = first_truth_of(d, truths, truth_count);
         i < truth_count && truths[i]->class_id == d->class_id && truths[i]->image == d->image; i++) {
        double iou = amp_box_iou(d->box, truths[i]->box);
        for (int t = 0; t < THRESHOLDS; t++) {
            const amp_truth *before = best_iou[t] > 0 ? truths[best[t]] : NULL;
            if (!(iou >= thresholds[t]) || (is_coco && taken[i] >> t & 1)) continue;
            if (is_coco ? !is_better(truths[i], iou, before, best_iou[t]) : iou <= best_iou[t]) continue;
            best_iou[t] = iou;
            best[t] = i;
        }
    }
    for (int t = 0; t < THRESHOLDS; t++)
        if (best_iou[t] > 0 && (truths[best[t]]->difficult || !(taken[best[t]] >> t & 1)))
            take(detection, truths[best[t]], &taken[best[t]], t, best_iou[t]);
}

typedef struct curve_point { int hits; double precision; } curve_point;

/* Computes the precision-recall curve of one class at one threshold. Its precisions are those of the
 * envelope: the highest precision at this or a later point. detections: sorted by descending score. Returns
 * the number of points, one per detection that is not ignored. */
static size_t make_curve(const ranked *detections, size_t count, int threshold, curve_point *curve)
{
    size_t n = 0;
    int hits = 0;
    for (size_t d = 0; d < count; d++) {
        if (detections[d].ignored >> threshold & 1) continue;
        hits += detections[d].matched >> threshold & 1;
        ++n;
        curve[n - 1] = (curve_point){hits, (double)hits / (double)n};
    }
    for (size_t d = n; d-- > 1;)
        if (curve[d - 1].precision < curve[d].precision) curve[d - 1].precision = curve[d].precision;
    return n;
}

static double area_under_curve(const curve_point *curve, size_t count, int truths)
{
    double area = 0;
    for (size_t d = 0; d < count; d++)
        if (curve[d].hits > (d ? curve[d - 1].hits : 0)) area += curve[d].precision;
    return area / truths; /* each hit adds 1 / truths to recall */
}

/* Whether the recall hits / truths reaches recall point p. COCO's point is p / 100 as numpy.linspace rounds
 * it: in pycocotools a recall of 7/20 does not reach .35000000000000003. VOC's is exactly p / 10. */
static int reaches(int hits, int truths, int p, amp_ap_points points)
{
    int last = (int)points - 1;
    if (points == AMP_AP_VOC2007) return 10LL * hits >= (long long)p * truths;
    double wanted = p == last ? 1 : p * (1. / last);
    return (double)hits / truths >= wanted;
}

static double mean_at_points(const curve_point *curve, size_t count, int truths, amp_ap_points points)
{
    double sum = 0;
    size_t d = 0;
    for (int p = 0; p < (int)points; p++) { /* finds the first point of the curve that reaches p */
        while (d < count && !reaches(curve[d].hits, truths, p, points)) ++d;
        if (d == count) break;
        sum += curve[d].precision;
    }
    return sum / points;
}

static void score_class(const ranked *detections, size_t count, amp_ap_points points, float confidence,
                        curve_point *curve, amp_class_score *score)
{
    score->detections = (int)count;
    for (int t = 0; t < THRESHOLDS && score->truths > 0; t++) {
        size_t n = make_curve(detections, count, t, curve);
        *(t == ASKED ? &score->ap_at_iou : &score->ap[t]) =
            points == AMP_AP_AREA ? area_under_curve(curve, n, score->truths)
                                  : mean_at_points(curve, n, score->truths, points);
    }
    for (size_t d = 0; d < count && detections[d].detected->score > confidence; d++) {
        score->true_positives += detections[d].matched >> ASKED & 1;
        score->false_positives += !((detections[d].matched | detections[d].ignored) >> ASKED & 1);
        score->iou_sum += detections[d].iou;
    }
}

static double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

static amp_map_score sum_up(const amp_class_score *per_class, int classes)
{
    amp_map_score total = {0};
    double iou_sum = 0, truths = 0;
    for (int c = 0; c < classes; c++) {
        const amp_class_score *s = &per_class[c];
        total.true_positives += s->true_positives;
        total.false_positives += s->false_positives;
        total.false_negatives += s->truths - s->true_positives;
        iou_sum += s->iou_sum;
        truths += s->truths;
        if (s->truths == 0) continue;
        ++total.classes_counted;
        total.map += s->ap_at_iou;
        total.map50 += s->ap[0];
        for (int t = 0; t < AMP_AP_THRESHOLDS; t++) total.map50_95 += s->ap[t] / AMP_AP_THRESHOLDS;
    }
    total.map = ratio(total.map, total.classes_counted);
    total.map50 = ratio(total.map50, total.classes_counted);
    total.map50_95 = ratio(total.map50_95, total.classes_counted);
    total.precision = ratio(total.true_positives, total.true_positives + total.false_positives);
    total.recall = ratio(total.true_positives, truths);
    total.f1 = ratio(2 * total.precision * total.recall, total.precision + total.recall);
    total.average_iou = ratio(iou_sum, total.true_positives);
    return total;
}

amp_map_score amp_average_precision(const amp_detected *detections, size_t detection_count,
                                    const amp_truth *truths, size_t truth_count, int classes,
                                    const amp_map_request *request, amp_class_score *per_class)
{
    double thresholds[THRESHOLDS];
    set_thresholds(request->iou, thresholds);
    /* + 1, because calloc(0) may return NULL */
    ranked *sorted = amp_allocated(calloc(detection_count + 1, sizeof *sorted));
    curve_point *curve = amp_allocated(malloc((detection_count + 1) * sizeof *curve));
    const amp_truth **sorted_truths = amp_allocated(malloc((truth_count + 1) * sizeof *sorted_truths));
    uint16_t *taken = amp_allocated(calloc(truth_count + 1, sizeof *taken));
    memset(per_class, 0, (size_t)classes * sizeof *per_class);
    for (size_t i = 0; i < truth_count; i++) {
        sorted_truths[i] = &truths[i];
        per_class[truths[i].class_id].truths += !truths[i].difficult;
    }
    for (size_t i = 0; i < detection_count; i++) sorted[i] = (ranked){.detected = &detections[i]};

    qsort(sorted_truths, truth_count, sizeof *sorted_truths, by_place);
    qsort(sorted, detection_count, sizeof *sorted, by_score);
    for (size_t d = 0; d < detection_count; d++)
        match(&sorted[d], sorted_truths, truth_count, request->points, thresholds, taken);

    for (size_t d = 0, next; d < detection_count; d = next) {
        int class_id = sorted[d].detected->class_id;
        for (next = d; next < detection_count && sorted[next].detected->class_id == class_id; next++) { }
        score_class(sorted + d, next - d, request->points, request->confidence, curve, &per_class[class_id]);
    }
    free(taken);
    free(sorted_truths);
    free(curve);
    free(sorted);
    return sum_up(per_class, classes);
}
