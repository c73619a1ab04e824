/* GPUs as cuDNN describes them (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION), so that plans can be
 * made where there is none.
 *
 * Written from the vendor's tables of compute capabilities and boards, not read off devices. */
#ifndef DEVICE_PROPS_H
#define DEVICE_PROPS_H

#include <stdio.h>

typedef struct device_props {
    const char *name;
    int capability;                   /* 90 for sm_90 */
    int multiprocessors;
    int shared_memory;                /* bytes that a block can opt in to, */
    int reserved_shared_memory;       /* and that the system takes of each */
    int blocks, threads;              /* resident on a multiprocessor */
    long long memory;                 /* bytes */
    int l2, clock_khz, memory_khz;
    int has_bf16;
} device_props;

static const device_props H200 = { "NVIDIA H200", 90, 132, 232448, 1024, 32, 2048, 150754820096, 62914560,
                                   1980000, 3201000, 1 };
static const device_props H100 = { "NVIDIA H100 80GB HBM3", 90, 132, 232448, 1024, 32, 2048, 85899345920,
                                   52428800, 1980000, 2619000, 1 };
static const device_props H100_PCIE = { "NVIDIA H100 PCIe", 90, 114, 232448, 1024, 32, 2048, 85899345920,
                                        52428800, 1755000, 1593000, 1 };
static const device_props A100 = { "NVIDIA A100-SXM4-80GB", 80, 108, 166912, 1024, 32, 2048, 85899345920,
                                   41943040, 1410000, 1593000, 1 };
static const device_props RTX4090 = { "NVIDIA GeForce RTX 4090", 89, 128, 101376, 1024, 24, 1536, 25757220864,
                                      75497472, 2520000, 10501000, 1 };
static const device_props T4 = { "Tesla T4", 75, 40, 65536, 0, 16, 1024, 15843721216, 4194304, 1590000,
                                 5001000, 0 };

enum { DEVICE_PROPS_TEXT = 1024 };

static inline void device_props_json(const device_props *d, char text[DEVICE_PROPS_TEXT])
{
    snprintf(text, DEVICE_PROPS_TEXT,
             "{\"deviceName\":\"%s\",\"cudaDeviceId\":0,\"pciDeviceId\":0,\"isTccDriver\":0,\"deviceVer\":%d,"
             "\"driverVer\":13000,\"multiProcessorCount\":%d,\"warpSize\":32,"
             "\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
             "\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":%d,\"maxCtasPerSM\":%d,"
             "\"regsPerBlock\":65536,\"maxRegistersPerSM\":65536,\"maxSharedMemoryPerBlock\":49152,"
             "\"maxSharedMemoryPerBlockOptin\":%d,\"reservedSharedMemoryPerBlock\":%d,"
             "\"totalGlobalMem\":%lld,\"l2CacheSize\":%d,\"smClockRateKHz\":%d,"
             "\"memClockRateKHz\":%d,\"supportCoopLaunch\":1}",
             d->name, d->capability * 10, d->multiprocessors, d->threads, d->blocks, d->shared_memory,
             d->reserved_shared_memory, d->memory, d->l2, d->clock_khz, d->memory_khz);
}

#endif
