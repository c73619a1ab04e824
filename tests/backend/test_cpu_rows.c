/* Guarantees of the CPU backend alone. */
#include "kernel_cases.h"

#include <oneapi/dnnl/dnnl.h>

#include "backend/cpu/kernels.h"
#include "backend/cpu/onednn.h"
#include "backend/cpu/rows.h"

/* kernels.h: they keep no state, and need no backend. */
TEST(kernels_work_without_a_backend)
{
    amp_error error = { AMP_OK, "" };
    amp_tensor x = filled(AMP_FP16, 1, 3, 5, 7, 1, -1, 1), y = poisoned(AMP_FP16, 1, 3, 5, 7);
    assert_int_equal(amp_cpu_activation_forward(NULL, &x, &y, AMP_LINEAR, &error), AMP_OK);
    assert_memory_equal(x.data, y.data, amp_tensor_bytes(&x));
    release(x.data); release(y.data);
}

/* Replaces oneDNN's function (--wrap): counts how often the processor is queried. */
static int questions;
dnnl_cpu_isa_t __real_dnnl_get_effective_cpu_isa(void);
dnnl_cpu_isa_t __wrap_dnnl_get_effective_cpu_isa(void)
{
    ++questions;
    return __real_dnnl_get_effective_cpu_isa();
}

/* Every kernel call chooses a table. CPUID on each call would take about 30 microseconds in a virtual
 * machine. */
TEST(the_processor_is_asked_once)
{
    assert_non_null(amp_cpu_rows_best());
    questions = 0;
    for (int i = 0; i < 100; i++) assert_ptr_equal(amp_cpu_rows_best(), amp_cpu_rows_best());
    assert_int_equal(questions, 0);
}

/* One variable, DNNL_MAX_CPU_ISA, limits both the library and these loops. CTest also runs this program with
 * AVX2. */
TEST(loops_are_no_wider_than_the_library_may_use)
{
    const char *cap = getenv("DNNL_MAX_CPU_ISA");
    assert_true(amp_cpu_widest() <= amp_onednn_width());
    if (!cap || strcmp(cap, "AVX2")) return;
    assert_true(amp_cpu_widest() <= AMP_CPU_AVX2);
    assert_string_not_equal(amp_cpu_rows_best()->name, "avx512");
}

int main(void) { return for_each_variant(run_listed); }
