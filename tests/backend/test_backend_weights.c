/* Compares copies of weights (weights_copy.c) byte for byte with those that oneDNN's own reorders make from
 * the masters, rounded to bf16 or unchanged; and tests sums of gradients (weights_add.c). */
#include "testing.h"

#include <math.h>
#include <omp.h>

#include "backend/cpu/weights_layout.h"
#include "backend/cpu/rows.h"

static void ok(dnnl_status_t status) { assert_int_equal(status, dnnl_success); }

static float number(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(int32_t)*state * 0x1p-33f;
}

static void *aligned(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_non_null(memory);
    memset(memory, 0xff, bytes); /* padding must be written too */
    return memory;
}

static void library_reorder(dnnl_engine_t engine, amp_const_md from, const void *source, amp_const_md to,
                            void *target)
{
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t reorder;
    dnnl_stream_t stream;
    dnnl_memory_t a, b;
    ok(dnnl_reorder_primitive_desc_create(&pd, from, engine, to, engine, NULL));
    ok(dnnl_primitive_create(&reorder, pd));
    ok(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
    ok(dnnl_memory_create(&a, from, engine, (void *)(uintptr_t)source));
    ok(dnnl_memory_create(&b, to, engine, target));
    dnnl_exec_arg_t arguments[] = { { DNNL_ARG_FROM, a }, { DNNL_ARG_TO, b } };
    ok(dnnl_primitive_execute(reorder, stream, 2, arguments));
    ok(dnnl_stream_wait(stream));
    dnnl_memory_destroy(a);
    dnnl_memory_destroy(b);
    dnnl_stream_destroy(stream);
    dnnl_primitive_destroy(reorder);
    dnnl_primitive_desc_destroy(pd);
}

/* One shape in two layouts, in one pass. */
static void check(dnnl_engine_t engine, const dnnl_dims_t dims, dnnl_data_type_t type,
                  dnnl_format_tag_t first, dnnl_format_tag_t second)
{
    size_t count = (size_t)(dims[0] * dims[1] * dims[2] * dims[3]);
    float *masters = malloc(count * sizeof *masters);
    amp_half_bits *rounded = malloc(count * sizeof *rounded);
    void *copies[2], *wanted[2];
    uint32_t state = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        masters[i] = i % 97 == 5 ? INFINITY : i % 89 == 7 ? NAN : number(&state);
        rounded[i] = amp_float_to_bf16(masters[i]);
    }
    amp_md plain, blocked[2];
    amp_weights_layout layouts[2];
    size_t bytes[2];
    dnnl_format_tag_t tags[2] = { first, second };
    ok(amp_md_create(&plain, 4, dims, type, dnnl_abcd));
    for (int i = 0; i < 2; i++) {
        ok(amp_md_create(&blocked[i], 4, dims, type, tags[i]));
        layouts[i] = amp_weights_layout_of(blocked[i]);
        assert_int_not_equal(layouts[i].order, AMP_WEIGHTS_UNKNOWN);
        bytes[i] = dnnl_memory_desc_get_size(blocked[i]);
        copies[i] = aligned(bytes[i]);
        wanted[i] = aligned(bytes[i]);
        library_reorder(engine, plain, type == dnnl_f32 ? (const void *)masters : rounded, blocked[i],
                        wanted[i]);
    }
    size_t places = (size_t)(dims[2] * dims[3]);
    void *scratch = aligned(amp_weights_scratch(layouts, places));
    amp_weights_copy(masters, (size_t)dims[0], (size_t)dims[1], places,
                     (amp_weights_target){ &layouts[0], copies[0] },
                     (amp_weights_target){ &layouts[1], copies[1] }, scratch);
    for (int i = 0; i < 2; i++) assert_memory_equal(copies[i], wanted[i], bytes[i]);
    memset(copies[1], 0xff, bytes[1]); /* and each separately */
    amp_weights_copy(masters, (size_t)dims[0], (size_t)dims[1], places, (amp_weights_target){ NULL, NULL },
                     (amp_weights_target){ &layouts[1], copies[1] }, scratch);
    assert_memory_equal(copies[1], wanted[1], bytes[1]);
    for (int i = 0; i < 2; i++) {
        amp_md_destroy(blocked[i]);
        free(copies[i]);
        free(wanted[i]);
    }
    amp_md_destroy(plain);
    free(scratch);
    free(rounded);
    free(masters);
}

