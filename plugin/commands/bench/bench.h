/* The data of `darknet amp bench`. bench_command.c starts a child program for each dtype, and bench_child.c
 * is the child. bench_results.c reads the child's lines and computes the results, bench_verdict.c judges
 * them, and bench_output.c prints them. bench_ranks.c measures several ranks. */
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

/* The options, from the user or from the parent program. 0: the .cfg's value, or the default. */
typedef struct amp_bench_request {
    const char *data;         /* NULL: no images are loaded */
    const char *cfg, *dtypes, *json;
    long iters, batch, size;
    int detect;               /* 1: measure predictions instead of training steps */
} amp_bench_request;

/* What is timed. A training step is `subdivisions` passes, then one update. A pass is a forward and a
 * backward of `batch` images. With -detect a step is one forward. */
typedef enum amp_bench_phase {
    AMP_BENCH_FORWARD, AMP_BENCH_BACKWARD, AMP_BENCH_UPDATE, AMP_BENCH_STEP, AMP_BENCH_PHASES
} amp_bench_phase;

/* typical: the time that is shown and compared (docs/commands.md, *step*). lower, upper: quartiles. */
typedef struct amp_bench_spread {
    double typical, median, least, lower, upper, most;
    int count;
} amp_bench_spread;

/* The speed-up of one dtype over another: the quotient of their typical steps, with bounds
 * (docs/commands.md). rounds: the number of rounds (one turn of each dtype) from which the bounds were
 * computed; 0: the bounds are the smallest and the largest quotient of any two steps. Bounds that are more
 * than a factor of 4 apart are meaningless; both are then NaN. */
typedef struct amp_bench_ratio { double ratio, least, most; int rounds; } amp_bench_ratio;

/* One layer in one dtype. Its times include the casts of its inputs. They are medians over passes that the
 * timing slowed down, so amp_bench_summarize scales them: afterwards layers and update add up to the typical
 * step. */
typedef struct amp_bench_layer {
    int index;
    char type[24];
    int in_half;               /* 1: the layer computes in half precision */
    /* 1: its matrix product has a number of input or output channels that is not a multiple of 8 */
    int misaligned;
    double forward_ms, backward_ms;
    double share;              /* its share of the step's time, 0 to 1 */
    double operations,         /* arithmetic operations of one forward; 0: unknown */
        bytes;                 /* size of a forward's input, weights and output in fp32; 0: unknown */
} amp_bench_layer;

/* An operation of the backend: its totals for one pass and one update. amp_operation_time explains the
 * members. */
typedef struct amp_bench_operation {
    char layer[32], name[32];
    double calls, ms, bytes, products;
    double of_bandwidth, of_arithmetic; /* percent of the device's limit that is reached; 0: unknown */
    int in_half;
} amp_bench_operation;

/* The measurements of one dtype, and the results computed from them. */
typedef struct amp_bench_side {
    const char *dtype;             /* "stock", "fp32", "bf16", "fp16" */
    amp_support support;
    char note[256];                /* the backend's remark on its support of this dtype */
    char machine[300];             /* the backend's description; empty for stock */
    double *ms[AMP_BENCH_PHASES];  /* times of each measured step; sorted by amp_bench_summarize */
    int *turn;                     /* for each measured step: the number of the round in which it was made */
    int steps, room;
    /* numbers of steps that were not measured: warm-up steps; steps skipped while fp16 searches for its loss
     * scale */
    int warm, skipped;
    float first_loss;              /* loss of the first step; should be the same on all sides */
    double peak_memory_mb;         /* the child's peak memory, with one pass's synthetic images; 0: unknown */
    double loaded_mb;              /* memory that a training's loader adds for the images of one pass */
    amp_waits loading;             /* times of the steps that load their images; loading.steps 0: none */
    amp_bench_layer *layers;
    int layer_count;
    amp_bench_operation *operations; /* the slowest operation first; only on a GPU */
    int operation_count;
    double bytes_per_ms, half_per_ms, fp32_per_ms; /* the GPU's limits; 0: unknown */
    int done;                      /* 1: the child has sent "done" */
    int left_out;                  /* 1: not measured, because this machine cannot run the dtype (see note) */
    /* ---- set by amp_bench_summarize ---- */
    amp_bench_spread spread[AMP_BENCH_PHASES];
    double images_per_second;
    double training_mb;            /* peak_memory_mb plus the memory of a training's loader */
    /* Results of the steps that load their images. The first three are rates in images/s; 0: not measured. */
    double trained,                /* speed of a training, including its waiting for images */
        load_rate,                 /* speed of the loaders; a lower bound if steps do not wait for them */
        step_rate,                 /* speed of the steps without waiting */
        waiting;                   /* share of the time that is spent waiting, 0 to 1; -1: not measured */
    amp_bench_ratio over_stock, over_fp32; /* speed-ups; ratio 0: stock or fp32 was not measured */
    double call_us;                /* mean time of a layer's forward or backward */
    /* Shares of the layers' total time, 0 to 1. */
    double fp32_share,             /* layers that run in fp32 */
        moving_share,              /* memory-bound layers that run in half precision */
        misaligned_share;          /* layers whose products have misaligned channels */
} amp_bench_side;

