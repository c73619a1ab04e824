/* The data of `darknet amp bench`. bench_command.c starts a program for each dtype, bench_child.c is that
 * program, bench_results.c reads its lines and computes the results, bench_verdict.c judges them, and
 * bench_output.c prints them. bench_ranks.c measures several ranks. */
#pragma once

#include "../../host/fork_commands.h"
#include "../../host/program/clock.h"
#include "../../host/training/waits.h"
#include "../table.h"

enum {
    AMP_BENCH_SIDES = 4,  /* stock, fp32, bf16, fp16 */
    AMP_BENCH_TOP = 10,   /* layers shown for each side */
    AMP_BENCH_TEXT = 1024, /* bytes of a verdict's advice */
    AMP_BENCH_WARMUP = 3, AMP_BENCH_MOST_SKIPPED = 60, AMP_BENCH_MOST_STEPS = 100000
};
#define AMP_BENCH_ALL_SKIPPED \
    "%d steps had inf or NaN; train with debug=1 to see where they come from"

/* The options, from the user or from the parent program to its child. A number that is 0 means the .cfg's
 * value or the default. */
typedef struct amp_bench_request {
    const char *data;         /* NULL: no images are loaded */
    const char *cfg, *dtypes, *json;
    long iters, batch, size;
    int detect;               /* measures predictions instead of training steps */
} amp_bench_request;

/* What is timed. A training step is `subdivisions` passes, each a forward and a backward of `batch` images,
 * and one update. With -detect a step is one forward. */
typedef enum amp_bench_phase {
    AMP_BENCH_FORWARD, AMP_BENCH_BACKWARD, AMP_BENCH_UPDATE, AMP_BENCH_STEP, AMP_BENCH_PHASES
} amp_bench_phase;

/* Summary of several measured times. `typical` is shown and compared; docs/commands.md explains it (*step*).
 * lower and upper are quartiles. */
typedef struct amp_bench_spread {
    double typical, median, least, lower, upper, most;
    int count;
} amp_bench_spread;

/* The speed-up of one side over another: the quotient of their typical steps, with bounds (docs/commands.md).
 * rounds: the number of rounds that the bounds were computed from; 0: the bounds are the smallest and the
 * largest quotient of any two steps. Bounds that are more than a factor of 4 apart mean nothing, and both are
 * NaN then. */
typedef struct amp_bench_ratio { double ratio, least, most; int rounds; } amp_bench_ratio;

/* One layer in one dtype. Its times include the casts of its inputs. They are medians over passes that were
 * slowed down by timing the layers, so amp_bench_summarize scales them: all layers and the update then add up
 * to the typical step. */
typedef struct amp_bench_layer {
    int index;
    char type[24];
    int in_half;               /* the layer computes in half precision */
    /* its matrix product has input or output channels that are not a multiple of 8 */
    int misaligned;
    double forward_ms, backward_ms;
    double share;              /* of the step's time */
    double operations,         /* arithmetic of a forward; 0: not known */
        bytes;                 /* of a forward's input, weights and output in fp32; 0: not known */
} amp_bench_layer;

/* An operation of the backend, with its figures for one pass and an update. See amp_operation_time for the
 * members. */
typedef struct amp_bench_operation {
    char layer[32], name[32];
    double calls, ms, bytes, products;
    double of_bandwidth, of_arithmetic; /* percent of the device's limits that it reaches; 0: not known */
    int in_half;
} amp_bench_operation;

/* One dtype. */
typedef struct amp_bench_side {
    const char *dtype;             /* "stock", "fp32", "bf16", "fp16" */
    amp_support support;
    char note[256];                /* the backend's remark on how it supports dtype */
    char machine[300];             /* the backend's description; empty for stock */
    double *ms[AMP_BENCH_PHASES];  /* times of each measured step; sorted by amp_bench_summarize */
    int *turn;                     /* for each measured step: the round of turns in which it was made */
    int steps, room;
    /* steps that were not measured: warm-up; skipped while fp16 looks for its loss scale */
    int warm, skipped;
    float first_loss;              /* of the first step; all sides should have the same */
    double peak_memory_mb;         /* of the child, with one pass' synthetic images; 0: not known yet */
    double loaded_mb;              /* what a training's loader holds in addition, for a batch of one pass */
    amp_waits loading;             /* the steps whose images were loaded; steps 0: there were none */
    amp_bench_layer *layers;
    int layer_count;
    amp_bench_operation *operations; /* of a GPU; the slowest first */
    int operation_count;
    double bytes_per_ms, half_per_ms, fp32_per_ms; /* the GPU's limits; 0: unknown */
    int done;                      /* the program has ended well, and everything has been read */
    int left_out;                  /* this machine cannot run it (see note), and -dtypes did not name it */
    /* ---- set by amp_bench_summarize ---- */
    amp_bench_spread spread[AMP_BENCH_PHASES];
    double images_per_second;
    double training_mb;            /* peak_memory_mb and what a training's loader holds */
    /* Images/s with loading; 0: not measured. */
    double trained,                /* of a training */
        load_rate,                 /* of its loaders; they could do more if steps do not wait for them */
        step_rate,                 /* of its steps without the waiting */
        waiting;                   /* the share of the time that is spent waiting; -1: not measured */
    amp_bench_ratio over_stock, over_fp32; /* speed-ups; ratio 0 where that side was not measured */
    double call_us;                /* mean time of a layer's forward or backward */
    /* Shares of the layers' time, 0 to 1. */
    double fp32_share,             /* of layers that run in fp32 */
        moving_share,              /* of other layers that are memory-bound */
        misaligned_share;          /* of layers whose products have misaligned channels */
} amp_bench_side;

