/* Whether the NCCL of this machine is the one that comm/nccl means: its header, which this file is compiled
 * with where it is there (AMP_NCCL_HEADER), and its library, which has all functions. Neither takes a GPU. */
#include <dlfcn.h>
#include <stdio.h>

#include "comm/nccl/nccl_calls.h"

int main(void)
{
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    int version = 0, missing = 0;
    if (!library) {
        printf("skipped: there is no libnccl.so.2\n");
        return 77;
    }
    amp_nccl_calls call;
#define FIND(result, name, arguments) \
    *(void **)&call.name = dlsym(library, "nccl" #name); \
    if (!call.name) missing++, printf("libnccl.so.2 has no nccl" #name "\n");
    AMP_NCCL_CALLS(FIND)
#undef FIND
    if (missing) return 1;
    ncclResult_t result = call.GetVersion(&version);
    printf("NCCL %d, %s\n", version, call.GetErrorString(result));
#ifdef AMP_NCCL_HEADER
    printf("compiled with the header of %d\n", NCCL_VERSION_CODE);
#else
    printf("compiled without a header: there is none\n");
#endif
    return result != ncclSuccess || version < 21000;
}
