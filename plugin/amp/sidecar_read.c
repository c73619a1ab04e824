/* Reads a sidecar. Everything is checked before it is used: any input gives a valid amp_sidecar or a
 * message. */
#include "sidecar_format.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../files/checksum.h"
#include "../tensor/half.h"
#include "cfg_text.h"

/* The unread bytes of a record, or of a part of it. Reading past the end sets `broken` and returns zeros. */
typedef struct cursor {
    const unsigned char *at, *end;
    int broken;
} cursor;

#define refuse(c, error, why, ...) \
    amp_fail(error, AMP_BAD_SIDECAR, "%s: " why "; " AMP_SIDECAR_REMEDY, (c)->name, ##__VA_ARGS__)

static size_t left(const cursor *c) { return (size_t)(c->end - c->at); }

static const unsigned char *take(cursor *c, size_t size)
{
    static const unsigned char nothing[8];
    if (c->broken || left(c) < size) {
        c->broken = 1;
        return size <= sizeof nothing ? nothing : NULL;
    }
    c->at += size;
    return c->at - size;
}

static uint32_t take_u32(cursor *c) { return amp_fetch_u32(take(c, 4)); }
static uint64_t take_u64(cursor *c) { return amp_fetch_u64(take(c, 8)); }

/* Fills the struct at `to` from a record. Returns whether the record has exactly the fields' size. */
static int take_fields(cursor *c, const amp_saved_field *fields, void *to)
{
    for (const amp_saved_field *f = fields; f->size; f++) {
        const unsigned char *from = take(c, f->size);
        if (!c->broken) memcpy((char *)to + f->offset, from, f->size);
    }
    return !c->broken && !left(c);
}

/* Takes a text: a length byte and 1 to 255 characters of printable ASCII. */
static amp_saved_text take_text(cursor *c)
{
    int length = *take(c, 1);
    const char *at = (const char *)take(c, (size_t)length);
    for (int k = 0; k < length && !c->broken; k++)
        if (at[k] < 0x20 || at[k] > 0x7e) c->broken = 1;
    if (!length) c->broken = 1;
    return (amp_saved_text){ at, length };
}

/* Takes the number of entries that follow, each of at least entry_bytes bytes. If the unread bytes are too
 * few for this number, sets `broken` and returns 0. */
static int take_count(cursor *c, size_t entry_bytes)
{
    uint32_t count = take_u32(c);
    if (count > left(c) / entry_bytes || count > INT32_MAX) c->broken = 1;
    return c->broken ? 0 : (int)count;
}

/* ---- records ---- */

/* The smallest entries of the NETW record, in bytes. */
enum { PARAM_BYTES = 18, STATISTICS_BYTES = 16 };

static amp_status read_scaler(amp_sidecar *c, cursor r, amp_error *error)
{
    const amp_scaler *s = &c->scaler;
    if (!take_fields(&r, amp_saved_scaler, &c->scaler))
        return refuse(c, error, "it is damaged: its scaler's record has the wrong size");
    const char *problem = amp_scaler_problem(s);
    return problem ? refuse(c, error, "it is damaged: loss scaler: %s", problem) : AMP_OK;
}

static amp_status read_run(amp_sidecar *c, cursor r, amp_error *error)
{
    const amp_run_state *s = &c->run;
    if (!take_fields(&r, amp_saved_run, &c->run))
        return refuse(c, error, "it is damaged: its counters' record has the wrong size");
    if (s->t < 0 || s->width < 0 || s->height < 0 || s->batch < 0 || s->subdivisions < 0 || s->window < 0
        || s->loop_count < 0)
        return refuse(c, error, "it is damaged: one of its counters is negative");
    /* The host keeps these counters in an int. */
    if (s->t >= INT32_MAX || s->loop_count == INT32_MAX || !amp_is_finite(s->average_loss))
        return refuse(c, error, "it is damaged: one of its counters is out of range");
    if ((s->seeded | s->looped) & ~1) return refuse(c, error, "it is damaged: a flag is neither 0 nor 1");
    return AMP_OK;
}

/* Takes the number of entries, then the entries, of at least `bytes` bytes each. Only parameters have
 * names. */
static amp_saved_entry *take_entries(const amp_sidecar *c, cursor *r, int bytes, int *count)
{
    *count = take_count(r, (size_t)bytes);
    amp_saved_entry *entries = amp_allocated(calloc((size_t)*count + 1, sizeof *entries));
    for (int i = 0; i < *count; i++) {
        uint32_t layer = take_u32(r), unsaved = take_u32(r);
        uint64_t elements = take_u64(r);
        if (layer >= (uint32_t)c->layer_count || unsaved > 1 || elements > SIZE_MAX / 4) r->broken = 1;
        entries[i] = (amp_saved_entry){ .layer = (int)layer, .unsaved = (int)unsaved,
                                        .count = (size_t)elements };
        if (bytes == PARAM_BYTES) entries[i].name = take_text(r);
    }
    return entries;
}

static amp_status read_network(amp_sidecar *c, cursor r, amp_error *error)
{
    c->layer_count = take_count(&r, 2);
    c->layers = amp_allocated(calloc((size_t)c->layer_count + 1, sizeof *c->layers));
    for (int i = 0; i < c->layer_count; i++) c->layers[i] = take_text(&r);
    c->params = take_entries(c, &r, PARAM_BYTES, &c->param_count);
    c->statistics = take_entries(c, &r, STATISTICS_BYTES, &c->statistics_count);
    if (r.broken || left(&r))
        return refuse(c, error, "it is damaged: its record of the network is invalid");
    return AMP_OK;
}

static amp_status read_ranks(amp_sidecar *c, cursor r, amp_error *error)
{
    uint32_t ranks = take_u32(&r), wire = take_u32(&r), sync = take_u32(&r);
    size_t others = ranks > 1 ? ranks - 1 : 1;
    if (r.broken || !ranks || ranks > INT32_MAX || wire > AMP_BF16 || sync > 1 || left(&r) % (4 * others)
        || (ranks == 1 && left(&r)))
        return refuse(c, error, "it is damaged: its record of ranks is invalid");
    c->run.ranks = (int32_t)ranks;
    c->run.wire = ranks > 1 ? (int32_t)wire : -1;
    c->run.sync_batchnorm = ranks > 1 ? (int32_t)sync : -1;
    c->states = r.at;
    c->state_count = left(&r) / (4 * others);
    for (size_t k = 0; k < c->state_count * others; k++)
        if (!amp_is_finite(amp_bits_float(amp_fetch_u32(r.at + 4 * k))))
            return refuse(c, error, "it is damaged: a recurrent state is not finite");
    return AMP_OK;
}

static amp_status read_averages(amp_sidecar *c, cursor r, amp_error *error)
{
    c->average_count = take_count(&r, 8);
    c->averages = amp_allocated(calloc((size_t)c->average_count + 1, sizeof *c->averages));
    for (int i = 0; i < c->average_count; i++) {
        uint64_t elements = take_u64(&r);
        if (elements > SIZE_MAX / 4) r.broken = 1;
        c->averages[i].count = (size_t)elements;
    }
    if (r.broken || left(&r))
        return refuse(c, error, "it is damaged: its record of averages is invalid");
    return AMP_OK;
}

static amp_status read_spikes(amp_sidecar *c, cursor r, amp_error *error)
{
    if (!take_fields(&r, amp_saved_spikes, &c->spikes))
        return refuse(c, error, "it is damaged: its record of spikes has the wrong size");
    const char *problem = amp_spikes_problem(&c->spikes);
    return problem ? refuse(c, error, "it is damaged: its record of spikes: %s", problem) : AMP_OK;
}

/* Returns the entry to which an array of this kind and index belongs, or NULL. */
static amp_saved_entry *entry_of(const amp_sidecar *c, uint32_t kind, uint32_t index)
{
    const struct { amp_saved_entry *entries; int count; } lists[] = {
        { c->params, c->param_count }, { c->statistics, c->statistics_count },
        { c->averages, c->average_count } }, *list =
        &lists[kind < AMP_SAVED_PARAM_KINDS ? 0 : kind < AMP_SAVED_AVERAGE ? 1 : 2];
    return kind < AMP_SAVED_KINDS && index < (uint32_t)list->count ? &list->entries[index] : NULL;
}

static int is_wanted(const amp_sidecar *c, const amp_saved_entry *e, uint32_t kind)
{
    return amp_saved_wanted((amp_saved_kind)kind, c->adam, e->unsaved, c->run.window);
}

/* Optimizer state and averages must be finite, and Adam's v not negative, because its square root is taken.
 * Gradients of an unfinished batch may be inf or NaN: the end of the step checks them. */
static int values_sound(uint32_t kind, const unsigned char *at, size_t count)
{
    if (kind != AMP_SAVED_MOMENTUM && kind != AMP_SAVED_M && kind != AMP_SAVED_V
        && kind != AMP_SAVED_AVERAGE)
        return 1;
    for (size_t k = 0; k < count; k++) {
        float value = amp_bits_float(amp_fetch_u32(at + 4 * k));
        if (!amp_is_finite(value) || (kind == AMP_SAVED_V && value < 0)) return 0;
    }
    return 1;
}

static amp_status read_array(amp_sidecar *c, cursor r, amp_error *error)
{
    uint32_t kind = take_u32(&r), index = take_u32(&r);
    uint64_t elements = take_u64(&r);
    amp_saved_entry *e = entry_of(c, kind, index);
    if (r.broken || !e || !is_wanted(c, e, kind) || e->arrays[kind] || elements != e->count || left(&r) % 4
        || left(&r) / 4 != e->count)
        return refuse(c, error, "it is damaged: an array does not fit its network (kind %u, number %u)", kind,
                      index);
    if (!values_sound(kind, r.at, e->count))
        return refuse(c, error, "it is damaged: an array is not finite (kind %u, number %u)", kind,
                      index);
    e->arrays[kind] = r.at;
    return AMP_OK;
}

static amp_status check_complete(amp_sidecar *c, amp_error *error)
{
    const amp_saved_entry *e;
    for (uint32_t kind = 0; kind < AMP_SAVED_KINDS; kind++)
        for (uint32_t i = 0; (e = entry_of(c, kind, i)); i++)
            if (is_wanted(c, e, kind) && !e->arrays[kind])
                return refuse(c, error, "it is damaged: an array is missing (kind %u, number %u)", kind, i);
    return AMP_OK;
}

/* ---- the file ---- */

static amp_status read_records(amp_sidecar *c, uint32_t records, amp_error *error)
{
    typedef amp_status reader(amp_sidecar *, cursor, amp_error *);
    static const struct { uint32_t tag; reader *read; } first[] = {
        { AMP_TAG_SCALER, read_scaler }, { AMP_TAG_RUN, read_run }, { AMP_TAG_NETWORK, read_network },
        { AMP_TAG_RANKS, read_ranks }, { AMP_TAG_AVERAGES, read_averages },
        { AMP_TAG_SPIKES, read_spikes } };
    uint32_t first_count = AMP_SIDECAR_RECORDS_OF(amp_fetch_u32(c->bytes + 8));
    cursor all = { c->bytes + AMP_SIDECAR_HEADER_BYTES, c->bytes + c->size - AMP_SIDECAR_TRAILER_BYTES,
                   0 };
    for (uint32_t n = 0; n < records; n++) {
        uint32_t tag = take_u32(&all);
        uint64_t size = take_u64(&all);
        if (all.broken || size > left(&all))
            return refuse(c, error, "it is damaged: record %u is longer than the file", n);
        const unsigned char *at = take(&all, (size_t)size);
        if (tag != (n < first_count ? first[n].tag : AMP_TAG_ARRAY))
            return refuse(c, error, "it is damaged: record %u does not belong there", n);
        AMP_TRY((n < first_count ? first[n].read : read_array)(c, (cursor){ at, at + size, 0 }, error));
    }
    if (records < first_count || left(&all))
        return refuse(c, error, "it is damaged: it holds %u records, and %zu bytes after the last",
                                records, left(&all));
    return check_complete(c, error);
}

static amp_status read_file(amp_sidecar *c, amp_error *error)
{
    const unsigned char *b = c->bytes;
    if (!c->size) return refuse(c, error, "it is empty");
    if (c->size < 8 || memcmp(b, AMP_SIDECAR_MAGIC, 8))
        return refuse(c, error, "Darknet AMP did not write this file");
    if (c->size < 12) return refuse(c, error, "it is cut off after %zu bytes", c->size);
    uint32_t version = amp_fetch_u32(b + 8);
    if (version > AMP_SIDECAR_VERSION)
        return amp_fail(error, AMP_BAD_SIDECAR,
                        "%s: it has version %u of its format, but this program reads only versions up to %d; "
                        "update the program, or " AMP_SIDECAR_REMEDY, c->name, version,
                        AMP_SIDECAR_VERSION);
    if (version < AMP_SIDECAR_VERSION_WITHOUT_SPIKES)
        return refuse(c, error, "it has version %u of its format, which this program does not read", version);
    if (c->size < AMP_SIDECAR_HEADER_BYTES + AMP_SIDECAR_TRAILER_BYTES)
        return refuse(c, error, "it is cut off after %zu bytes", c->size);
    uint64_t total = amp_fetch_u64(b + 16);
    if (amp_fetch_u32(b + 12) != AMP_SIDECAR_HEADER_BYTES)
        return refuse(c, error, "it is damaged in its first bytes");
    if (total > c->size)
        return refuse(c, error, "it is cut off: %zu of its %llu bytes are left", c->size,
                      (unsigned long long)total);
    if (total < c->size)
        return refuse(c, error, "it is damaged: %zu bytes follow its end", c->size - (size_t)total);
    size_t body = c->size - AMP_SIDECAR_TRAILER_BYTES;
    if (amp_checksum_of(b, body) != amp_fetch_u64(b + body))
        return refuse(c, error, "it is damaged: its content does not match its checksum");
    c->weights = amp_fetch_u64(b + 24);
    uint32_t optimizer = amp_fetch_u32(b + 32);
    if (optimizer > 2) return refuse(c, error, "it is damaged: optimizer %u is unknown", optimizer);
    c->adam = optimizer > 0;
    c->adamw = optimizer == 2;
    return read_records(c, amp_fetch_u32(b + 36), error);
}

amp_status amp_sidecar_parse(unsigned char *bytes, size_t size, const char *name, amp_sidecar **out,
                             amp_error *error)
{
    amp_sidecar *c = amp_allocated(calloc(1, sizeof *c));
    *out = NULL;
    c->bytes = bytes;
    c->size = size;
    cfg_printable(c->name, sizeof c->name, name);
    amp_status status = read_file(c, error);
    if (status == AMP_OK) *out = c;
    else amp_sidecar_free(c);
    return status;
}

static amp_status cannot_read(const char *path, const char *why, amp_error *error)
{
    char shown[512];
    cfg_printable(shown, sizeof shown, path);
    return amp_fail(error, AMP_IO_FAILED, "cannot read %s: %s; " AMP_SIDECAR_REMEDY, shown, why);
}

static amp_status no_file(const char *path, const struct stat *info, amp_error *error)
{
    return cannot_read(path, S_ISDIR(info->st_mode) ? strerror(EISDIR) : "it is not a regular file", error);
}

static amp_status load(int file, const char *path, amp_sidecar **out, amp_error *error)
{
    struct stat info;
    if (fstat(file, &info) != 0) return cannot_read(path, strerror(errno), error);
    if (!S_ISREG(info.st_mode)) return no_file(path, &info, error);
    size_t size = (size_t)info.st_size, done = 0;
    unsigned char *bytes = malloc(size ? size : 1);
    if (!bytes)
        return amp_fail(error, AMP_NO_MEMORY, "no memory to read %.500s, which has %zu bytes", path, size);
    while (done < size) {
        ssize_t got = read(file, bytes + done, size - done);
        if (got > 0) done += (size_t)got;
        if (got == 0) size = done;
        if (got >= 0 || errno == EINTR) continue;
        const char *why = strerror(errno);
        free(bytes);
        return cannot_read(path, why, error);
    }
    return amp_sidecar_parse(bytes, size, path, out, error);
}

amp_status amp_sidecar_read(const char *path, amp_sidecar **out, amp_error *error)
{
    struct stat info;
    *out = NULL;
    /* Open only regular files: opening a device may have a side effect, and opening a FIFO may block. */
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) return no_file(path, &info, error);
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return cannot_read(path, errno == ENOENT && amp_name_is_taken(path)
                           ? "it is a symbolic link to a missing file" : strerror(errno), error);
    amp_status status = load(file, path, out, error);
    close(file);
    return status;
}

void amp_sidecar_free(amp_sidecar *c)
{
    if (!c) return;
    free(c->bytes);
    free(c->layers);
    free(c->params);
    free(c->statistics);
    free(c->averages);
    free(c);
}

const amp_run_state *amp_sidecar_run(const amp_sidecar *c) { return &c->run; }
int amp_sidecar_adam(const amp_sidecar *c) { return c->adam; }
