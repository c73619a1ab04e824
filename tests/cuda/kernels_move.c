/* Kernels of the CUDA backend that its list of operations does not name: convolutions and connected layers
 * call them. And tensors at addresses that 16-byte accesses do not take, for all that move elements. */
#include "kernel_cases.h"

#include "backend/cuda/kernels.h"
#ifndef ON_DEVICE /* a real one does not count, nor fail when told to */
#include "cuda_doubles.h"
#endif

/* k, c, size_h, size_w: 1×1, the usual 3×3, depthwise, 7×7 on 3 channels, many tiles, more
 * filters than blocks. */
static const int filters[][4] = { { 1, 1, 1, 1 }, { 5, 7, 1, 1 }, { 4, 16, 3, 3 }, { 6, 1, 3, 3 },
    { 3, 3, 7, 7 }, { 2, 1030, 3, 3 }, { 2, 77, 5, 3 }, { 1, 24, 13, 13 }, { 2, 9, 2, 40 },
    { 300, 2, 1, 2 } };

static size_t oihw(const int *f, int k, int c, int tap) { return ((size_t)k * f[1] + c) * f[2] * f[3] + tap; }
static size_t krsc(const int *f, int k, int c, int tap) { return ((size_t)k * f[2] * f[3] + tap) * f[1] + c; }

/* As many numbers, and one before them that shifts their address. */
typedef struct shifted { amp_tensor all, part; } shifted;

static shifted shifted_tensor(amp_dtype dtype, int n, int h, int w, int c, int shift, uint32_t seed)
{
    shifted s = { filled(dtype, 1, 1, 1, n * h * w * c + shift, seed, -1, 1),
                  { NULL, dtype, AMP_NHWC, { n, c, h, w } } };
    s.part.data = (char *)s.all.data + shift * amp_dtype_size(dtype);
    return s;
}

TEST(weights_become_krsc_and_their_gradient_is_added_back)
{
    for (size_t d = 0; d < 3; d++)
        for (size_t i = 0; i < COUNT(filters); i++)
            for (int shift = 0; shift < 2; shift++) {
                const int *f = filters[i];
                int k = f[0], c = f[1], taps = f[2] * f[3], count = k * c * taps;
                amp_dtype dtype = all_dtypes[d];
                shifted masters = shifted_tensor(AMP_FP32, k, f[2], f[3], c, shift, 3), sum = masters;
                shifted copy = shifted_tensor(dtype, k, f[2], f[3], c, shift, 4);
                sum.all = copy_of(&masters.all);
                sum.part.data = (float *)sum.all.data + shift;
                memset(copy.all.data, 0xff, amp_tensor_bytes(&copy.all));
                float *oihw_masters = masters.part.data, *oihw_sum = sum.part.data;
                const amp_cuda_weights one = { oihw_masters, copy.part.data, dtype, k, c, f[2], f[3] };
                ASSERT_OK(amp_cuda_weights_to_krsc(backend, &amp_cuda_of(backend)->weights, &one, 1, e));
                ASSERT_OK(amp_cuda_gradient_from_krsc(backend, copy.part.data, dtype, 8, oihw_sum, k, c, f[2],
                                                      f[3], e));
                amp_tensor once = poisoned(dtype, 1, 1, 1, 1); /* a master in the copy's dtype */
                for (int at = 0; at < count; at++) {
                    int filter = at / (c * taps), channel = at / taps % c, tap = at % taps;
                    size_t from = oihw(f, filter, channel, tap), to = krsc(f, filter, channel, tap);
                    float w = (float)element(&masters.part, from);
                    set_element(&once, 0, w);
                    if (element(&copy.part, to) != element(&once, 0) ||
                        (float)element(&sum.part, from) != w + 8 * (float)element(&once, 0))
                        fail_msg("%d,%d,%dx%d in %s: filter %d, channel %d, tap %d: %.9g became %.9g "
                            "and %.9g", k, c, f[2], f[3], amp_dtype_name(dtype), filter, channel, tap, w,
                            element(&copy.part, to), element(&sum.part, from));
                }
                if (shift) assert_true(isnan(element(&copy.all, 0)));
                release(masters.all.data); release(sum.all.data); release(copy.all.data); release(once.data);
            }
}

