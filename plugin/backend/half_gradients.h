/* Weight gradients that a library writes in fp16. */
#pragma once

/* How far such a gradient is scaled down: the library writes 2^-s times a sum of so many products (images x
 * output pixels), and whoever reads it multiplies by 2^s. The sum would pass 65504 long before the deltas it
 * is made of do; by s = log2 of the root of that number, rounded, the sum of products with random signs is as
 * large as one product. */
static inline int amp_half_gradient_downscale(double products)
{
    int twice = 0; /* of s, rounded down */
    while (products >= 2) products /= 2, twice++;
    return (twice + 1) / 2;
}
