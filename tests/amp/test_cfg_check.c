/* What the check of a .cfg rejects, with which messages, and that it accepts tests/cfg without a message. No
 * network is made here; e2e/bad_cfg.sh shows that the program ends with these lines, test_cfg_fuzz.c that
 * accepted files can be made and trained. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "testing.h"

#include <glob.h>
#include <unistd.h>

#include "documents.h"
#include "host/fork.h"
#include "test_folder.h"

/* The ends of lines. */
#define ACTIVATIONS                                                                                          \
    "; allowed: logistic, relu, relie, linear, ramp, tanh, plse, leaky, elu, loggy, stair, hardtan, lhtan, " \
    "selu"
#define TO_65536 "; allowed: a whole number from 1 to 65536"
#define TO_A_MILLION "; allowed: a whole number from 1 to 1000000"
#define FROM_1 "; allowed: a whole number from 1 up"
#define FROM_0 "; allowed: a whole number from 0 up"
#define NOT_NEGATIVE "; allowed: a number from 0 up"
#define FRACTION "; allowed: a number from 0 to below 1"
#define OWN_WINDOW ": with this key Darknet's own code runs the layer, and ignores padding and stride if " \
    "size=1; remove padding and stride, or this key"
#define POSITIVE "; allowed: a number above 0"
#define TO_1 "; allowed: a number from 0 to 1"
#define A_NUMBER "; allowed: a number"
#define FLAG "; allowed: 0, 1"
#define ANCHORS "; allowed: a number above 0, or several, separated by commas"
#define LAYERS "; allowed: layers before this one, separated by commas"
#define A_LAYER "; allowed: a layer before this one"
#define A_FILE "; allowed: a file that can be read"
#define NET_FIRST "; allowed: [net] first, then the layers"
#define KNOWN "; allowed: the layers of Darknet, [net] first, and [amp]"
#define TOO_MANY " are more than Darknet can count (2147483647); use smaller sizes"
#define POLICIES "; allowed: constant, step, steps, exp, sigmoid, poly, random"
#define TEXT_LINES "; allowed: lines of text of at most 65536 bytes"
#define WHOLES "; allowed: a whole number, or several, separated by commas"

/* The beginnings of .cfg files. */
#define SIZE "width=8\nheight=8\nchannels=3\n"
#define CONV "[convolutional]\n"
#define FOUR CONV "filters=4\n"
#define YOLO CONV "filters=14\n[yolo]\n"
#define REGION CONV "filters=14\n[region]\n"
#define ANCHORED "classes=2\nnum=2\nanchors=1,2,3,4\n"
#define DETECTION "[connected]\noutput=48\n[detection]\n"

static int enter_with_files(void **state)
{
    char long_name[310], many[3000] = "";
    if (enter_folder(state)) return -1;
    memset(long_name, 'x', 300);
    strcpy(long_name + 300, " -1\n");
    for (int i = 0; i < 300; i++) sprintf(many + strlen(many), "n%d -1\n", i);
    put_anew("loop.tree", "a -1\nb 1\n");
    put_anew("long.tree", long_name);
    put_anew("many.tree", many);
    put_anew("empty", "");
    put_anew("bad.map", "0\n7\n");
    return 0;
}

/* The first error and the first warning, or empty. */
typedef struct lines { char error[1024], warning[1024]; int errors, warnings; } lines;

static void keep(void *context, int is_error, const char *line)
{
    lines *l = context;
    char *to = is_error ? l->error : l->warning;
    int *count = is_error ? &l->errors : &l->warnings;
    if (!(*count)++) snprintf(to, sizeof l->error, "%s", line);
}

static void check(const char *file, cfg_use use, lines *found, cfg_summary *summary)
{
    const cfg_listener listener = { keep, found };
    *found = (lines){ .errors = 0 };
    check_file(file, &amp_cfg_fork, use, &listener, summary);
    assert_int_equal(summary->errors, found->errors);
    assert_int_equal(summary->warnings, found->warnings);
    assert_string_equal(summary->first_error, found->error);
    for (const char *c = found->error; *c; c++) assert_true((unsigned char)*c >= 0x20 && *c != 0x7f);
}

/* Asserts that text is rejected with "x.cfg" followed by expected; if `one` is set, as the only error. */
static void refused(const char *text, cfg_use use, const char *expected, int one)
{
    lines found;
    cfg_summary summary;
    put_anew("x.cfg", text);
    check("x.cfg", use, &found, &summary);
    if (!found.errors || strcmp(found.error + 5, expected) || (one && found.errors != 1))
        fail_msg("\n%s\n     got %s (of %d)\ninstead of x.cfg%s", text, found.error, found.errors, expected);
}

/* ---- each key of the table by itself ---- */

typedef struct sought { char begin[200]; int found; } sought;

static void seek(void *context, int is_error, const char *line)
{
    sought *s = context;
    s->found |= is_error && !strncmp(line, s->begin, strlen(s->begin));
}

/* Asserts that the value is rejected for `problem`, on its line; other messages are allowed. */
static void key_refuses(const cfg_section_kind *kind, const cfg_key *key, const char *value,
                        const char *problem)
{
    char text[300];
    sought s = { .found = 0 };
    cfg_summary summary;
    const cfg_listener listener = { seek, &s };
    const int is_net = kind == amp_cfg_fork.kinds;
    if (is_net) snprintf(text, sizeof text, "[net]\n%s=%s\n" SIZE CONV, key->name, value);
    else snprintf(text, sizeof text, "[net]\n" SIZE CONV "%s\n%s=%s\n", kind->name, key->name, value);
    snprintf(s.begin, sizeof s.begin, "x.cfg:%d: %s %s = %s: %s", is_net ? 2 : 7, kind->name, key->name,
             value, problem);
    put_anew("x.cfg", text);
    check_file("x.cfg", &amp_cfg_fork, CFG_FOR_ANYTHING, &listener, &summary);
    if (!s.found) fail_msg("\n%s\nis not refused with %s", text, s.begin);
}

