/* AlexeyAB's `detector train DATA CFG [WEIGHTS] -gpus 0,0 ...`, and `classifier train`, over the doubles of
 * CUDA and NCCL, as a program built with GPU=1: for e2e_alexeyab_gpus. Of hank-ai's Darknet, for
 * e2e_hank_ai_gpus, it is all of the program: its own main, and what comes before and behind it. */
#define _DEFAULT_SOURCE
#include "rank_threads.h"

#include <string.h>
#include <unistd.h>

#include "include/darknet_amp.h"

/* Rank 1 waits for rank 0 to say why both end, and must not have the turn meanwhile. */
void __real_amp_ranks_await_end(void);
void __wrap_amp_ranks_await_end(void);
void __wrap_amp_ranks_await_end(void)
{
    nccl_double_give_turn();
    __real_amp_ranks_await_end();
    nccl_double_take_turn();
}

static int report_faults(void)
{
    if (amp_cuda_faults()) fprintf(stderr, "doubles: %s\n", amp_cuda_fault());
    return amp_cuda_faults() != 0;
}

#ifdef DARKNET_AMP_HANK_AI
static void end(void)
{
    if (report_faults()) _exit(1);
}

__attribute__((constructor)) static void begin(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    nccl_double_reset();
    amp_cuda_any_stream(1);
    atexit(end);
}
#else
/* Darknet's, which no header declares. */
void train_classifier(char *data_file, char *cfg, char *weights, int *gpus, int count, int clear,
                      int no_opencv, int dont_show, int port, int topk, int show_images, char *chart);

int main(int argc, char **argv)
{
    int numbers[RANKS] = { 0 }, count = 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    gpu_index = 0;
    nccl_double_reset();
    amp_cuda_any_stream(1);
    for (int i = 1; i + 1 < argc; i++)
        if (!strcmp(argv[i], "-gpus") && strchr(argv[i + 1], ',')) count = RANKS;
    darknet_amp_start(argc, argv);
    char *weights = argv[5] && *argv[5] != '-' ? argv[5] : NULL;
    if (!strcmp(argv[1], "classifier"))
        train_classifier(argv[3], argv[4], weights, numbers, count, 0, 1, 1, -1, 0, 0, NULL);
    else train_detector(argv[3], argv[4], weights, numbers, count, 0, 1, 0, .25f, .5f, -1, 0, 0, NULL, 4);
    return report_faults();
}
#endif
