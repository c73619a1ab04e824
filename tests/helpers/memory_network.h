/* An engine over a network of three layers and a backend that only has memory: enough for sidecars, without
 * Darknet and without a library. It cannot run.
 *
 * Its memory is like a device's: the backend's addresses are not valid in the program, so that dereferencing
 * one crashes. memory_here translates them. */
#ifndef MEMORY_NETWORK_H
#define MEMORY_NETWORK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amp/engine.h"
#include "tensor/half.h"

#define REQUIRE(condition)                                                                           \
    do { if (!(condition)) { fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
                             abort(); } } while (0)

/* ---- a backend that only has memory ---- */

/* The topmost bit is not set in any address of a program. */
#define MEMORY_FAR ((uintptr_t)1 << (8 * sizeof(uintptr_t) - 1))

static void *memory_there(void *here) { return (void *)((uintptr_t)here | MEMORY_FAR); }
static void *memory_here(const void *there)
{
    REQUIRE((uintptr_t)there & MEMORY_FAR);
    return (void *)((uintptr_t)there & ~MEMORY_FAR);
}

static amp_status memory_allocate(amp_backend *b, size_t bytes, void **out, amp_error *error)
{
    (void)b; (void)error;
    REQUIRE((*out = calloc(1, bytes + 1)) != NULL);
    *out = memory_there(*out);
    return AMP_OK;
}
static void memory_release(amp_backend *b, void *memory) { (void)b; free(memory_here(memory)); }
static amp_status memory_upload(amp_backend *b, void *memory, const void *from, size_t bytes,
                                amp_error *error)
{
    (void)b; (void)error;
    memcpy(memory_here(memory), (uintptr_t)from & MEMORY_FAR ? memory_here(from) : from, bytes);
    return AMP_OK;
}
static amp_status memory_download(amp_backend *b, void *to, const void *memory, size_t bytes,
                                  amp_error *error)
{
    (void)b; (void)error;
    memcpy(to, memory_here(memory), bytes);
    return AMP_OK;
}
static amp_status memory_check(amp_backend *b, const amp_param *params, int count, float inverse_scale,
                               int *found_inf, double *sum_squares, amp_error *error)
{
    (void)b; (void)inverse_scale; (void)error;
    *found_inf = 0;
    *sum_squares = 0;
    for (int i = 0; i < count; i++)
        for (size_t k = 0; k < params[i].count; k++)
            *found_inf |= !amp_is_finite(((float *)memory_here(params[i].grad))[k]);
    return AMP_OK;
}
static amp_status memory_zero(amp_backend *b, void *memory, size_t bytes, amp_error *error)
{
    (void)b; (void)error;
    memset(memory_here(memory), 0, bytes);
    return AMP_OK;
}
static amp_status memory_keep(amp_backend *b, const amp_statistics *statistics, int count, int back,
                              amp_error *error)
{
    REQUIRE(!back);
    for (int i = 0; i < count; i++)
        AMP_TRY(memory_upload(b, statistics[i].committed, statistics[i].array,
                              statistics[i].count * sizeof(float), error));
    return AMP_OK;
}
static void memory_destroy(amp_backend *b) { free(b); }

/* ---- a network of three layers ---- */

typedef struct memory_network {
    float masters[5][8], momenta[5][8], statistics[3][6];
    float *slots[5];
    amp_engine *engine;
    int adam;
} memory_network;

static inline memory_network *memory_network_make(int adam, int dynamic)
{
    static const struct { const char *name; int layer, unsaved; size_t count; } params[5] = {
        { "weights", 0, 0, 6 }, { "biases", 0, 0, 2 }, { "scales", 0, 0, 2 }, { "wf.weights", 1, 0, 8 },
        { "wf.biases", 1, 1, 3 } };
    static const struct {
        int layer, unsaved; size_t count;
    } statistics[3] = { { 0, 0, 2 }, { 0, 0, 2 }, { 1, 1, 6 } };
    memory_network *n = calloc(1, sizeof *n);
    amp_backend *backend = calloc(1, sizeof *backend);
    amp_layer_desc *layers = calloc(3, sizeof *layers);
    REQUIRE(n && backend && layers);
    *backend = (amp_backend){ .name = "memory", .allocate = memory_allocate, .release = memory_release,
                              .upload = memory_upload, .download = memory_download, .zero = memory_zero,
                              .check_gradients = memory_check, .copy_statistics = memory_keep,
                              .destroy = memory_destroy };
    for (int i = 0; i < 3; i++) {
        layers[i].kind = AMP_LAYER_HOST;
        layers[i].params = calloc(5, sizeof *layers[i].params);
        layers[i].statistics = calloc(3, sizeof *layers[i].statistics);
        REQUIRE(layers[i].params && layers[i].statistics);
    }
    layers[0].type = "convolutional";
    layers[1].type = "lstm";
    layers[2].type = "cost";
    for (int i = 0; i < 5; i++) {
        amp_layer_desc *l = &layers[params[i].layer];
        n->slots[i] = memory_there(n->momenta[i]);
        l->params[l->param_count++] = (amp_param_desc){ .name = params[i].name,
                                                        .master = memory_there(n->masters[i]),
                                                        .gradient_slot = &n->slots[i], .count =
                                                        params[i].count, .unsaved = params[i].unsaved };
    }
    for (int i = 0; i < 3; i++) {
        amp_layer_desc *l = &layers[statistics[i].layer];
        l->statistics[l->statistics_count++] = (amp_statistics_desc){ .array = memory_there(n->statistics[i]),
                                                                      .count = statistics[i].count,
                                                                      .unsaved = statistics[i].unsaved };
    }
    for (int k = 0; k < 40; k++) {
        n->masters[k / 8][k % 8] = 0.25f * (float)k;
        n->momenta[k / 8][k % 8] = adam ? 0 : -0.5f * (float)k;
    }
    for (int k = 0; k < 18; k++) n->statistics[k / 6][k % 6] = (float)k;
    amp_engine_settings settings = { .adam = adam };
    amp_scaler scaler = amp_scaler_defaults();
    scaler.dynamic = dynamic;
    REQUIRE(amp_scaler_init(&settings.scaler, &scaler, NULL) == AMP_OK);
    amp_host host = { 0 };
    amp_network_desc network = { .layers = layers, .count = 3 };
    n->engine = amp_engine_create(&settings, backend, &host, &network);
    REQUIRE(amp_parameters_take(&n->engine->parameters, NULL) == AMP_OK);
    amp_network_desc_free(&network);
    n->adam = adam;
    return n;
}

static inline void memory_network_free(memory_network *n)
{
    amp_engine_free(n->engine);
    free(n);
}

#endif
