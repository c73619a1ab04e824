/* Reading the environment; see settings.h. */
#include "settings.h"

#include <stdlib.h>

enum { TUNE = 8 };

/* A whole number from 0 to most; `otherwise` where the variable is not set, or empty. */
static amp_status read_number(const char *name, int most, int otherwise, int *out, amp_error *error)
{
    const char *text = getenv(name);
    char *end;
    *out = otherwise;
    if (!text || !*text) return AMP_OK;
    long value = strtol(text, &end, 10);
    if (*end || value < 0 || value > most)
        return amp_fail(error, AMP_BAD_CONFIG, "environment: %s=%.40s; allowed: 0 to %d", name, text, most);
    *out = (int)value;
    return AMP_OK;
}

amp_status amp_cuda_settings_read(amp_cuda_settings *settings, amp_error *error)
{
    AMP_TRY(read_number("AMP_CUDA_TUNE", 100, TUNE, &settings->tune, error));
    AMP_TRY(read_number("AMP_CUDA_DETERMINISTIC", 1, 0, &settings->deterministic, error));
    AMP_TRY(read_number("AMP_CUDA_RANGES", 1, 0, &settings->ranges, error));
    /* Two runs may time differently, choose differently, and round differently. */
    if (settings->deterministic) settings->tune = 0;
    return AMP_OK;
}
