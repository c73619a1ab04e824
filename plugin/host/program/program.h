/* What this program was asked to do. Darknet's hooks have no context argument, so they find it here.
 *
 * darknet_amp_start sets the part "the command line" before Darknet reads an argument. After that this part
 * is only read, except for dtype, which commands that make their own networks set. The files are set when
 * they are first read; the other programs when this one joins and leaves them; the last part whenever it
 * changes. A program that uses libdarknet has no command line, no files and no other programs. */
#pragma once

#include <stdatomic.h>

#include "../../amp/cfg_document.h"
#include "../../comm/comm.h"

/* What was given with -map. */
typedef struct amp_map_options {
    long every;             /* iterations; 0: -map without a number */
    long epochs;            /* for -map without a number: the epochs between measurements (-mAP_epochs) */
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
    int is_seeded;            /* -seed was given, or there are several ranks: all take rank 0's seed */
    unsigned seed;
    /* for `detector train` and `classifier train`: */
    int is_detector;
    const char *log;          /* -log; NULL: not given */
    int cache;                /* -cache: an amp_cache_kind; -1: not given */
    int has_map;              /* -map */
    amp_map_options map;
    /* for hank-ai's Darknet, where words may be in any order: */
    const char *cfg_word, *weights_word; /* the words that end in .cfg, and in .weights or .backup */
    const char *weights[2];   /* the words that may name weights; a training under AMP takes one */

    /* ---- its files ---- */
    cfg_document *cfg, *data; /* NULL: not read yet */
    int trains;               /* this is a training under AMP; its .cfg, .data file and lists are checked */
    struct amp_images_checked { /* the training images: set by data/data_check.c */
        int of_classifier;
        size_t measured;      /* images in `sizes` */
        int sizes[AMP_IMAGES_MEASURED][2];
        double cache_scale;
    } images;

    /* ---- other programs ---- */
    struct {                  /* programs that train with this one: see ranks.h */
        int awaited;          /* 1: it is not yet known whether there are any (amp_ranks_start) */
        amp_comm *comm;       /* NULL: this program is alone, or each rank is one of its networks */
        amp_comm *launched;   /* all ranks, while comm is only a part of them; else NULL */
        int networks;         /* number of this program's networks that train together (-gpus) */
        char facts[AMP_FACTS]; /* lines of text noted since the last comparison (amp_ranks_agree) */
        int over;             /* the training has ended normally */
    } ranks;
    /* programs that share the machine with this one: see turns.h */
    struct amp_turns { int taken, in, out; double waited; } turns;

    /* ---- what changes later ---- */
    /* The progress of -fit. AMP_FIT_LOOKS: the network being made only serves the choice of settings; its
     * memory is not checked. */
    enum { AMP_NO_FIT, AMP_FIT_ASKED, AMP_FIT_LOOKS, AMP_FIT_CHOSEN } fit;
    struct { /* what -fit chose; applies to all .cfg files read afterwards. 0: the .cfg's own value */
        int subdivisions; /* a number that all ranks can share */
        int recompute;    /* checkpoint=auto, if the .cfg has checkpoint=off */
        size_t memory;    /* memory= */
    } chosen;
    atomic_int uses_amp;      /* a .cfg with AMP on was read; networks may be made in several threads */
    atomic_int watches_images; /* a network with AMP was made: the plugin reads all images */
    int has_warned;           /* warnings about a .cfg were printed; any later .cfg is a copy of it */
    int has_planned;          /* a training's plan was made, so the backend's library has already allocated
                                 its own memory */
    struct amp_shared_job { int images, parts, first, last, rank, ranks; } job; /* sharing.c */
    struct amp_backups {      /* data/backups.c */
        char *folder, *base, *lock; /* lock: the file's name; NULL: none was taken */
        int has_warned;       /* a line said that the lock file cannot be locked */
    } backups;
} amp_program;

const amp_program *amp_this_program(void);
/* The same struct, writable: for darknet_amp_start and for fields that change later. */
amp_program *amp_program_to_set(void);

/* What a thread of this program keeps from one hook to a later one. */
typedef struct amp_thread_state {
    struct amp_config *reading; /* the settings of the .cfg that this thread's parser reads; NULL: none */
    enum {
        AMP_RESIZES_NOTHING,
        AMP_RESIZES_DARKNETS,   /* a layer that Darknet's own code runs, or what follows the last layer */
        AMP_RESIZES_OURS        /* a layer that AMP computes */
    } resizing;                 /* the part of a network under AMP that this thread is resizing */
    const struct amp_node *layer; /* the layer that this thread computes with Darknet's code, while AMP
                                     computes its matrix products; NULL: none */
    struct amp_engine *engine;  /* the engine of `layer` */
    struct amp_watched *watched; /* a network whose layers a command watches; NULL: none */
    int checks_prediction;      /* the caller of network_predict checks the result itself: it can return an
                                   error, or it predicts with random weights, which may give anything */
    int measures;               /* this thread reads images to measure accuracy on them. The plugin reads
                                   these images too; a file that cannot be read becomes an image with
                                   data = NULL */
    int only_black;             /* until its job ends, this thread gets a black image for any file */
    char unreadable[200];       /* why the last image of this thread was rejected */
} amp_thread_state;

amp_thread_state *amp_this_thread(void);
