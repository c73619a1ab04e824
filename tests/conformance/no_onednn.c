/* In oneDNN's place, for a program that runs the CPU backend's own kernels without the library
 * (e2e/openmp_races.sh): there are no convolutions. */
#include "backend/cpu/onednn.h"

#include <stdio.h>
#include <string.h>

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

amp_support amp_cpu_supports(const amp_backend *b, amp_dtype dtype, char note[256])
{
    (void)b, (void)dtype;
    note[0] = 0;
    return AMP_SUPPORT_STORAGE;
}

static amp_status none(amp_error *error)
{
    return amp_fail(error, AMP_UNSUPPORTED, "there is no oneDNN in this program");
}

amp_status amp_cpu_conv_create(amp_backend *b, const amp_conv_desc *d, amp_conv **out, amp_error *error)
{
    (void)b, (void)d;
    *out = NULL;
    return none(error);
}

void amp_cpu_conv_destroy(amp_backend *b, amp_conv *c) { (void)b, (void)c; }
void amp_cpu_conv_drop_weights(amp_backend *b, amp_conv *c) { (void)b, (void)c; }

amp_status amp_cpu_conv_load_weights(amp_backend *b, const amp_conv_weights *all, int count, int *failed,
                                     amp_error *error)
{
    (void)b, (void)all, (void)count;
    *failed = -1;
    return none(error);
}

amp_status amp_cpu_conv_forward(amp_backend *b, amp_conv *c, const void *x, const float *bias, void *y,
                                amp_error *error)
{
    (void)b, (void)c, (void)x, (void)bias, (void)y;
    return none(error);
}

amp_status amp_cpu_conv_backward_data(amp_backend *b, amp_conv *c, const void *dy, void *dx, int accumulate,
                                      amp_error *error)
{
    (void)b, (void)c, (void)dy, (void)dx, (void)accumulate;
    return none(error);
}

amp_status amp_cpu_conv_backward_weights(amp_backend *b, amp_conv *c, const void *x, const void *dy,
                                         float *dw, amp_error *error)
{
    (void)b, (void)c, (void)x, (void)dy, (void)dw;
    return none(error);
}

void amp_cpu_conv_facts(const amp_backend *b, const amp_conv *c, amp_conv_facts *out)
{
    (void)b, (void)c;
    *out = (amp_conv_facts){ 0 };
}

amp_status amp_cpu_gemm(amp_backend *b, const amp_gemm_desc *d, amp_error *error)
{
    (void)b, (void)d;
    return none(error);
}

void amp_cpu_gemm_drop_copies(amp_backend *b) { (void)b; }
void amp_cpu_products_free(amp_cpu_products *p, amp_backend *b) { (void)p, (void)b; }

amp_dtype amp_cpu_gemm_computes(const amp_backend *b, amp_dtype dtype)
{
    (void)b, (void)dtype;
    return AMP_FP32;
}
