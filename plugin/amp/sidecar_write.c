/* Writes a sidecar. The records before the arrays are built in memory, so that their size is known; the
 * arrays are written piece by piece, because they may be in a device's memory. */
#include "sidecar_format.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../files/checksum.h"

/* ---- the records before the arrays ---- */

typedef struct head {
    unsigned char *bytes;
    size_t size, room;
} head;

static void put(head *h, const void *bytes, size_t size)
{
    while (h->room - h->size < size) h->bytes = amp_allocated(realloc(h->bytes, h->room *= 2));
    memcpy(h->bytes + h->size, bytes, size);
    h->size += size;
}

static void put_u32(head *h, uint32_t value) { put(h, &value, sizeof value); }
static void put_u64(head *h, uint64_t value) { put(h, &value, sizeof value); }

static void put_text(head *h, const char *text)
{
    size_t length = strlen(text);
    unsigned char kept = (unsigned char)(length < AMP_SIDECAR_TEXT_LIMIT ? length
                                         : AMP_SIDECAR_TEXT_LIMIT);
    put(h, &kept, 1);
    put(h, text, kept);
}

/* Returns the offset of the record's content; end_record writes its size into the 8 bytes before it. */
static size_t begin_record(head *h, uint32_t tag)
{
    put_u32(h, tag);
    put_u64(h, 0);
    return h->size;
}

static void end_record(head *h, size_t content)
{
    amp_store_u64(h->bytes + content - 8, h->size - content);
}

static void put_record(head *h, uint32_t tag, const amp_saved_field *fields, const void *from)
{
    size_t record = begin_record(h, tag);
    for (const amp_saved_field *f = fields; f->size; f++) put(h, (const char *)from + f->offset, f->size);
    end_record(h, record);
}

static void put_entry(head *h, int layer, int unsaved, size_t count)
{
    put_u32(h, (uint32_t)layer);
    put_u32(h, unsaved != 0);
    put_u64(h, count);
}

static void put_network(head *h, const amp_parameters *e)
{
    size_t record = begin_record(h, AMP_TAG_NETWORK);
    put_u32(h, (uint32_t)e->layer_count);
    for (int i = 0; i < e->layer_count; i++) put_text(h, e->layer_types[i]);
    put_u32(h, (uint32_t)e->param_count);
    for (int i = 0; i < e->param_count; i++) {
        put_entry(h, e->params[i].layer, e->params[i].unsaved, e->params[i].count);
        put_text(h, e->params[i].name);
    }
    put_u32(h, (uint32_t)e->statistics_count);
    for (int i = 0; i < e->statistics_count; i++)
        put_entry(h, e->statistics[i].layer, e->statistics[i].unsaved, e->statistics[i].count);
    end_record(h, record);
}

/* ---- the arrays ---- */

typedef struct content {
    const amp_engine *engine;
    const amp_run_state *run;
    uint64_t weights_checksum;
} content;

typedef struct saved_array { amp_saved_kind kind; int index; const float *values; size_t count; } saved_array;

/* Lists the file's arrays; `list` has room for every kind of array of each entry. Returns the number of
 * arrays. */
static uint32_t list_arrays(const content *c, saved_array *list)
{
    const amp_parameters *e = &c->engine->parameters;
    uint32_t count = 0;
    for (int i = 0; i < e->param_count; i++) {
        const amp_param *p = &e->params[i];
        const float *const arrays[] = { [AMP_SAVED_MOMENTUM] = p->momentum, [AMP_SAVED_M] = p->m,
                                        [AMP_SAVED_V] = p->v,
                                        [AMP_SAVED_MASTER] = p->master, [AMP_SAVED_GRADIENT] = p->grad };
        for (int kind = 0; kind < AMP_SAVED_PARAM_KINDS; kind++)
            if (amp_saved_wanted(kind, e->adam, e->params[i].unsaved, c->run->window))
                list[count++] = (saved_array){ kind, i, arrays[kind], p->count };
    }
    for (int i = 0; i < e->statistics_count; i++) {
        const amp_statistics *s = &e->statistics[i];
        for (int kind = AMP_SAVED_LIVE; kind < AMP_SAVED_AVERAGE; kind++)
            if (amp_saved_wanted(kind, e->adam, e->statistics[i].unsaved, c->run->window))
                list[count++] = (saved_array){ kind, i, kind == AMP_SAVED_LIVE ? s->array : s->committed,
                                               s->count };
    }
    for (int i = 0; i < c->run->average_count; i++) {
        const amp_average *a = &c->run->averages[i];
        list[count++] = (saved_array){ AMP_SAVED_AVERAGE, i, a->values, a->count };
    }
    return count;
}

