/* Looks at a whole .cfg before Darknet parses it, whose parser ends by a signal or an assertion at what it
 * cannot make, and trains on what it misreads ("learning_rate=0,001" is 0).
 *
 * Which sections and keys there are, and what a key may be, is a fork's table (cfg_fork): data, of which this
 * file knows only the types. A kind of section may have a rule as well, which computes the layer's shape as
 * the fork's parser does, and finds what one key alone does not show. Rules are called in the order of the
 * layers. Their numbers are doubles, which hold any product of int exactly as far as it matters: what int
 * cannot hold is refused. */
#pragma once

#include "../tensor/status.h"

/* ---- what a fork's table says ---- */

typedef enum cfg_type {
    CFG_WHOLE,  /* fits int */
    CFG_REAL,
    CFG_FLAG,   /* 0 or 1; any other number is taken as 1, with a warning */
    CFG_WORD,   /* one of `words` */
    CFG_FILE,   /* names a file that is there */
    CFG_LAYER   /* a layer before this one: its index, or how far before (-1) */
} cfg_type;

/* Several numbers; least itself is too little; most itself is too much. */
enum { CFG_LIST = 1, CFG_ABOVE = 2, CFG_BELOW = 4, CFG_REQUIRED = 8 };

typedef struct cfg_key {
    const char *name;
    cfg_type type;
    int rules;
    double fallback;           /* what it is where it is not given; of a word, its index */
    double least, most;        /* of each number of a list */
    const char *const *words;  /* ends with NULL */
} cfg_key;

typedef struct cfg_walk cfg_walk;

/* What needs no rule of its own; several may be joined by |. */
enum {
    CFG_NEEDS_IMAGE = 1,   /* its input must have width, height and channels */
    CFG_SAME_IMAGE = 2,    /* what comes out has the shape of what goes in */
    CFG_SAME_COUNT = 4,    /* as many numbers come out as go in, but they are no image */
    CFG_ONE_SIZE = 8,      /* Darknet makes it for one size and cannot resize a network with it */
    CFG_READS_TRUTH = 16   /* a loss that reads as many numbers of truth as go in */
};

typedef struct cfg_section_kind {
    const char *name, *other;  /* "[convolutional]", "[conv]"; other may be NULL */
    const cfg_key *keys;
    int count;
    int traits;
    void (*rule)(cfg_walk *);  /* may be NULL; finds *out filled by the traits */
} cfg_section_kind;

/* What Darknet knows and AMP does not train with. */
typedef struct cfg_refusal {
    const char *section; /* its kind's name; NULL: any */
    const char *key;     /* any value but the one it has where it is not given; NULL: the section itself */
    const char *word;    /* of a CFG_WORD, this one; else NULL */
    const char *why;
} cfg_refusal;

typedef struct cfg_fork {
    const cfg_section_kind *kinds;     /* the first is [net] */
    int count;
    const cfg_key *layer_keys; /* that every layer may have */
    int layer_key_count;
    void (*finish)(cfg_walk *); /* looks at the whole, when all layers have a shape */
    const cfg_refusal *refusals; /* may be NULL */
    int refusal_count;
    int strict; /* its parser ends the program at a key that it does not know, meets twice or does not ask
                   for, and at a number with an exponent or a +; a comment begins with a #, anywhere in a
                   line */
    int spaced_data; /* how a .data file is read: cfg_read_data of cfg_reader.h */
} cfg_fork;

extern const cfg_fork amp_cfg_fork; /* of the Darknet that the plugin is built for: host/FORK/cfg_keys.c */

/* ---- what a rule sees ---- */

/* Of one layer, or of the network's input; per image. */
typedef struct cfg_shape {
    double w, h, c;            /* 0 where it is no image */
    const char *no_image;      /* why it is none, where that is no matter of course */
    double outputs;            /* 0: unknown, since something is wrong with this layer or one before it */
    double weights;
    double reads;              /* numbers of truth that its loss reads */
    double truths;             /* numbers of truth that the loader is to make; 0: as many as outputs */
    double classes;            /* of a layer that finds boxes, else 0 */
    double loaded;             /* numbers of truth that `detector train` loads if this layer is the last */
    double cells;              /* of a layer that finds boxes in cells ([detection]), else 0 */
    double boxes;              /* of an image, that a layer that finds boxes learns from at most */
    double random;             /* this layer wants the network resized while it trains */
    int one_size;              /* as CFG_ONE_SIZE */
    int ends_resizing;         /* resizing a network leaves what follows as it is */
} cfg_shape;

