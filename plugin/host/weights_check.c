/* The checks of weights_check.h. The sizes follow the readers in parser.c, function by function. */
#include "weights_check.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "data_files.h"
#include "device.h"

/* ---- what a layer reads ---- */

static size_t normalized(const layer *l) { return l->batch_normalize && !l->dontloadscales; }

/* load_convolutional_weights: biases, scales, statistics, weights. */
static int convolutional(const layer *l, amp_weights_run *runs)
{
    size_t n = (size_t)(l->numload ? l->numload : l->n), groups = l->groups ? (size_t)l->groups : 1, norm = normalized(l) ? n : 0;
    runs[0] = (amp_weights_run){ n + norm, 2 * norm };
    runs[1] = (amp_weights_run){ (size_t)l->c / groups * n * (size_t)l->size * (size_t)l->size, 0 };
    return 2;
}

/* load_connected_weights: biases, weights, scales, statistics. */
static int connected(const layer *l, amp_weights_run *runs)
{
    size_t outputs = (size_t)l->outputs, norm = normalized(l) ? outputs : 0;
    runs[0] = (amp_weights_run){ outputs + outputs * (size_t)l->inputs + norm, 2 * norm };
    return 1;
}

static int local(const layer *l, amp_weights_run *runs)
{
    size_t locations = (size_t)l->out_w * (size_t)l->out_h;
    runs[0].learnt = (size_t)l->outputs + (size_t)l->size * (size_t)l->size * (size_t)l->c * (size_t)l->n * locations;
    runs[0].statistics = 0;
    return 1;
}

static int all_of(int (*one)(const layer *, amp_weights_run *), const layer *const *parts, amp_weights_run *runs)
{
    int count = 0;
    for (; *parts; ++parts) count += one(*parts, runs + count);
    return count;
}

int amp_weights_runs(const layer *l, amp_weights_run runs[AMP_WEIGHTS_RUNS])
{
    const layer *const parts[] = { l->input_layer, l->self_layer, l->output_layer, NULL };
    const layer *const lstm[] = { l->wi, l->wf, l->wo, l->wg, l->ui, l->uf, l->uo, l->ug, NULL };
    const layer *const gru[] = { l->wz, l->wr, l->wh, l->uz, l->ur, l->uh, NULL };
    if (l->dontload) return 0;
    switch (l->type) {
    case CONVOLUTIONAL: case DECONVOLUTIONAL: return convolutional(l, runs);
    case CONNECTED: return connected(l, runs);
    case BATCHNORM: runs[0] = (amp_weights_run){ (size_t)l->c, 2 * (size_t)l->c }; return 1;
    case CRNN: return all_of(convolutional, parts, runs);
    case RNN: return all_of(connected, parts, runs);
    case LSTM: return all_of(connected, lstm, runs);
    case GRU: return all_of(connected, gru, runs);
    case LOCAL: return local(l, runs);
    default: return 0;
    }
}

size_t amp_weights_bytes(const layer *l)
{
    amp_weights_run runs[AMP_WEIGHTS_RUNS];
    size_t floats = 0;
    int count = amp_weights_runs(l, runs);
    for (int i = 0; i < count; i++) floats += runs[i].learnt + runs[i].statistics;
    return floats * sizeof(float);
}

/* ---- a file's size ---- */

/* The header: three ints of version, then images seen, in 8 bytes since version 0.2. 0: the file is shorter. */
static size_t header_bytes(FILE *stream)
{
    int version[3];
    if (fread(version, sizeof *version, 3, stream) != 3) return 0;
    int today = (long)version[0] * 10 + version[1] >= 2 && version[0] < 1000 && version[1] < 1000;
    return sizeof version + (today ? sizeof(size_t) : sizeof(int));
}

#define HINT "weights of another network? `darknet partial` writes the first layers of a file alone"

static amp_status compare(const network *net, const char *file, size_t header, size_t size, int cutoff, int *held,
                          amp_error *error)
{
    size_t at = header;
    int end = cutoff < net->n ? cutoff : net->n;
    if (header == 0 || size < header)
        return amp_fail(error, AMP_BAD_CONFIG, "amp: %.600s: %zu bytes are too few for a .weights file", file, size);
    for (int i = 0; i < end; i++) {
        size_t bytes = amp_weights_bytes(&net->layers[i]);
        if (bytes && at == size) {
            *held = i;
            return AMP_OK;
        }
        if (bytes > size - at)
            return amp_fail(error, AMP_BAD_CONFIG, "amp: %.600s: ends in the middle of layer %d, %zu bytes short of its "
                            "%zu: " HINT, file, i, bytes - (size - at), bytes);
        at += bytes;
    }
    if (at < size && end == net->n)
        return amp_fail(error, AMP_BAD_CONFIG, "amp: %.600s: %zu bytes longer than what this network's %d layers read: "
                        HINT, file, size - at, net->n);
    *held = net->n;
    return AMP_OK;
}

amp_status amp_check_weights_size(const network *net, const char *file, int start, int cutoff, int *held, amp_error *error)
{
    struct stat status;
    *held = net->n;
    if (amp_is_device(file))
        return amp_fail(error, AMP_BAD_CONFIG, "amp: %.600s: cannot read these weights: not a regular file",
                        file);
    if (stat(file, &status) == 0 && S_ISDIR(status.st_mode)) errno = EISDIR;
    else errno = 0;
    FILE *stream = errno ? NULL : fopen(file, "rb");
    if (!stream) return amp_fail(error, AMP_BAD_CONFIG, "amp: %.600s: cannot read these weights: %s", file, strerror(errno));
    size_t header = header_bytes(stream);
    fclose(stream);
    if (start > 0) return AMP_OK; /* its first bytes are for another layer than the first */
    return compare(net, file, header, (size_t)status.st_size, cutoff, held, error);
}

/* ---- what was read ---- */

amp_status amp_check_weights_sense(const network *net, const char *file, amp_error *error)
{
    if (amp_host_on_gpu(net)) return AMP_OK; /* they lie there by now */
    for (int i = 0; i < net->n; i++) {
        const layer *l = &net->layers[i];
        int count = l->type == CONNECTED ? l->outputs : l->type == CONVOLUTIONAL || l->type == DECONVOLUTIONAL ? l->n
                  : l->type == BATCHNORM ? l->c : 0;
        for (int k = 0; l->rolling_variance && k < count; k++)
            if (l->rolling_variance[k] < 0)
                return amp_fail(error, AMP_BAD_CONFIG, "amp: %.600s: layer %d gets a rolling variance of %g, below 0: "
                                HINT, file, i, (double)l->rolling_variance[k]);
    }
    return AMP_OK;
}
