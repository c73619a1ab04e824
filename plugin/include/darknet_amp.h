/* The functions that a patched Darknet calls. Each hook is one line there, and does nothing if AMP is off for
 * that network. A section's title names the files of plugin/ that define its functions.
 *
 * Including this needs none of Darknet's types: a network is passed as a pointer. A function that meets a
 * fatal error prints one line that says what, where and what to do, and ends the program with status 1.
 * libdarknet.so exports these functions of the plugin, those of amp/scaler.h, and no others. */
#ifndef DARKNET_AMP_H
#define DARKNET_AMP_H

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* the plugin is compiled with -fvisibility=hidden */

struct network;
struct layer;
struct load_args;
struct darknet_amp; /* AMP's state for one network; network.amp, NULL if AMP is off */

/* ---- main: commands/command_line.c, commands/command.c, host/program/failure.c ---- */

/* Call it before anything else. Opens /dev/null for standard streams that are closed. Removes `-amp TYPE`,
 * `-seed N` and, for `detector train` and `classifier train`, `-log FILE` and `-map [N]` from the arguments,
 * which then end with NULLs; returns the new argc. Checks the files named for a training with AMP. Restarts
 * the program for that, and for measurements, with OMP_WAIT_POLICY=passive, unless the environment says how
 * OpenMP's threads wait: by default they spin, and take CPU time from the threads that load images. */
int darknet_amp_start(int argc, char **argv);

/* `darknet amp VERB ...` and `darknet detector map ...`; call it once the GPU is chosen. Returns 1 if the
 * command was one of these: the program then ends with *status. */
int darknet_amp_command(int argc, char **argv, int *status);

/* Ends the program with this line and status 1, from any thread. */
__attribute__((noreturn, format(printf, 1, 2))) void darknet_amp_refuse(const char *format, ...);

/* ---- making and resizing a network: host/darknet/hooks.c ---- */

/* For read_cfg, instead of fopen. Reads and checks the [amp] section, the same keys under [net] and amp= of
 * every layer. In the returned stream they are blank lines, so that Darknet neither counts [amp] as a layer
 * nor reports its keys as unused. */
FILE *darknet_amp_open_cfg(const char *file);

/* A layer was made or resized, before the next one is: frees what AMP does not use of it, so that a network
 * can be made that fits only with AMP. NULL: all layers were made. At the end of parsing this sets net->amp,
 * or leaves it NULL. */
void darknet_amp_made(struct network *net, struct layer *made);

/* Resizes, to an input of w x h, a layer that resize_network skips: one that Darknet can resize, or one that
 * AMP computes itself and whose shape is its input's. Returns 1, or 0 for any other layer. */
int darknet_amp_resize_layer(struct layer *l, int w, int h);

/* Call it before resize_network resizes a layer. */
void darknet_amp_resizes(struct network *net, const struct layer *l);

/* Replaces cuda_make_array in Darknet's C files; name: the source text of `array`. While a network with AMP
 * is made or resized, arrays that are written before they are read, such as outputs and deltas, are not
 * copied: they are zeros on the GPU. In a resize, arrays of a layer that AMP computes are NULL, since AMP
 * would free them at once. */
float *darknet_amp_gpu_array(float *array, size_t count, const char *name);

void darknet_amp_free(struct network *net);

/* ---- on a GPU, and where there may be no display: host/program/cfg.c, host/family/pass.c,
 * host/family/own.c ---- */

/* Whether Darknet's GPU code must run on CUDA's default stream instead of its own: true once a network with
 * AMP is requested, because AMP's stream is only ordered with the default stream. */
int darknet_amp_default_stream(void);

/* AlexeyAB's set_batch_network has chosen other algorithms for its own convolutions: measures the workspace
 * they need, and allocates it again. */
void darknet_amp_workspace(struct network *net);

/* Whether Darknet, built with OpenCV, has no display to open windows on; if so, prints a line. */
int darknet_amp_no_display(void);

