/* Adds gradients of weights in oneDNN's layout to sums in Darknet's layout; see weights_layout.h. A block of
 * the gradient is [place][channel][filter], and the sum is [filter][channel][place]. So a block is transposed
 * twice: to [filter][place][channel], and then, for each filter, to [channel][place]. A few blocks are
 * transposed together, so that each addition writes a piece of the sum that is long enough for the hardware
 * to prefetch it. */
#include "weights_layout.h"

#include <omp.h>

#include "blocks.h"

enum { TILE = 16384 }; /* the blocks that are transposed together have about this many floats */

static size_t tile_blocks(size_t block, size_t places)
{
    size_t blocks = TILE / (block * block * places);
    return blocks ? blocks : 1;
}

/* Floats of scratch per thread: a tile after the first transpose, and one filter after the second. */
static size_t floats_of_thread(size_t block, size_t places)
{
    return (block + 1) * tile_blocks(block, places) * block * places;
}

size_t amp_weights_add_scratch(size_t block, size_t places)
{
    return (size_t)omp_get_max_threads() * floats_of_thread(block, places) * sizeof(float);
}

void amp_weights_add(const float *gradient, size_t block, size_t filters, size_t channels, size_t places,
                     float *sum, void *scratch)
{
    const amp_cpu_rows *rows = amp_cpu_rows_best();
    const size_t line = block * places, blocks = (channels + block - 1) / block, row = channels * places;
    const size_t step = tile_blocks(block, places), tile_row = step * line;
    #pragma omp parallel for schedule(static) if (amp_cpu_worth_threads(filters * row))
    for (size_t first = 0; first < filters; first += block) {
        float *tile = (float *)scratch + (size_t)omp_get_thread_num() * floats_of_thread(block, places);
        float *of_filter = tile + block * tile_row;
        for (size_t b = 0; b < blocks; b += step) {
            size_t count = blocks - b < step ? blocks - b : step, left = row - b * line;
            for (size_t i = 0; i < count; i++)
                rows->transpose(gradient + (first / block * blocks + b + i) * block * line, block,
                                tile + i * line, tile_row, line, block);
            for (size_t f = 0; f < block && first + f < filters; f++) {
                const float *taken = tile + f * tile_row;
                for (size_t i = 0; i < count; i++)
                    rows->transpose(taken + i * line, block, of_filter + i * line, places, places, block);
                rows->narrow(AMP_FP32, of_filter, sum + (first + f) * row + b * line,
                             left < count * line ? left : count * line, 1);
            }
        }
    }
}