/* Every filter, dtype and address in one list, and one that has nothing. */
TEST(the_weights_of_a_network_take_one_launch)
{
    enum { KINDS = COUNT(filters), ALL = 6 * KINDS };
    amp_cuda_weights all[ALL + 1], one;
    shifted masters[ALL], copies[ALL];
    for (int i = 0; i < ALL; i++) {
        const int *f = filters[i % KINDS], shift = i / KINDS % 2;
        amp_dtype dtype = all_dtypes[i / KINDS / 2];
        masters[i] = shifted_tensor(AMP_FP32, f[0], f[2], f[3], f[1], shift, 30u + (uint32_t)i);
        copies[i] = shifted_tensor(dtype, f[0], f[2], f[3], f[1], shift, 4);
        memset(copies[i].all.data, 0xff, amp_tensor_bytes(&copies[i].all));
        all[i] = (amp_cuda_weights){ masters[i].part.data, copies[i].part.data, dtype, f[0], f[1],
                                     f[2], f[3] };
    }
    all[ALL] = (amp_cuda_weights){ NULL, NULL, AMP_FP16, 0, 3, 3, 3 };
    for (int again = 0; again < 2; again++) { /* the second time the list is known */
#ifndef ON_DEVICE
        long before = amp_cuda_launches();
        if (again) amp_cuda_fail_call("cudaMemcpyAsync", 1, cudaErrorUnknown);
#endif
        ASSERT_OK(amp_cuda_weights_to_krsc(backend, &amp_cuda_of(backend)->weights, all, ALL + 1, e));
#ifndef ON_DEVICE
        amp_cuda_fail_call("cudaMemcpyAsync", 0, cudaSuccess);
        assert_int_equal(amp_cuda_launches() - before, 1);
#endif
    }
    for (int i = 0; i < ALL; i++) {
        amp_tensor together = copy_of(&copies[i].all);
        memset(copies[i].all.data, 0xff, amp_tensor_bytes(&copies[i].all));
        one = all[i];
        ASSERT_OK(amp_cuda_weights_to_krsc(backend, &amp_cuda_of(backend)->weights, &one, 1, e));
        assert_memory_equal(copies[i].all.data, together.data, amp_tensor_bytes(&together));
        release(together.data); release(copies[i].all.data); release(masters[i].all.data);
    }
}

TEST(bias_is_added_to_each_pixel)
{
    static const int sizes[][4] = { { 1, 1, 1, 1 }, { 2, 13, 11, 255 }, { 3, 4, 5, 16 }, { 1, 1, 1, 1003 },
        { 1, 37, 3, 4104 } };
    for (size_t d = 0; d < 3; d++)
        for (size_t i = 0; i < COUNT(sizes); i++)
            for (int shift = 0; shift < 2; shift++) {
                const int *z = sizes[i];
                shifted y = shifted_tensor(all_dtypes[d], z[0], z[1], z[2], z[3], shift, 5);
                amp_tensor old = copy_of(&y.all);
                float *bias = filled_array((size_t)z[3], 6, -2, 2);
                ASSERT_OK(amp_cuda_add_bias(backend, &y.part, bias, e));
                for (size_t k = 0; k < amp_shape_count(y.all.shape); k++) {
                    size_t at = k - (size_t)shift;
                    double want = element(&old, k) +
                        (k < (size_t)shift ? 0 : (double)bias[at % (size_t)z[3]]);
                    assert_rounded(all_dtypes[d], element(&y.all, k), want, 0x1p-23, "y", k);
                }
                release(y.all.data); release(old.data); release(bias);
            }
}

enum { IMAGES = 2, HEIGHT = 12, WIDTH = 8, CHANNELS = 48, IMAGE = HEIGHT * WIDTH * CHANNELS, OPERATIONS = 14,
       HALVES = 5, POOL = 12 };

/* The operations whose y, or else whose x, is half as high and wide as the others. */
static int halves(int which) { return which == HALVES || which == HALVES + 1 || which == POOL; }

