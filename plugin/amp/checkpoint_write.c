/* Writing a sidecar, as a stream: the same functions run twice, first to count the bytes, then to write
 * them. */
#include "checkpoint_format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../files/checksum.h"
#include "../tensor/half.h"

enum { BUFFER = 1 << 16 };

/* Where bytes go: to a file by way of a buffer, or nowhere, to be counted. */
typedef struct sink {
    int file, failure;     /* failure: errno of the first write that failed */
    unsigned char *buffer; /* NULL: only count */
    amp_backend *backend;  /* whose memory arrays come from, by way of stage */
    float *stage;
    amp_status status;     /* of the first copy that failed, with *error; nothing more is written then */
    amp_error *error;
    size_t used;
    uint64_t total;
    amp_checksum sum;
} sink;

static void flush(sink *s)
{
    size_t done = 0;
    while (!s->failure && done < s->used) {
        ssize_t wrote = write(s->file, s->buffer + done, s->used - done);
        if (wrote > 0) done += (size_t)wrote;
        else if (wrote == 0) s->failure = ENOSPC;
        else if (errno != EINTR) s->failure = errno;
    }
    s->used = 0;
}

static void put(sink *s, const void *bytes, size_t size)
{
    s->total += size;
    if (!s->buffer || s->failure) return;
    amp_checksum_add(&s->sum, bytes, size);
    for (const unsigned char *at = bytes; size;) {
        size_t part = size < BUFFER - s->used ? size : BUFFER - s->used;
        memcpy(s->buffer + s->used, at, part);
        s->used += part;
        at += part;
        size -= part;
        if (s->used == BUFFER) flush(s);
    }
}

static void put_u32(sink *s, uint32_t value)
{
    unsigned char bytes[4];
    amp_store_u32(bytes, value);
    put(s, bytes, sizeof bytes);
}

static void put_u64(sink *s, uint64_t value)
{
    unsigned char bytes[8];
    amp_store_u64(bytes, value);
    put(s, bytes, sizeof bytes);
}

static void put_float(sink *s, float value) { put_u32(s, amp_float_bits(value)); }

static void put_double(sink *s, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_u64(s, bits);
}

static size_t text_length(const char *text)
{
    size_t length = strlen(text);
    return length < AMP_CHECKPOINT_TEXT_LIMIT ? length : AMP_CHECKPOINT_TEXT_LIMIT;
}

static void put_text(sink *s, const char *text)
{
    unsigned char length = (unsigned char)text_length(text);
    put(s, &length, 1);
    put(s, text, length);
}

static void put_floats(sink *s, const float *values, size_t count)
{
    unsigned char chunk[4096];
    while (count && !s->failure) {
        size_t part = count < sizeof chunk / 4 ? count : sizeof chunk / 4;
        for (size_t k = 0; k < part; k++) amp_store_u32(chunk + 4 * k, amp_float_bits(values[k]));
        put(s, chunk, 4 * part);
        values += part;
        count -= part;
    }
}

/* values: the backend's. */
static void put_array(sink *s, amp_saved_kind kind, int index, const float *values, size_t count)
{
    put_u32(s, AMP_TAG_ARRAY);
    put_u64(s, AMP_CHECKPOINT_ARRAY_HEAD_BYTES + (uint64_t)count * 4);
    put_u32(s, kind);
    put_u32(s, (uint32_t)index);
    put_u64(s, count);
    if (!s->buffer) s->total += (uint64_t)count * 4;
    else while (count && !s->failure) {
        size_t part = count < AMP_CHECKPOINT_STAGE ? count : AMP_CHECKPOINT_STAGE;
        s->status = s->backend->download(s->backend, s->stage, values, part * sizeof *values, s->error);
        if (s->status != AMP_OK) s->failure = EIO;
        else put_floats(s, s->stage, part);
        values += part;
        count -= part;
    }
}

/* ---- records ---- */

typedef struct content {
    amp_engine_state engine;
    const amp_scaler *scaler;
    const amp_run_state *run;
} content;