/* No value, a value of another type, and numbers out of range. */
static void key_keeps_its_row(const cfg_section_kind *kind, const cfg_key *key)
{
    char value[64], problem[128];
    const int is_whole = key->type == CFG_WHOLE || key->type == CFG_FLAG || key->type == CFG_LAYER;
    key_refuses(kind, key, "", "has no value");
    if (key->type == CFG_WORD) key_refuses(kind, key, "9?", "unknown word");
    if (key->type == CFG_FILE) key_refuses(kind, key, "nowhere", "No such file or directory");
    if (is_whole) {
        key_refuses(kind, key, "x", "not a whole number");
        key_refuses(kind, key, "1.5", "not a whole number");
        key_refuses(kind, key, "99999999999", "too large");
    }
    if (key->type == CFG_REAL) {
        key_refuses(kind, key, "x", "not a decimal number");
        key_refuses(kind, key, "nan", "not a decimal number");
        key_refuses(kind, key, "0x1", "not a decimal number");
        key_refuses(kind, key, "1e39", "out of fp32's range");
    }
    if (key->type != CFG_WHOLE && key->type != CFG_REAL) return;
    if (key->least > -1e6) {
        const int is_above = key->rules & CFG_ABOVE;
        snprintf(value, sizeof value, "%.0f", key->least - !is_above);
        snprintf(problem, sizeof problem, "%s %.0f", is_above ? "not above" : "below", key->least);
        key_refuses(kind, key, value, problem);
    }
    if (key->most < 1e6) {
        const int is_below = key->rules & CFG_BELOW;
        snprintf(value, sizeof value, "%.0f", key->most + !is_below);
        snprintf(problem, sizeof problem, "%s %.0f", is_below ? "not below" : "above", key->most);
        key_refuses(kind, key, value, problem);
    }
}

TEST(every_key_keeps_its_row_of_the_table)
{
    int keys = 0;
    for (int s = 0; s < amp_cfg_fork.count; s++) {
        const cfg_section_kind *kind = &amp_cfg_fork.kinds[s];
        for (int k = 0; k < kind->count; k++, keys++) key_keeps_its_row(kind, &kind->keys[k]);
        for (int k = 0; s > 0 && k < amp_cfg_fork.layer_key_count; k++)
            key_keeps_its_row(kind, &amp_cfg_fork.layer_keys[k]);
    }
    assert_true(keys > 100);
}

/* ---- whole rows: the exact messages, of each form once, and errors that a single key does not show ---- */

typedef struct bad_case { const char *text, *line; } bad_case;

TEST(keys_of_net)
{
    static const bad_case cases[] = {
        { "batch=0", ":2: [net] batch = 0: below 1" TO_A_MILLION },
        { "batch=abc", ":2: [net] batch = abc: not a whole number" TO_A_MILLION },
        { "batch=", ":2: [net] batch = : has no value" TO_A_MILLION },
        { "subdivisions=2",
          ":2: [net] subdivisions = 2: batch = 1 cannot be split into 2 parts; subdivisions must be at most "
          "batch" },
        { "batch=4\nsubdivisions=8",
          ":3: [net] subdivisions = 8: batch = 4 cannot be split into 8 parts; subdivisions must be at most "
          "batch" },
        { "width=60000\nheight=60000", ":1: [net]: 10800000000 numbers of input for a batch" TOO_MANY },
        { "width=1000\nheight=1000\nbatch=1000",
          ":1: [net]: 3000000000 numbers of input for a batch" TOO_MANY },
        { "inputs=100", ":2: [net] inputs = 100: differs from width*height*channels = 192; remove inputs" },
        { "learning_rate=0,001",
          ":2: [net] learning_rate = 0,001: not a decimal number: the decimal point is a '.'" NOT_NEGATIVE },
        { "momentum=2", ":2: [net] momentum = 2: above 1" TO_1 },
        { "adam=1\nB1=1", ":3: [net] B1 = 1: not below 1" FRACTION },
        { "angle=400", ":2: [net] angle = 400: above 360; allowed: a number from -360 to 360" },
        { "max_crop=0", ":2: [net] max_crop = 0: below 1" TO_65536 },
        { "max_ratio=0", ":2: [net] max_ratio = 0: not above 0" POSITIVE },
        { "policy=stepz", ":2: [net] policy = stepz: unknown word, did you mean step?" POLICIES },
        { "policy=steps", ":2: [net] policy = steps: needs steps= and scales=, but steps= is missing" },
        { "policy=steps\nsteps=100",
          ":2: [net] policy = steps: needs steps= and scales=, but scales= is missing" },
        { "policy=steps\nscales=.1",
          ":2: [net] policy = steps: needs steps= and scales=, but steps= is missing" },
        { "policy=steps\nsteps=100,200\nscales=.1",
          ":4: [net] scales = .1: steps= has 2 numbers, but scales= has 1; give one scale for each step" },
        { "policy=steps\nsteps=100\nscales=.1,.1",
          ":4: [net] scales = .1,.1: steps= has 1 numbers, but scales= has 2; give one scale for each step" },
        { "policy=steps\nsteps=100,\nscales=.1,.1",
          ":3: [net] steps = 100,: a number in the list is missing" WHOLES },
        { "policy=steps\nsteps=100\nscales=-1",
          ":4: [net] scales = -1: below 0; allowed: a number from 0 up, or several, separated by commas" },
        { "policy=steps\nsteps=100\nscales=0,1",
          ":4: [net] scales = 0,1: steps= has 1 numbers, but scales= has 2; give one scale for each step" },
        { "policy=exp\ngamma=abc", ":3: [net] gamma = abc: not a decimal number" A_NUMBER },
        { "policy=poly", ":2: [net] policy = poly: divides by max_batches, which is 0; set max_batches" },
        { "policy=poly\nmax_batches=0",
          ":2: [net] policy = poly: divides by max_batches, which is 0; set max_batches" },
        { "burn_in=-1", ":2: [net] burn_in = -1: below 0" FROM_0 },
        { "policy=step#x", ":2: [net] policy = step#x: a comment needs a line of its own" POLICIES },
    };
    char text[1000];
    for (size_t i = 0; i < COUNT(cases); i++) {
        snprintf(text, sizeof text, "[net]\n%s\n" SIZE "[convolutional]\n", cases[i].text);
        refused(text, CFG_FOR_ANYTHING, cases[i].line, 1);
    }
}

