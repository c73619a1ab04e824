/* The 16-bit conversions beneath all kernels of the CPU backend, for each instruction set, against tensor/half.h; and what
 * only this backend promises. */
#include "kernel_cases.h"

#include <oneapi/dnnl/dnnl.h>

#include "backend/cpu/convert.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/onednn.h"
#include "backend/cpu/rows.h"

TEST(conversions_equal_half_h_bit_for_bit)
{
    enum { BATCH = 4099 }; /* odd: the tails are tested as well */
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    static float floats[BATCH];
    static amp_half_bits halves[BATCH];
    for (int d = 1; d < 3; ++d) {
        for (uint32_t first = 0; first < 65536; first += BATCH) {
            for (int i = 0; i < BATCH; ++i) halves[i] = (amp_half_bits)(first + (uint32_t)i);
            rows->widen(all_dtypes[d], halves, floats, BATCH);
            for (int i = 0; i < BATCH; ++i) {
                float want = d == 1 ? amp_fp16_to_float(halves[i]) : amp_bf16_to_float(halves[i]);
                assert_int_equal(amp_float_bits(floats[i]), amp_float_bits(want));
            }
        }
        /* steps of a prime through all 2^32 floats, then all neighbours of fp16's and bf16's ties */
        for (uint64_t from = 0; from < (1ull << 32) + (1ull << 21); from += 1021ull * BATCH) {
            for (uint32_t i = 0; i < BATCH; ++i) {
                uint64_t at = from + 1021ull * i;
                uint32_t bits = (uint32_t)at;
                if (at >> 32) bits = ((uint32_t)(at / 5) << 12) + (uint32_t)(at % 5) - 2;
                floats[i] = amp_bits_float(bits);
            }
            rows->narrow(all_dtypes[d], floats, halves, BATCH);
            for (int i = 0; i < BATCH; ++i) {
                amp_half_bits want = d == 1 ? amp_float_to_fp16(floats[i]) : amp_float_to_bf16(floats[i]);
                assert_int_equal(halves[i], want);
            }
        }
    }
}

/* kernels.h: they keep no state, and need no backend. */
TEST(kernels_work_without_a_backend)
{
    amp_error error = { AMP_OK, "" };
    amp_tensor x = filled(AMP_FP16, 1, 3, 5, 7, 1, -1, 1), y = poisoned(AMP_FP16, 1, 3, 5, 7);
    assert_int_equal(amp_cpu_activation_forward(NULL, &x, &y, AMP_LINEAR, &error), AMP_OK);
    assert_memory_equal(x.data, y.data, amp_tensor_bytes(&x));
    release(x.data); release(y.data);
}

TEST(the_backend_says_what_it_is)
{
    char note[256];
    print_message("%s\n", backend->description);
    assert_string_equal(backend->name, "cpu");
    assert_non_null(strstr(backend->description, "oneDNN"));
    assert_int_equal(backend->supports(backend, AMP_FP32, note), AMP_SUPPORT_NATIVE);
    assert_int_equal(strlen(note), 0);
    for (size_t t = 1; t < COUNT(all_dtypes); ++t) {
        amp_support support = backend->supports(backend, all_dtypes[t], note);
        print_message("%s: %d %s\n", amp_dtype_name(all_dtypes[t]), support, note);
        if (support == AMP_SUPPORT_NATIVE) assert_int_equal(strlen(note), 0);
        else assert_non_null(strstr(note, support == AMP_SUPPORT_NONE ? "dtype=fp32" : "in fp32"));
    }
}

/* In oneDNN's place (--wrap): how often the processor is asked. */
static int questions;
dnnl_cpu_isa_t __real_dnnl_get_effective_cpu_isa(void);
dnnl_cpu_isa_t __wrap_dnnl_get_effective_cpu_isa(void)
{
    ++questions;
    return __real_dnnl_get_effective_cpu_isa();
}

/* Every call of a kernel chooses. CPUID, asked each time, takes some 30 microseconds in a virtual machine. */
TEST(the_processor_is_asked_once)
{
    assert_non_null(amp_best_converters());
    questions = 0;
    for (int i = 0; i < 100; ++i) assert_ptr_equal(amp_best_converters(), amp_best_converters());
    for (int i = 0; i < 100; ++i) assert_ptr_equal(amp_cpu_rows_best(), amp_cpu_rows_best());
    assert_int_equal(questions, 0);
}

/* One variable, DNNL_MAX_CPU_ISA, caps the library and these loops. CTest runs this program with AVX2 as well. */
TEST(loops_are_no_wider_than_the_library_may_use)
{
    const amp_converters *const *sets;
    const char *cap = getenv("DNNL_MAX_CPU_ISA");
    int count = amp_converter_sets(&sets);
    assert_true(count <= 1 + (int)amp_onednn_width());
    if (!cap || strcmp(cap, "AVX2")) return;
    assert_true(count <= 2);
    assert_string_not_equal(amp_cpu_rows_best()->name, "avx512");
}

static int run(void) { return run_listed_tests(variant, NULL, NULL); }
int main(void) { return for_each_variant(run); }
