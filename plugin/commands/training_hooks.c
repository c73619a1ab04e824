/* The hooks in the loops of `detector train` and `classifier train`. They call the host's functions (log,
 * turns, stopping) and those of -map. */
#include "../host/fork.h"
#include "../host/program/ranks.h"
#include "../host/program/stopping.h"
#include "../host/program/turns.h"
#include "../host/training/loop.h"
#include "../include/darknet_amp.h"
#include "command.h"
#include "map/map_training.h"

#include <unistd.h>

/* Ends -map and the training. Returns 1 if the final save failed. */
static int end(struct network **nets)
{
    amp_map_end();
    return amp_training_end(nets);
}

static _Noreturn void leave(struct network **nets, int status, const char *line)
{
    int failed = end(nets);
    if (*line && amp_ranks_leads()) fprintf(stderr, "%s\n", line);
    fflush(NULL);
    amp_ranks_leave();
    _exit(failed ? 1 : status); /* not exit, because the loader thread is still working */
}

int darknet_amp_next_step(struct network **nets, int count, float *average_loss, int *loop_count,
                          const char *data_file, int train_images, const char *backup_folder,
                          const char *base)
{
    /* Under AMP all networks of -gpus make each step together, so nets[0] stands for them all. */
    if (amp_fork_state(nets[0])) count = 1;
    if (!amp_training_runs()) {
        amp_first_check(nets[0]);
        amp_training_begin(nets, count, average_loss, loop_count);
        amp_map_begin(nets, count, data_file, train_images, backup_folder, base);
    }
    if (amp_training_goes_on(nets, amp_map_stops(), backup_folder, base)) return 1;
    int signal = amp_stopping_signal();
    leave(nets, signal ? 128 + signal : 0, "");
}

void darknet_amp_takes_batch(struct network **nets)
{
    amp_error error;
    if (amp_fork_state(nets[0]) && amp_training_takes_batch(&error)) leave(nets, 1, error.message);
}

void darknet_amp_step(float loss, float average_loss, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    amp_training_step(loss, average_loss, format, args);
    va_end(args);
    amp_map_step();
}

int darknet_amp_draws_chart(void) { return amp_ranks_leads() && !amp_turns_taken(); }

void darknet_amp_loop_ended(struct network **nets)
{
    if (end(nets)) exit(1);
}