TEST(layers)
{
    static const bad_case cases[] = {
        { CONV "filters=2000000000", ":5: [convolutional]: 6000000000 weights" TOO_MANY },
        { CONV "size=9", ":6: [convolutional] size = 9: larger than the padded image of 8x8" },
        { CONV "size=46341\npadding=30000",
          ":5: [convolutional]: 1203544070292326912 numbers in the matrix of im2col" TOO_MANY },
        { CONV "padding=-1",
          ":6: [convolutional] padding = -1: below 0; allowed: a whole number from 0 to 65536" },
        { CONV "groups=2",
          ":6: [convolutional] groups = 2: does not divide both the 3 input channels and the 1 filters" },
        { FOUR "groups=3",
          ":7: [convolutional] groups = 3: does not divide both the 3 input channels and the 4 filters" },
        { CONV "size=1\npadding=8\nxnor=1", ":8: [convolutional] xnor = 1" OWN_WINDOW },
        { CONV "size=1\nstride=2\nbinary=1", ":8: [convolutional] binary = 1" OWN_WINDOW },
        { CONV "padding=1\ndot=.1", ":7: [convolutional] dot = .1" OWN_WINDOW },
        { CONV "numload=5", ":6: [convolutional] numload = 5: more than the 1 filters of this layer" },
        { FOUR "[maxpool]\nsize=9\npadding=0",
          ":7: [maxpool]: its input is 8x8x4 and its output would be 0x0x4; sizes must be at least 1" },
        { FOUR "[maxpool]\nsize=46341\nstride=2",
          ":8: [maxpool] size = 46341: more than twice the image of 8x8" },
        { FOUR "[maxpool]\nsize=2\npadding=4",
          ":9: [maxpool] padding = 4: some windows of 2x2 lie outside of the image of 8x8" },
        { FOUR "[upsample]\nstride=0",
          ":8: [upsample] stride = 0: is 0; allowed: 1 or more, or below 0 to make the image smaller" },
        { FOUR "[upsample]\nstride=x",
          ":8: [upsample] stride = x: not a whole number; allowed: a whole number from -65536 to 65536" },
        { FOUR "[upsample]\nstride=-3", ":8: [upsample] stride = -3: does not divide the image of 8x8" },
        { FOUR "[upsample]\nstride=65536", ":7: [upsample]: 1099511627776 outputs for a batch" TOO_MANY },
        { FOUR "[reorg]\nstride=3",
          ":8: [reorg] stride = 3: the 4 input channels are not a multiple of stride*stride = 9" },
        { FOUR "[reorg]\nextra=5\nreverse=1",
          ":8: [reorg] extra = 5: cannot be given together with reverse or flatten" },
        { FOUR "[crop]\ncrop_width=9\ncrop_height=8",
          ":8: [crop] crop_width = 9: larger than the image of 8x8" },
        { FOUR "[crop]\ncrop_width=8\ncrop_height=9",
          ":9: [crop] crop_height = 9: larger than the image of 8x8" },
        { FOUR "[local]\nsize=9", ":7: [local]: its input is 8x8x4 and its output would be 0x0x1; sizes must "
                                  "be at least 1" },
        { FOUR "[local]\nsize=5\npad=1",
          ":8: [local] size = 5: does not fit pad = 1 and an image of 8x8; use size=3 with pad=1" },
        { FOUR "[local]\nfilters=2000000000", ":7: [local]: 512000000000 weights" TOO_MANY },
        { FOUR "[deconvolutional]\nsize=1\npadding=8",
          ":7: [deconvolutional]: its input is 8x8x4 and its output would be -8x-8x1; sizes must be at least "
          "1" },
        { FOUR "[connected]\noutput=2000000000", ":7: [connected]: 512000000000 weights" TOO_MANY },
        { FOUR "[rnn]\noutput=50000", ":7: [rnn]: 2500000000 weights" TOO_MANY },
        { FOUR "[lstm]\noutput=50000", ":7: [lstm]: 2500000000 weights" TOO_MANY },
        { FOUR "[crnn]\nhidden_filters=20000", ":7: [crnn]: 3600000000 weights" TOO_MANY },
        { FOUR "[softmax]\ngroups=7",
          ":8: [softmax] groups = 7: does not divide the layer's 256 inputs" },
        { FOUR "[softmax]\ntree=.", ":8: [softmax] tree = .: not a regular file" A_FILE },
        { FOUR "[softmax]\ntree=loop.tree", ":8: [softmax] tree = loop.tree: line 2 of the file: the parent "
                                            "1 must be -1 or the number of an earlier line, counted from 0" },
        { FOUR "[softmax]\ntree=long.tree", ":8: [softmax] tree = long.tree: line 1 of the file must be a "
                                            "name of at most 255 bytes and the number of its parent" },
        { FOUR "[softmax]\ntree=empty", ":8: [softmax] tree = empty: the file is empty" },
        { FOUR "[softmax]\ntree=many.tree",
          ":8: [softmax] tree = many.tree: the tree has 300 nodes, but the layer has room for only 256" },
        { FOUR "[cost]\ntype=l2",
          ":8: [cost] type = l2: unknown word; allowed: sse, seg, masked, smooth, L1, wgan" },
        { FOUR "[iseg]\nclasses=2\nids=3",
          ":7: [iseg]: its classes and ids need filters=5 in the layer before it, which has 4" },
        { FOUR "[route]", ":7: [route]: layers is missing" LAYERS },
        { FOUR "[route]\nlayers=1", ":8: [route] layers = 1: this is layer 1 itself" LAYERS },
        { FOUR "[route]\nlayers=2",
          ":8: [route] layers = 2: layer 2 is not before this one, which is layer 1" LAYERS },
        { FOUR "[route]\nlayers=-2",
          ":8: [route] layers = -2: layer -1 does not exist: only 1 layers are before this one" LAYERS },
        { FOUR "[route]\nlayers=-1,", ":8: [route] layers = -1,: a number in the list is missing" LAYERS },
        { FOUR "[route]\nlayers=-1,-1,9",
          ":8: [route] layers = -1,-1,9: layer 9 is not before this one, which is layer 1" LAYERS },
        { FOUR "[route]\nlayers=0.5", ":8: [route] layers = 0.5: not a whole number" LAYERS },
        { FOUR "[shortcut]", ":7: [shortcut]: from is missing" A_LAYER },
        { FOUR "[shortcut]\nfrom=-9",
          ":8: [shortcut] from = -9: layer -8 does not exist: only 1 layers are before this one" A_LAYER },
        { FOUR "[shortcut]\nfrom=1", ":8: [shortcut] from = 1: this is layer 1 itself" A_LAYER },
        { FOUR "[shortcut]\nfrom=-1,-2", ":8: [shortcut] from = -1,-2: not a whole number" A_LAYER },
        { FOUR "[shortcut]\nfrom=-1\nactivation=relu6",
          ":9: [shortcut] activation = relu6: unknown word, did you mean relu?" ACTIVATIONS },
        { "[route]\nlayers=-1", ":6: [route] layers = -1: the first layer has no layer before it" LAYERS },
        { "[shortcut]\nfrom=-1", ":6: [shortcut] from = -1: the first layer has no layer before it" A_LAYER },
        { "[dropout]",
          ":5: [dropout]: cannot be the first layer, since Darknet's dropout changes the output of the layer "
          "before it" },
        { FOUR "[connected]\noutput=4\n[softmax]\n[convolutional]\nfilters=2",
          ":10: [convolutional]: needs an image with width, height and channels, but the output of layer 2 "
          "[softmax] is not an image" },
        { FOUR "[rnn]\noutput=4\n[maxpool]\nsize=2",
          ":9: [maxpool]: needs an image with width, height and channels, but the output of layer 1 [rnn] "
          "is not an image" },
        { FOUR "[maxpool]\nsize=2\nstride=2\n[route]\nlayers=0,1\n[convolutional]\nfilters=2",
          ":12: [convolutional]: needs an image with width, height and channels, but the output of layer 2 "
          "[route] is not an image, since the layers that it joins differ in width or height; for most "
          "networks, width and height in [net] must be multiples of 32" },
        { FOUR "[convolutional]\nfilters=4\nsize=8\n[convolutional]\nsize=2",
          ":11: [convolutional] size = 2: larger than the padded image of 1x1" },
        { FOUR "[gru]\noutput=3\n[shortcut]\nfrom=0",
          ":9: [shortcut]: needs an image with width, height and channels, but the output of layer 1 [gru] "
          "is not an image" },
        { FOUR "[rnn]\noutput=4\n[connected]\noutput=4\n[shortcut]\nfrom=1",
          ":12: [shortcut] from = 1: layer 1 does not output an image" },
        { FOUR "[cost]\n[connected]\noutput=3\n[cost]",
          ":7: [cost]: reads 256 numbers of truth per image, but layer 3 limits them to 3" },
        { FOUR "[avgpool]\ntruth=1\n[connected]\noutput=9\n[softmax]",
          ":11: [softmax]: reads 9 numbers of truth per image, but layer 1 limits them to 4" },
        { FOUR "[convolutonal]\nfilters=3",
          ":7: [convolutonal]: unknown section, did you mean [convolutional]?" KNOWN },
        { FOUR "[Maxpool]\nsize=2", ":7: [Maxpool]: unknown section, did you mean [maxpool]?" KNOWN },
        { FOUR "[yolo3]", ":7: [yolo3]: unknown section, did you mean [yolo]?" KNOWN },
        { FOUR "[net]\nbatch=1", ":7: [net]: only the first section can be [net]" NET_FIRST },
        { FOUR "[maxpool\nsize=2", ":7: [maxpool: unknown section, did you mean [maxpool]?" KNOWN },
        { FOUR "[route]\nlayers=0#all\n[shortcut]\nfrom=-8",
          ":10: [shortcut] from = -8: layer -6 does not exist: only 2 layers are before this one" A_LAYER },
        { YOLO "classes=2\nnum=2", ":7: [yolo]: anchors is missing" ANCHORS },
        { REGION "classes=2\nnum=2", ":7: [region]: anchors is missing" ANCHORS },
        { YOLO "classes=2\nnum=2\nanchors=1,2",
          ":10: [yolo] anchors = 1,2: anchors has 2 numbers, but num=2 needs 4" },
        { YOLO "classes=2\nnum=2\nanchors=1,,2,3",
          ":10: [yolo] anchors = 1,,2,3: a number in the list is missing" ANCHORS },
        { YOLO "classes=2\nnum=2\nanchors=a,b,c,d",
          ":10: [yolo] anchors = a,b,c,d: not a decimal number" ANCHORS },
        { YOLO "classes=2\nnum=2\nanchors=1,2,0,4", ":10: [yolo] anchors = 1,2,0,4: not above 0" ANCHORS },
        { YOLO "classes=2\nnum=2\nanchors=1;2;3;4",
          ":10: [yolo] anchors = 1;2;3;4: anchors has 1 numbers, but num=2 needs 4" },
        { YOLO "classes=3\nnum=2\nanchors=1,2,3,4",
          ":7: [yolo]: 2 boxes of 3 classes need filters=16 in the layer before it, which has 14" },
        { REGION "classes=2\nnum=3\nanchors=1,2,3,4,5,6",
          ":7: [region]: 3 boxes of 2 classes need filters=21 in the layer before it, which has 14" },
        { YOLO "classes=2\nnum=2000000000\nanchors=1,2",
          ":10: [yolo] anchors = 1,2: anchors has 2 numbers, but num=2000000000 needs 4000000000" },
        { YOLO ANCHORED "max=30", ":11: [yolo] max = 30: below 90; allowed: 90" },
        { YOLO ANCHORED "map=empty", ":11: [yolo] map = empty: the file is empty" },
        { YOLO ANCHORED "map=bad.map",
          ":11: [yolo] map = bad.map: line 2 of the file must be the number of one of the 2 classes, "
          "counted from 0" },
        { YOLO ANCHORED "mask=0,1,2", ":11: [yolo] mask = 0,1,2: mask has 2, but with num=2 the anchors are "
                                      "numbered 0 to 1" },
        { YOLO ANCHORED "mask=2", ":11: [yolo] mask = 2: mask has 2, but with num=2 the anchors are "
                                    "numbered 0 to 1" },
        { YOLO ANCHORED "mask=-1",
          ":11: [yolo] mask = -1: below 0; allowed: a whole number from 0 up, or several, separated by "
          "commas" },
        { YOLO ANCHORED "mask=0",
          ":7: [yolo]: 1 boxes of 2 classes need filters=7 in the layer before it, which has 14" },
        { REGION ANCHORED "coords=5",
          ":7: [region]: 2 boxes of 2 classes need filters=16 in the layer before it, which has 14" },
        { REGION ANCHORED "tree=many.tree",
          ":11: [region] tree = many.tree: the tree has 300 nodes, but the layer has room for only 2" },
        { DETECTION "classes=2\nside=2\nnum=2",
          ":7: [detection]: coords is missing, and defaults to 1; allowed: 4" },
        { DETECTION "coords=4\nclasses=2\nside=2\nnum=1",
          ":7: [detection]: side, num, classes and coords need output=28 in the layer before it, which has "
          "48" },
    };
    char text[1000];
    for (size_t i = 0; i < COUNT(cases); i++) {
        snprintf(text, sizeof text, "[net]\n" SIZE "%s\n", cases[i].text);
        refused(text, CFG_FOR_ANYTHING, cases[i].line, 1);
    }
}

