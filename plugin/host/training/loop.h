/* `detector train` and `classifier train`, beyond stock's loop: what a step is told to have done (-log, the
 * line per step), taking turns, stopping early. The hooks are described in darknet_amp.h. */
#pragma once

#include <stdarg.h>

struct network;

/* The parts of the hooks. runs: a loop has begun. goes_on: before each step; 0: the training stops here,
 * before its time, with a backup of what it has done. mean_loss, step: one was made, and its line is to be
 * printed. end: 1 if the last save failed. */
int amp_training_runs(void);
void amp_training_begin(struct network **nets, int count, float *average_loss, int *loop_count);
int amp_training_goes_on(struct network **nets, const char *backup_folder, const char *base);
void amp_training_mean_loss(float *loss, float *average_loss);
void amp_training_step(float loss, float average_loss, const char *format, va_list args);
int amp_training_end(struct network **nets);

/* Takes `-log FILE` and, of detector, `-map [N]` out of the arguments of these two commands; other commands
 * keep theirs. A mistake ends the program. */
void amp_training_arguments(int *argc, char **argv, int under_amp);

/* -map: every how many iterations; 0 if it was given without a number, -1 if it was not given. */
long amp_training_map_every(void);

/* The size of the network's input in its .cfg, whatever random=1 has made of it. */
void amp_training_input(int *w, int *h);

/* The loop spent these seconds on something else: they are not the training's in its summary. */
void amp_training_exclude_seconds(double seconds);