static amp_status operate(int which, const amp_tensor *x, const amp_tensor *other, const amp_tensor *small,
                          const amp_tensor *y, uint8_t *keep, const int32_t *map, amp_error *e)
{
    switch (which) {
    case 0: return amp_cuda_activation_forward(backend, x, y, AMP_LOGISTIC, e);
    case 1: return amp_cuda_activation_backward(backend, x, other, y, AMP_TANH, 1, e);
    case 2: return amp_cuda_shortcut_forward(backend, x, other, y, .5f, 2, AMP_LEAKY, e);
    case 3: return amp_cuda_channels(backend, x, 8, y, 0, 16, .3f, 1, e);
    case 4: return amp_cuda_channels(backend, x, 16, y, 0, 8, 1, 0, e);
    case HALVES: return amp_cuda_upsample_backward(backend, x, y, 2, .7f, 1, e);
    case HALVES + 1: return amp_cuda_channels(backend, small, 0, y, 8, 16, .3f, 1, e);
    case 7: return amp_cuda_upsample_forward(backend, small, y, 2, .7f, e);
    case 8: return amp_cuda_gather(backend, x, y, map, 0, e);
    case 9: return amp_cuda_gather(backend, x, y, map, 1, e);
    case 10: return amp_cuda_shortcut_forward(backend, x, small, y, .5f, 2, AMP_TANH, e);
    case 11: return amp_cuda_shortcut_backward(backend, small, y, .3f, 1, e);
    case POOL: return amp_cuda_maxpool_forward(backend, x, y, keep, 2, 2, 0, e);
    case POOL + 1: return amp_cuda_maxpool_backward(backend, small, keep, y, 2, 2, 0, 1, e);
    default: return amp_cuda_dropout(backend, x, y, keep, 1.5f, 1, e);
    }
}

/* What lies one element further in memory than it might. */
enum { X = 1, OTHER = 2, SMALL = 4, Y = 8, KEEP = 16, MAP = 32, ALL = 63 };

/* One element further in memory, for a single tensor or for all, and from a grid too small for the work, the
 * same numbers must come out, and what lies before stays. */
TEST(addresses_of_any_alignment_give_the_same_numbers)
{
    static const int further[] = { 0, ALL, X, OTHER, SMALL, Y, KEEP, MAP };
    uint8_t *keep = memory(IMAGES * IMAGE + 1);
    int32_t *map = memory((IMAGE + 1) * sizeof *map);
    for (size_t d = 0; d < 3; d++)
        for (int which = 0; which <= OPERATIONS; which++) {
            amp_tensor aligned = { 0 };
            for (size_t k = 0; k < COUNT(further); k++) {
                int shift = further[k], part = halves(which) ? 2 : 1;
                amp_dtype dtype = all_dtypes[d];
                shifted x = shifted_tensor(dtype, IMAGES, HEIGHT, WIDTH, CHANNELS, !!(shift & X), 1);
                shifted other = shifted_tensor(dtype, IMAGES, HEIGHT, WIDTH, CHANNELS, !!(shift & OTHER), 1);
                shifted small = shifted_tensor(dtype, IMAGES, HEIGHT / 2, WIDTH / 2, CHANNELS,
                                               !!(shift & SMALL), 1);
                shifted y = shifted_tensor(dtype, IMAGES, HEIGHT / part, WIDTH / part, CHANNELS,
                                           !!(shift & Y), 4);
                uint8_t *kept = keep + !!(shift & KEEP);
                int32_t *entries = map + !!(shift & MAP);
                fill(&x.part, 1, -2, 2), fill(&other.part, 2, -2, 2), fill(&small.part, 3, -2, 2),
                    fill(&y.part, 4, -2, 2);
                for (int i = 0; i < IMAGES * IMAGE; i++) kept[i] = (uint8_t)(i * 7 / 3 & 1);
                for (int i = 0; i < IMAGE; i++) entries[i] = (i * 5 + 1) % IMAGE;
                double before = element(&y.all, 0);
                machine.set_processors(backend, shift ? 1 : 0);
                ASSERT_OK(operate(which, &x.part, &other.part, &small.part, &y.part, kept, entries, e));
                if (!shift) aligned = copy_of(&y.part);
                else assert_memory_equal(y.part.data, aligned.data, amp_tensor_bytes(&aligned));
                if (shift & Y) assert_true(element(&y.all, 0) == before);
                release(x.all.data); release(other.all.data); release(small.all.data); release(y.all.data);
            }
            release(aligned.data);
        }
    machine.set_processors(backend, 0);
    release(keep); release(map);
}

static int run(void) { return run_listed_tests(variant, NULL, NULL); }
int main(void) { return for_each_variant(run); }