TEST(whole_files)
{
    static const bad_case cases[] = {
        { "", ": holds no section" NET_FIRST },
        { "# nothing\n", ": holds no section" NET_FIRST },
        { "[net]\nwidth=8\n", ":1: [net]: no layer follows" NET_FIRST },
        { "[net]\nwidth=8\nheight=8\nchannels=3\n", ":1: [net]: no layer follows" NET_FIRST },
        { "[maxpool]\nsize=2\n[net]\n", ":1: [maxpool]: the first section is not [net]" NET_FIRST },
        { "[net]\nwidth=8\nheight=6\nchannels=3\n[crnn]\n[crop]\ncrop_width=7\ncrop_height=7\n",
          ":7: [crop] crop_width = 7: larger than the image of 6x8" }, /* Darknet swaps them */
        { "[net]\n[connected]\n",
          ":1: [net]: width is missing: give width, height and channels, or only inputs" },
        { "[net]\nwidth=8\nheight=8\n[connected]\n",
          ":1: [net]: channels is missing: give width, height and channels, or only inputs" },
        { "[net]\nwidth=8\nheight=8\nchannels=3\ninputs=100\n[connected]\n",
          ":5: [net] inputs = 100: differs from width*height*channels = 192; remove inputs" },
        { "[net]\ninputs=8\n[convolutional]\n", ":3: [convolutional]: needs an image with width, height and "
                                                "channels, but the network's input is not an image" },
        { "[net]\ninputs=8\n[avgpool]\n", ":3: [avgpool]: needs an image with width, height and channels, "
                                          "but the network's input is not an image" },
        { "[net]\ninputs=2000000\nbatch=2000\n[connected]\n",
          ":1: [net]: 4000000000 numbers of input for a batch" TOO_MANY },
        { "[net]\n" SIZE "[sam]\n[amp]\nfilters=3\n" CONV, ":5: [sam]: unknown section" KNOWN },
        { "[net]\n" SIZE CONV "[amp]\n[maxpool] # small\n",
          ":7: [maxpool]#small: a comment needs a line of its own" KNOWN },
        { "[net]\n" SIZE CONV "[amp]\nd\x01type=fp16\n",
          ":7: [amp]: byte 2 of the line is the control character 0x01" TEXT_LINES },
        { "[net]\n# \x7f\n" SIZE CONV, ":2: [net]: byte 3 of the line is the control character 0x7f"
          TEXT_LINES },
        { "\x02\n[net]\n" SIZE CONV, ":1: byte 1 of the line is the control character 0x02" TEXT_LINES },
    };
    for (size_t i = 0; i < COUNT(cases); i++) refused(cases[i].text, CFG_FOR_ANYTHING, cases[i].line, 0);
}

