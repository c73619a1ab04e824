/* Sorts hank-ai's command line into the plugin's order: see hooks.hpp. hank-ai's Darknet accepts words in any
 * order and in any case, with or without dashes and underscores, and recognizes files by their extensions. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "../../files/safe_file.h"
#include "../program/cfg.h"
#include "../program/request.h"
#include "../fork.h"
#include "../program/turns.h"
#include "hooks.hpp"

/* Whether both words have the same letters and digits, ignoring case. */
static int is_spelled(const char *word, const char *name)
{
    for (;; word++, name++) {
        while (*word && !isalnum((unsigned char)*word)) word++;
        while (*name && !isalnum((unsigned char)*name)) name++;
        if (tolower((unsigned char)*word) != tolower((unsigned char)*name)) return 0;
        if (!*word) return 1;
    }
}

static const amp_fork_option *option_of(const char *word)
{
    const amp_fork_option *const lists[] = { amp_host_own_options, amp_fork_options };
    for (int i = 0; i < 2; i++)
        for (const amp_fork_option *o = lists[i]; o->name; o++) if (is_spelled(word, o->name)) return o;
    return NULL;
}

/* Returns the word's position, from 0, in `detector train DATA CFG WEIGHTS`; 5: it has no position there. The
 * word must have no dash. */
static int place_of(const char *word)
{
    static const char *const functions[] = { "train", "test", "valid", "map", "recall", "calcanchors" };
    static const char *const endings[] = { ".data", ".cfg", ".weights", ".backup" };
    const char *ending = strrchr(word, '.');
    if (is_spelled(word, "detector")) return 0;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (is_spelled(word, functions[i])) return 1;
    for (int i = 0; ending && i < 4; i++) if (!strcmp(ending, endings[i])) return i < 2 ? 2 + i : 4;
    return 5;
}

/* Records a word as the weights file. Darknet takes a file *.weights as the weights file. It ignores other
 * words and missing files, and then trains from random weights. Under AMP, every word that is no command and
 * no .data, .cfg or .names file counts as the weights file (yolov4-tiny.conv.29), as in other forks. A second
 * such word is rejected. */
static void note_weights(const char *word)
{
    const char *ending = strrchr(word, '.');
    const char **weights = amp_program_to_set()->weights;
    if (ending && !strcmp(ending, ".names")) return;
    if (!weights[0]) weights[0] = word;
    else if (!weights[1]) weights[1] = word;
}

int darknet_amp_names_weights(const char *word)
{
    const char *ending = strrchr(word, '.'), *weights = amp_this_program()->weights[0];
    if (ending && (!strcmp(ending, ".weights") || !strcmp(ending, ".backup"))) return 1;
    return amp_this_program()->trains && weights && !strcmp(word, weights);
}

int darknet_amp_means_it(const char *cfg)
{
    const char *const *weights = amp_this_program()->weights;
    int under_amp = cfg && amp_host_cfg_uses_amp(cfg, CFG_FOR_ANYTHING, NULL);
    if (under_amp && weights[1])
        darknet_amp_refuse("command line: %.300s and %.300s: a training takes one weights file", weights[0],
                           weights[1]);
    if (under_amp && weights[0] && !amp_file_exists(weights[0]))
        darknet_amp_refuse("%.700s: this weights file does not exist", weights[0]);
    return under_amp || amp_turns_taken();
}

void darknet_amp_need_weights(void)
{
    const char *cfg = amp_this_program()->cfg_word, *weights = amp_this_program()->weights_word;
    if (cfg && weights && !amp_file_exists(weights) && amp_host_cfg_uses_amp(cfg, CFG_FOR_ANYTHING, NULL))
        darknet_amp_refuse("%.700s: this weights file does not exist", weights);
}

/* Whether Darknet finds this command's weights by their extension, and ignores a missing file. The other
 * commands find files by position, and end if they cannot read one. The file may also be their output. */
static int finds_weights(const char *command)
{
    return is_spelled(command, "detector") || is_spelled(command, "statistics")
           || is_spelled(command, "visualize");
}

/* Whether `next` is the value of this option. Only -map has an optional value: a number. */
static int takes_next(const amp_fork_option *option, const char *next)
{
    return option->has_value
           || (!strcmp(option->name, "-map") && *next && strspn(next, "0123456789") == strlen(next));
}

void amp_note_command(int is_ours); /* shims.cpp */

void darknet_amp_order(int argc, char **argv)
{
    char *words[argc + 1], *options[argc + 1];
    const char *weights = NULL;
    int places[argc + 1], word_count = 0, option_count = 0, of_detector = 0, reads_weights = 0, written = 1;
    int is_ours = argc > 1 && !strcmp(argv[1], "amp");
    amp_note_command(is_ours);
    if (is_ours) return;
    for (int i = 1; i < argc; i++) {
        const amp_fork_option *option = option_of(argv[i]);
        int place = argv[i][0] == '-' ? 5 : place_of(argv[i]);
        if (option && place == 5) {
            options[option_count++] = (char *)option->name;
            if (i + 1 < argc && takes_next(option, argv[i + 1])) options[option_count++] = argv[++i];
        } else if (argv[i][0] == '-') {
            options[option_count++] = argv[i];
        } else {
            of_detector |= place == 0;
            reads_weights |= finds_weights(argv[i]);
            if (place == 3) amp_program_to_set()->cfg_word = argv[i];
            if (place == 4) weights = argv[i];
            if (place >= 4) note_weights(argv[i]);
            places[word_count] = place;
            words[word_count++] = argv[i];
        }
    }
    if (reads_weights) amp_program_to_set()->weights_word = weights;
    if (!of_detector) return;
    for (int place = 0; place <= 5; place++)
        for (int k = 0; k < word_count; k++) if (places[k] == place) argv[written++] = words[k];
    for (int k = 0; k < option_count; k++) argv[written++] = options[k];
}
