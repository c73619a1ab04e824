/* Preloaded into a Darknet with AMP: counts the calls of hooks, and says them in COUNT_HOOKS=FILE, one a
 * line: "forward 6". */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct network;
struct layer;
struct load_args;

/* What is counted. The three of a job are in the order of enum darknet_amp_job_event. */
#define COUNTED(F) \
    F(forward) F(backward) F(update) F(layer_made) F(network_made) F(free) F(next_step) F(job) \
    F(part_begins) F(part_ends) F(filled) F(read_boxes) F(open_weights) F(close_weights)
#define NUMBER(name) OF_##name,
#define NAME(name) #name,
enum { COUNTED(NUMBER) COUNTS };
static const char *const names[] = { COUNTED(NAME) };
static atomic_int calls[COUNTS];

__attribute__((destructor)) static void tell(void)
{
    const char *name = getenv("COUNT_HOOKS");
    FILE *file = name ? fopen(name, "w") : NULL;
    for (int i = 0; file && i < COUNTS; i++) fprintf(file, "%s %d\n", names[i], calls[i]);
    if (file) fclose(file);
}

/* Counts a call, and passes it on. */
#define HOOK(result, hook, number, parameters, ...) \
    result hook parameters \
    { \
        static result (*next) parameters; \
        if (!next) *(void **)&next = dlsym(RTLD_NEXT, #hook); \
        calls[number]++; \
        return next(__VA_ARGS__); \
    }

HOOK(void, darknet_amp_forward, OF_forward, (struct network *net), net)
HOOK(void, darknet_amp_backward, OF_backward, (struct network *net), net)
HOOK(void, darknet_amp_update, OF_update, (struct network *net), net)
HOOK(void, darknet_amp_free, OF_free, (struct network *net), net)
HOOK(void, darknet_amp_made, made ? OF_layer_made : OF_network_made,
     (struct network *net, struct layer *made), net, made)
HOOK(int, darknet_amp_next_step, OF_next_step,
     (struct network **nets, int count, float *loss, int *steps, const char *data, int images,
      const char *folder, const char *base), nets, count, loss, steps, data, images, folder, base)
HOOK(void, darknet_amp_job, OF_job + event, (struct load_args *args, int event), args, event)
HOOK(int, darknet_amp_fill, OF_filled, (float *input, float **rows, int count, int floats), input, rows,
     count, floats)
HOOK(int, darknet_amp_read_boxes, OF_read_boxes, (const char *file, void *boxes, int *count), file, boxes,
     count)
HOOK(FILE *, darknet_amp_open_weights, OF_open_weights,
     (struct network *net, const char *file, const char *mode, int first, int layers), net, file, mode, first,
     layers)
HOOK(void, darknet_amp_close_weights, OF_close_weights, (struct network *net, FILE *file), net, file)
