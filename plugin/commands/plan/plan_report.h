/* The data of `darknet amp plan`. plan_gather.c gathers it, plan_advice.c adds advice, and plan_output.c
 * prints it. Every number comes from the engine's plan, the backend, or Darknet's structs; no layer is run.
 * Bytes are for one training pass of `images` images, unless a comment says otherwise. */
#pragma once

#include "../../amp/plan_facts.h"
#include "../../host/data/data_check.h"
#include "../../host/fork_commands.h"
#include "../../host/network/needs.h"
#include "../../host/program/machine.h"
#include "../../host/program/memory.h"
#include "../json.h"

typedef struct amp_plan_row {
    int index;
    const char *type, *class_name, *form;
    amp_shape output;
    amp_autocast autocast;
    /* the dtype of the layer's tensors; fp32 for a loss, even if it reads half precision */
    amp_dtype dtype;
    /* products: the dtype of the factors in its matrix products. computes: the dtype of its arithmetic */
    amp_dtype products, computes;
    int keep_fp32, is_convolution;
    char why[96];
    /* a convolution's channels per group; a connected layer's number of inputs and outputs */
    int in, out;
    int in_aligned, out_aligned;  /* whether `in` and `out` are multiples of 8 */
    int padded_in, padded_out;    /* `in` and `out`, padded as in the backend's copies of weights */
    char winograd[24];         /* winograd and kernel: as in amp_conv_facts */
    char kernel[64];
    double operations, training_operations; /* operation counts of one pass: forward alone; forward and
                                               backward */
    /* bytes of activations and deltas; in amp_bytes, buffers that share memory in the arena count fully */
    size_t stock_bytes, amp_bytes;
    amp_plan_bytes arena;                   /* the arena's part of amp_bytes */
    size_t buffer_bytes;                    /* the part of amp_bytes in Darknet's own buffers */
    size_t weights, half_bytes;             /* number of parameters; bytes of their half precision copies */
} amp_plan_row;

/* The memory, in bytes, of a training whose passes have `images` images. */
typedef struct amp_plan_batch {
    int images;
    size_t arena,            /* AMP's planned arena alone */
        amp, fp32, stock;    /* all memory, including weights and loaded images: under AMP in the report's
                                dtype, with the engine in fp32, and in stock Darknet */
} amp_plan_batch;

typedef struct amp_plan_advice {
    const char *kind;           /* a word that docs/commands.md explains */
    int layer;                  /* -1: the advice is about the whole network */
    double percent;             /* the layer's share of all matrix products' operations */
    char text[200];             /* what the user could do */
} amp_plan_advice;

/* What one value of checkpoint= costs at the .cfg's batch. */
typedef struct amp_plan_checkpoint {
    char name[16];              /* the value: "off", "auto" or a number of segments */
    /* in_force: 1: it is the .cfg's value. fits: images per pass that fit in memory; below 0: unknown */
    int in_force, fits;
    size_t arena;
    double again;               /* the part of forward's arithmetic that is repeated in backward, in % */
} amp_plan_checkpoint;

/* A training by several ranks (`-ranks N`): what a rank computes per step, and the cost of the all-reduce. */
typedef struct amp_plan_ranks {
    /* passes: a rank's passes per step; images: images per pass. Both are 0 if the batch cannot be shared
     * equally */
    int ranks, passes, images;
    /* MB that each rank sends per step; it receives as much. Below 0: the batch cannot be shared */
    double megabytes;
    double wire_seconds;           /* seconds needed to send these MB over the link */
    /* Efficiency in %. blocking: if the all-reduce runs after backward; overlapped: if it runs during
     * backward. Below 0: unknown. */
    double blocking, overlapped;
} amp_plan_ranks;

/* The options for the table of ranks. ranks 0: no table. gbit: the link's rate in Gbit/s. step_ms: the time
 * of a step with one rank; 0: unknown. */
typedef struct amp_plan_link { long ranks; double gbit, step_ms; } amp_plan_link;

enum { AMP_PLAN_MOST_RANKS = 1024, AMP_PLAN_RANK_ROWS = 12 };
enum { AMP_PLAN_CHECKPOINTS = 8 };
enum { AMP_PLAN_BATCHES = 32 };

typedef struct amp_plan_report {
    const char *cfg;
    struct network *net;
    amp_view view;
    int adamw;
    const amp_plan *plan;
    amp_dtype dtype;
    int off_in_cfg;             /* 1: AMP is off in the .cfg, and the report shows what AMP would do */
    int batch, subdivisions, steps, images; /* steps: time steps per image; images: images per pass */
    const amp_backend *backend;
    amp_machine machine;

    int count;
    amp_plan_row *rows;
    amp_plan_cast *casts;
    int cast_count, cast_back;     /* number of casts; number of those that also cast the delta back */
    size_t cast_elements;

    size_t parameters;
    size_t masters, adam;          /* bytes of the masters (momentum and gradients each take as much); bytes
                                      of Adam's moments */
    size_t half_bytes, workspace;  /* bytes of the half precision copies of weights; bytes of the workspace,
                                      which convolutions and Darknet's own layers share */
    size_t stock_workspace;
    amp_footprint amp;
    /* bytes of activations, deltas and input: in stock Darknet, with the engine in fp32, and under AMP */
    size_t stock, fp32_bytes, amp_bytes;
    /* operations per pass: all; in half precision; in fp32 on inputs stored in half precision */
    double operations, half_operations, stored_operations;

    amp_available_memory memory;   /* memory available before the network was made */
    amp_plan_batch batches[AMP_PLAN_BATCHES];
    int batch_count;
    amp_plan_checkpoint checkpoints[AMP_PLAN_CHECKPOINTS];
    int checkpoint_count;
    amp_plan_link link;
    amp_plan_ranks ranks[AMP_PLAN_RANK_ROWS];
    int rank_rows;
    int fits_amp, fits_stock;      /* images per pass that fit; 0: not even one fits, -1: unknown */
    amp_cache_estimate cache;      /* cache.images is 0 if no .data file is given */
    int most_images;               /* Darknet's limit of images per pass, which does not depend on memory */

    amp_plan_advice *advice;
    int advice_count;
} amp_plan_report;

/* Makes the network and its plan, and fills the report. batch, subdivisions: 0: the .cfg's. The caller frees
 * *report, also after an error. */
amp_status amp_plan_gather(const char *cfg, long batch, long subdivisions, const char *dtype,
                           amp_plan_report *report, amp_error *);
/* Adds the advice to the report. */
void amp_plan_advise(amp_plan_report *report);
/* Adds the table of ranks to the report. */
void amp_plan_share(amp_plan_report *report, amp_plan_link link);
void amp_plan_report_free(amp_plan_report *report);

void amp_plan_print_table(const amp_plan_report *report, FILE *stream);
void amp_plan_print_ranks(const amp_plan_report *report, FILE *stream);
void amp_plan_write_ranks(const amp_plan_report *report, amp_json *json);
/* Prints the machine: library, instruction set, and how each dtype runs. */
void amp_plan_print_machine(const amp_machine *machine, FILE *stream);
amp_output_writer amp_plan_write_json;

/* Bytes of RAM for the loaded images of two batches: the current and the prefetched one. 0 on a GPU. */
size_t amp_plan_loaded_bytes(const amp_plan_report *report, int images);

/* The form's name in tables: "bf16", "fp32" or "fp32 nchw". */
const char *amp_plan_form_name(const amp_plan_report *report, amp_form form);