/* What the loaders of two commands produce, and what random=1 does during training. */
TEST(what_it_is_trained_for)
{
#define TRAINED(channels) "[net]\nwidth=32\nheight=32\nchannels=" channels "\n"
#define BOXES "[yolo]\nclasses=2\nnum=1\nanchors=1,2\nrandom=1\n"
#define HEAD(filters, kind, classes) \
    "[convolutional]\nfilters=" filters "\n" kind "\nclasses=" classes "\nnum=1\nanchors=1,2\n"
#define SEVEN "[convolutional]\nfilters=7\n"
#define NO_HEAD \
    ": `detector train` takes the classes from the last layer, which must be [yolo] or [region]"
#define UNLIKE " of the last layer; give all heads the last layer's type, and coords=4"
#define FIXED                                                                                                \
    ": random=1 resizes the network while it trains, but this layer is made for one size; set random=0"
    static const struct {
        cfg_use use; const char *text, *line;
    } cases[] = {
        { CFG_TRAINS_DETECTOR, TRAINED("1") SEVEN BOXES,
          ":4: [net] channels = 1: `detector train` loads only images with 3 channels; allowed: 3" },
        { CFG_TRAINS_BOXES, TRAINED("4") SEVEN BOXES,
          ":4: [net] channels = 4: `detector train` loads only images with 3 channels; allowed: 3" },
        { CFG_TRAINS_DATA, TRAINED("1") "[avgpool]\n[softmax]\n",
          ":4: [net] channels = 1: `classifier train` loads only images with 3 channels; allowed: 3" },
        { CFG_TRAINS_CLASSIFIER, TRAINED("1") "[avgpool]\n[softmax]\n",
          ":4: [net] channels = 1: `classifier train` loads only images with 3 channels; allowed: 3" },
        { CFG_TRAINS_CLASSIFIER, "[net]\nwidth=32\nheight=16\nchannels=3\n[avgpool]\n[softmax]\n",
          ":3: [net] height = 16: `classifier train` makes square images, but the width is 32" },
        { CFG_TRAINS_CLASSIFIER, "[net]\ninputs=30\n[connected]\n[softmax]\n",
          ":1: [net]: `classifier train` loads only images with 3 channels; allowed: 3" },
        { CFG_TRAINS_DETECTOR, TRAINED("3") "[local]\nfilters=7\n" BOXES, ":5: [local]" FIXED },
        { CFG_TRAINS_DETECTOR, TRAINED("3") SEVEN "[l2norm]\n" BOXES, ":7: [l2norm]" FIXED },
        { CFG_TRAINS_DETECTOR, TRAINED("3") SEVEN "[crnn]\noutput_filters=7\n" BOXES, ":7: [crnn]" FIXED },
        { CFG_TRAINS_DETECTOR,
          TRAINED("3") SEVEN "[convolutional]\nfilters=7\nsize=2\nstride=2\n[shortcut]\nfrom=0\n" BOXES,
          ":12: [shortcut] from = 0: at the size 320x320, which random=1 may choose: Darknet cannot resize a "
          "shortcut between layers of different sizes; set random=0" },
        { CFG_TRAINS_DETECTOR,
          "[net]\nwidth=64\nheight=64\nchannels=3\n" SEVEN "[maxpool]\nsize=64\nstride=64\npadding=0\n"
          "[upsample]\nstride=64\n[route]\nlayers=0,2\n" SEVEN BOXES,
          ":15: [convolutional]: at the size 352x352, which random=1 may choose: needs an image with width, "
          "height and channels, but the output of layer 3 [route] is not an image, since the layers that it "
          "joins differ in width or height" },
        { CFG_TRAINS_DETECTOR, TRAINED("3") SEVEN "[avgpool]\n[softmax]\n", ":8: [softmax]" NO_HEAD },
        { CFG_TRAINS_DATA,
          TRAINED("3") "[connected]\noutput=28\n[detection]\nclasses=2\ncoords=4\nside=2\n",
          ":7: [detection]" NO_HEAD },
        { CFG_TRAINS_DETECTOR, TRAINED("3") HEAD("8", "[yolo]", "3") HEAD("7", "[yolo]", "2"),
          ":8: [yolo] classes = 3: the last layer has classes=2, but this one has 3; all must have the "
          "same" },
        { CFG_TRAINS_DETECTOR, TRAINED("3") HEAD("7", "[region]", "2") HEAD("7", "[yolo]", "2"),
          ":7: [region]: reads 150 numbers of truth per image, but Darknet loads the 450" UNLIKE },
        { CFG_TRAINS_DATA, TRAINED("3") HEAD("8", "[region]", "2") "coords=5\n",
          ":7: [region]: reads 180 numbers of truth per image, but Darknet loads the 150" UNLIKE },
        { CFG_TRAINS_DETECTOR, TRAINED("3") HEAD("7", "[yolo]", "2") SEVEN BOXES,
          ":11: [convolutional]: at the size 320x320, which random=1 may choose: needs an image with width, "
          "height and channels, but the output of layer 1 [yolo] is not an image, since Darknet does not "
          "resize it; set random=0" },
        { CFG_TRAINS_CLASSIFIER, TRAINED("3") SEVEN BOXES,
          ":7: [yolo]: the last layer finds boxes; train it with `detector train`" },
        { CFG_TRAINS_CLASSIFIER, TRAINED("3") SEVEN "[avgpool]\n",
          ":7: [avgpool]: no layer has a loss, so nothing would be learnt; end with [softmax]" },
        { CFG_TRAINS_DATA, TRAINED("3") SEVEN "[avgpool]\n[softmax]\nnoloss=1\n",
          ":8: [softmax]: no layer has a loss, so nothing would be learnt; end with [softmax]" },
        { CFG_TRAINS_CLASSIFIER, TRAINED("3") "random=1\n[local]\nfilters=4\n[avgpool]\n[softmax]\n",
          ":6: [local]" FIXED },
        { CFG_TRAINS_CLASSIFIER, TRAINED("3") "random=1\n[connected]\noutput=4\n[softmax]\n",
          ":6: [connected]" FIXED },
    };
    lines found;
    cfg_summary summary;
    for (size_t i = 0; i < COUNT(cases); i++) refused(cases[i].text, cases[i].use, cases[i].line, 1);
    /* Layers with their input's shape are resized; what follows an avgpool is not. */
    put_anew("x.cfg", TRAINED("3") SEVEN "[batchnorm]\n[activation]\nactivation=leaky\n[dropout]\n" BOXES);
    check("x.cfg", CFG_TRAINS_DETECTOR, &found, &summary);
    assert_string_equal(found.error, "");
    put_anew("x.cfg", TRAINED("3") "random=1\n[crop]\ncrop_width=28\ncrop_height=28\n" SEVEN
                                     "[avgpool]\n[connected]\n[softmax]\n");
    check("x.cfg", CFG_TRAINS_CLASSIFIER, &found, &summary);
    assert_string_equal(found.error, "");
    /* The same .cfg is valid for a command that does not train in this way. */
    put_anew("x.cfg", TRAINED("1") "random=1\n[local]\nfilters=7\n" BOXES);
    check("x.cfg", CFG_FOR_ANYTHING, &found, &summary);
    assert_string_equal(found.error, "");
}