typedef enum amp_bench_worth {
    AMP_BENCH_WORTH_IT, AMP_BENCH_CANNOT_TELL, AMP_BENCH_NOT_WORTH_IT
} amp_bench_worth;

/* Why half precision saves little time. */
typedef enum amp_bench_reason {
    AMP_BENCH_NO_NATIVE_HALF, AMP_BENCH_FIXED_COSTS, AMP_BENCH_UPDATE_COSTS, AMP_BENCH_FP32_LAYERS,
    AMP_BENCH_MEMORY_BOUND, AMP_BENCH_MISALIGNED, AMP_BENCH_REASONS
} amp_bench_reason;
extern const char *const amp_bench_reason_names[AMP_BENCH_REASONS];

typedef struct amp_bench_verdict {
    const char *dtype;
    amp_bench_ratio speedup;       /* speed-up over the engine's fp32 */
    double memory_ratio;           /* peak memory divided by fp32's */
    amp_bench_worth worth;         /* whether half precision is worth it, judged by time */
    int saves_memory;
    int reason[AMP_BENCH_REASONS]; /* [r] is 1 if reason r applies; all are 0 if half precision is worth it */
    char why[256];                 /* text with the reasons and their figures */
    char advice[AMP_BENCH_TEXT];   /* what the user should do, or "" */
} amp_bench_verdict;

typedef struct amp_bench {
    const char *cfg;
    int detect;                    /* 1: predictions are measured instead of training steps */
    int batch, subdivisions, width, height, channels;
    unsigned seed;
    int on_gpu;
    int threads, processors;       /* OpenMP's threads; the machine's processors */
    int cores;                     /* number of processors that load images; 0: no images are loaded */
    amp_bench_side sides[AMP_BENCH_SIDES];
    int count;
    int turn, last_side;           /* the number of the current round; the side that wrote the last line */
    /* indices of each side's AMP_BENCH_TOP slowest layers, sorted by their time on the first side */
    int top[AMP_BENCH_SIDES * AMP_BENCH_TOP], top_count;
    amp_bench_verdict verdicts[AMP_BENCH_SIDES];
    int verdict_count;
} amp_bench;

/* Writes the .cfg that is measured: a checked copy in memory (cfg_copy.h). name: receives its name. */
amp_status amp_bench_write_cfg(const amp_bench_request *, int batch, int subdivisions, char *name,
                               amp_error *);
/* Whether to stop measuring after `steps` steps that took spent_ms. This is the case after -iters steps; or
 * by default after about 8 seconds, so that all dtypes take part in about the same number of rounds. */
int amp_bench_is_enough(const amp_bench_request *, long steps, double spent_ms);
/* Called by every rank: measures steps with 1, 2, 4, ... ranks. Rank 0 prints. An error ends all ranks. */
void amp_bench_ranks(const amp_bench_request *);
/* The child program: measures the dtype of its -amp and writes the results to its parent. */
amp_status amp_bench_child(const amp_bench_request *, amp_error *);
/* Reads a line of a child (bench_child.c lists them). AMP_IO_FAILED: it is malformed or unknown. */
amp_status amp_bench_read_line(amp_bench *, amp_bench_side *, const char *line, amp_error *);

/* Sorts the values and returns their summary without `typical`, which stays 0. count may be 0. */
amp_bench_spread amp_bench_spread_of(double *values, int count);
/* Returns NULL if the dtype was not measured. */
const amp_bench_side *amp_bench_side_of(const amp_bench *, const char *dtype);
double amp_bench_layer_ms(const amp_bench_layer *);
double amp_bench_layers_ms(const amp_bench_side *);
/* Fills in spreads, ratios and verdicts. */
amp_status amp_bench_summarize(amp_bench *, amp_error *);
void amp_bench_free(amp_bench *);

/* Judges whether `half` is worth it compared with `fp32`. cores: processors that load images. */
void amp_bench_judge(const amp_bench_side *fp32, const amp_bench_side *half, int cores, amp_bench_verdict *);
/* Formats a time or a rate: four digits (below 1: three), and no exponent for large values. Returns text. */
const char *amp_bench_number(char text[16], double value);
/* Table cells. number_cell: for a double. step_cell: for an amp_bench_spread, as "12.3 (12.1-12.9)". */
amp_cell_text amp_bench_number_cell, amp_bench_step_cell;
/* Print and write `count` benchmarks: 1, or with -detect one for each batch size. */
void amp_bench_print(const amp_bench *, int count, FILE *);
void amp_bench_write_json(const amp_bench *, int count, FILE *);

static inline double amp_bench_now_ms(void) { return 1e3 * amp_clock_seconds(); }
