/* What this program was asked to do: the context of Darknet's hooks, which have no context argument.
 *
 * darknet_amp_start sets the part "the command line" before Darknet reads any argument; after that, only
 * dtype may change. The part "its files" is set when the files are first read, "other programs" when this
 * program joins or leaves other programs. The last part may change at any time. In a program that uses
 * libdarknet, the first three parts are empty. */
#pragma once

#include <stdatomic.h>

#include "../../amp/cfg_document.h"
#include "../../comm/comm.h"

/* The options of -map. */
typedef struct amp_map_options {
    long every;             /* iterations between two measurements; 0: -map without a number */
    long epochs;            /* epochs between two measurements, for -map without a number (-mAP_epochs) */
    long patience;          /* measurements without a better mAP until training stops (-patience); 0: off */
    double iou, confidence; /* the values of -iou_thresh and -thresh */
} amp_map_options;

enum { AMP_IMAGES_MEASURED = 32, AMP_FACTS = 1024 };

typedef struct amp_program {
    int is_darknet;           /* 1: darknet_amp_start was called */

    /* ---- the command line ---- */
    const char *dtype;        /* -amp: "off", "fp32", "fp16", "bf16"; NULL: the .cfg decides. Commands that
                                 make their own networks set it before they make one */
    const char *refusal;      /* why this command cannot run under AMP, for a message; NULL: it can */
    int measures;             /* 1: the command measures accuracy: valid and its variants, map or recall */
    int maps;                 /* 1: the command is `detector map` */
    int clear;                /* 1: -clear was given: ignore the sidecar of the weights */
    int is_seeded;            /* 1: -seed was given, or there are several ranks (all use rank 0's seed) */
    unsigned seed;
    /* for `detector train` and `classifier train`: */
    int is_detector;
    const char *log;          /* the value of -log; NULL: not given */
    int cache;                /* the value of -cache, an amp_cache_kind; -1: not given */
    int has_map;              /* 1: -map was given */
    amp_map_options map;
    /* for hank-ai's Darknet, where words may be in any order: */
    const char *cfg_word;     /* the word that ends in .cfg */
    const char *weights_word; /* the word that ends in .weights or .backup, if the command reads that file */
    const char *weights[2];   /* possible names of weights files; a training under AMP accepts one */

    /* ---- its files ---- */
    cfg_document *cfg, *data; /* NULL: not read yet. darknet_amp_start reads the .cfg of a training first, to
                                 know whether it turns AMP on */
    int trains;               /* 1: the command is a training under AMP, and its .cfg, .data file and lists
                                 were checked; set at the end of darknet_amp_start */
    struct amp_images_checked { /* facts about the training images; set by data/data_check.c */
        int of_classifier;
        size_t measured;      /* number of images in `sizes` */
        int sizes[AMP_IMAGES_MEASURED][2];
        double cache_scale;
    } images;

    /* ---- other programs ---- */
    struct {                  /* programs that train with this one: see ranks.h */
        int awaited;          /* 1: amp_ranks_start has not yet found out whether there are other programs */
        amp_comm *comm;       /* NULL: this program is alone, or its networks are the ranks (-gpus) */
        amp_comm *launched;   /* all ranks, while comm has only some of them; otherwise NULL */
        int networks;         /* number of this program's networks that train together (-gpus) */
        char facts[AMP_FACTS]; /* lines of text noted since the ranks were last compared (amp_ranks_agree) */
        int over;             /* 1: the training has ended normally */
    } ranks;
    /* programs that share the machine with this one: see turns.h */
    struct amp_turns { int taken, in, out; double waited; } turns;

    /* ---- what changes later ---- */
    /* The progress of -fit. AMP_FIT_LOOKS: the network being made only serves to choose the settings. */
    enum { AMP_NO_FIT, AMP_FIT_ASKED, AMP_FIT_LOOKS, AMP_FIT_CHOSEN } fit;
    struct { /* what -fit chose, for all .cfg files read later; 0: the .cfg's own value */
        int subdivisions; /* a number that can be divided evenly among the ranks */
        int recompute;    /* 1: use checkpoint=auto if the .cfg has checkpoint=off */
        size_t memory;    /* the value for memory= */
    } chosen;
    atomic_int uses_amp;      /* 1: a .cfg with AMP on was read; atomic: several threads may make networks */
    atomic_int watches_images; /* 1: a network with AMP was made, so the plugin reads all images */
    int has_warned;           /* 1: warnings about a .cfg were printed; any later .cfg is a copy of it */
    int has_planned;          /* 1: a training's plan was made: the library has allocated its own memory */
    struct amp_shared_job { int images, parts, first, last, rank, ranks; } job; /* sharing.c */
    struct amp_backups {      /* data/backups.c */
        char *folder, *base, *lock; /* lock: the name of the lock file; NULL: no file is locked */
        int has_warned;       /* 1: a warning that the lock file cannot be locked was printed */
    } backups;
} amp_program;

const amp_program *amp_this_program(void);
/* The same struct, for writing. Only for darknet_amp_start, and for fields that change later. */
amp_program *amp_program_to_set(void);

/* State of one thread, kept from one hook to a later one. */
typedef struct amp_thread_state {
    struct amp_config *reading; /* settings of the .cfg that this thread's parser reads; NULL: no settings */
    enum {
        AMP_RESIZES_NOTHING,
        AMP_RESIZES_DARKNETS,   /* a layer that Darknet's own code runs, or the network's own arrays */
        AMP_RESIZES_OURS        /* a layer that AMP computes */
    } resizing;                 /* what this thread is resizing, in a network under AMP */
    const struct amp_node *layer; /* the layer of Darknet's code whose products AMP computes; NULL: none */
    struct amp_engine *engine;  /* the engine of `layer` */
    struct amp_watched *watched; /* the network whose layers a command watches; NULL: none */
    int checks_prediction;      /* 1: network_predict need not check its result, because its caller checks it
                                   and can return an error, or because the weights are random */
    int measures;               /* 1: this thread reads images to measure accuracy; the image of an unreadable
                                   file has data = NULL */
    int only_black;             /* 1: until its job ends, this thread gets a black image for every file */
    char unreadable[200];       /* why the latest image of this thread was rejected */
} amp_thread_state;

amp_thread_state *amp_this_thread(void);
