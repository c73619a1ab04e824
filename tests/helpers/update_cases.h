/* Parameters with all arrays that an update reads and writes, for its tests. Include kernel_cases.h first. */
#pragma once

static const amp_update_args usual_update = { .learning_rate = .01f, .momentum = .9f, .batch = 64,
    .inverse_scale = 0x1p-16f, .t = 3, .beta1 = .9f, .beta2 = .999f, .eps = 1e-7f };

/* The arrays begin `off` elements into their memory. */
static inline amp_param filled_param(int i, size_t count, size_t off)
{
    uint32_t seed = 100u * (uint32_t)i;
    size_t n = count + off;
    return (amp_param){ .master = filled_array(n, seed + 1, -1, 1) + off,
        .grad = filled_array(n, seed + 2, -50, 50) + off, .momentum = filled_array(n, seed + 3, -3, 3) + off,
        .m = filled_array(n, seed + 4, -3, 3) + off, .v = filled_array(n, seed + 5, 0, 9) + off,
        .count = count, .decay = i & 1 ? .0005f : 0, .rate_scale = i & 2 ? .5f : 1, .layer = i,
        .name = "weights" };
}

static inline void release_param(const amp_param *p, size_t off)
{
    float *const all[] = { p->master, p->grad, p->momentum, p->m, p->v };
    for (size_t i = 0; i < COUNT(all); i++) release(all[i] - off);
}

/* Whether all arrays of a but the gradient hold the bits of b's. */
static inline int same_param(const amp_param *a, const amp_param *b)
{
    size_t bytes = a->count * sizeof(float);
    return !memcmp(a->master, b->master, bytes) && !memcmp(a->momentum, b->momentum, bytes)
        && !memcmp(a->m, b->m, bytes) && !memcmp(a->v, b->v, bytes);
}
