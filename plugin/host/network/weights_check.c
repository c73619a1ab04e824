/* See weights_check.h. */
#include "weights_check.h"

#include <sys/stat.h>

#include "../data/data_files.h"
#include "../fork.h"

/* Returns the size of the header in bytes: three ints for the version, then the number of images seen (8
 * bytes since version 0.2, 4 before). 0: the file is too short for a version. */
static size_t header_bytes(FILE *stream)
{
    int version[3];
    if (fread(version, sizeof *version, 3, stream) != 3) return 0;
    int today = (long)version[0] * 10 + version[1] >= 2 && version[0] < 1000 && version[1] < 1000;
    return sizeof version + (today ? sizeof(size_t) : sizeof(int));
}

size_t amp_weights_file_seen(const char *file)
{
    amp_error error;
    size_t seen = 0;
    int old = 0; /* `seen` of a file before version 0.2 */
    FILE *stream = amp_open_to_read(file, "these weights", &error);
    if (!stream) return 0;
    if (header_bytes(stream) == 3 * sizeof(int) + sizeof seen) {
        if (fread(&seen, sizeof seen, 1, stream) != 1) seen = 0;
    } else if (fread(&old, sizeof old, 1, stream) == 1 && old > 0) seen = (size_t)old;
    fclose(stream);
    return seen;
}

#define HINT "are these another network's weights? `darknet partial` writes only the first layers of a file"

static amp_status compare(const struct network *net, const char *file, size_t header, size_t size, int cutoff,
                          int *held, amp_error *error)
{
    size_t at = header;
    int layers = amp_fork_view(net).layers, end = cutoff < layers ? cutoff : layers;
    if (header == 0 || size < header)
        return amp_fail(error, AMP_BAD_CONFIG, "%.600s: %zu bytes are too few for a .weights file", file,
                        size);
    for (int i = 0; i < end; i++) {
        size_t bytes = amp_fork_weights_bytes(net, i);
        if (bytes && at == size) {
            *held = i;
            return AMP_OK;
        }
        if (bytes > size - at)
            return amp_fail(error, AMP_BAD_CONFIG,
                            "%.600s: ends in the middle of layer %d, which lacks %zu of its %zu "
                            "bytes: " HINT, file,
                            i, bytes - (size - at), bytes);
        at += bytes;
    }
    if (at < size && end == layers)
        return amp_fail(error, AMP_BAD_CONFIG,
                        "%.600s: %zu bytes longer than what this network's %d layers read: " HINT, file,
                        size - at, layers);
    *held = layers;
    return AMP_OK;
}

amp_status amp_check_weights_size(const struct network *net, const char *file, int start, int cutoff,
                                  int *held, amp_error *error)
{
    struct stat status;
    *held = amp_fork_view(net).layers;
    FILE *stream = amp_open_to_read(file, "these weights", error);
    if (!stream) return AMP_BAD_CONFIG;
    size_t size = fstat(fileno(stream), &status) == 0 ? (size_t)status.st_size : 0;
    size_t header = header_bytes(stream);
    fclose(stream);
    if (start > 0) return AMP_OK; /* the file's first weights are not layer 0's */
    return compare(net, file, header, size, cutoff, held, error);
}

amp_status amp_check_weights_sense(const struct network *net, const char *file, amp_error *error)
{
    float value;
    int layer = amp_fork_negative_variance(net, &value);
    if (layer < 0) return AMP_OK;
    return amp_fail(error, AMP_BAD_CONFIG, "%.600s: layer %d gets a rolling variance of %g, below 0: " HINT,
                    file, layer, (double)value);
}
