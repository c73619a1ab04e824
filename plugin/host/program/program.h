/* What this program was asked to do. Darknet's hooks have no context argument: they find it here.
 *
 * darknet_amp_start sets what the command line says, before Darknet reads an argument; from then on that is
 * only read, except for dtype, which commands that make their own networks set. The files are set when they
 * are first read, the other programs when this one joins and leaves them, and the last part whenever it
 * changes. In a program that uses libdarknet there are no command line, files and other programs. */
#pragma once

#include <stdatomic.h>

#include "../../amp/cfg_document.h"
#include "../../comm/comm.h"

/* What was given with -map. */
typedef struct amp_map_options {
    long every;             /* iterations; 0: -map without a number */
    long epochs;            /* of -map without a number: measure every this many (-mAP_epochs) */
    long patience;          /* stop after this many measurements without a better mAP; 0: no -patience */
    double iou, confidence; /* -iou_thresh, -thresh */
} amp_map_options;

enum { AMP_IMAGES_MEASURED = 32, AMP_FACTS = 1024 };

typedef struct amp_program {
    int is_darknet;           /* darknet_amp_start was called */

    /* ---- the command line ---- */
    const char *dtype;        /* -amp: "off", "fp32", "fp16", "bf16"; NULL: the .cfg's setting */
    const char *refusal;      /* why the command cannot run a network under AMP, worded as the middle of a
                                 message; NULL: it can */
    int measures;             /* the command measures accuracy: valid and its variants, map, recall */
    int maps;                 /* it is `detector map` */
    int clear;                /* -clear: the sidecar of the weights is not read */
    int is_seeded;            /* -seed; or several ranks, which all take rank 0's */
    unsigned seed;
    /* of `detector train` and `classifier train`: */
    int is_detector;
    const char *log;          /* -log; NULL: not given */
    int cache;                /* -cache: an amp_cache_kind; -1: not given */
    int has_map;              /* -map */
    amp_map_options map;
    /* in hank-ai's, where words may be in any order: */
    const char *cfg_word, *weights_word; /* the words that end in .cfg, and in .weights or .backup */
    const char *weights[2];   /* the words that may name weights; a training under AMP takes one */

    /* ---- its files ---- */
    cfg_document *cfg, *data; /* NULL: not read yet */
    int trains;               /* a training under AMP: its .cfg, .data file and lists are checked */
    struct amp_images_checked { /* of the training images: data/data_check.c */
        int of_classifier;
        size_t measured;      /* images in `sizes` */
        int sizes[AMP_IMAGES_MEASURED][2];
        double cache_scale;
    } images;

    /* ---- other programs ---- */
    struct {                  /* that train with it: ranks.h */
        int awaited;          /* 1: it is not yet known whether there are any (amp_ranks_start) */
        amp_comm *comm;       /* NULL: it is alone, or each rank is a network of it */
        amp_comm *launched;   /* all ranks, while comm is only a part of them; else NULL */
        int networks;         /* of it that train together: -gpus */
        char facts[AMP_FACTS]; /* noted since the last comparison: lines of text */
        int over;             /* the training has ended normally */
    } ranks;
    struct amp_turns { int taken, in, out; double waited; } turns; /* that share the machine: turns.h */

    /* ---- what changes later ---- */
    /* -fit, and how far it is. LOOKS: the network being made is only for choosing; its memory is not
     * checked. */
    enum { AMP_NO_FIT, AMP_FIT_ASKED, AMP_FIT_LOOKS, AMP_FIT_CHOSEN } fit;
    struct { /* that choice, for all .cfg files read from then on; 0: the .cfg's own value */
        int subdivisions; /* a number that all ranks can share */
        int recompute;    /* checkpoint=auto, if the .cfg has checkpoint=off */
        size_t memory;    /* memory= */
    } chosen;
    atomic_int uses_amp;      /* a .cfg with AMP on was read; networks may be made in several threads */
    atomic_int watches_images; /* a network with AMP was made: the plugin reads all images */
    int has_warned;           /* the warnings about a .cfg are printed; later ones are copies of it */
    int has_planned;          /* a training's plan was made: the backend's library has its own memory */
    struct amp_shared_job { int images, parts, first, last, rank, ranks; } job; /* sharing.c */
    struct amp_backups {      /* data/backups.c */
        char *folder, *base, *lock; /* lock: the file's name; NULL: none was taken */
        int has_warned;       /* that it cannot be locked */
    } backups;
} amp_program;

const amp_program *amp_this_program(void);
/* To set it: for darknet_amp_start, and for what changes later. */
amp_program *amp_program_to_set(void);

/* What a thread of this program is doing between one hook and a later one. */
typedef struct amp_thread_state {
    struct amp_config *reading; /* the settings of the .cfg that its parser reads; NULL: none */
    enum {
        AMP_RESIZES_NOTHING,
        AMP_RESIZES_DARKNETS,   /* a layer that Darknet's own code runs, or what follows the last layer */
        AMP_RESIZES_OURS        /* a layer that AMP computes */
    } resizing;                 /* what it resizes of a network under AMP */
    const struct amp_node *layer; /* the layer whose code of Darknet's it runs while AMP computes the matrix
                                     products; NULL: none */
    struct amp_engine *engine;  /* that layer's */
    struct amp_watched *watched; /* a network whose layers a command watches; NULL: none */
    int checks_prediction;      /* the caller of network_predict checks the result itself: it can return an
                                   error, or it predicts with random weights, which may give anything */
    int measures;               /* reads images to measure accuracy on them: the plugin reads these too; a
                                   file that cannot be read becomes an image with data = NULL */
    int only_black;             /* until its job ends it gets only black images, whichever file it asks for */
    char unreadable[200];       /* why its reader rejected the last image */
} amp_thread_state;

amp_thread_state *amp_this_thread(void);
