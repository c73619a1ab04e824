/* average_precision.c against pycocotools, and against PASCAL VOC's definition: golden/map.txt, whose form
 * oracles/map_oracle.py describes. */
#include "testing.h"

#include "commands/map/average_precision.h"

#include <math.h>

typedef struct golden_case {
    char name[64];
    int classes;
    size_t truth_count, detection_count;
    amp_truth *truths;
    amp_detected *detections;
    amp_class_score *per_class; /* of the points computed last */
    amp_map_score total;
    int points;                 /* -1: none yet */
    int counted;                /* classes whose AP was read for these points, and their sums */
    double sum50, sum50_95;
} golden_case;

typedef struct compared { int cases, scores; } compared;

static void read_box(amp_box *box, const char *text)
{
    int v[4];
    assert_int_equal(sscanf(text, "%d %d %d %d", v, v + 1, v + 2, v + 3), 4);
    *box = (amp_box){(float)v[0] / 16, (float)v[1] / 16, (float)v[2] / 16, (float)v[3] / 16};
}

static void read_case(FILE *golden, golden_case *c)
{
    char line[256];
    int after = 0, score;
    c->truths = calloc(c->truth_count + 1, sizeof *c->truths);
    c->detections = calloc(c->detection_count + 1, sizeof *c->detections);
    c->per_class = calloc((size_t)c->classes, sizeof *c->per_class);
    c->points = -1;
    assert_true(c->truths && c->detections && c->per_class);
    for (size_t i = 0; i < c->truth_count; i++) {
        amp_truth *t = &c->truths[i];
        assert_non_null(fgets(line, sizeof line, golden));
        assert_int_equal(sscanf(line, "t %d %d %n%*d %*d %*d %*d %d", &t->image, &t->class_id, &after,
                                &t->difficult), 3);
        read_box(&t->box, line + after);
    }
    for (size_t i = 0; i < c->detection_count; i++) {
        amp_detected *d = &c->detections[i];
        assert_non_null(fgets(line, sizeof line, golden));
        assert_int_equal(sscanf(line, "d %d %d %d %n", &d->image, &d->class_id, &score, &after), 3);
        d->score = (float)score / 1000;
        read_box(&d->box, line + after);
    }
}

static void free_case(golden_case *c)
{
    free(c->truths);
    free(c->detections);
    free(c->per_class);
    *c = (golden_case){0};
}

static void compute(golden_case *c, int points)
{
    if (c->points == points) return;
    c->points = points;
    amp_map_request request = {.25f, (amp_ap_points)points, .5};
    c->total = amp_average_precision(c->detections, c->detection_count, c->truths, c->truth_count, c->classes,
                                     &request, c->per_class);
}

static void expect_score(const golden_case *c, const char *what, int index, double actual, double expected)
{
    if (!(fabs(actual - expected) < 1e-6))
        fail_msg("case %s, %zu truths, %zu detections, points %d: %s %d is %.9f and not %.9f", c->name,
                 c->truth_count, c->detection_count, c->points, what, index, actual, expected);
}

/* "0.5*7 0.25 0*2": the AP at ten thresholds. */
static void expect_class(golden_case *c, char *text)
{
    int class_id, points, after = 0, t = 0;
    assert_int_equal(sscanf(text, "ap %d %d %n", &class_id, &points, &after), 2);
    compute(c, points);
    assert_true(class_id < c->classes && c->per_class[class_id].truths > 0);
    for (char *word = strtok(text + after, " \n"); word; word = strtok(NULL, " \n")) {
        char *star = strchr(word, '*');
        for (int n = star ? atoi(star + 1) : 1; n > 0; --n, t++) {
            assert_true(t < AMP_AP_THRESHOLDS);
            expect_score(c, "threshold", t, c->per_class[class_id].ap[t], strtod(word, NULL));
            c->sum50 += t == 0 ? strtod(word, NULL) : 0;
            c->sum50_95 += strtod(word, NULL) / AMP_AP_THRESHOLDS;
        }
    }
    assert_int_equal(t, AMP_AP_THRESHOLDS);
    c->counted++;
}

/* The counts, and the means of the classes before them. */
static void expect_totals(golden_case *c, const char *text)
{
    int points, true_positives, false_positives, objects = 0;
    assert_int_equal(sscanf(text, "at .25 %d %d %d", &points, &true_positives, &false_positives), 3);
    compute(c, points);
    for (size_t i = 0; i < c->truth_count; i++) objects += !c->truths[i].difficult;
    expect_score(c, "true positives at", 50, c->total.true_positives, true_positives);
    expect_score(c, "false positives at", 50, c->total.false_positives, false_positives);
    expect_score(c, "false negatives at", 50, c->total.false_negatives, objects - true_positives);
    assert_int_equal(c->total.classes_counted, c->counted);
    expect_score(c, "mAP at", 50, c->total.map50, c->counted ? c->sum50 / c->counted : 0);
    expect_score(c, "mAP up to", 95, c->total.map50_95, c->counted ? c->sum50_95 / c->counted : 0);
    c->sum50 = c->sum50_95 = c->counted = 0;
}

static compared replay(FILE *golden)
{
    char line[1024];
    golden_case c = {0}, next = {0};
    compared n = {0};
    while (fgets(line, sizeof line, golden)) {
        if (sscanf(line, "case %63s %d %zu %zu", next.name, &next.classes, &next.truth_count,
                   &next.detection_count) == 4) {
            free_case(&c);
            c = next;
            read_case(golden, &c);
            ++n.cases;
        } else if (line[0] == 'a' && line[1] == 'p') {
            expect_class(&c, line);
            ++n.scores;
        } else if (line[0] == 'a') {
            expect_totals(&c, line);
        }
    }
    free_case(&c);
    return n;
}

TEST(cases_score_as_in_pycocotools_and_voc)
{
    FILE *golden = open_golden("map.txt");
    compared n = replay(golden);
    fclose(golden);
    assert_true(n.cases >= 13 && n.scores >= 42);
}

int main(void) { return run_listed_tests("tests", NULL, NULL); }
