/* Taking words and options from the program's arguments: see argument.h. */
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
        if (!value) darknet_amp_refuse("command line: %s needs a value; allowed: %s", name, allowed);
        for (int k = i; k < argc; k++) argv[k] = k + 2 < argc ? argv[k + 2] : NULL;
        *count = argc - 2;
        return value;
    }
    return NULL;
}

static int is_one_of(const char *word, const char *const *list)
{
    while (*list && strcmp(word, *list)) list++;
    return *list != NULL;
}

int amp_host_words(int argc, char **argv, const char **words, int most)
{
    static const char *const valued[] = { "-i", "-prefix", "-thresh", "-hier", "-c", "-s", "-avg", "-gpus",
                                          "-out", "-w", "-h", "-fps", "-t", "-log", "-cache",
                                          NULL };
    int found = 0;
    for (int i = 1; i < argc && argv[i] && found < most; i++) {
        if (is_one_of(argv[i], valued)) i++;
        else if (argv[i][0] != '-') words[found++] = argv[i];
    }
    return found;
}