enum { ARRAY_HEAD = 12 + AMP_SIDECAR_ARRAY_HEAD_BYTES };

/* The size, in floats, of the buffer through which arrays are written. */
enum { STAGE = 1 << 12 };

static void put_ranks(head *h, const content *c)
{
    size_t record = begin_record(h, AMP_TAG_RANKS);
    size_t each = c->run->states ? amp_sidecar_state_count(c->engine) : 0;
    uint32_t ranks = c->run->ranks > 1 ? (uint32_t)c->run->ranks : 1;
    put_u32(h, ranks);
    put_u32(h, c->run->wire > 0 ? (uint32_t)c->run->wire : 0);
    put_u32(h, c->run->sync_batchnorm > 0);
    if (each) put(h, c->run->states + each, each * (ranks - 1) * sizeof(float));
    end_record(h, record);
}

static void put_averages(head *h, const amp_run_state *run)
{
    size_t record = begin_record(h, AMP_TAG_AVERAGES);
    put_u32(h, (uint32_t)run->average_count);
    for (int i = 0; i < run->average_count; i++) put_u64(h, run->averages[i].count);
    end_record(h, record);
}

static void put_head(head *h, const content *c, const saved_array *list, uint32_t arrays)
{
    const amp_engine *e = c->engine;
    uint64_t size = AMP_SIDECAR_TRAILER_BYTES;
    uint32_t version = e->spikes.factor > 0 ? AMP_SIDECAR_VERSION : AMP_SIDECAR_VERSION_WITHOUT_SPIKES;
    for (uint32_t i = 0; i < arrays; i++) size += ARRAY_HEAD + (uint64_t)list[i].count * 4;
    put(h, AMP_SIDECAR_MAGIC, 8);
    put_u32(h, version);
    put_u32(h, AMP_SIDECAR_HEADER_BYTES);
    put_u64(h, 0); /* the file's size, filled in later */
    put_u64(h, c->weights_checksum);
    put_u32(h, e->parameters.adamw ? 2 : e->parameters.adam != 0);
    put_u32(h, AMP_SIDECAR_RECORDS_OF(version) + arrays);
    put_record(h, AMP_TAG_SCALER, amp_saved_scaler, &e->scaler);
    put_record(h, AMP_TAG_RUN, amp_saved_run, c->run);
    put_network(h, &e->parameters);
    put_ranks(h, c);
    put_averages(h, c->run);
    if (version == AMP_SIDECAR_VERSION) put_record(h, AMP_TAG_SPIKES, amp_saved_spikes, &e->spikes);
    amp_store_u64(h->bytes + 16, h->size + size);
}

/* ---- state of recurrent layers, per rank ---- */

size_t amp_sidecar_state_count(const amp_engine *engine)
{
    const amp_parameters *e = &engine->parameters;
    size_t count = 0;
    for (int i = 0; i < e->statistics_count; i++)
        if (amp_saved_is_state(e, i)) count += e->statistics[i].count;
    return count;
}

amp_status amp_sidecar_states(const amp_engine *engine, float *states, amp_error *error)
{
    const amp_parameters *e = &engine->parameters;
    for (int i = 0; i < e->statistics_count; i++) {
        const amp_statistics *s = &e->statistics[i];
        if (!amp_saved_is_state(e, i)) continue;
        AMP_TRY(e->backend->download(e->backend, states, s->array, s->count * sizeof *states, error));
        states += s->count;
    }
    return AMP_OK;
}

/* ---- the file ---- */

typedef struct sink {
    int file, failure;     /* failure: errno of the first failed write, after which nothing is written */
    amp_checksum sum;
} sink;

static void write_bytes(sink *s, const void *bytes, size_t size)
{
    const unsigned char *at = bytes, *end = at + size;
    amp_checksum_add(&s->sum, bytes, size);
    while (!s->failure && at < end) {
        ssize_t wrote = write(s->file, at, (size_t)(end - at));
        if (wrote > 0) at += wrote;
        else if (wrote == 0) s->failure = ENOSPC;
        else if (errno != EINTR) s->failure = errno;
    }
}

