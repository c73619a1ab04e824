/* Checks a whole .cfg before Darknet parses it. Darknet's own parser crashes or fails an assertion if it
 * cannot create a layer, and silently misreads values ("learning_rate=0,001" as 0).
 *
 * A fork's table (cfg_fork) lists the sections, their keys and the allowed values. A kind of section may also
 * have a rule: a function that computes the layer's shape as the fork's parser does, and finds mistakes that
 * involve several keys or layers. Rules run in layer order, and compute in double: a result that an int
 * cannot hold is rejected. */
#pragma once

#include "cfg_document.h"

/* ---- a fork's table ---- */

typedef enum cfg_type {
    CFG_WHOLE,  /* a whole number that an int can hold */
    CFG_REAL,
    CFG_FLAG,   /* 0 or 1; any other number is read as 1, with a warning */
    CFG_WORD,   /* one of `words` */
    CFG_FILE,   /* the name of an existing file */
    CFG_LAYER   /* an earlier layer: its index, or a negative offset (-1: the previous layer) */
} cfg_type;

/* Flags of a key. CFG_LIST: the value is a list of numbers separated by commas. CFG_ABOVE: a number must be
 * above `least`. CFG_BELOW: it must be below `most`. CFG_REQUIRED: the key must be given. */
enum { CFG_LIST = 1, CFG_ABOVE = 2, CFG_BELOW = 4, CFG_REQUIRED = 8 };

typedef struct cfg_key {
    const char *name;
    cfg_type type;
    int rules;
    double fallback;           /* the default; for a CFG_WORD, its index in `words` */
    double least, most;        /* the bounds of the value, or of each number in a list */
    const char *const *words;  /* ends with NULL */
} cfg_key;

typedef struct cfg_walk cfg_walk;

/* Traits are properties of a kind of section that need no rule. They are combined with |. */
enum {
    CFG_NEEDS_IMAGE = 1,   /* the layer's input must have width, height and channels */
    CFG_SAME_IMAGE = 2,    /* output shape = input shape */
    CFG_SAME_COUNT = 4,    /* number of outputs = number of inputs; the output is not an image */
    CFG_ONE_SIZE = 8,      /* Darknet cannot resize a network with a layer of this kind */
    CFG_READS_TRUTH = 16   /* the layer is a loss that reads one truth value (label) per input */
};

typedef struct cfg_section_kind {
    const char *name, *other;  /* the section's names: "[convolutional]", "[conv]"; `other` may be NULL */
    const cfg_key *keys;
    int count;
    int traits;
    void (*rule)(cfg_walk *);  /* may be NULL; called after the traits have filled cfg_walk.out */
} cfg_section_kind;

/* A section or key that Darknet supports, but AMP cannot train with. */
typedef struct cfg_refusal {
    const char *section; /* the name of the section's kind; NULL: any section */
    const char *key;     /* this key is rejected unless it has its default; a CFG_LAYER is always rejected.
                            NULL: the whole section is rejected */
    const char *word;    /* the only value of a CFG_WORD that is rejected; NULL for other keys */
    const char *why;
} cfg_refusal;

typedef struct cfg_fork {
    const cfg_section_kind *kinds;     /* the kinds of sections; the first is [net] */
    int count;
    const cfg_key *layer_keys; /* keys that every layer may have */
    int layer_key_count;
    void (*finish)(cfg_walk *); /* checks the whole network, after the rules */
    const cfg_refusal *refusals; /* may be NULL */
    int refusal_count;
    int strict; /* 1: the fork's parser exits on a key that is unknown, repeated or never read, and on a
                   number with an exponent or a + */
    cfg_syntax cfg_syntax, data_syntax; /* how the fork reads .cfg and .data files */
} cfg_fork;

/* ---- what a rule sees ---- */

/* The output of one layer, or the network's input. Numbers are per image. */
typedef struct cfg_shape {
    double w, h, c;            /* 0 if the output is not an image */
    const char *no_image;      /* why the output is not an image; NULL if this needs no explanation */
    double outputs;            /* number of outputs; 0: unknown, because of an error up to this layer */
    double weights;
    double reads;              /* number of truth values that the layer's loss reads */
    double truths;             /* number of truth values that the loader must provide; 0: as many as
                                  `outputs` */
    double classes;            /* number of classes of a layer that detects boxes, else 0 */
    double loaded;             /* number of truth values that `detector train` loads if this layer is the
                                  last */
    double cells;              /* number of grid cells of a [detection] layer, else 0 */
    double boxes;              /* maximum number of boxes per image from which a detecting layer learns */
    double random;             /* the layer's random=; not 0: training resizes the network */
    int one_size;              /* the layer's kind has CFG_ONE_SIZE */
    int ends_resizing;         /* 1: a resize of the network ends at this layer */
} cfg_shape;