TEST(warnings)
{
#define UNKNOWN ": unknown key, which Darknet does not read"
    static const struct {
        const char *net, *layers, *line;
    } cases[] = {
        { "lerning_rate=1", CONV, ":2: [net] lerning_rate = 1" UNKNOWN ", did you mean learning_rate?" },
        { "Batch=2", CONV, ":2: [net] Batch = 2" UNKNOWN ", did you mean batch?" },
        { "mosaic=1", CONV, ":2: [net] mosaic = 1" UNKNOWN },
        { "%s%n=%n", CONV, ":2: [net] %s%n = %n" UNKNOWN },
        { "foo", CONV, ":2: [net] foo" UNKNOWN },
        { "batch=4\nbatch=8", CONV,
          ":3: [net] batch = 8: set twice in this section; Darknet takes the first, on line 2" },
        { "batch=5\nsubdivisions=2", CONV,
          ":3: [net] subdivisions = 2: does not divide batch = 5: a step uses only 4 images" },
        { "batch=4#images", CONV,
          ":2: [net] batch = 4#images: Darknet reads the number before the comment; a comment needs a line "
          "of its own" },
        { "adam=2", CONV, ":2: [net] adam = 2: neither 0 nor 1; read as 1" },
        { "batch=1", CONV "batchnormalize=1",
          ":7: [convolutional] batchnormalize = 1" UNKNOWN ", did you mean batch_normalize?" },
        { "batch=1", CONV "filter=3", ":7: [convolutional] filter = 3" UNKNOWN ", did you mean filters?" },
        { "batch=1", CONV "stop_backward=1",
          ":7: [convolutional] stop_backward = 1" UNKNOWN ", did you mean stopbackward?" },
        { "batch=1", "[rnn]\nhidden=3", ":7: [rnn] hidden = 3" UNKNOWN },
        { "batch=1", CONV "size=1\nsize=3",
          ":8: [convolutional] size = 3: set twice in this section; Darknet takes the first, on "
          "line 7" },
        { "batch=1", FOUR "[route]\nlayers=-1#that",
          ":9: [route] layers = -1#that: Darknet reads the number before the comment; a "
          "comment needs a line of its own" },
        { "batch=1", CONV "smooth=.5",
          ":7: [convolutional] smooth = .5: has no effect under AMP: only Darknet's own GPU code smooths the "
          "deltas of a convolution" },
        { "batch=1", CONV "pad=3", ":7: [convolutional] pad = 3: neither 0 nor 1; read as 1" },
    };
    char text[1000];
    lines found;
    cfg_summary summary;
    for (size_t i = 0; i < COUNT(cases); i++) {
        snprintf(text, sizeof text, "[net]\n%s\n" SIZE "%s\n", cases[i].net, cases[i].layers);
        put_anew("x.cfg", text);
        check("x.cfg", CFG_FOR_ANYTHING, &found, &summary);
        if (found.errors || found.warnings != 1 || strcmp(found.warning + 5, cases[i].line))
            fail_msg("\n%s\n     got %s%s\ninstead of x.cfg%s", text, found.error, found.warning,
                     cases[i].line);
    }
    /* The same key twice with the same value is not a mistake. */
    put_anew("x.cfg", "[net]\nbatch=2\nbatch=2\n" SIZE CONV);
    check("x.cfg", CFG_FOR_ANYTHING, &found, &summary);
    assert_string_equal(found.warning, "");
}

