/* Checks a whole .cfg before Darknet parses it. Darknet's own parser crashes or fails an assertion when it
 * cannot make a layer, and misreads values without a word (it reads "learning_rate=0,001" as 0).
 *
 * A fork's table (cfg_fork) lists the sections, their keys and the values allowed; this header only defines
 * the types. A kind of section may also have a rule, which computes the layer's shape as the fork's parser
 * does, and finds mistakes that involve several keys or layers. Rules run in layer order. They compute in
 * double, so that products of ints do not overflow; a result that int cannot hold is rejected. */
#pragma once

#include "cfg_document.h"

/* ---- a fork's table ---- */

typedef enum cfg_type {
    CFG_WHOLE,  /* a whole number that an int can hold */
    CFG_REAL,
    CFG_FLAG,   /* 0 or 1; any other number is read as 1, with a warning */
    CFG_WORD,   /* one of `words` */
    CFG_FILE,   /* names an existing file */
    CFG_LAYER   /* a layer before this one: its index, or a negative distance (-1: the one before) */
} cfg_type;

/* A key's rules. CFG_LIST: several numbers; CFG_ABOVE, CFG_BELOW: `least`, `most` itself is not allowed. */
enum { CFG_LIST = 1, CFG_ABOVE = 2, CFG_BELOW = 4, CFG_REQUIRED = 8 };

typedef struct cfg_key {
    const char *name;
    cfg_type type;
    int rules;
    double fallback;           /* the value if the key is not given; for a word, its index */
    double least, most;        /* for each number of a list */
    const char *const *words;  /* ends with NULL */
} cfg_key;

typedef struct cfg_walk cfg_walk;

/* Traits: properties of a kind that need no rule; combined with |. */
enum {
    CFG_NEEDS_IMAGE = 1,   /* its input must have width, height and channels */
    CFG_SAME_IMAGE = 2,    /* output shape = input shape */
    CFG_SAME_COUNT = 4,    /* as many outputs as inputs, without the shape of an image */
    CFG_ONE_SIZE = 8,      /* Darknet cannot resize a network with a layer of this kind */
    CFG_READS_TRUTH = 16   /* a loss that reads as many numbers of truth as it has inputs */
};

typedef struct cfg_section_kind {
    const char *name, *other;  /* two names: "[convolutional]", "[conv]"; other may be NULL */
    const cfg_key *keys;
    int count;
    int traits;
    void (*rule)(cfg_walk *);  /* may be NULL; called after the traits have filled *out */
} cfg_section_kind;

/* A section or key that Darknet supports but that AMP cannot train with. */
typedef struct cfg_refusal {
    const char *section; /* the kind's name; NULL: any */
    const char *key;     /* rejected with any value other than its fallback (a CFG_LAYER with any); NULL: the
                            section itself is rejected */
    const char *word;    /* for a CFG_WORD: reject only this word; else NULL */
    const char *why;
} cfg_refusal;

typedef struct cfg_fork {
    const cfg_section_kind *kinds;     /* the first is [net] */
    int count;
    const cfg_key *layer_keys; /* keys that every layer may have */
    int layer_key_count;
    void (*finish)(cfg_walk *); /* checks the whole network, once all layers have a shape */
    const cfg_refusal *refusals; /* may be NULL */
    int refusal_count;
    int strict; /* 1: the fork's parser ends the program at a key that is unknown, repeated or never read, and
                   at a number with an exponent or a + */
    cfg_syntax cfg_syntax, data_syntax; /* how the fork reads .cfg and .data files */
} cfg_fork;

/* ---- what a rule sees ---- */

/* The output of one layer, or the network's input. Numbers are per image. */
typedef struct cfg_shape {
    double w, h, c;            /* 0 if it is not an image */
    const char *no_image;      /* why it is not an image, if that needs an explanation */
    double outputs;            /* 0: unknown, because of an error in this layer or one before it */
    double weights;
    double reads;              /* how many numbers of truth the layer's loss reads */
    double truths;             /* how many numbers of truth the loader must provide; 0: as many as outputs */
    double classes;            /* of a layer that finds boxes, else 0 */
    double loaded;             /* numbers of truth that `detector train` loads if this layer is the last */
    double cells;              /* of a layer that finds boxes in cells ([detection]), else 0 */
    double boxes;              /* the most boxes of an image that a detecting layer learns from */
    double random;             /* the layer's random=: the network is resized during training */
    int one_size;              /* the layer's kind has CFG_ONE_SIZE */
    int ends_resizing;         /* resizing stops here: layers after it keep their size */
} cfg_shape;