static amp_status write_array(sink *s, const saved_array *a, amp_backend *backend, amp_error *error)
{
    unsigned char record[ARRAY_HEAD];
    const float *from = a->values;
    float stage[STAGE];
    amp_store_u32(record, AMP_TAG_ARRAY);
    amp_store_u64(record + 4, AMP_SIDECAR_ARRAY_HEAD_BYTES + (uint64_t)a->count * 4);
    amp_store_u32(record + 12, a->kind);
    amp_store_u32(record + 16, (uint32_t)a->index);
    amp_store_u64(record + 20, a->count);
    write_bytes(s, record, sizeof record);
    for (size_t left = a->count, part; left && !s->failure; left -= part, from += part) {
        part = left < STAGE ? left : STAGE;
        if (a->kind == AMP_SAVED_AVERAGE) memcpy(stage, from, part * sizeof *from);
        else AMP_TRY(backend->download(backend, stage, from, part * sizeof *from, error));
        write_bytes(s, stage, part * sizeof *from);
    }
    return AMP_OK;
}

/* Saving masters or optimizer state with inf or NaN would replace a good sidecar with a useless one. */
static amp_status check_state(const amp_parameters *e, amp_error *error)
{
    int found_inf;
    for (int i = 0; i < 4 * e->param_count; i++) {
        const amp_param *p = &e->params[i / 4];
        const struct { const char *name; const float *values; } arrays[4] = {
            { "the master", p->master }, { "momentum", e->adam ? NULL : p->momentum },
            { "moment m", e->adam ? p->m : NULL }, { "moment v", e->adam ? p->v : NULL } };
        if (!arrays[i % 4].values) continue;
        AMP_TRY(amp_array_found_inf(e->backend, arrays[i % 4].values, p->count, &found_inf, error));
        if (found_inf)
            return amp_fail(error, AMP_DIVERGED,
                            "layer %d: %s of %s holds inf or NaN, so nothing is saved; continue from "
                            "an earlier backup with a lower learning_rate", p->layer, arrays[i % 4].name,
                            p->name);
    }
    return AMP_OK;
}

/* Writes the file's contents and flushes them to disk. */
static amp_status write_contents(sink *s, const char *path, const content *c, head *h, saved_array *list,
                                 int regular, amp_error *error)
{
    unsigned char trailer[AMP_SIDECAR_TRAILER_BYTES];
    uint32_t arrays = list_arrays(c, list);
    put_head(h, c, list, arrays);
    amp_checksum_start(&s->sum);
    write_bytes(s, h->bytes, h->size);
    for (uint32_t i = 0; i < arrays && !s->failure; i++)
        AMP_TRY(write_array(s, &list[i], c->engine->backend, error));
    amp_store_u64(trailer, amp_checksum_value(&s->sum));
    if (!s->failure) write_bytes(s, trailer, sizeof trailer);
    if (!s->failure && regular && fsync(s->file) != 0) s->failure = errno;
    return s->failure ? amp_cannot_write(path, s->failure, error) : AMP_OK;
}

static amp_status write_file(sink *s, const char *path, const content *c, head *h, saved_array *list,
                             amp_error *error)
{
    struct stat info;
    s->file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (s->file < 0) return amp_cannot_write(path, errno, error);
    int regular = fstat(s->file, &info) == 0 && S_ISREG(info.st_mode); /* 1: not a device: it is flushed, and
                                                                          removed after a failure */
    amp_status status = write_contents(s, path, c, h, list, regular, error);
    if (close(s->file) != 0 && status == AMP_OK) status = amp_cannot_write(path, errno, error);
    if (status != AMP_OK && regular) unlink(path);
    return status;
}

amp_status amp_sidecar_write(const char *path, amp_engine *engine, const amp_run_state *run,
                                uint64_t weights_checksum, amp_error *error)
{
    AMP_TRY(amp_parameters_take(&engine->parameters, error)); /* for an engine that has not trained yet */
    const amp_parameters *e = &engine->parameters;
    content c = { engine, run, weights_checksum };
    AMP_TRY(check_state(e, error));
    size_t entries = (size_t)(e->param_count + e->statistics_count);
    size_t averages = (size_t)run->average_count;
    saved_array *list = amp_allocated(malloc((entries * AMP_SAVED_KINDS + averages + 1) * sizeof *list));
    head h = { .bytes = amp_allocated(malloc(4096)), .room = 4096 };
    sink s = { 0 };
    amp_status status = write_file(&s, path, &c, &h, list, error);
    free(list);
    free(h.bytes);
    return status;
}