/* ---- a step: host/network/step.c ---- */

/* Called if net->amp is set, instead of Darknet's own loop over the layers. */
void darknet_amp_forward(struct network *net);
void darknet_amp_backward(struct network *net);
void darknet_amp_update(struct network *net);
/* Whether that update was skipped: the weights are those of the previous step. */
int darknet_amp_skipped(const struct network *net);

/* ---- beside a step: host/network/state.c, host/network/products.c, host/darknet/predicted.c ---- */

/* Called after Darknet has written to a network's weights, with or without AMP: AMP copies them to 16 bits
 * again. A program that changes weights in memory must call it too. On a CPU a prediction notices by itself
 * if all weights of a layer change, as with rgbgr_weights, but not if single numbers do. */
void darknet_amp_weights_changed(struct network *net);

/* Called by Darknet's gemm (gemm_cpu, gemm_gpu) before it computes: returns 1 if AMP has computed the
 * product, because it belongs to a layer whose products AMP computes. Arguments as for gemm. */
int darknet_amp_gemm(int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float *a,
                     int lda, const float *b, int ldb, float beta, float *c, int ldc);

/* At the end of a prediction, with and without AMP: ends the program with a line if the network's output, or
 * what boxes are computed from, is not finite. */
void darknet_amp_predicted(struct network *net, const float *output);

/* ---- the loop of `detector train` and `classifier train`, with and without AMP: commands/training_hooks.c,
 * commands/map/map_training.c, host/network/resume.c, host/training/loop.c ---- */

/* Called once the networks are made and the generator is seeded: ends the program if they do not match the
 * .data file's classes, and reads the sidecar of the weights that were loaded. Other commands do not call it:
 * there, momentum, loss scale and counters are restored at the first step. From here on several networks
 * (-gpus) share each step as ranks: each trains a part of the step's images in its own thread. The array must
 * remain valid. */
void darknet_amp_resume(struct network **nets, int count);

/* Called before each step: whether the loop continues. The first call starts it, with -log and -map; the
 * two numbers that it carries from step to step must remain valid until loop_ended. If the training must
 * stop early, because of a signal or because the program has used up its turns, saves
 * BACKUP_FOLDER/BASE.backup and ends the program, with status 128 + N after signal N. train_images: the
 * number of images in the list. */
int darknet_amp_next_step(struct network **nets, int count, float *average_loss, int *loop_count,
                          const char *data_file, int train_images, const char *backup_folder,
                          const char *base);
/* Called by get_next_batch to copy these rows, of `floats` floats per image, into a network's input; the
 * first call ends the wait for a step's images. 1: they are copied, and may be freed and set to NULL, which
 * only the loops above allow, with AMP. 0: as in stock. */
int darknet_amp_fill(float *input, float **rows, int count, int floats);

/* Called when the loop takes the batch that was loaded. If the loaders met a fatal fault (with AMP), saves
 * BACKUP_FOLDER/BASE.backup, prints the fault's line, and ends the program with status 1. */
void darknet_amp_takes_batch(struct network **nets);
/* Called after a step, when *average_loss already includes it: if ranks share it, *loss becomes the mean over
 * all, and *average_loss is corrected accordingly. */
void darknet_amp_mean_loss(float *loss, float *average_loss);

/* Called instead of printf: prints its line, with AMP also loss scale, skipped steps and images/s before the
 * newline; writes its row (-log) and measures (-map) before the step's files are saved. */
__attribute__((format(printf, 3, 4)))
void darknet_amp_step(float loss, float average_loss, const char *format, ...);
/* What the chart's line adds to Darknet's own words for that step: ", scale 65536, 1 skipped"; empty without
 * AMP. Valid until the next step; below 128 bytes. */
const char *darknet_amp_chart_ending(void);

/* Returns the iteration of the best mAP so far, or 0 if that step measured no mAP. *map is that step's mAP,
 * *best the best so far, both 0 to 1. */