static void check_copies(dnnl_engine_t engine, const dnnl_dims_t dims, size_t shape)
{
    static const dnnl_format_tag_t tags[] = { dnnl_AcdB16a2b, dnnl_AcdB32a2b, dnnl_AcdB48a2b, dnnl_AcdB64a2b,
        dnnl_ABcd8b16a2b, dnnl_ABcd8a16b2a, dnnl_BAcd8a16b2a };
    static const dnnl_format_tag_t float_tags[] = { dnnl_Acdb16a, dnnl_Acdb32a, dnnl_Acdb48a, dnnl_Acdb64a,
        dnnl_ABcd16a16b, dnnl_BAcd16a16b,
#if DNNL_VERSION_MAJOR >= 3
        dnnl_Bcda16b, dnnl_Bcda32b, dnnl_Bcda48b, dnnl_Bcda64b,
#endif
    };
    for (size_t t = 0; t < COUNT(tags); t++)
        check(engine, dims, dnnl_bf16, tags[t], tags[(t + shape) % COUNT(tags)]);
    for (size_t t = 0; t < COUNT(float_tags); t++)
        check(engine, dims, dnnl_f32, float_tags[t], float_tags[(t + shape) % COUNT(float_tags)]);
}

TEST(other_layouts_are_left_to_the_library)
{
    static const dnnl_dims_t dims = { 32, 32, 3, 3 }, groups = { 2, 32, 32, 3, 3 };
    static const dnnl_format_tag_t tags[] = { dnnl_abcd, dnnl_acdb, dnnl_ABcd16b16a, dnnl_ABcd16a16b2a,
                                              dnnl_AcdB16b16a2b };
    amp_md md;
    for (size_t t = 0; t < COUNT(tags); t++) {
        ok(amp_md_create(&md, 4, dims, dnnl_bf16, tags[t]));
        assert_int_equal(amp_weights_layout_of(md).order, AMP_WEIGHTS_UNKNOWN);
        amp_md_destroy(md);
    }
    static const dnnl_format_tag_t float_tags[] = { dnnl_AcdB16a2b, dnnl_ABcd16b16a, dnnl_Acdb8a,
                                                    dnnl_ABcd8a8b };
    for (size_t t = 0; t < COUNT(float_tags); t++) {
        ok(amp_md_create(&md, 4, dims, dnnl_f32, float_tags[t]));
        assert_int_equal(amp_weights_layout_of(md).order, AMP_WEIGHTS_UNKNOWN);
        amp_md_destroy(md);
    }
    ok(amp_md_create(&md, 4, dims, dnnl_bf16, dnnl_Acdb16a));
    assert_int_equal(amp_weights_layout_of(md).order, AMP_WEIGHTS_UNKNOWN);
    amp_md_destroy(md);
    ok(amp_md_create(&md, 5, groups, dnnl_bf16, dnnl_abcde));
    assert_int_equal(amp_weights_layout_of(md).order, AMP_WEIGHTS_UNKNOWN);
    amp_md_destroy(md);
}

/* Adds a gradient that the library has put into its layout to numbers in Darknet's. */
static void check_sum(dnnl_engine_t engine, const dnnl_dims_t dims, dnnl_format_tag_t tag)
{
    size_t count = (size_t)(dims[0] * dims[1] * dims[2] * dims[3]), places = (size_t)(dims[2] * dims[3]);
    float *gradient = malloc(count * sizeof *gradient), *sum = malloc(count * sizeof *sum);
    float *wanted = malloc(count * sizeof *wanted);
    uint32_t state = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        gradient[i] = i % 97 == 5 ? INFINITY : number(&state);
        sum[i] = number(&state);
        wanted[i] = sum[i] + gradient[i];
    }
    amp_md plain, blocked;
    ok(amp_md_create(&plain, 4, dims, dnnl_f32, dnnl_abcd));
    ok(amp_md_create(&blocked, 4, dims, dnnl_f32, tag));
    void *in_blocks = aligned(dnnl_memory_desc_get_size(blocked));
    library_reorder(engine, plain, gradient, blocked, in_blocks);
    size_t block = amp_weights_squares(blocked);
    assert_int_equal(block, tag == dnnl_ABcd8b8a ? 8 : 16);
    void *scratch = aligned(amp_weights_add_scratch(block, places));
    amp_weights_add(in_blocks, block, (size_t)dims[0], (size_t)dims[1], places, sum, scratch);
    assert_memory_equal(sum, wanted, count * sizeof *sum);
    amp_md_destroy(blocked);
    amp_md_destroy(plain);
    free(scratch);
    free(in_blocks);
    free(wanted);
    free(sum);
    free(gradient);
}

