/* In oneDNN's place, for a program that runs the CPU backend's own kernels without the library
 * (e2e/openmp_races.sh). The operations over oneDNN, convolutions and products, stay unresolved: their
 * entries in the backend's table are NULL. */
#include "backend/cpu/onednn.h"

#include <stdio.h>

amp_status amp_onednn_create(amp_onednn **out, amp_error *error)
{
    (void)error;
    *out = NULL;
    return AMP_OK;
}

void amp_onednn_destroy(amp_onednn *library) { (void)library; }
void amp_onednn_describe(char *text, size_t size) { snprintf(text, size, "without oneDNN"); }
amp_cpu_width amp_onednn_width(void) { return AMP_CPU_AVX512; }
int amp_onednn_has_amx(void) { return 0; }
void amp_onednn_choose_halves(amp_onednn *library) { (void)library; }
void amp_cpu_products_free(amp_cpu_products *products, amp_backend *b) { (void)products, (void)b; }

amp_support amp_cpu_supports(const amp_backend *b, amp_dtype dtype, char note[256])
{
    (void)b, (void)dtype;
    note[0] = 0;
    return AMP_SUPPORT_STORAGE;
}