int darknet_amp_measured(float *map, float *best);
/* The next iteration, possibly this one, at which -map measures; 0: none. */
long darknet_amp_next_map(void);
/* Whether this program draws the chart: of several ranks only rank 0 does. The programs that `amp compare`
 * starts draw none, since the chart's file is in the user's folder. */
int darknet_amp_draws_chart(void);
/* Called after the last save: ends the program with status 1 if it failed. */
void darknet_amp_loop_ended(struct network **nets);

/* ---- files of weights, with AMP: host/network/weights_file.c ---- */

/* Called instead of fopen, for layers first to layers - 1. Only a file of all layers gets a sidecar; averaged
 * weights, which get none, are saved with first = 1. "wb": NULL if nothing must be written: the folder is
 * missing or full (a line says so, and training continues), or the loop saves the same step again. "rb":
 * completes a killed save of FILE if FILE does not exist yet; a FILE that is missing or of another network
 * ends the program. */
FILE *darknet_amp_open_weights(struct network *net, const char *file, const char *mode, int first,
                               int layers);
/* Called instead of fclose. After saving: moves FILE and its sidecar FILE.amp into place once both are on
 * disk. After loading: makes new half copies, and a training that begins now continues from the sidecar. */
void darknet_amp_close_weights(struct network *net, FILE *file);
/* The number of layers, counted from the first, whose weights the file being loaded contains. */
int darknet_amp_held_layers(const struct network *net);

/* ---- random numbers: host/program/random.c ---- */

/* While networks are made only for inspection, rand_normal and rand_uniform return 0 and draw nothing. */
extern int darknet_amp_draws_nothing;

/* Reproducible runs (-seed N). is_seeded: whether -seed was given. seed: the argument for srand instead of
 * time(0): N, or time(0) without -seed. rand: Darknet's rand(): the C library's, but in loader threads with
 * -seed the calling thread's own stream. */
int darknet_amp_is_seeded(void);
unsigned darknet_amp_seed(void);
int darknet_amp_rand(void);

/* ---- loading images and labels: host/data/loading.c, host/darknet/data.c, host/data/images.c ---- */

/* A loading job starts, in the thread that starts it; or one of its parts begins or ends, in the thread that
 * loads it: at the end, its rows of args->d are made. args->job and args->part number them. */
enum darknet_amp_job_event { AMP_JOB_STARTS, AMP_PART_BEGINS, AMP_PART_ENDS };
void darknet_amp_job(struct load_args *args, enum darknet_amp_job_event event);
/* pthread_create for a loader, without attributes. If a program with a network under AMP cannot create it, it
 * ends; after its first batch a training returns 0 here, ends at darknet_amp_takes_batch, and saves. */
int darknet_amp_start_loader(pthread_t *thread, void *(*run)(void *), void *job);

/* For debug=1, the names of the images in a batch: a loader thread has chosen count of them. */
void darknet_amp_paths(char **paths, int count);

/* Bad input in loader threads of a program with a network under AMP. A fatal fault ends the program; a
 * training ends at darknet_amp_takes_batch. bad_image: called before an image is read (tried 0), and after
 * reading it has failed (tried 1). Returns 1 if the image is missing, a FIFO, a device or a socket, or cannot
 * be read: the caller returns an image without data, and its caller loads another one, which another_image
 * puts in paths[i]. 0: as in stock. read_boxes: a detector's labels; 1: *(box_label **)boxes and *count are
 * what Darknet's read_boxes would return. mislabelled: a path that matches `count` of the labels; 1: a line
 * was printed. fopen: as in C, but a FIFO, a device or a socket ends the program, or is read as an empty
 * file. */
int darknet_amp_bad_image(const char *file, int tried);
void darknet_amp_another_image(char **paths, int i);
int darknet_amp_read_boxes(const char *file, void *boxes, int *count);
int darknet_amp_mislabelled(const char *path, int count);
FILE *darknet_amp_fopen(const char *file, const char *mode);
/* OpenCV could not crop, resize and distort an image to w x h, because of `why`. A program with a network
 * under AMP ends here; or this returns 1: the program will end when its loop reaches this batch, and the
 * caller returns any image of w x h. 0: as in stock, which continues with an image of another size, and reads
 * and writes outside it. */