static void put_scaler(sink *s, const content *c)
{
    const amp_scaler *a = c->scaler;
    put_float(s, a->scale);
    put_u32(s, (uint32_t)a->enabled);
    put_u32(s, (uint32_t)a->dynamic);
    put_double(s, a->growth_factor);
    put_double(s, a->backoff_factor);
    put_u32(s, (uint32_t)a->growth_interval);
    put_u32(s, (uint32_t)a->growth_tracker);
    put_double(s, a->min_scale);
    put_double(s, a->max_scale);
    put_u32(s, (uint32_t)a->hysteresis);
    put_u32(s, (uint32_t)a->hysteresis_tracker);
    put_u64(s, a->steps);
    put_u64(s, a->skipped);
    put_u32(s, (uint32_t)a->stuck);
}

static void put_run(sink *s, const content *c)
{
    const amp_run_state *r = c->run;
    put_u64(s, r->seen);
    put_u64(s, (uint64_t)r->t);
    put_u64(s, r->steps);
    put_u64(s, r->skipped);
    put_u32(s, (uint32_t)r->width);
    put_u32(s, (uint32_t)r->height);
    put_u32(s, (uint32_t)r->batch);
    put_u32(s, (uint32_t)r->subdivisions);
    put_u32(s, (uint32_t)r->window);
    put_u32(s, (uint32_t)r->seeded);
    put_u32(s, r->seed);
    put_u64(s, r->next_job);
    put(s, r->random, sizeof r->random);
    put_u32(s, (uint32_t)r->looped);
    put_u32(s, (uint32_t)r->loop_count);
    put_float(s, r->average_loss);
}

static void put_network(sink *s, const content *c)
{
    const amp_engine_state *e = &c->engine;
    put_u32(s, (uint32_t)e->layer_count);
    for (int i = 0; i < e->layer_count; i++) put_text(s, e->layer_types[i]);
    put_u32(s, (uint32_t)e->param_count);
    for (int i = 0; i < e->param_count; i++) {
        put_u32(s, (uint32_t)e->params[i].layer);
        put_u32(s, e->params_unsaved[i] != 0);
        put_u64(s, e->params[i].count);
        put_text(s, e->params[i].name);
    }
    put_u32(s, (uint32_t)e->statistics_count);
    for (int i = 0; i < e->statistics_count; i++) {
        put_u32(s, (uint32_t)e->statistics[i].layer);
        put_u32(s, e->statistics_unsaved[i] != 0);
        put_u64(s, e->statistics[i].count);
    }
}

static void put_record(sink *s, uint32_t tag, void (*body)(sink *, const content *), const content *c)
{
    sink counted = { .buffer = NULL };
    body(&counted, c);
    put_u32(s, tag);
    put_u64(s, counted.total);
    body(s, c);
}

static uint32_t put_param_arrays(sink *s, const content *c)
{
    uint32_t records = 0;
    for (int i = 0; i < c->engine.param_count; i++) {
        const amp_param *p = &c->engine.params[i];
        const float *const arrays[AMP_SAVED_PARAM_KINDS] = {
            [AMP_SAVED_MOMENTUM] = p->momentum, [AMP_SAVED_M] = p->m, [AMP_SAVED_V] = p->v,
                [AMP_SAVED_MASTER] = p->master,
            [AMP_SAVED_GRADIENT] = p->grad };
        for (int kind = 0; kind < AMP_SAVED_PARAM_KINDS; kind++) {
            if (!amp_saved_wanted(kind, c->engine.adam, c->engine.params_unsaved[i], c->run->window))
                continue;
            put_array(s, kind, i, arrays[kind], p->count);
            records++;
        }
    }
    return records;
}

static uint32_t put_statistics(sink *s, const content *c)
{
    uint32_t records = 0;
    for (int i = 0; i < c->engine.statistics_count; i++) {
        const amp_statistics *a = &c->engine.statistics[i];
        for (int kind = AMP_SAVED_LIVE; kind < AMP_SAVED_KINDS; kind++) {
            if (!amp_saved_wanted(kind, c->engine.adam, c->engine.statistics_unsaved[i], c->run->window))
                continue;
            put_array(s, kind, i, kind == AMP_SAVED_LIVE ? a->array : a->committed, a->count);
            records++;
        }
    }
    return records;
}

/* How many records there were. */
static uint32_t put_records(sink *s, const content *c)
{
    put_record(s, AMP_TAG_SCALER, put_scaler, c);
    put_record(s, AMP_TAG_RUN, put_run, c);
    put_record(s, AMP_TAG_NETWORK, put_network, c);
    uint32_t arrays = put_param_arrays(s, c);
    return 3 + arrays + put_statistics(s, c);
}

