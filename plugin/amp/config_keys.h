/* The keys of the [amp] section: their names, what each may be, and the parsing of their values.
 *
 * Values are kept as doubles whatever they are, so that one table serves all keys; config.c gives them their types. */
#ifndef AMP_AMP_CONFIG_KEYS_H
#define AMP_AMP_CONFIG_KEYS_H

#include <stddef.h>

typedef enum amp_key {
    AMP_KEY_AMP,             /* 0 or 1 */
    AMP_KEY_DTYPE,           /* an amp_dtype */
    AMP_KEY_LOSS_SCALE,      /* AMP_LOSS_SCALE_DYNAMIC, or the static scale */
    AMP_KEY_INIT_SCALE,
    AMP_KEY_GROWTH_FACTOR,
    AMP_KEY_BACKOFF_FACTOR,
    AMP_KEY_GROWTH_INTERVAL, /* a whole number that fits int */
    AMP_KEY_MIN_SCALE,
    AMP_KEY_MAX_SCALE,
    AMP_KEY_HYSTERESIS,      /* a whole number from 1 to 100 */
    AMP_KEY_CLIP_NORM,
    AMP_KEY_DEBUG,           /* 0 or 1 */
    AMP_KEYS                 /* how many there are; also "no such key" */
} amp_key;

#define AMP_LOSS_SCALE_DYNAMIC 0.0 /* no static scale is 0 */

amp_key amp_key_find(const char *name); /* AMP_KEYS if it is none */
const char *amp_key_name(amp_key key);
const char *amp_key_allowed(amp_key key); /* for the user: "an integer from 1 to 2147483647" */

/* Parses value into *number. Returns NULL, or what is wrong with it; *number is then unchanged. */
const char *amp_key_parse(amp_key key, const char *value, double *number);

/* A plain decimal number. Returns NULL, or what is wrong with value; *number is then unchanged. */
const char *amp_decimal_parse(const char *value, double *number);

/* The dtype called name ("fp32", "fp16", "bf16") as amp_dtype, or -1. */
int amp_dtype_find(const char *name);

/* The one of names[count] that name is probably a misspelling of, or NULL. */
const char *amp_closest_name(const char *name, const char *const *names, size_t count);

/* Writes "WHAT, did you mean NAME?" to text[size] and returns NAME; WHAT alone, and NULL, where no name is
 * close. */
const char *amp_did_you_mean(char *text, size_t size, const char *what, const char *name,
                             const char *const *names, size_t count);

#endif
