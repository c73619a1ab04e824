/* The words and options of the command line. */
#pragma once

#include "../fork.h"
#include "program.h"

/* The position of a word in argv; 0: it is not there. */
int amp_host_find_argument(int argc, char **argv, const char *name);
/* Removes `count` words from argv, starting at index `at`; the entries freed at its end become NULL. */
void amp_host_remove_arguments(int *argc, char **argv, int at, int count);

/* Removes the word `name` from argv. Returns the index where it was and where the following word is now; 0:
 * it is not there. Ends the program with a message if the word is given twice. */
int amp_host_take_flag(int *argc, char **argv, const char *name);
/* Removes the words `name value` from argv and returns the value; NULL: name is absent. Ends the program if
 * name is given twice or its value is missing. allowed: the description of valid values in that message. */
const char *amp_host_take_argument(int *argc, char **argv, const char *name, const char *allowed);

/* AMP's own options, in the format of amp_fork_options; the last entry has no name. */
extern const amp_fork_option amp_host_own_options[];

/* Looks for options that `detector train` or `classifier train` does not know. Darknet takes an unknown
 * option for a file name or, after the weights, ignores it. A message names the unknown option and the most
 * similar known one. Options that are repeated or lack their value are reported too. If refuses is set, a
 * message ends the program; otherwise it is a warning. It is always only a warning if the word is not similar
 * to any option. A number or a file name is not an option. */
void amp_host_check_options(int argc, char **argv, int classifier, int refuses);

/* Finds the first words of the command line, at most `most`, that are not options: for example "detector",
 * "train", "my.data". Returns their number. Options may be anywhere, also before the command. */
int amp_host_command_words(int argc, char **argv, const char **words, int most);

/* Sets the fields of amp_program that depend on the command: refusal, measures, maps, clear. */
void amp_host_note_command(int argc, char **argv);

/* Sets amp_program's options of `detector train` and `classifier train`, and removes AMP's own from the
 * arguments; other commands' arguments stay. A mistake ends the program. */
void amp_host_take_options(int *argc, char **argv, int under_amp);

/* Where decoded images are kept: the value of -cache, and of cache= in a .data file. amp_cache_word returns
 * the kind that a word names; -1: the word is unknown. */
typedef enum amp_cache_kind { AMP_CACHE_OFF, AMP_CACHE_RAM, AMP_CACHE_DISK } amp_cache_kind;
#define AMP_CACHE_WORDS "ram, disk, off"
#define AMP_CACHE_HELPS "cache=disk" /* what messages recommend against slow loading */
int amp_cache_word(const char *word);

/* The dtype of networks made from here on (amp_program.dtype). The string is not copied: it must live until
 * those networks are made. For commands that make their own networks; not thread-safe. */
void amp_host_request_dtype(const char *dtype);
