/* The weight update and the gradient check, part of rows_impl.h. All arrays are fp32; backend.h has the
 * formulas.
 *
 * Operations are in the order of unmodified Darknet (SGD: axpy with decay, axpy with rate, scale by momentum;
 * Adam: adam_update_gpu). So with an inverse scale of 1, the rounding is the same. */

/* Darknet's constrain: fminf(clip, fmaxf(-clip, w)). */
AMP_INLINE vf vclip(vf w, float clip)
{
    if (clip == 0) return w;
    vf least = vmax(w, vset(-clip));
    return vselect(vgt(vset(clip), least), least, vset(clip));
}

AMP_INLINE vf vunscaled(const float *grad, size_t i, int n, const amp_cpu_rule *r)
{
    return vload_ahead(grad, i, n) * vset(r->unscale) * vset(r->unscale_rest);
}

static void sgd(float *master, float *grad, float *momentum, size_t count, const amp_cpu_rule *rule)
{
    const amp_cpu_rule r = *rule;
    AMP_LANES(count, {
        vf w = vload_ahead(master, i, n);
        vf step = vload_ahead(momentum, i, n) + vunscaled(grad, i, n, &r);
        step = step + vset(-r.decay) * w;
        vstore(master, i, n, vclip(w + vset(r.rate) * step, r.clip), AMP_FP32);
        vstore(momentum, i, n, step * vset(r.momentum), AMP_FP32);
        vstore(grad, i, n, vset(0), AMP_FP32);
    });
}

/* Adam (shrink = 0), and AdamW (decay = 0): w ← w - shrink·w + rate·unbiased/spread_of with shrink =
 * rate·decay ("Decoupled Weight Decay Regularization", Loshchilov and Hutter, 2019, algorithm 2, in the form
 * of torch.optim.AdamW, where the rate multiplies the decay too). -shrink·w is first added to the other term,
 * because in fp32, (1 - shrink)·w would keep few digits of a small shrink. */
static void adam(float *master, float *grad, float *m, float *v, size_t count, const amp_cpu_rule *rule)
{
    const amp_cpu_rule r = *rule;
    AMP_LANES(count, {
        vf w = vload_ahead(master, i, n);
        vf d = vunscaled(grad, i, n, &r) + vset(-r.decay) * w;
        vf first = vset(r.beta1) * vload_ahead(m, i, n) + vset(1 - r.beta1) * d;
        vf second = vset(r.beta2) * vload_ahead(v, i, n) + vset(1 - r.beta2) * (d * d);
        vf unbiased = first / vset(r.correction1);
        vf spread_of = vsqrt(second / vset(r.correction2)) + vset(r.eps);
        vf change = vset(r.rate) * unbiased / spread_of + vset(-r.shrink) * w;
        vstore(master, i, n, vclip(w + change, r.clip), AMP_FP32);
        vstore(m, i, n, first, AMP_FP32);
        vstore(v, i, n, second, AMP_FP32);
        vstore(grad, i, n, vset(0), AMP_FP32);
    });
}

/* Finds inf and NaN by their exponent bits, not by arithmetic. The square of a float is exact in double. The
 * square of element i is added to accumulator i % SUMS, so that the result is the same on every machine. */
static double squares(const float *grad, size_t count, int *found_inf)
{
    enum { SUMS = 32 };
    double sums[SUMS] = { 0 }, total = 0;
    uint32_t largest[SUMS] = { 0 };
    size_t i = 0;
    for (; i + SUMS <= count; i += SUMS) {
        vahead(grad, i);
        vahead(grad, i + SUMS / 2);
        for (int l = 0; l < SUMS; l++) {
            double g = (double)grad[i + l];
            uint32_t magnitude = amp_float_bits(grad[i + l]) & 0x7fffffffu;
            sums[l] += g * g;
            largest[l] = magnitude > largest[l] ? magnitude : largest[l];
        }
    }
    for (int l = 0; i < count; i++, l++) {
        uint32_t magnitude = amp_float_bits(grad[i]) & 0x7fffffffu;
        sums[l] += (double)grad[i] * (double)grad[i];
        largest[l] = magnitude > largest[l] ? magnitude : largest[l];
    }
    for (int l = 0; l < SUMS; l++) {
        total += sums[l];
        if (largest[l] >= 0x7f800000u) *found_inf = 1;
    }
    return total;
}