int darknet_amp_not_augmented(int w, int h, const char *why);

/* Replaces sprintf in Darknet's C files. room: the size of text; (size_t)-1 if the compiler does not know it,
 * which means a path. A text that does not fit, nearly always a path, ends the program. */
__attribute__((format(printf, 3, 4)))
int darknet_amp_sprintf(char *text, size_t room, const char *format, ...);

/* ---- an image: host/data/image_file.c, host/darknet/decode.c, host/data/image_cache.c ---- */

/* Reads images in a program with a network under AMP, and in threads that read images to measure them, so
 * that training, measuring and predicting read them in the same way. reads: whether the plugin reads them; if
 * not, Darknet reads as in stock, and the other functions are not called. read_image: decodes a file with
 * libjpeg-turbo or stb_image, to `channels` (0: as many as it has). 1: *data is (c,h,w) floats, owned by the
 * caller, as Darknet would make them, or NULL after a failure that bad_image has reported. 0: as in stock. If
 * OpenCV reads images, darknet_amp_imread does this instead (darknet_amp_opencv.hpp). image_fits: whether
 * Darknet can process an image of this size; if 0, unreadable gives the reason. unreadable: why the image
 * cannot be read, for bad_image's line. */
int darknet_amp_reads(void);
int darknet_amp_read_image(const char *file, int channels, int *w, int *h, int *c, float **data);
int darknet_amp_image_fits(int w, int h, int c);
__attribute__((format(printf, 1, 2))) void darknet_amp_unreadable(const char *why, ...);
/* A cache where OpenCV reads images. kept_bytes returns an image's bytes if they were kept, else NULL; the
 * cache owns them, they must not be written to, and are valid until the thread reads another image.
 * keep_bytes takes the w * h * c bytes of a decoded image, and returns those that the training is to see,
 * which the cache owns in the same way; *w and *h become their size. how: any number that identifies how the
 * file was read. photo returns by how much the image that the thread has read last is reduced, and sets w and
 * h to the size of its photo; if it is not reduced (1), they stay as they are. */
unsigned char *darknet_amp_kept_bytes(const char *file, int how, int *w, int *h, int *c);
unsigned char *darknet_amp_keep_bytes(const char *file, int how, unsigned char *pixels, int *w, int *h,
                                      int c);
int darknet_amp_photo(int *w, int *h);
/* Takes a detector's image from bytes to the network's input in one pass. want_pixels: the next image that
 * the calling thread loads stays bytes, and its "floats" are a placeholder, until one of the next two
 * functions is called. place_image: Darknet's place_image, onto a canvas of planes. crop_image: crop_image to
 * w x h, then resize_image to out_w x out_h; the caller frees the floats. 0, NULL: there are no bytes, as
 * without AMP. distort_image: Darknet's, on `count` pixels; 0: nothing was done. */
void darknet_amp_want_pixels(void);
int darknet_amp_place_image(int w, int h, int dx, int dy, float *canvas, int canvas_w, int canvas_h);
float *darknet_amp_crop_image(int left, int top, int w, int h, int out_w, int out_h);
int darknet_amp_distort_image(float *planes, int count, int channels, float hue, float saturation,
                              float exposure);

/* ---- memory of loaders: host/data/loader_memory.c ---- */

/* Replaces calloc in Darknet's C files; text: the source text of `count`. If there is no memory, a program
 * with a network under AMP ends. NULL is returned only for arrays that grow with the batch while a network
 * with AMP is made, and in programs without one. */
void *darknet_amp_calloc(size_t count, size_t size, const char *text);
/* There was no memory for `bytes` bytes: ends a program with a network under AMP, and returns in any
 * other. */
void darknet_amp_no_memory(size_t bytes);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
