/* What `darknet amp bench` asks and measures. bench.c starts a program per dtype and reads their lines;
 * bench_child.c is that program, bench_layers.c its clocks around layers;
 * bench_results.c makes medians and ratios of it all, bench_verdict.c says whether AMP is worth it,
 * bench_output.c shows it. bench_ranks.c is all of this for several ranks. */
#pragma once

#include "../../host/fork_commands.h"
#include "../table.h"

enum {
    AMP_BENCH_SIDES = 4,  /* stock, fp32, bf16, fp16 */
    AMP_BENCH_TOP = 10,   /* layers that are shown of each */
    AMP_BENCH_TEXT = 1536, /* bytes of a verdict */
    AMP_BENCH_WARMUP = 3, AMP_BENCH_MOST_SKIPPED = 60, AMP_BENCH_MOST_STEPS = 100000
};
#define AMP_BENCH_ALL_SKIPPED \
    "no step without inf or NaN in %d; train with debug=1 to see where they come from"

/* What the user, or the parent to its child, asks for. 0 of a number: as the .cfg says, or the default. */
typedef struct amp_bench_request {
    const char *cfg, *dtypes, *json;
    long iters, batch, size;
    int detect;               /* predictions instead of steps */
    const char *only;         /* child: its dtype */
} amp_bench_request;

/* A step is `subdivisions` passes (forward and backward of `batch` images) and one update; of predictions one
 * forward. */
typedef enum amp_bench_phase {
    AMP_BENCH_FORWARD, AMP_BENCH_BACKWARD, AMP_BENCH_UPDATE, AMP_BENCH_STEP, AMP_BENCH_PHASES
} amp_bench_phase;

/* Of several measurements. typical is what is shown and compared. Of steps: the geometric mean of the medians
 * within the rounds of turns in which all sides worked, and without two such rounds the median of all. The
 * other phases are their shares, of all steps' time, of it. */
typedef struct amp_bench_spread {
    double typical, median, least, lower, upper, most;
    int count;
} amp_bench_spread;

/* How many times as fast as another side, and between what bounds this lies. The ratio is the quotient of the
 * two sides' typical steps, and so the geometric mean of the ratios within the rounds of turns: a machine
 * that is busy for a while is so for both. Bounds are Student's, with 95 %, of the ratios' logarithms over
 * the `rounds`. With less than two rounds in which all sides worked, rounds is 0, and the bounds are as far
 * apart as any two steps. */
typedef struct amp_bench_ratio { double ratio, least, most; int rounds; } amp_bench_ratio;

/* One layer, in one dtype. Its times are medians of a pass with clocks around the layers, the casts that it
 * asks for included; those passes are slower than measured steps, because of the clocks. So
 * amp_bench_summarize scales the times until all layers and the update add up to the typical step. */
typedef struct amp_bench_layer {
    int index;
    char type[24];
    int in_half;               /* it computes in half there */
    int misaligned;            /* a product whose channels, in or out, are no multiple of 8 */
    double forward_ms, backward_ms;
    double share;              /* of the step */
    double operations, bytes;  /* of a forward: arithmetic; fp32 input, weights and output. 0: not known */
} amp_bench_layer;

