/* The format of a sidecar. Everything is little-endian and written field by field. f32 and f64 are IEEE 754
 * bits; text is a length byte and that number of bytes of printable ASCII.
 *
 *     header   u8[8] magic, u32 version, u32 bytes of the header, u64 bytes of the file,
 *              u64 checksum of the .weights file, u32 optimizer (0 SGD, 1 Adam, 2 AdamW), u32 number of
 *              records
 *     records  each: u32 tag, u64 number of content bytes, content
 *     trailer  u64 CRC-64/XZ of all bytes before it
 *
 *     SCAL  the loss scaler: amp_scaler's fields
 *     RUN   the host's part: amp_run_state's fields
 *     NETW  the network: u32 layers, each: text type;
 *           u32 parameters, each: u32 layer, u32 unsaved, u64 count, text name;
 *           u32 statistics, each: u32 layer, u32 unsaved, u64 count
 *     RANK  u32 number of ranks; u32 the type in which they sent gradients (0 fp32, 1 fp16, 2 bf16);
 *           u32 sync_batchnorm; for each rank except the first, the f32 state of its recurrent layers,
 *           in the order of their statistics
 *     AVRG  u32 averages of weights, each: u64 count
 *     SPIK  spike detection (spikes.h): u64 number of dropped steps, f64 loss of the current step;
 *           u64 number of norms seen, f64[128] the latest norms;
 *           u64 number of losses seen, f64[128] the latest losses
 *     ARRY  u32 kind, u32 index of the parameter, statistics or average, u64 count, count f32
 *
 * Each record except ARRY occurs once, in this order. Version 4, written if spike_factor is 0, has no SPIK.
 * Exactly these arrays follow: for each parameter its momentum (SGD), or m and v (Adam); masters and
 * statistics that are "unsaved" (not in the .weights file); each average; and, if RUN's window is not 0 (an
 * unfinished batch), the gradients of each parameter and the committed copies of all statistics. A later
 * version may change everything except the first 12 bytes. */
#pragma once

#include <stddef.h>

#include "sidecar.h"

/* Like PNG's signature: the first byte is not text, and a transfer in text mode changes the line ends. */
#define AMP_SIDECAR_MAGIC "\x89" "AMP\r\n\x1a\n"

/* The end of every message that rejects a sidecar. */
#define AMP_SIDECAR_REMEDY "remove the sidecar to start with a fresh loss scale and momentum"

enum {
    AMP_SIDECAR_VERSION = 5,
    AMP_SIDECAR_VERSION_WITHOUT_SPIKES = 4,
    AMP_SIDECAR_HEADER_BYTES = 40, AMP_SIDECAR_TRAILER_BYTES = 8,
    AMP_SIDECAR_ARRAY_HEAD_BYTES = 16,
    AMP_SIDECAR_TEXT_LIMIT = 255
};

/* The number of records before the arrays. */
#define AMP_SIDECAR_RECORDS_OF(version) ((version) == AMP_SIDECAR_VERSION ? 6u : 5u)

#define AMP_SIDECAR_TAG(a, b, c, d) \
    ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)
#define AMP_TAG_SCALER AMP_SIDECAR_TAG('S', 'C', 'A', 'L')
#define AMP_TAG_RUN AMP_SIDECAR_TAG('R', 'U', 'N', ' ')
#define AMP_TAG_NETWORK AMP_SIDECAR_TAG('N', 'E', 'T', 'W')
#define AMP_TAG_RANKS AMP_SIDECAR_TAG('R', 'A', 'N', 'K')
#define AMP_TAG_AVERAGES AMP_SIDECAR_TAG('A', 'V', 'R', 'G')
#define AMP_TAG_SPIKES AMP_SIDECAR_TAG('S', 'P', 'I', 'K')
#define AMP_TAG_ARRAY AMP_SIDECAR_TAG('A', 'R', 'R', 'Y')

/* Kinds of arrays. Parameters have the kinds before AMP_SAVED_PARAM_KINDS, statistics have LIVE and
 * COMMITTED, and averages have AVERAGE. */
typedef enum amp_saved_kind {
    AMP_SAVED_MOMENTUM, AMP_SAVED_M, AMP_SAVED_V, AMP_SAVED_MASTER, AMP_SAVED_GRADIENT, AMP_SAVED_PARAM_KINDS,
    AMP_SAVED_LIVE = AMP_SAVED_PARAM_KINDS, AMP_SAVED_COMMITTED, AMP_SAVED_AVERAGE, AMP_SAVED_KINDS
} amp_saved_kind;

