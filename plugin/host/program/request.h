/* The words and options of the command line. */
#pragma once

#include "../fork.h"
#include "program.h"

/* The index of a word in argv; 0: argv does not contain it. */
int amp_host_find_argument(int argc, char **argv, const char *name);
/* Removes `count` words from argv, starting at index `at`. The entries that become free at the end of argv
 * are set to NULL. */
void amp_host_remove_arguments(int *argc, char **argv, int at, int count);

/* Removes the word `name` from argv. Returns the index that the word had; the word after it has this index
 * now. 0: the word was not given. Ends the program with a message if the word is given twice. */
int amp_host_take_flag(int *argc, char **argv, const char *name);
/* Removes the words `name value` from argv and returns the value; NULL: `name` was not given. Ends the
 * program if `name` is given twice or has no value; the message then describes the valid values with the text
 * `allowed`. */
const char *amp_host_take_argument(int *argc, char **argv, const char *name, const char *allowed);

/* AMP's own options, in the format of amp_fork_options; the last entry has no name. */
extern const amp_fork_option amp_host_own_options[];

/* Looks for options that `detector train` or `classifier train` does not know. (Darknet takes an unknown
 * option for a file name, or ignores it if it follows the weights.) For each unknown option, prints a message
 * with the most similar known option. Also reports options that are repeated or lack their value. refuses=1:
 * the message ends the program; refuses=0: it is a warning. An unknown option that resembles no known option
 * only causes a warning. Numbers and file names are not options. */
void amp_host_check_options(int argc, char **argv, int classifier, int refuses);

/* Finds the first `most` words of the command line that are not options or their values: for example
 * "detector", "train", "my.data". Returns how many it found. Options may be anywhere, even before the
 * command. */
int amp_host_command_words(int argc, char **argv, const char **words, int most);

/* Sets the fields of amp_program that depend on the command: refusal, measures, maps, clear. */
void amp_host_note_command(int argc, char **argv);

/* For `detector train` and `classifier train`: sets the options in amp_program, and removes AMP's own options
 * from argv. Does nothing for other commands. A mistake ends the program. */
void amp_host_take_options(int *argc, char **argv, int under_amp);

/* The place where decoded images are kept: the value of -cache, and of cache= in a .data file. amp_cache_word
 * returns the kind for a word; -1: the word is unknown. */
typedef enum amp_cache_kind { AMP_CACHE_OFF, AMP_CACHE_RAM, AMP_CACHE_DISK } amp_cache_kind;
#define AMP_CACHE_WORDS "ram, disk, off"
#define AMP_CACHE_HELPS "cache=disk" /* the remedy that messages recommend if loading is slow */
int amp_cache_word(const char *word);
