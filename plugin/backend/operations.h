/* Lists the operations of backend.h by name, so that a backend can declare its functions and fill its table
 * without repeating their signatures. Each operation is a function amp_<backend>_<operation>. */
#pragma once

#ifdef __cplusplus
#include <type_traits>
/* The type of an operation's function. */
#define AMP_BACKEND_FUNCTION(operation) std::remove_pointer<decltype(amp_backend::operation)>::type
#else
#define AMP_BACKEND_FUNCTION(operation) __typeof__(*((amp_backend *)0)->operation)
#endif

#include "backend.h"

/* Operations that use no library such as oneDNN, cuDNN or cuBLAS. */
#define AMP_BACKEND_KERNELS(OP)                                                                            \
    OP(scale) OP(cast) OP(add_bias) OP(bias_gradient)                                                      \
    OP(batchnorm_forward_train) OP(batchnorm_forward_infer) OP(batchnorm_backward)                         \
    OP(activation_forward) OP(activation_backward) OP(maxpool_forward) OP(maxpool_backward)                \
    OP(avgpool_forward) OP(avgpool_backward) OP(upsample_forward) OP(upsample_backward)                    \
    OP(channels) OP(shortcut_forward) OP(shortcut_backward) OP(gather) OP(multiply) OP(multiply_sums)      \
    OP(dropout) OP(yolo_loss) OP(yolo_activate)                                                            \
    OP(check_gradients) OP(finish_step) OP(copy_statistics)

#define AMP_BACKEND_OPERATIONS(OP)                                                                         \
    OP(supports) OP(destroy) OP(allocate) OP(release) OP(upload) OP(upload_later) OP(upload_ahead)         \
    OP(stage) OP(uploads_done) OP(download) OP(download_later) OP(synchronize) OP(zero)                    \
    OP(conv_create) OP(conv_destroy) OP(conv_load_weights) OP(conv_drop_weights) OP(conv_forward)          \
    OP(conv_backward_data) OP(conv_backward_weights) OP(conv_facts)                                        \
    OP(gemm) OP(gemm_drop_copies) OP(gemm_computes)                                                        \
    AMP_BACKEND_KERNELS(OP)

#ifndef __cplusplus
#define AMP_COUNT_ONE(operation) +1
_Static_assert(offsetof(amp_backend, range_push) - offsetof(amp_backend, supports) ==
               (0 AMP_BACKEND_OPERATIONS(AMP_COUNT_ONE)) * sizeof(void (*)(void)),
               "an operation of amp_backend is missing in AMP_BACKEND_OPERATIONS");
#undef AMP_COUNT_ONE
#endif
