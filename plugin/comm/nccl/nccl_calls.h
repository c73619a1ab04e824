/* The NCCL functions that nccl.c uses. They are looked up in NCCL's library at run time, so that the build
 * needs nothing from NCCL, and a program that trains on one GPU does not load it.
 *
 * The types are those of every NCCL since 2.10. A test compares them with a real nccl.h (AMP_NCCL_HEADER). */
#pragma once

#include <cuda_runtime_api.h>

#ifdef AMP_NCCL_HEADER
#include <nccl.h>
#else
typedef struct ncclComm *ncclComm_t;
typedef struct { char internal[128]; } ncclUniqueId;
typedef enum { ncclSuccess = 0, ncclInProgress = 7 } ncclResult_t;
typedef enum { ncclSum = 0 } ncclRedOp_t;
typedef enum { ncclFloat32 = 7 } ncclDataType_t;
#endif

/* Expands CALL(result, name, arguments) for each function; names lack the prefix "nccl". */
#define AMP_NCCL_CALLS(CALL) \
    CALL(ncclResult_t, GetVersion, (int *)) \
    CALL(ncclResult_t, GetUniqueId, (ncclUniqueId *)) \
    CALL(ncclResult_t, CommInitRank, (ncclComm_t *, int, ncclUniqueId, int)) \
    CALL(ncclResult_t, AllReduce, (const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, \
                                   cudaStream_t)) \
    CALL(ncclResult_t, CommGetAsyncError, (ncclComm_t, ncclResult_t *)) \
    CALL(ncclResult_t, CommAbort, (ncclComm_t)) \
    CALL(ncclResult_t, CommDestroy, (ncclComm_t)) \
    CALL(const char *, GetErrorString, (ncclResult_t))

typedef struct amp_nccl_calls {
#define AMP_NCCL_FIELD(result, name, arguments) result (*name) arguments;
    AMP_NCCL_CALLS(AMP_NCCL_FIELD)
#undef AMP_NCCL_FIELD
} amp_nccl_calls;

#ifdef AMP_NCCL_HEADER
#define AMP_NCCL_SAME(result, name, arguments) \
    _Static_assert(__builtin_types_compatible_p(__typeof__(nccl##name), result arguments), "nccl" #name);
AMP_NCCL_CALLS(AMP_NCCL_SAME)
#undef AMP_NCCL_SAME
_Static_assert(sizeof(ncclUniqueId) == 128 && ncclSuccess == 0 && ncclInProgress == 7 && ncclSum == 0
               && ncclFloat32 == 7, "NCCL's constants");
#endif
