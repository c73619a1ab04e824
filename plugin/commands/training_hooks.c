/* The hooks of the loop of `detector train` and `classifier train`: the host's loop (log, turns, stopping), and -map. */
#include "../host/training/loop.h"
#include "../include/darknet_amp.h"
#include "map/map_training.h"

void darknet_amp_loop(struct network **nets, int count, float *average_loss, int *loop_count, const char *data_file,
                      int train_images, const char *backup_folder, const char *base)
{
    amp_training_begin(nets, count, average_loss, loop_count);
    amp_map_begin(nets, count, data_file, train_images, backup_folder, base);
}

void darknet_amp_step(float loss, float average_loss, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    amp_training_step(loss, average_loss, format, args);
    va_end(args);
    amp_map_step();
}

void darknet_amp_loop_ended(struct network **nets, int count)
{
    amp_map_end();
    amp_training_end(nets, count);
}
