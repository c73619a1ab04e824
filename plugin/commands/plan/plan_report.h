/* What `darknet amp plan` knows of a network: gathered once (plan_gather.c), with advice (plan_advice.c), and
 * printed as a table or as JSON (plan_output.c). Every fact comes from a plan that the engine made, its
 * backend or Darknet's own structs; nothing has run. Bytes are of one training pass of `images` images,
 * unless they say otherwise. */
#pragma once

#include "../../amp/plan_facts.h"
#include "../../host/common/machine.h"
#include "../../host/common/memory.h"
#include "../../host/fork_commands.h"
#include "../json.h"

typedef struct amp_plan_row {
    int index;
    const char *type, *class_name, *form;
    amp_shape output;
    amp_autocast autocast;
    /* what it runs in: that of its tensors, but of a loss that reads half fp32 */
    amp_dtype dtype;
    amp_dtype products, computes; /* what the factors of its products are rounded to, and what multiplies */
    int pinned, is_convolution;
    char why[96];
    /* channels of a group of its products; a connected layer reads all inputs */
    int in, out;
    int in_aligned, out_aligned;  /* ... are multiples of 8 */
    int padded_in, padded_out;    /* ... as the backend's copies of the weights have them */
    char kernel[64];
    double operations, training_operations; /* of a forward; of a whole pass, as far as backward goes */
    size_t stock_bytes, amp_bytes;          /* activations and deltas; AMP's before the arena shares memory */
    amp_plan_bytes arena;                   /* ... of which the arena's */
    size_t buffer_bytes;                    /* ... and those of Darknet's own buffers */
    size_t weights, half_bytes;             /* parameters; bytes of their half copies */
} amp_plan_row;

/* What passes of so many images would take in all, under AMP in this dtype, in the engine's fp32 and in
 * stock: weights and loaded images included. */
typedef struct amp_plan_batch { int images; size_t arena, amp, fp32, stock; } amp_plan_batch;

typedef struct amp_plan_advice { const char *kind; int layer; char text[512]; } amp_plan_advice;

/* What checkpoint= may be: "off", "auto" or a number of segments; at the .cfg's batch, and how many images
 * would fit (below 0: not known). In force is what the .cfg asks for. */
typedef struct amp_plan_checkpoint {
    char name[16];
    int in_force, fits;
    size_t arena;
    double again;               /* of a forward's arithmetic, in % */
} amp_plan_checkpoint;

/* A training by several ranks (`-ranks N`): what each does in a step, and what it costs
 * to sum the gradients. */
typedef struct amp_plan_ranks {
    int ranks, passes, images;     /* of a rank in a step; images of a pass. 0: the batch cannot be shared */
    double megabytes;              /* that a rank sends in a step, and receives */
    double wire_seconds;           /* what a link of this rate takes for gradients */
    /* Efficiency in %: the sums after backward, or during it; below 0: unknown. */
    double blocking, overlapped;
} amp_plan_ranks;

/* What is asked: 0 ranks: no table. gbit: of the link; step_ms: of a step of one rank, 0: not known. */
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
    int off_in_cfg;             /* the .cfg does not ask for AMP: shown is what it would do */
    int batch, subdivisions, steps, images; /* of the .cfg; time steps of an image; images of a pass */
    const amp_backend *backend;
    amp_machine machine;

    int count;
    amp_plan_row *rows;
    amp_plan_cast *casts;
    int cast_count;

    size_t parameters, statistics; /* elements */
    size_t half_bytes, workspace;  /* copies of weights; what convolutions and Darknet's own layers share */
    size_t stock_workspace;
    amp_footprint amp, fp32;
    size_t stock;                  /* activations, deltas and input of stock Darknet */
    double operations, half_operations, stored_operations; /* of a pass: all; in half; on stored halves */

    amp_available_memory memory;   /* before the network was made */
    amp_plan_batch batches[AMP_PLAN_BATCHES];
    int batch_count;
    amp_plan_checkpoint checkpoints[AMP_PLAN_CHECKPOINTS];
    int checkpoint_count;
    amp_plan_link link;
    amp_plan_ranks ranks[AMP_PLAN_RANK_ROWS];
    int rank_rows;
    int fits_amp, fits_stock;      /* images a pass; 0: not even one, -1: not known */
    int most_images;               /* more cannot be asked of Darknet, whatever the memory */

    amp_plan_advice *advice;
    int advice_count;
} amp_plan_report;

/* Makes the network and its plan. cfg is the file to name; made_from the one to read (the same, or a copy
 * with another batch). amp_plan_report_free frees *report, also after a failure. */
amp_status amp_plan_gather(const char *cfg, const char *made_from, const char *dtype, amp_plan_report *report,
                           amp_error *);
void amp_plan_advise(amp_plan_report *report);
void amp_plan_share(amp_plan_report *report, amp_plan_link link);
void amp_plan_report_free(amp_plan_report *report);

void amp_plan_print_table(const amp_plan_report *report, FILE *stream);
void amp_plan_print_ranks(const amp_plan_report *report, FILE *stream);
void amp_plan_write_ranks(const amp_plan_report *report, amp_json *json);
/* Its part about the machine: library and level, and how each dtype runs. */
void amp_plan_print_machine(const amp_machine *machine, FILE *stream);
void amp_plan_write_json(const amp_plan_report *report, FILE *stream);

/* What the loading of images holds in RAM, where that is the memory that counts: the batch that trains and
 * the next. */
size_t amp_plan_loaded_bytes(const amp_plan_report *report, int images);

/* "bf16", "fp32", "fp32 nchw" */
const char *amp_plan_form_name(const amp_plan_report *report, amp_form form);
const char *amp_plan_support_name(amp_support support);
int amp_plan_multiplies_half(const amp_plan_row *row);
