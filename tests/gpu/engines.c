/* Whether cuDNN's engines agree: for the convolutions in the file of the first argument (as
 * bench/roofline.py --convolutions writes it), as large as they are there, in each pass and half, every
 * engine that tuning may choose, against the first of them, on random numbers. The conformance tests compare
 * with true values, but small shapes and the one engine that is chosen.
 *
 * Engines may add up in another order and round once more: they agree where they differ by three units in the
 * last place of a number, or of what is usual. AMP_TEST_SMALL=1: the first dozen, made small,
 * which run anywhere. */
#include "kernel_cases.h"

#include "backend/cuda/cudnn_graph.h"
#include "backend/cuda/state.h"

enum { BATCH = 2, BEST_OF = 8, POOL = 1000003, SHIFT = 1000, SMALL = 12 };

static const char *shapes = CONV_SHAPES; /* the file */
static const amp_dtype halves[] = { AMP_FP16, AMP_BF16 };
static amp_half_bits pool[3 * SHIFT + POOL]; /* random numbers of one dtype */
static int disagree, compared;               /* engines */

typedef struct trial {
    amp_conv_problem problem;
    amp_conv_buffers buffers;
    void *output, *start;      /* one of the buffers, and what is there before each run; on the device */
    size_t count;              /* of the output's numbers */
    amp_half_bits *first, *now; /* the first engine's, and the current one's */
    double usual;              /* how large they are */
    int64_t engine;            /* the first */
    int engines;
} trial;

static void look(const trial *t, const amp_conv_plan *plan)
{
    const amp_dtype dtype = t->problem.conv.dtype;
    const double unit = unit_roundoff(dtype);
    const amp_half_bits exponent = dtype == AMP_FP16 ? 0x7c00 : 0x7f80; /* of inf and NaN */
    size_t apart = 0, worst = 0;
    double most = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (t->first[i] == t->now[i] && (t->now[i] & exponent) != exponent) continue;
        double a = (double)number_of(dtype, t->first, i), b = (double)number_of(dtype, t->now, i),
            by = fabs(a - b);
        if (by <= 3 * unit * (fabs(a) + t->usual)) continue; /* false for NaN */
        if (!apart++ || by > most) most = by, worst = i;
    }
    if (!apart) return;
    char text[AMP_CONV_PROBLEM_TEXT];
    amp_conv_problem_text(&t->problem, text);
    print_message("%s: engine %lld differs from engine %lld in %zu of %zu numbers; number %zu is %g, not "
                  "%g\n", text, (long long)plan->current.engine, (long long)t->engine, apart, t->count, worst,
                  (double)number_of(dtype, t->now, worst), (double)number_of(dtype, t->first, worst));
    disagree++;
}

/* amp_conv_timer: compares, and calls the first the fastest. */
static amp_status compare(void *user, const amp_conv_plan *plan, float *ms, amp_error *error)
{
    trial *t = user;
    const size_t bytes = t->count * sizeof *t->now;
    AMP_TRY(backend->upload(backend, t->output, t->start, bytes, error));
    amp_status status = amp_cudnn_launch(amp_cuda_of(backend)->cudnn, plan, &t->buffers, error);
    cudaGetLastError(); /* or the next launch would be blamed for it */
    if (status != AMP_OK) return status; /* it is not chosen */
    AMP_TRY(backend->download(backend, t->engines ? t->now : t->first, t->output, bytes, error));
    *ms = (float)++t->engines;
    if (t->engines == 1) t->engine = plan->current.engine;
    else look(t, plan), compared++;
    return AMP_OK;
}

/* ---- memory ---- */

static void *random_halves(size_t count, int which)
{
    void *device;
    ASSERT_OK(CALL(allocate, count * sizeof *pool, &device, e));
    for (size_t at = 0; at < count; at += POOL) {
        size_t bytes = (count - at < POOL ? count - at : POOL) * sizeof *pool;
        ASSERT_OK(CALL(upload, (amp_half_bits *)device + at, pool + which * SHIFT, bytes, e));
    }
    return device;
}

/* What a run that adds is to add to; NaN for one that is to overwrite all. */
static void *start_of(size_t count, int adds)
{
    void *device = random_halves(count, 3);
    amp_half_bits *nothing = memset(malloc(count * sizeof *nothing), 0xff, count * sizeof *nothing);
    if (!adds) ASSERT_OK(CALL(upload, device, nothing, count * sizeof *nothing, e));
    free(nothing);
    return device;
}