typedef enum amp_bench_worth {
    AMP_BENCH_WORTH_IT, AMP_BENCH_CANNOT_TELL, AMP_BENCH_NOT_WORTH_IT
} amp_bench_worth;

/* Why half precision gains little time. */
typedef enum amp_bench_reason {
    AMP_BENCH_NO_NATIVE_HALF, AMP_BENCH_FIXED_COSTS, AMP_BENCH_UPDATE_COSTS, AMP_BENCH_FP32_LAYERS,
    AMP_BENCH_MEMORY_BOUND, AMP_BENCH_MISALIGNED, AMP_BENCH_REASONS
} amp_bench_reason;
extern const char *const amp_bench_reason_names[AMP_BENCH_REASONS];

typedef struct amp_bench_verdict {
    const char *dtype;
    amp_bench_ratio speedup;       /* over the engine's fp32 */
    double memory_ratio;           /* peak memory divided by fp32's */
    amp_bench_worth worth;         /* judged by time */
    int saves_memory;
    int reason[AMP_BENCH_REASONS]; /* flags; all 0 if it is worth it */
    char why[256];                 /* the reasons with their figures */
    char advice[AMP_BENCH_TEXT];   /* what the user should do, or "" */
} amp_bench_verdict;

typedef struct amp_bench {
    const char *cfg;
    int detect;                    /* predictions are measured instead of training steps */
    int batch, subdivisions, width, height, channels;
    unsigned seed;
    int on_gpu;
    int threads, processors;       /* OpenMP's threads; the machine's processors */
    int cores;                     /* processors that load images; 0: no images are loaded */
    amp_bench_side sides[AMP_BENCH_SIDES];
    int count;
    int turn, last_side;           /* the current round, and the side that wrote the last line */
    /* set by amp_bench_summarize: the layers that are among the AMP_BENCH_TOP most expensive ones of any
     * side, the most expensive in the first side first */
    int top[AMP_BENCH_SIDES * AMP_BENCH_TOP], top_count;
    amp_bench_verdict verdicts[AMP_BENCH_SIDES];
    int verdict_count;
} amp_bench;

/* Writes the .cfg that is measured: a checked copy of the user's, as a file in memory (cfg_copy.h). */
amp_status amp_bench_write_cfg(const amp_bench_request *, int batch, int subdivisions, char *name,
                               amp_error *);
/* Whether `steps` measured steps, which took spent_ms, are enough. -iters sets the number; without it they
 * are enough after about 8 seconds, so that all dtypes work in about the same number of rounds. */
int amp_bench_is_enough(const amp_bench_request *, long steps, double spent_ms);
/* Called by each of several ranks: measures with 1, 2, ... ranks, and rank 0 prints a table of how steps
 * scale. An error ends all ranks. */
void amp_bench_ranks(const amp_bench_request *);
/* The child program: measures the dtype of its -amp and writes the results to its parent. */
amp_status amp_bench_child(const amp_bench_request *, amp_error *);
/* Reads a line that a child wrote; bench_child.c lists the kinds. AMP_IO_FAILED: the kind is unknown. */
amp_status amp_bench_read_line(amp_bench *, amp_bench_side *, const char *line, amp_error *);

/* Sorts values. count may be 0. */
amp_bench_spread amp_bench_spread_of(double *values, int count);
/* The side of that dtype; NULL if it was not measured. */
const amp_bench_side *amp_bench_side_of(const amp_bench *, const char *dtype);
double amp_bench_layer_ms(const amp_bench_layer *);
double amp_bench_layers_ms(const amp_bench_side *);
/* Fills in spreads, ratios and verdicts from what was measured. */
amp_status amp_bench_summarize(amp_bench *, amp_error *);
void amp_bench_free(amp_bench *);

/* cores: the number of processors that load images. */
void amp_bench_judge(const amp_bench_side *fp32, const amp_bench_side *half, int cores, amp_bench_verdict *);
/* Formats ms and similar numbers: four digits, three below 1, and no exponent in large ones. Returns text. */
const char *amp_bench_number(char text[16], double value);
/* A table's cells for a number, and for a spread: "12.3 (12.1-12.9)". */
amp_cell_text amp_bench_number_cell, amp_bench_step_cell;
/* count: 1, or with -detect the number of benchmarks of one network at different batches. */
void amp_bench_print(const amp_bench *, int count, FILE *);
void amp_bench_write_json(const amp_bench *, int count, FILE *);

static inline double amp_bench_now_ms(void) { return 1e3 * amp_clock_seconds(); }