/* With one image in a pass the batch norm of a time step has one number: no training can use it. Whether
 * other commands train is not known, but a .cfg that generates text has one time step. */
TEST(a_batch_norm_of_one_number)
{
    static const struct { const char *batch, *norm; cfg_use use; int errors, warnings; } cases[] = {
        { "2\nsubdivisions=2\ntime_steps=3", "1", CFG_TRAINS_CLASSIFIER, 1, 0 },
        { "2\nsubdivisions=2\ntime_steps=3", "1", CFG_FOR_ANYTHING, 0, 1 },
        { "2\nsubdivisions=2\ntime_steps=3", "1", CFG_TRAINS_BOXES, 0, 1 },
        { "2\ntime_steps=3", "1", CFG_TRAINS_CLASSIFIER, 0, 0 },
        { "1", "0", CFG_TRAINS_CLASSIFIER, 0, 0 },
        { "1", "1", CFG_TRAINS_CLASSIFIER, 1, 0 },
        { "1", "1", CFG_FOR_ANYTHING, 0, 0 },
        { "1", "1", CFG_TRAINS_BOXES, 0, 0 },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[300];
        lines found;
        cfg_summary summary;
        snprintf(text, sizeof text, "[net]\nmax_batches=1\nbatch=%s\n" SIZE "[gru]\noutput=4\n"
                 "batch_normalize=%s\n[connected]\n[softmax]\n", cases[i].batch, cases[i].norm);
        put_anew("x.cfg", text);
        check("x.cfg", cases[i].use, &found, &summary);
        if (found.errors != cases[i].errors || found.warnings != cases[i].warnings
            || (found.errors + found.warnings
                && !strstr(found.errors ? found.error : found.warning,
                           "[gru] batch_normalize = 1: with one image")))
            fail_msg("%s: %s%s", text, found.error, found.warning);
    }
}