/* Whether a sidecar has an array of this kind. unsaved: 1 if the .weights file lacks the parameter or the
 * statistics. window: as in amp_run_state. */
static inline int amp_saved_wanted(amp_saved_kind kind, int adam, int unsaved, int window)
{
    switch (kind) {
    case AMP_SAVED_MOMENTUM: return !adam;
    case AMP_SAVED_M: case AMP_SAVED_V: return adam;
    case AMP_SAVED_MASTER: case AMP_SAVED_LIVE: return unsaved;
    case AMP_SAVED_AVERAGE: return 1;
    default: return window != 0;
    }
}

/* Numbers in the file's byte order, at any alignment. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "memory and the file have the same byte order");
static inline void amp_store_u32(void *at, uint32_t value) { memcpy(at, &value, sizeof value); }
static inline void amp_store_u64(void *at, uint64_t value) { memcpy(at, &value, sizeof value); }
static inline uint32_t amp_fetch_u32(const void *at)
{
    uint32_t value; memcpy(&value, at, sizeof value); return value;
}
static inline uint64_t amp_fetch_u64(const void *at)
{
    uint64_t value; memcpy(&value, at, sizeof value); return value;
}

/* Offset and size of a record's field in its struct. The arrays below are in the file's order. */
typedef struct amp_saved_field { size_t offset, size; } amp_saved_field;

_Static_assert(sizeof(unsigned long) == 8, "amp_scaler's counters have 8 bytes in the file");

#define F(name) { offsetof(amp_scaler, name), sizeof ((amp_scaler *)0)->name }
static const amp_saved_field amp_saved_scaler[] = {
    F(scale), F(enabled), F(dynamic), F(growth_factor), F(backoff_factor), F(growth_interval),
    F(growth_tracker), F(min_scale), F(max_scale), F(hysteresis), F(hysteresis_tracker), F(steps), F(skipped),
    F(stuck), { 0 } };
#undef F
#define F(name) { offsetof(amp_run_state, name), sizeof ((amp_run_state *)0)->name }
static const amp_saved_field amp_saved_run[] = {
    F(seen), F(t), F(steps), F(skipped), F(width), F(height), F(batch), F(subdivisions), F(window), F(seeded),
    F(seed), F(next_job), F(random), F(looped), F(loop_count), F(average_loss), { 0 } };
#undef F
#define F(name) { offsetof(amp_spikes, name), sizeof ((amp_spikes *)0)->name }
static const amp_saved_field amp_saved_spikes[] = {
    F(dropped), F(loss), F(norms.seen), F(norms.values), F(losses.seen), F(losses.values), { 0 } };
#undef F

/* Text inside the file's bytes; not terminated by 0. */
typedef struct amp_saved_text { const char *at; int length; } amp_saved_text;

/* A parameter, an array of statistics, or an average. Only a parameter has a name. */
typedef struct amp_saved_entry {
    int layer, unsaved;
    amp_saved_text name;
    size_t count;
    const unsigned char *arrays[AMP_SAVED_KINDS]; /* the array of each kind; NULL: not in the file */
} amp_saved_entry;

/* A sidecar file that was read and is valid. Texts, `states` and the entries' arrays point into `bytes`. */
struct amp_sidecar {
    unsigned char *bytes;
    size_t size;
    char name[512];         /* the file's name for messages, shortened and printable */
    uint64_t weights;       /* checksum of the .weights file */
    int adam, adamw;
    amp_scaler scaler;
    amp_spikes spikes;      /* the state of spike detection; all 0 in version 4 */
    amp_run_state run;
    amp_saved_text *layers; /* the layers' types */
    amp_saved_entry *params, *statistics, *averages;
    int layer_count, param_count, statistics_count, average_count;
    const unsigned char *states; /* states of ranks 1 to run.ranks - 1, state_count floats each */
    size_t state_count;
};

/* Whether statistics[i] is the state that a recurrent layer carries from batch to batch. */
static inline int amp_saved_is_state(const amp_parameters *e, int i)
{
    return e->statistics[i].unsaved && e->statistics[i].rolling_factor <= 0;
}