/* What the .cfg is for, as far as it matters. */
typedef enum cfg_use {
    CFG_FOR_ANYTHING,
    CFG_TRAINS_DETECTOR,
    CFG_TRAINS_CLASSIFIER,
    CFG_TRAINS_BOXES,          /* as a detector if the last layer finds boxes, else for anything; what
                                  `classifier train` refuses is then a warning */
    CFG_TRAINS_DATA            /* as a detector if the last layer finds boxes, else as a classifier */
} cfg_use;

struct cfg_walk {
    const cfg_shape *in;       /* the layer before, or the network's input */
    cfg_shape *out;            /* a rule fills it */
    const cfg_shape *layers;   /* index 0: the first layer */
    cfg_shape net;             /* the network's input */
    const cfg_shape *own;      /* the layers and the input in the .cfg's own size, */
    cfg_shape own_net;         /* while another size is looked at */
    int index, count;          /* of this layer, -1: [net]; of all layers */
    double batch, time_steps;  /* images at once (time steps counted), set by [net]'s rule */
    double resized, resized_h; /* width and height while the network is looked at in another size, else 0 */
    cfg_use use;
    int only_warns;            /* findings are warnings: they concern a command that may not be meant */
    struct cfg_check *check;
};

/* Of the present section. A CFG_WORD is a number too, its index; a CFG_LAYER is the layer's index. */
int cfg_walk_given(const cfg_walk *, const char *key);
/* not given: the fallback; no key of this fork's: 0 */
double cfg_walk_number(const cfg_walk *, const char *key);
int cfg_walk_numbers(const cfg_walk *, const char *key); /* how many a list has; 0: not given */
double cfg_walk_at(const cfg_walk *, const char *key, int index);
const char *cfg_walk_text(const cfg_walk *, const char *key); /* NULL: not given */
/* fails where int cannot hold count of `what` */
void cfg_walk_count(cfg_walk *, double count, const char *what);
void cfg_walk_enter(cfg_walk *, int index); /* makes another layer's section the present one; -1: [net] */
int cfg_walk_traits(const cfg_walk *);      /* of the present section's kind */
int cfg_walk_failed(const cfg_walk *); /* some section has an error */
/* For finish: walks the layers once more, with another width and height of the network. */
void cfg_walk_again(cfg_walk *, double w, double h);

/* Something is wrong with the present section; key and allowed may be NULL. Where a rule fails, the shape of
 * its layer is unknown, and only a section's first failure is reported; one key of several that are wrong
 * each for itself is refused. */
typedef enum cfg_finding { CFG_FAILS, CFG_REFUSES, CFG_WARNS } cfg_finding;
__attribute__((format(printf, 5, 6)))
void cfg_walk_report(cfg_walk *, cfg_finding, const char *key, const char *allowed, const char *problem, ...);
#define cfg_walk_fail(walk, ...) cfg_walk_report(walk, CFG_FAILS, __VA_ARGS__)
#define cfg_walk_refuse(walk, ...) cfg_walk_report(walk, CFG_REFUSES, __VA_ARGS__)
#define cfg_walk_warn(walk, ...) cfg_walk_report(walk, CFG_WARNS, __VA_ARGS__)

/* ---- the check ---- */

/* report is called for each finding, in the order they are found, with one line without its newline. */
typedef struct cfg_listener {
    void (*report)(void *context, int is_error, const char *line);
    void *context;
} cfg_listener;

typedef struct cfg_summary {
    int errors, warnings, layers;
    double w, h, c, batch;     /* of the input */
    double weights, outputs;   /* of all layers; outputs of one image */
    const char *last;          /* the last layer's section, "[yolo]" */
    double classes, boxes;     /* the last layer's, as in cfg_shape */
    double truths;             /* numbers of truth that the loader makes for an image */
    char first_error[1024];
} cfg_summary;

/* *summary: all figures are 0 where there are errors. AMP_OK also for a .cfg full of mistakes:
 * summary->errors counts them. AMP_BAD_CONFIG: the file cannot be read. Keys of [amp], which config.h checks,
 * are passed over. */
amp_status cfg_check(const char *file, const cfg_fork *fork, cfg_use use, const cfg_listener *listener,
                     cfg_summary *summary, amp_error *error);
