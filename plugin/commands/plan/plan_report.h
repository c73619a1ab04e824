/* The data of `darknet amp plan`: gathered once (plan_gather.c), completed with advice (plan_advice.c), and
 * printed as a table or as JSON (plan_output.c). Every number comes from a plan that the engine has made,
 * from its backend or from Darknet's structs; no layer is run. Bytes are those of one training pass of
 * `images` images, unless a comment says otherwise. */
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
    amp_dtype products, computes; /* the dtype of its matrix products' factors, and of the arithmetic */
    int keep_fp32, is_convolution;
    char why[96];
    /* channels of one group of a convolution; for a connected layer, the number of inputs and of outputs */
    int in, out;
    int in_aligned, out_aligned;  /* whether in and out are multiples of 8 */
    int padded_in, padded_out;    /* channels in the backend's copies of the weights */
    char winograd[24];         /* these two: see amp_conv_facts */
    char kernel[64];
    double operations, training_operations; /* of forward; of forward and backward */
    /* activations and deltas; under AMP, before the arena reuses memory */
    size_t stock_bytes, amp_bytes;
    amp_plan_bytes arena;                   /* the arena's part of amp_bytes */
    size_t buffer_bytes;                    /* the part in Darknet's own buffers */
    size_t weights, half_bytes;             /* number of parameters; bytes of their half precision copies */
} amp_plan_row;

/* The memory in bytes of a training with passes of `images` images. */
typedef struct amp_plan_batch {
    int images;
    size_t arena,            /* AMP's planned arena alone */
        amp, fp32, stock;    /* all memory, with weights and loaded images: under AMP in the report's dtype,
                                with the engine in fp32, and in stock Darknet */
} amp_plan_batch;

typedef struct amp_plan_advice {
    const char *kind;           /* a word that docs/commands.md explains */
    int layer;                  /* -1: the advice is about the whole network */
    double percent;             /* the layer's share of all matrix products */
    char text[200];             /* what the user could do */
} amp_plan_advice;

/* What a value of checkpoint= costs at the .cfg's batch. */
typedef struct amp_plan_checkpoint {
    char name[16];              /* the value: "off", "auto" or a number of segments */
    int in_force, fits;         /* the .cfg has this value; images of a pass that fit (below 0: unknown) */
    size_t arena;
    double again;               /* recomputed share of a forward's arithmetic, in % */
} amp_plan_checkpoint;

/* A training by several ranks (`-ranks N`): what each computes in a step, and what summing gradients
 * costs. */
typedef struct amp_plan_ranks {
    /* a rank's passes per step, and images per pass. 0: the batch cannot be shared */
    int ranks, passes, images;
    double megabytes;              /* sent by a rank in a step; it receives as much */
    double wire_seconds;           /* the time that a link of the given rate takes to send them */
    /* Efficiency in % if gradients are summed after backward, and if they are summed during it. Below 0:
     * unknown. */
    double blocking, overlapped;
} amp_plan_ranks;

/* The options for the table of ranks. ranks 0: no table. gbit: the link's rate in Gbit/s. step_ms: the time
 * of a step of one rank; 0: not known. */
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
    int off_in_cfg;             /* AMP is off in the .cfg; the report shows what AMP would do */
    int batch, subdivisions, steps, images; /* the .cfg's batch and subdivisions; time steps per image; images
                                               per pass */
    const amp_backend *backend;
    amp_machine machine;

    int count;
    amp_plan_row *rows;
    amp_plan_cast *casts;
    int cast_count, cast_back;     /* cast_back: how many cast the delta back too */
    size_t cast_elements;

    size_t parameters;             /* elements */
    size_t masters, adam;          /* bytes: of the masters (momentum and gradients take as much each); of
                                      Adam's moments */
    size_t half_bytes, workspace;  /* bytes: copies of weights; workspace shared by convolutions and Darknet's
                                      own layers */
    size_t stock_workspace;
    amp_footprint amp;
    /* activations, deltas and input: of stock Darknet, of the engine in fp32, under AMP */
    size_t stock, fp32_bytes, amp_bytes;
    /* operations of a pass: all; those in half precision; those in fp32 on inputs stored in half precision */
    double operations, half_operations, stored_operations;

    amp_available_memory memory;   /* as it was before the network was made */
    amp_plan_batch batches[AMP_PLAN_BATCHES];
    int batch_count;
    amp_plan_checkpoint checkpoints[AMP_PLAN_CHECKPOINTS];
    int checkpoint_count;
    amp_plan_link link;
    amp_plan_ranks ranks[AMP_PLAN_RANK_ROWS];
    int rank_rows;
    int fits_amp, fits_stock;      /* images per pass that fit; 0: not even one fits, -1: unknown */
    amp_cache_estimate cache;      /* its images are 0 if it was not asked for */
    int most_images;               /* the most that Darknet can take in a pass, whatever the memory */

    amp_plan_advice *advice;
    int advice_count;
} amp_plan_report;

/* Makes the network and its plan, and fills the report. batch, subdivisions: 0 takes the .cfg's. The caller
 * frees *report with amp_plan_report_free, also after an error. */
amp_status amp_plan_gather(const char *cfg, long batch, long subdivisions, const char *dtype,
                           amp_plan_report *report, amp_error *);
/* Adds the advice. */
void amp_plan_advise(amp_plan_report *report);
/* Adds the table of ranks. */
void amp_plan_share(amp_plan_report *report, amp_plan_link link);
void amp_plan_report_free(amp_plan_report *report);

void amp_plan_print_table(const amp_plan_report *report, FILE *stream);
void amp_plan_print_ranks(const amp_plan_report *report, FILE *stream);
void amp_plan_write_ranks(const amp_plan_report *report, amp_json *json);
/* The part of the table about the machine: library, instruction set, and how each dtype runs. */
void amp_plan_print_machine(const amp_machine *machine, FILE *stream);
amp_output_writer amp_plan_write_json;

/* Bytes of RAM that loaded images take: those of the current batch and of the next one. 0 on a GPU, because
 * the report is about the GPU's memory. */
size_t amp_plan_loaded_bytes(const amp_plan_report *report, int images);

/* "bf16", "fp32", "fp32 nchw" */
const char *amp_plan_form_name(const amp_plan_report *report, amp_form form);