static void fill_pool(amp_dtype dtype)
{
    uint32_t seed = 7;
    for (size_t i = 0; i < COUNT(pool); i++) set_number(dtype, pool, i, 2 * uniform(&seed) - 1);
}

/* ---- one convolution ---- */

static void try_pass(amp_conv_problem problem, amp_conv_pass pass, int adds)
{
    problem.pass = pass, problem.accumulate = adds;
    const amp_conv_desc *d = &problem.conv;
    const amp_shape to = amp_conv_output(d);
    const size_t taps = (size_t)d->size_h * (size_t)d->size_w, x = amp_shape_count(d->x),
        w = (size_t)d->k * (size_t)d->x.c * taps, y = amp_shape_count(to);
    const size_t terms = pass == AMP_CONV_FORWARD ? (size_t)d->x.c * taps
        : pass == AMP_CONV_BACKWARD_DATA ? (size_t)d->k * taps : y / (size_t)d->k;
    trial t = { .problem = problem, .buffers = { random_halves(x, 0), random_halves(w, 1),
                                                 random_halves(y, 2), NULL } };
    t.output = pass == AMP_CONV_FORWARD ? t.buffers.y : pass == AMP_CONV_BACKWARD_DATA ? t.buffers.x
        : t.buffers.w;
    t.count = pass == AMP_CONV_FORWARD ? y : pass == AMP_CONV_BACKWARD_DATA ? x : w;
    t.start = start_of(t.count, adds);
    t.usual = ldexp(sqrt((double)terms) / 3, -amp_cudnn_downscale(&problem));
    t.first = malloc(2 * t.count * sizeof *t.first);
    t.now = t.first + t.count;
    amp_conv_plans *plans = amp_cuda_of(backend)->plans;
    amp_conv_plan *plan;
    ASSERT_OK(amp_conv_plans_get(plans, &problem, &plan, e));
    ASSERT_OK(amp_conv_plans_tune(plans, plan, BEST_OF, compare, &t, e));
    free(t.first);
    void *const all[] = { t.buffers.x, t.buffers.w, t.buffers.y, t.start };
    for (size_t i = 0; i < COUNT(all); i++) backend->release(backend, all[i]);
}

static void try_convolution(amp_conv_problem problem)
{
    try_pass(problem, AMP_CONV_FORWARD, 0);
    try_pass(problem, AMP_CONV_BACKWARD_FILTER, 0);
    try_pass(problem, AMP_CONV_BACKWARD_DATA, 0);
    try_pass(problem, AMP_CONV_BACKWARD_DATA, 1);
}

static int least(int a, int b) { return a < b ? a : b; }

static void try_networks(amp_dtype dtype)
{
    char line[200];
    const int small = getenv("AMP_TEST_SMALL") != NULL;
    int tried = 0;
    FILE *file = fopen(shapes, "r");
    if (!file) fail_msg("cannot read %s", shapes);
    while ((!small || tried < 12) && fgets(line, sizeof line, file)) {
        amp_conv_desc d = { .x.n = BATCH, .dtype = dtype };
        if (sscanf(line, "%*s %d %d %d %d %d %d %d %d %d", &d.x.c, &d.x.h, &d.x.w, &d.k, &d.size_h,
                   &d.stride, &d.pad, &d.dilation, &d.groups) != 9 || d.groups != 1) continue;
        d.size_w = d.size_h, d.stride_x = d.stride;
        if (small) d.x.c = least(d.x.c, SMALL), d.x.h = d.x.w = least(d.x.h, SMALL), d.k = least(d.k, SMALL);
        try_convolution((amp_conv_problem){ .conv = d });
        tried++;
    }
    fclose(file);
    print_message("%s: %d convolutions of %s\n", amp_dtype_name(dtype), tried, shapes);
}

TEST(engines_agree)
{
    for (size_t d = 0; d < COUNT(halves); d++) {
        char note[256];
        if (backend->supports(backend, halves[d], note) == AMP_SUPPORT_NONE) continue;
        fill_pool(halves[d]);
        try_networks(halves[d]);
    }
    print_message("%d engines compared with the first, %d do not agree with it\n", compared, disagree);
    assert_true(compared > 0);
    assert_int_equal(disagree, 0);
}

static int run(void) { return run_listed_tests("engines", NULL, NULL); }

int main(int argc, char **argv)
{
    if (argc > 1) shapes = argv[1];
    return with_one_variant(run);
}
