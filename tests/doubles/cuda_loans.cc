/* The backend gives operations memory from blocks that are larger than what was asked for, so that a request
 * which is too small would still find room. Here each request gets its bytes and no more: all programs over
 * the doubles are linked with --wrap of these functions. */
#include "backend/cuda/state.h"
#include "cuda_doubles.h"

static amp_status lend(amp_status status, void *owner, void *const *block, size_t bytes)
{
    if (status == AMP_OK && *block) amp_cuda_lend(((amp_cuda_backend *)owner)->stream, *block, bytes);
    return status;
}

extern "C" {

amp_status __real_amp_cuda_scratch(amp_backend *, size_t, void **, amp_error *) __attribute__((weak));
amp_status __real_amp_cuda_reserve(void *, size_t, void **, amp_error *) __attribute__((weak));
amp_status __real_amp_cuda_allocate(amp_backend *, size_t, void **, amp_error *) __attribute__((weak));
amp_status __real_amp_cuda_malloc(amp_backend *, size_t, const char *, void **, amp_error *)
    __attribute__((weak));
amp_status __real_amp_cuda_spare_get(amp_backend *, size_t, const char *, void **, amp_error *)
    __attribute__((weak));

amp_status __wrap_amp_cuda_scratch(amp_backend *b, size_t bytes, void **out, amp_error *error)
{
    return lend(__real_amp_cuda_scratch(b, bytes, out, error), b, out, bytes);
}

amp_status __wrap_amp_cuda_reserve(void *b, size_t bytes, void **out, amp_error *error)
{
    return lend(__real_amp_cuda_reserve(b, bytes, out, error), b, out, bytes);
}

amp_status __wrap_amp_cuda_allocate(amp_backend *b, size_t bytes, void **out, amp_error *error)
{
    return lend(__real_amp_cuda_allocate(b, bytes, out, error), b, out, bytes);
}

amp_status __wrap_amp_cuda_malloc(amp_backend *b, size_t bytes, const char *what, void **out,
                                  amp_error *error)
{
    return lend(__real_amp_cuda_malloc(b, bytes, what, out, error), b, out, bytes);
}

amp_status __wrap_amp_cuda_spare_get(amp_backend *b, size_t bytes, const char *what, void **out,
                                     amp_error *error)
{
    return lend(__real_amp_cuda_spare_get(b, bytes, what, out, error), b, out, bytes);
}

}