/* One dtype. */
typedef struct amp_bench_side {
    const char *dtype;             /* "stock", "fp32", "bf16", "fp16" */
    amp_support support;
    char note[256];                /* the backend's remark on how it supports dtype */
    char machine[256];             /* the backend in words; empty for stock */
    double *ms[AMP_BENCH_PHASES];  /* per measured step; sorted by amp_bench_summarize */
    int *turn;                     /* per measured step: in which round of turns it was made */
    int steps, room;
    /* steps that were not measured: to warm up; fp16 looking for its loss scale */
    int warm, skipped;
    float first_loss;              /* of the first step: all sides should agree */
    double peak_memory_mb;         /* of its program, with one pass' synthetic images; 0: not known yet */
    double loaded_mb;              /* what a training's loader holds besides, for a batch of one pass */
    amp_bench_layer *layers;
    int layer_count;
    int done;                      /* it ended well, with all there is */
    int left_out;                  /* this machine cannot run it (note says why), and nobody named it */
    /* By amp_bench_summarize: */
    amp_bench_spread spread[AMP_BENCH_PHASES];
    double images_per_second;
    double training_mb;            /* peak_memory_mb and what a training's loader holds */
    amp_bench_ratio over_stock, over_fp32; /* speed-ups; ratio 0 where that side was not measured */
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

/* What the verdict on one half dtype rests on. Shares are of its layers' time, 0..1: in layers that run in
 * fp32; in others that move more bytes than they compute; in misaligned ones. */
typedef struct amp_bench_evidence {
    const amp_bench_side *fp32, *half;
    double call_us;                              /* mean of a layer's forward or backward */
    double fp32_share, moving_share, misaligned_share;
} amp_bench_evidence;

typedef struct amp_bench_verdict {
    const char *dtype;
    amp_bench_ratio speedup;       /* over the engine's fp32 */
    double memory_ratio;           /* of peak memory, to fp32's */
    amp_bench_worth worth;         /* as to time */
    int saves_memory;
    int reason[AMP_BENCH_REASONS]; /* flags; all 0 where it is worth it */
    char text[AMP_BENCH_TEXT];     /* sentences, with the numbers */
} amp_bench_verdict;

typedef struct amp_bench {
    const char *cfg;
    int batch, subdivisions, width, height, channels;
    unsigned seed;
    int on_gpu;
    int threads, processors;       /* of OpenMP, as its environment says; of the machine */
    amp_bench_side sides[AMP_BENCH_SIDES];
    int count;
    int turn, speaker;             /* the round of turns, and whose turn it is: sides write in order */
    int *top, top_count;           /* the most expensive layers; by amp_bench_summarize */
    amp_bench_verdict verdicts[AMP_BENCH_SIDES];
    int verdict_count;
} amp_bench;

/* The .cfg that is measured: a checked copy of the user's, in a file of memory (cfg_copy.h). */
amp_status amp_bench_write_cfg(const amp_bench_request *, int batch, int subdivisions, char *name,
                               amp_error *);
/* Whether so many measured steps, which took so long, are enough: those of -iters, or about 8 seconds' (all
 * dtypes then work in about as many rounds of turns). */
int amp_bench_is_enough(const amp_bench_request *, long steps, double spent_ms);
/* In each of several ranks: measures, and rank 0 prints a scaling table. Ends all of them where it fails. */
void amp_bench_ranks(const amp_bench_request *);
/* The child's program: measures request->only and tells its parent. */
amp_status amp_bench_child(const amp_bench_request *, amp_error *);
/* Takes in a line that a child wrote (bench_child.c lists them). AMP_IO_FAILED: it is none of them. */
amp_status amp_bench_read_line(amp_bench *, amp_bench_side *, const char *line, amp_error *);

/* Sorts values. count may be 0. */
amp_bench_spread amp_bench_spread_of(double *values, int count);
/* The side of that dtype, if it was measured, or NULL. */
const amp_bench_side *amp_bench_side_of(const amp_bench *, const char *dtype);
double amp_bench_layer_ms(const amp_bench_layer *);
double amp_bench_layers_ms(const amp_bench_side *);
/* Fills in spreads, ratios and verdicts from what was measured. */
amp_status amp_bench_summarize(amp_bench *, amp_error *);
void amp_bench_free(amp_bench *);

/* Indices of the layers that are among the AMP_BENCH_TOP most expensive of any side, the most expensive of
 * the first side first; at most layer_count of them. Returns how many. */
int amp_bench_top_layers(const amp_bench *, int *layers);

void amp_bench_judge(const amp_bench_evidence *, amp_bench_verdict *);
/* ms and the like: four digits, three below 1, and no exponent in large ones. Returns text. */
const char *amp_bench_number(char text[16], double value);
/* "12.3 (12.1-12.9)" */
void amp_bench_step_text(const amp_bench_spread *, char text[AMP_CELL_TEXT]);
void amp_bench_print(const amp_bench *, FILE *);
void amp_bench_write_json(const amp_bench *, FILE *);
/* The same of predictions: `count` benchmarks of one network at different batches. */
void amp_bench_print_detection(const amp_bench *, int count, FILE *);
void amp_bench_write_detection(const amp_bench *, int count, FILE *);

/* ---- bench_layers.c: clocks around the layers of one network; they make a step slower ---- */

typedef struct amp_layer_clocks amp_layer_clocks;

/* Room for `steps` passes. One at a time in a program; net must outlive it. */
amp_layer_clocks *amp_layer_clocks_create(struct network *net, int steps);
void amp_layer_clocks_free(amp_layer_clocks *);
/* Forward and backward of one pass, whose images are counted. More than `steps` are not noted. */
void amp_layer_clocks_pass(amp_layer_clocks *);
/* What was found of layer `index`: medians over the passes. */
amp_bench_layer amp_layer_clocks_of(const amp_layer_clocks *, int index);

double amp_bench_now_ms(void);
