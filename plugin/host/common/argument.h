/* One option of the program's command line. */
#pragma once

/* Takes `name value` out of argv; NULL where name is absent. Without a value the program ends with a line
 * that says what is allowed. */
const char *amp_host_take_argument(int *argc, char **argv, const char *name, const char *allowed);

/* The first words of the command line, "detector", "train", "my.data", at most `most`; returns how many there
 * are. Darknet's options, which are no words, may stand anywhere, before the command too. */
int amp_host_words(int argc, char **argv, const char **words, int most);