/* The purpose of the .cfg, as far as the check depends on it. */
typedef enum cfg_use {
    CFG_FOR_ANYTHING,
    CFG_TRAINS_DETECTOR,
    CFG_TRAINS_CLASSIFIER,
    CFG_TRAINS_BOXES,          /* CFG_TRAINS_DETECTOR if the last layer finds boxes, else CFG_FOR_ANYTHING;
                                  what `classifier train` rejects is then only a warning */
    CFG_TRAINS_DATA            /* CFG_TRAINS_DETECTOR if the last layer finds boxes, else
                                  CFG_TRAINS_CLASSIFIER */
} cfg_use;

struct cfg_walk {
    const cfg_shape *in;       /* the layer before, or the network's input */
    cfg_shape *out;            /* the current layer's shape, which its rule fills in */
    const cfg_shape *layers;   /* all layers; index 0 is the first */
    cfg_shape net;             /* the network's input */
    const cfg_shape *own;      /* while another size is being checked: the layers at the .cfg's own size */
    cfg_shape own_net;         /* and the input at that size */
    int index, count;          /* index of the current layer (-1: [net]); number of layers */
    double batch, time_steps;  /* batch: images at once, including time steps. Both are set by [net]'s rule */
    double resized, resized_h; /* width and height of the other size that is being checked, else 0 */
    cfg_use use;
    int only_warns;            /* report failures as warnings, because they concern a command that the user
                                  may not intend to run */
    struct cfg_check *check;
};

/* These read a key of the current section. A CFG_WORD is read as its index in `words`, a CFG_LAYER as the
 * layer's index. */
int cfg_walk_given(const cfg_walk *, const char *key);
/* The fallback if the key is not given; 0 if this fork has no such key. */
double cfg_walk_number(const cfg_walk *, const char *key);
int cfg_walk_numbers(const cfg_walk *, const char *key); /* how many numbers a list has; 0: not given */
double cfg_walk_at(const cfg_walk *, const char *key, int index); /* number `index` of a list */
const char *cfg_walk_text(const cfg_walk *, const char *key); /* NULL: not given */
/* Reports a failure if int cannot hold `count`; what: "weights", for example. */
void cfg_walk_count(cfg_walk *, double count, const char *what);
void cfg_walk_enter(cfg_walk *, int index); /* makes another layer's section the current one; -1: [net] */
int cfg_walk_traits(const cfg_walk *);      /* of the current section's kind */
int cfg_walk_failed(const cfg_walk *); /* some section has an error */
/* For cfg_fork.finish: runs the rules of all layers again, at another network size. */
void cfg_walk_again(cfg_walk *, double w, double h);

typedef enum cfg_finding {
    CFG_FAILS,   /* an error: the layer's shape becomes unknown. Only a section's first one is reported */
    CFG_REFUSES, /* an error for one of several keys that are each wrong on their own: all are reported */
    CFG_WARNS
} cfg_finding;
/* Reports a problem of the current section; key and allowed may be NULL. */
__attribute__((format(printf, 5, 6)))
void cfg_walk_report(cfg_walk *, cfg_finding, const char *key, const char *allowed, const char *problem, ...);
#define cfg_walk_fail(walk, ...) cfg_walk_report(walk, CFG_FAILS, __VA_ARGS__)
#define cfg_walk_refuse(walk, ...) cfg_walk_report(walk, CFG_REFUSES, __VA_ARGS__)
#define cfg_walk_warn(walk, ...) cfg_walk_report(walk, CFG_WARNS, __VA_ARGS__)

/* ---- the check ---- */

/* report is called for each finding, in order, with one line without its newline. */
typedef struct cfg_listener {
    void (*report)(void *context, int is_error, const char *line);
    void *context;
} cfg_listener;

typedef struct cfg_summary {
    int errors, warnings, layers;
    double w, h, c, batch;     /* of the input */
    double weights, outputs;   /* sums over all layers; outputs are those of one image */
    const char *last;          /* the name of the last layer's section: "[yolo]" */
    double classes, boxes;     /* of the last layer, as in cfg_shape */
    double truths;             /* how many numbers of truth the loader makes for an image */
    char first_error[1024];
} cfg_summary;

/* If there are errors, *summary only has their number, the first of them and the number of warnings; all
 * figures are 0. Ignores the keys of [amp], which amp_config_read checks. */
void cfg_check(const cfg_document *, const cfg_fork *fork, cfg_use use, const cfg_listener *listener,
               cfg_summary *summary);
