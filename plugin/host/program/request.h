/* The words and options of the command line. */
#pragma once

#include "../fork.h"
#include "program.h"

/* The index of a word in argv; 0: argv does not contain it. */
int amp_host_find_argument(int argc, char **argv, const char *name);
/* Removes `count` words from argv, from index `at`. Sets the entries that become free at the end of argv to
 * NULL. */
void amp_host_remove_arguments(int *argc, char **argv, int at, int count);

/* Removes the word `name` from argv. Returns the index of the removed word, which is now the index of the
 * next word; 0: the word was not given. Ends the program if it is given twice. */
int amp_host_take_flag(int *argc, char **argv, const char *name);
/* Removes the words `name value` from argv and returns the value; NULL: `name` was not given. Ends the
 * program if it is given twice or has no value. allowed: describes the valid values in the message. */
const char *amp_host_take_argument(int *argc, char **argv, const char *name, const char *allowed);

/* AMP's own options, in the format of amp_fork_options; the last entry has no name. */
extern const amp_fork_option amp_host_own_options[];

/* Looks for options of `detector train` or `classifier train` that are unknown, repeated or lack their value.
 * (Darknet ignores an unknown option after the weights; elsewhere it takes the option for a file name.)
 * refuses=1: a mistake ends the program. refuses=0: a mistake causes only a warning. An unknown option that
 * is not similar to a known one causes only a warning in both cases. A number, or the name of an existing
 * file, is not taken for an option. */
void amp_host_check_options(int argc, char **argv, int classifier, int refuses);

/* Finds the first `most` words of the command line that are neither options nor values of options, and
 * returns how many it found. Options may be anywhere, even before the command. */
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
