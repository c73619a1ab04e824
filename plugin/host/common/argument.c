#include "argument.h"

#include <stddef.h>
#include <string.h>

#include "failure.h"

const char *amp_host_take_argument(int *count, char **argv, const char *name, const char *allowed)
{
    int argc = *count;
    for (int i = 1; i < argc; i++) {
        if (!argv[i] || strcmp(argv[i], name)) continue;
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        amp_error error;
        if (!value) {
            amp_fail(&error, AMP_BAD_CONFIG, "command line: %s needs a value; allowed: %s", name, allowed);
            amp_host_die(&error);
        }
        for (int k = i; k < argc; k++) argv[k] = k + 2 < argc ? argv[k + 2] : NULL;
        *count = argc - 2;
        return value;
    }
    return NULL;
}
