/* One option of the program's command line. */
#ifndef AMP_HOST_ARGUMENT_H
#define AMP_HOST_ARGUMENT_H

/* Takes `name value` out of argv; NULL where name is absent. Without a value the program ends with a line
 * that says what is allowed. */
const char *amp_host_take_argument(int *argc, char **argv, const char *name, const char *allowed);

/* The program's command, "detector" and "train". Darknet's options may stand anywhere, before the command too. 0: there are
 * not two words. */
int amp_host_find_command(int argc, char **argv, const char *command[2]);

#endif