/* The purpose of the .cfg. Some checks depend on it. */
typedef enum cfg_use {
    CFG_FOR_ANYTHING,
    CFG_TRAINS_DETECTOR,
    CFG_TRAINS_CLASSIFIER,
    CFG_TRAINS_BOXES,          /* like CFG_TRAINS_DETECTOR if the last layer detects boxes, else like
                                  CFG_FOR_ANYTHING, plus warnings about `classifier train` */
    CFG_TRAINS_DATA            /* CFG_TRAINS_DETECTOR if the last layer detects boxes, else
                                  CFG_TRAINS_CLASSIFIER */
} cfg_use;

struct cfg_walk {
    const cfg_shape *in;       /* the current layer's input: the previous layer's output or the network's
                                  input */
    cfg_shape *out;            /* the current layer's output, which its rule fills in */
    const cfg_shape *layers;   /* all layers; index 0 is the first */
    cfg_shape net;             /* the network's input */
    const cfg_shape *own;      /* all layers at the .cfg's own size, during cfg_walk_again */
    cfg_shape own_net;         /* the network's input at the .cfg's own size, during cfg_walk_again */
    int index, count;          /* index of the current layer (-1: [net]); number of layers */
    double batch, time_steps;  /* batch: images per pass times time_steps. [net]'s rule sets both members */
    double resized, resized_h; /* width and height of the network during cfg_walk_again, else 0 */
    cfg_use use;
    int only_warns;            /* 1: errors are reported as warnings, as the user might not train */
    struct cfg_check *check;
};

/* These functions read keys of the current section. A CFG_WORD is read as its index in `words`, a CFG_LAYER
 * as the layer's index. */
int cfg_walk_given(const cfg_walk *, const char *key);
/* Returns the default if the key is not given, and 0 if this fork has no key of this name. */
double cfg_walk_number(const cfg_walk *, const char *key);
int cfg_walk_numbers(const cfg_walk *, const char *key); /* length of a list; 0: not given */
double cfg_walk_at(const cfg_walk *, const char *key, int index); /* number `index`, from 0, of a list */
const char *cfg_walk_text(const cfg_walk *, const char *key); /* NULL: not given */
/* Reports a failure if int cannot hold `count`; what: "weights", for example. */
void cfg_walk_count(cfg_walk *, double count, const char *what);
void cfg_walk_enter(cfg_walk *, int index); /* makes another layer's section the current one; -1: [net] */
int cfg_walk_traits(const cfg_walk *);      /* traits of the current section's kind */
int cfg_walk_failed(const cfg_walk *); /* 1: at least one section has an error */
/* For cfg_fork.finish: runs all rules again for a network of w x h. */
void cfg_walk_again(cfg_walk *, double w, double h);

typedef enum cfg_finding {
    CFG_FAILS,   /* an error that makes the layer's shape unknown; only a section's first one is reported */
    CFG_REFUSES, /* an error of one key; always reported */
    CFG_WARNS
} cfg_finding;
/* Reports a problem of the current section; key and allowed may be NULL. */
__attribute__((format(printf, 5, 6)))
void cfg_walk_report(cfg_walk *, cfg_finding, const char *key, const char *allowed, const char *problem, ...);
#define cfg_walk_fail(walk, ...) cfg_walk_report(walk, CFG_FAILS, __VA_ARGS__)
#define cfg_walk_refuse(walk, ...) cfg_walk_report(walk, CFG_REFUSES, __VA_ARGS__)
#define cfg_walk_warn(walk, ...) cfg_walk_report(walk, CFG_WARNS, __VA_ARGS__)

/* ---- the check ---- */

/* Receives the findings in order, each as one line without a newline. */
typedef struct cfg_listener {
    void (*report)(void *context, int is_error, const char *line);
    void *context;
} cfg_listener;

typedef struct cfg_summary {
    int errors, warnings, layers;
    double w, h, c, batch;     /* width, height, channels and batch of the network's input */
    double weights, outputs;   /* sums over all layers; outputs are those of one image */
    const char *last;          /* the name of the last layer's section: "[yolo]" */
    double classes, boxes;     /* classes and boxes of the last layer, as in cfg_shape */
    double truths;             /* number of truth values per image that the loader provides */
    char first_error[1024];
} cfg_summary;

/* Checks `document`, except the keys of [amp] (amp_config_read checks those), and fills *summary. After
 * errors, only `errors`, `warnings` and `first_error` are valid. listener may be NULL. */
void cfg_check(const cfg_document *, const cfg_fork *fork, cfg_use use, const cfg_listener *listener,
               cfg_summary *summary);