static void put_file(sink *s, const content *c, uint64_t weights_checksum)
{
    sink counted = { .buffer = NULL };
    uint32_t records = put_records(&counted, c);
    put(s, AMP_CHECKPOINT_MAGIC, 8);
    put_u32(s, AMP_CHECKPOINT_VERSION);
    put_u32(s, AMP_CHECKPOINT_HEADER_BYTES);
    put_u64(s, AMP_CHECKPOINT_HEADER_BYTES + counted.total + AMP_CHECKPOINT_TRAILER_BYTES);
    put_u64(s, weights_checksum);
    put_u32(s, (uint32_t)c->engine.adam);
    put_u32(s, records);
    put_records(s, c);
    put_u64(s, amp_checksum_value(&s->sum));
    flush(s);
}

/* ---- the file ---- */

static amp_status check_array(const amp_engine_state *e, const char *what, const amp_param *p,
                              const float *values, amp_error *error)
{
    int found_inf;
    AMP_TRY(amp_array_found_inf(e->backend, values, p->count, &found_inf, error));
    if (!found_inf) return AMP_OK;
    return amp_fail(error, AMP_DIVERGED,
                    "layer %d: %s of %s holds inf or NaN, so there is nothing to save; go on from "
                    "an earlier checkpoint with a lower learning_rate", p->layer, what, p->name);
}

/* A checkpoint that holds inf or NaN would only replace a good one. */
static amp_status check_state(const amp_engine_state *e, amp_error *error)
{
    for (int i = 0; i < e->param_count; i++) {
        const amp_param *p = &e->params[i];
        AMP_TRY(check_array(e, "the master", p, p->master, error));
        if (!e->adam) AMP_TRY(check_array(e, "momentum", p, p->momentum, error));
        if (!e->adam) continue;
        AMP_TRY(check_array(e, "moment m", p, p->m, error));
        AMP_TRY(check_array(e, "moment v", p, p->v, error));
    }
    return AMP_OK;
}

static amp_status cannot_write(const char *path, int why, amp_error *error)
{
    return amp_fail(error, AMP_IO_FAILED, "cannot write %.500s: %s", path, strerror(why));
}

/* The file's contents, flushed to the disk. */
static amp_status write_contents(sink *s, const char *path, const content *c, uint64_t weights_checksum,
                                 amp_error *error)
{
    struct stat info;
    amp_checksum_start(&s->sum);
    put_file(s, c, weights_checksum);
    if (!s->failure && fstat(s->file, &info) == 0 && S_ISREG(info.st_mode) && fsync(s->file) != 0)
        s->failure = errno;
    if (s->status != AMP_OK) return s->status;
    return s->failure ? cannot_write(path, s->failure, error) : AMP_OK;
}

static amp_status write_file(sink *s, const char *path, const content *c, uint64_t weights_checksum,
                             amp_error *error)
{
    struct stat info;
    s->file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (s->file < 0) return cannot_write(path, errno, error);
    int regular = fstat(s->file, &info) == 0 && S_ISREG(info.st_mode); /* a device is not ours to remove */
    amp_status status = write_contents(s, path, c, weights_checksum, error);
    if (close(s->file) != 0 && status == AMP_OK) status = cannot_write(path, errno, error);
    if (status != AMP_OK && regular) unlink(path);
    return status;
}

amp_status amp_checkpoint_write(const char *path, const amp_engine *engine, const amp_run_state *run,
                                uint64_t weights_checksum, amp_error *error)
{
    content c = { amp_engine_state_of(engine), amp_engine_scaler(engine), run };
    AMP_TRY(check_state(&c.engine, error));
    sink s = { .backend = c.engine.backend, .error = error, .buffer = malloc(BUFFER),
               .stage = malloc(AMP_CHECKPOINT_STAGE * sizeof *s.stage) };
    amp_status status = s.buffer && s.stage ? write_file(&s, path, &c, weights_checksum, error)
                                            : amp_fail(error, AMP_NO_MEMORY, "no memory to write %.500s",
                                                       path);
    free(s.buffer);
    free(s.stage);
    return status;
}
