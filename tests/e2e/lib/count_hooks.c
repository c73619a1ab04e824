/* Preloaded into a Darknet with AMP: counts the calls of hooks, and says them
 * in COUNT_HOOKS=FILE, one a line: "forward 6". */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct network;
struct layer;
struct load_args;

enum {
  FORWARD,
  BACKWARD,
  UPDATE,
  MADE,
  ENDED,
  FREED,
  NEXT_STEP,
  STARTS,
  PARTS_BEGUN,
  PARTS_ENDED,
  FILLED,
  LABELS,
  OPENED,
  CLOSED,
  HOOKS
};
static const char *const names[HOOKS] = {
    "forward", "backward",   "update",       "layer_made",   "network_made",
    "free",    "next_step",  "job",          "part_begins",  "part_ends",
    "filled",  "read_boxes", "open_weights", "close_weights"};
static atomic_int calls[HOOKS];

__attribute__((destructor)) static void tell(void) {
  const char *name = getenv("COUNT_HOOKS");
  FILE *file = name ? fopen(name, "w") : NULL;
  for (int i = 0; file && i < HOOKS; i++)
    fprintf(file, "%s %d\n", names[i], calls[i]);
  if (file)
    fclose(file);
}

#define PASS_ON(result, hook, types, ...)                                      \
  static result(*next) types;                                                  \
  if (!next)                                                                   \
    *(void **)&next = dlsym(RTLD_NEXT, #hook);                                 \
  return next(__VA_ARGS__)
#define OF_A_NETWORK(hook, which)                                              \
  void hook(struct network *net) {                                             \
    calls[which]++;                                                            \
    PASS_ON(void, hook, (struct network *), net);                              \
  }

OF_A_NETWORK(darknet_amp_forward, FORWARD)
OF_A_NETWORK(darknet_amp_backward, BACKWARD)
OF_A_NETWORK(darknet_amp_update, UPDATE)
OF_A_NETWORK(darknet_amp_free, FREED)

void darknet_amp_made(struct network *net, struct layer *made) {
  calls[made ? MADE : ENDED]++;
  PASS_ON(void, darknet_amp_made, (struct network *, struct layer *), net,
          made);
}

int darknet_amp_next_step(struct network **nets, int count, float *average_loss,
                          int *loop_count, const char *data_file,
                          int train_images, const char *backup_folder,
                          const char *base) {
  calls[NEXT_STEP]++;
  PASS_ON(int, darknet_amp_next_step,
          (struct network **, int, float *, int *, const char *, int,
           const char *, const char *),
          nets, count, average_loss, loop_count, data_file, train_images,
          backup_folder, base);
}

void darknet_amp_job(struct load_args *args, int event) {
  calls[STARTS + event]++;
  PASS_ON(void, darknet_amp_job, (struct load_args *, int), args, event);
}

int darknet_amp_fill(float *input, float **rows, int count, int floats) {
  calls[FILLED]++;
  PASS_ON(int, darknet_amp_fill, (float *, float **, int, int), input, rows,
          count, floats);
}

int darknet_amp_read_boxes(const char *file, void *boxes, int *count) {
  calls[LABELS]++;
  PASS_ON(int, darknet_amp_read_boxes, (const char *, void *, int *), file,
          boxes, count);
}

FILE *darknet_amp_open_weights(struct network *net, const char *file,
                               const char *mode, int first, int layers) {
  calls[OPENED]++;
  PASS_ON(FILE *, darknet_amp_open_weights,
          (struct network *, const char *, const char *, int, int), net, file,
          mode, first, layers);
}

void darknet_amp_close_weights(struct network *net, FILE *file) {
  calls[CLOSED]++;
  PASS_ON(void, darknet_amp_close_weights, (struct network *, FILE *), net,
          file);
}