static void check_sums(dnnl_engine_t engine, const dnnl_dims_t dims, size_t shape)
{
    (void)shape;
    check_sum(engine, dims, dnnl_ABcd16b16a);
    check_sum(engine, dims, dnnl_ABcd8b8a);
}

/* Shapes around blocks of 16 and 64, of one channel, of more channels than a tile has, and windows of 1, 9,
 * 25, 3 and 2·3; with one thread and with three. */
static void on_each_shape(void (*check_shape)(dnnl_engine_t engine, const dnnl_dims_t dims, size_t shape))
{
    static const dnnl_dims_t shapes[] = { { 16, 16, 3, 3 }, { 64, 32, 3, 3 }, { 64, 300, 3, 3 },
        { 255, 128, 1, 1 }, { 33, 3, 3, 3 }, { 1, 1, 1, 1 }, { 70, 17, 5, 5 }, { 100, 1100, 1, 1 },
        { 18, 40, 2, 3 }, { 5, 4100, 1, 1 }, { 20, 31, 1, 7 }, { 130, 66, 3, 1 } };
    dnnl_engine_t engine;
    ok(dnnl_engine_create(&engine, dnnl_cpu, 0));
    for (int threads = 1; threads <= 3; threads += 2) {
        omp_set_num_threads(threads);
        for (size_t s = 0; s < COUNT(shapes); s++) check_shape(engine, shapes[s], s);
    }
    dnnl_engine_destroy(engine);
}

TEST(copies_equal_the_librarys) { on_each_shape(check_copies); }
TEST(gradients_are_added) { on_each_shape(check_sums); }

TEST(gradients_in_other_layouts_are_left_to_the_library)
{
    static const dnnl_dims_t dims = { 32, 32, 3, 3 };
    static const struct { dnnl_data_type_t type; dnnl_format_tag_t tag; } others[] = {
        { dnnl_f32, dnnl_abcd }, { dnnl_f32, dnnl_ABcd16a16b }, { dnnl_f32, dnnl_Acdb16a },
        { dnnl_f32, dnnl_BAcd16b16a }, { dnnl_bf16, dnnl_ABcd16b16a } };
    for (size_t i = 0; i < COUNT(others); i++) {
        amp_md md;
        ok(amp_md_create(&md, 4, dims, others[i].type, others[i].tag));
        assert_int_equal(amp_weights_squares(md), 0);
        amp_md_destroy(md);
    }
}

/* The tables of inner loops that this machine can run. */
static int rows_of_this_machine(const amp_cpu_rows *out[3])
{
    const amp_cpu_rows *all[3] = { amp_cpu_rows_base(), amp_cpu_rows_avx2(), amp_cpu_rows_avx512() };
    int count = 0;
    for (int i = 0; i <= (int)amp_cpu_widest(); i++) if (all[i]) out[count++] = all[i];
    return count;
}

/* All instruction sets give the results of plain C. */
TEST(loops_agree_across_instruction_sets)
{
    const amp_cpu_rows *sets[3];
    int count = rows_of_this_machine(sets);
    uint32_t seed = 9;
    float even[100], odd[100], want[100], got[100];
    for (int i = 0; i < 100; i++) {
        even[i] = i == 50 ? NAN : number(&seed);
        odd[i] = i == 51 ? -INFINITY : number(&seed) * 0x1p-120f;
    }
    amp_half_bits *zipped = aligned(32 * 6 * sizeof *zipped), *expected = aligned(32 * 6 * sizeof *expected);
    for (int s = 1; s < count; s++) {
        for (size_t n = 0; n <= 100; n++) {
            memset(want, 0x55, sizeof want);
            memset(got, 0x55, sizeof got);
            sets[0]->pair_bf16(even, odd, want, n);
            sets[s]->pair_bf16(even, odd, got, n);
            assert_memory_equal(got, want, sizeof want);
        }
        float *lines = aligned(3 * 32 * sizeof *lines);
        sets[s]->lines(even, 20, lines, 32, 3);
        for (int i = 0; i < 3; i++) assert_memory_equal(lines + 32 * i, even + 20 * i, 16 * sizeof *lines);
        free(lines);
        sets[0]->zip(even, odd, 16, expected, 64, 3);
        sets[s]->zip(even, odd, 16, zipped, 64, 3);
        assert_memory_equal(zipped, expected, 32 * 6 * sizeof *zipped);
    }
    free(zipped);
    free(expected);
}

int main(void) { return run_listed_tests("tests", NULL, NULL); }