/* Whatever ends a strict parser, such as hank-ai's, is a mistake. */
TEST(a_strict_darknet)
{
    static const struct { const char *net, *line; } cases[] = {
        { "lerning_rate=1", "x.cfg:2: [net] lerning_rate = 1" UNKNOWN ", did you mean learning_rate?" },
        { "batch=4\nbatch=4", "x.cfg:3: [net] batch = 4: set twice in this section, first on line 2" },
        { "decay=5e-4", "x.cfg:2: [net] decay = 5e-4: expected a number without an exponent or a +"
          NOT_NEGATIVE },
        { "decay=+.5", "x.cfg:2: [net] decay = +.5: expected a number without an exponent or a +"
          NOT_NEGATIVE },
        { "decay=.0005 # not 5e-4", "" },
        { ";batch=4", "x.cfg:2: [net] ;batch = 4" UNKNOWN ", did you mean batch?" },
    };
    cfg_fork strict = amp_cfg_fork;
    cfg_summary summary;
    strict.strict = 1;
    strict.cfg_syntax = CFG_STRICT;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[200];
        snprintf(text, sizeof text, "[net]\n%s\n" SIZE CONV, cases[i].net);
        put_anew("x.cfg", text);
        check_file("x.cfg", &strict, CFG_FOR_ANYTHING, NULL, &summary);
        assert_string_equal(summary.errors ? summary.first_error : "", cases[i].line);
    }
}

/* Each mistake is reported once; layers after a wrong one are not blamed for its missing output. */
TEST(all_mistakes_are_told)
{
    lines found;
    cfg_summary summary;
    put_anew("x.cfg", "[net]\nbatch=0\nmomentum=3\n" SIZE CONV
                        "filters=0\n[maxpool]\nsize=x\n[route]\nlayers=7\n[yolo]\n");
    check("x.cfg", CFG_FOR_ANYTHING, &found, &summary);
    assert_int_equal(found.errors, 6);
    put_anew("x.cfg", "[net]\n" SIZE CONV "size=9\n[maxpool]\nsize=100\npadding=0\n[connected]\n");
    check("x.cfg", CFG_FOR_ANYTHING, &found, &summary);
    assert_int_equal(found.errors, 1);
}

/* The size of a file does not affect the time it takes. */
TEST(long_files)
{
    lines found;
    cfg_summary summary;
    FILE *file = fopen("x.cfg", "w");
    fprintf(file, "[net]\n");
    for (int i = 0; i < 100000; i++) fprintf(file, "key%d=1\n", i);
    fprintf(file, SIZE "[convolutional]\nfilters=2\n[route]\nlayers=-1");
    for (int i = 0; i < 20000; i++) fprintf(file, ",0");
    fprintf(file, "\n");
    for (int i = 0; i < 20000; i++) fprintf(file, "[dropout]\n");
    fclose(file);
    check("x.cfg", CFG_FOR_ANYTHING, &found, &summary);
    assert_string_equal(found.error, "x.cfg:1: [net]: more than 1000 keys in a section");
    assert_int_equal(found.errors, 2);
}

TEST(lines_up_to_the_limit_pass_and_longer_ones_are_refused)
{
    static const char *const starts[] = { "#", "angle=0.", "angle = 0.                  " };
    static const int lengths[] = { 65535, 65536, 65537, 1 << 20 };
    lines found;
    cfg_summary summary;
    for (size_t i = 0; i < COUNT(lengths); i++)
        for (size_t k = 0; k < COUNT(starts); k++) {
            FILE *file = fopen("x.cfg", "w");
            fprintf(file, "[net]\n%s%0*d\n" SIZE CONV "[amp]\n", starts[k],
                    lengths[i] - (int)strlen(starts[k]), 0);
            fclose(file);
            check("x.cfg", CFG_FOR_ANYTHING, &found, &summary);
            if (lengths[i] > 65536)
                assert_string_equal(found.error, "x.cfg:2: [net]: a line of more than 65536 bytes"
                                    TEXT_LINES);
            else if (k) assert_non_null(strstr(found.error, "too many digits"));
            else assert_string_equal(found.error, "");
        }
}

TEST(the_summary_counts)
{
    lines found;
    cfg_summary s;
    put_anew("x.cfg", "[net]\nbatch=8\nsubdivisions=2\n" SIZE CONV
                        "batch_normalize=1\nfilters=14\nsize=3\npad=1\n[yolo]\n" ANCHORED);
    check("x.cfg", CFG_TRAINS_BOXES, &found, &s);
    assert_string_equal(found.error, "");
    assert_true(s.layers == 2 && s.w == 8 && s.h == 8 && s.c == 3 && s.batch == 4 && s.classes == 2);
    assert_true(s.weights == 3 * 14 * 9 + 4 * 14 && s.truths == 450 &&
                s.outputs == 2 * 8 * 8 * 14);
}

/* In tests/cfg, beside this file: the last test, since it changes to that folder. */
TEST(good_files_pass_without_a_word)
{
    glob_t files;
    lines found;
    cfg_summary summary;
    assert_int_equal(chdir(networks_folder()), 0);
    assert_int_equal(glob("*.cfg", 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        check(files.gl_pathv[i], CFG_FOR_ANYTHING, &found, &summary);
        if (found.errors || found.warnings) fail_msg("%s%s", found.error, found.warning);
        assert_true(summary.layers > 0 && summary.weights >= 0 && summary.batch >= 1);
    }
    assert_true(files.gl_pathc > 50);
    globfree(&files);
}

int main(void) { return run_listed_tests("check of .cfg files", enter_with_files, leave_folder); }
