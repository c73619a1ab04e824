/* Memory for the code that runs instead of a fork's own layers (its gaps.h). */
#include "room.h"

float *amp_gap_scratch(size_t count)
{
    float *memory = calloc(count ? count : 1, sizeof *memory);
    if (!memory)
        darknet_amp_refuse("amp: no memory for %zu MB in a layer of Darknet's own",
                           count * sizeof *memory >> 20);
    return memory;
}

void amp_gap_own_buffer(float **buffer, size_t count)
{
    if (!*buffer) *buffer = amp_gap_scratch(count);
}

layer amp_gap_at_step(const layer *inner, int step)
{
    layer l = *inner;
    size_t offset = (size_t)step * (size_t)l.outputs * (size_t)l.batch;
    l.output += offset;
    l.delta += offset;
    if (l.x) l.x += offset;
    if (l.x_norm) l.x_norm += offset;
    return l;
}
