/* The functions that a patched Darknet calls. A function does nothing if AMP is off for the network, unless
 * its comment says otherwise. The title of each section names the files of plugin/ that define its functions.
 *
 * This header needs none of Darknet's types. A function that meets a fatal error prints one line that says
 * what is wrong, where, and what to do, and ends the program with status 1. Of the plugin's symbols,
 * libdarknet.so exports only those that this header and amp/scaler.h declare. */
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
struct darknet_amp; /* AMP's state for one network: network.amp, which is NULL if AMP is off */

/* ---- main: commands/command_line.c, commands/command.c, host/program/failure.c ---- */

/* Call it before anything else. Opens /dev/null for standard streams that are closed. Removes `-amp TYPE`,
 * `-seed N` and, for `detector train` and `classifier train`, `-log FILE` and `-map [N]` from the arguments.
 * Returns the new argc, and sets the freed entries at the end of argv to NULL. Before a training with AMP,
 * checks the files that the arguments name. Restarts the program with OMP_WAIT_POLICY=passive for a training
 * with AMP and for measurements, unless the environment already says how OpenMP's threads wait. By default
 * they spin, and take CPU time from the threads that load images. */
int darknet_amp_start(int argc, char **argv);

/* Runs `darknet amp VERB ...` and `darknet detector map ...`; returns 0 for other commands. Call it after the
 * GPU has been chosen. If it returns 1, end the program with *status. */
int darknet_amp_command(int argc, char **argv, int *status);

/* Prints one line, formatted as by printf, and ends the program with status 1. Any thread may call it. */
__attribute__((noreturn, format(printf, 1, 2))) void darknet_amp_refuse(const char *format, ...);

/* ---- making and resizing a network: host/darknet/hooks.c ---- */

/* Called by read_cfg instead of fopen. Reads and checks the [amp] section, the same keys under [net], and the
 * layers' amp= and checkpoint=. In the returned stream the lines of these settings are blank, so that Darknet
 * neither counts [amp] as a layer nor reports these keys as unused. */
FILE *darknet_amp_open_cfg(const char *file);

/* Called after each layer is made or resized. Frees the layer's arrays that AMP does not use, so that a
 * network can be made even if it fits into memory only with AMP. Called once more after the last layer, with
 * `made` NULL; at the end of parsing, that call also sets net->amp (NULL if AMP is off). */
void darknet_amp_made(struct network *net, struct layer *made);

/* Called by resize_network. Resizes the layer to an input of w x h and returns 1 in two cases: Darknet has a
 * resize function for this layer that resize_network does not call; or AMP computes the layer, and the
 * layer's output has the same shape as its input. In other cases returns 0, and Darknet resizes the layer or
 * refuses to. */
int darknet_amp_resize_layer(struct layer *l, int w, int h);

/* Call it before resize_network resizes layer l: darknet_amp_gpu_array must know whether AMP computes l. */
void darknet_amp_resizes(struct network *net, const struct layer *l);

/* Replaces cuda_make_array in Darknet's C files. name: the argument `array` as it is written in the source.
 * While a network with AMP is made or resized, arrays that are written before they are read (outputs and
 * deltas, for example) are not copied to the GPU, but filled with zeros there. During a resize, returns NULL
 * for the arrays of a layer that AMP computes, because AMP would free them at once. */
float *darknet_amp_gpu_array(float *array, size_t count, const char *name);

void darknet_amp_free(struct network *net);

/* ---- a GPU's stream and workspace; a missing display: host/program/cfg.c, host/family/pass.c,
 * host/family/own.c ---- */

/* Whether Darknet's GPU code must run on CUDA's default stream instead of its own: true once a network with
 * AMP is requested, because AMP's stream is ordered only with respect to the default stream. */
int darknet_amp_default_stream(void);

/* Called after AlexeyAB's set_batch_network has chosen other algorithms for Darknet's own convolutions.
 * Reallocates the workspace at the size that these algorithms need. */
void darknet_amp_workspace(struct network *net);

/* Returns 1 and prints a line if a Darknet built with OpenCV has no display for its windows. */
int darknet_amp_no_display(void);

/* ---- a step: host/network/step.c ---- */

/* Called instead of Darknet's own loop over the layers, if net->amp is set. */
void darknet_amp_forward(struct network *net);
void darknet_amp_backward(struct network *net);
void darknet_amp_update(struct network *net);
/* Whether the latest call of darknet_amp_update skipped the step and left the weights unchanged. */
int darknet_amp_skipped(const struct network *net);

/* ---- outside a step: host/network/state.c, host/network/products.c, host/darknet/predicted.c ---- */

/* Called after Darknet has written to a network's weights, so that AMP makes new 16-bit copies. A program
 * that changes weights in memory must call it too. Without this call, a prediction on a CPU notices a change
 * only if all weights of a layer differ, as after rgbgr_weights. */
void darknet_amp_weights_changed(struct network *net);

/* Called by Darknet's gemm (gemm_cpu, gemm_gpu) before it computes, with gemm's arguments. Returns 1 if AMP
 * has computed the product, because it belongs to a layer whose products AMP computes. */
int darknet_amp_gemm(int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float *a,
                     int lda, const float *b, int ldb, float beta, float *c, int ldc);

/* Called at the end of a prediction, with and without AMP. Prints a line and ends the program if the
 * network's output, or the data that boxes are computed from, is not finite. */
void darknet_amp_predicted(struct network *net, const float *output);

/* ---- the loop of `detector train` and `classifier train`, with and without AMP: commands/training_hooks.c,
 * commands/map/map_training.c, host/network/resume.c, host/training/loop.c ---- */

/* Called after the networks have been made and the random number generator has been seeded. Reads the sidecar
 * of the loaded weights, and restores momentum, loss scale and counters. Ends the program if weights or
 * rolling statistics are inf, NaN or beyond 1e19. If a command does not call this function, its first step
 * does this work. From here on, several networks (-gpus) are ranks: each trains on a part of a step's images
 * in its own thread. The array `nets` must remain valid. */
void darknet_amp_resume(struct network **nets, int count);

/* Called before each step. Returns 1 if the loop must continue. The first call also starts -log and -map.
 *
 * If the training must stop early, this function does not return. It saves BACKUP_FOLDER/BASE.backup (unless
 * no step was made yet) and ends the program, with status 128 + N after signal N, else with status 0. A
 * training stops early after a signal, after -patience, or when the program that lets trainings run in turns
 * (host/program/turns.h) tells it to stop.
 *
 * average_loss, loop_count: variables that the loop carries from step to step; they must remain valid until
 * darknet_amp_loop_ended. train_images: the number of images in the training list. */
int darknet_amp_next_step(struct network **nets, int count, float *average_loss, int *loop_count,
                          const char *data_file, int train_images, const char *backup_folder,
                          const char *base);
/* Called by get_next_batch to copy `count` rows, each with an image of `floats` floats, into a network's
 * input. Returns 1 if it has copied the rows, which happens only with AMP in the loops of this section. It
 * may then also have freed the rows and set them to NULL. A step's wait for images is measured until the
 * step's first call of this function. */
int darknet_amp_fill(float *input, float **rows, int count, int floats);

/* Called when the loop takes the loaded batch. With AMP, if a loader thread has met a fatal error, saves
 * BACKUP_FOLDER/BASE.backup, prints the error's line, and ends the program with status 1. */
void darknet_amp_takes_batch(struct network **nets);
/* Called after a step, when *average_loss already includes *loss. If several ranks share the step, sets *loss
 * to the mean of their losses, and corrects *average_loss. */
void darknet_amp_mean_loss(float *loss, float *average_loss);

/* Called after a step instead of printf. Prints the step's line. With AMP, appends the loss scale, the
 * skipped steps and images/s before the newline. Then writes the step's row (-log) and measures mAP (-map),
 * before the step's files are saved. */
__attribute__((format(printf, 3, 4)))
void darknet_amp_step(float loss, float average_loss, const char *format, ...);
/* Returns a text about the latest step, for example ", scale 65536, 1 skipped". The chart appends this text
 * to Darknet's own line for the step. It is empty without AMP, valid until the next step, and shorter than
 * 128 bytes. */
const char *darknet_amp_chart_ending(void);

/* Returns the iteration of the best mAP so far. Sets *map to the mAP that the latest step measured, and *best
 * to the best so far, both from 0 to 1. If the latest step measured no mAP, returns 0 and sets neither. */
int darknet_amp_measured(float *map, float *best);
/* Returns the next iteration at which -map measures, which may be the current one; 0: none. */
long darknet_amp_next_map(void);
/* Whether this program draws the chart. Only rank 0 does. A program that `amp compare` starts never does,
 * because the chart's file would appear in the user's folder. */
int darknet_amp_draws_chart(void);
/* Called after the loop's final save: ends the program with status 1 if that save failed. */
void darknet_amp_loop_ended(struct network **nets);

/* ---- files of weights, with AMP: host/network/weights_file.c ---- */

/* Called instead of fopen for a file with the weights of layers `first` to `layers` - 1. Only a file of all
 * layers gets a sidecar. For a file of averaged weights, which must not get one, the caller passes first = 1.
 *
 * Mode "wb": returns NULL if the loop has already saved this step, or if another rank writes the file. If the
 * save fails (its folder is missing or full, for example), prints a line and returns NULL, and training
 * continues.
 * Mode "rb": if FILE does not exist, first completes a save of FILE that was killed. Ends the program if FILE
 * is still missing, or belongs to another network. */
FILE *darknet_amp_open_weights(struct network *net, const char *file, const char *mode, int first,
                               int layers);
/* Called instead of fclose. After saving: moves FILE and its sidecar FILE.amp into place once both are on
 * disk. After loading: marks the 16-bit copies of weights as outdated; a training then uses the sidecar. */
void darknet_amp_close_weights(struct network *net, FILE *file);
/* Returns how many layers, counted from the first, have their weights in the file that is being loaded. */
int darknet_amp_held_layers(const struct network *net);

/* ---- random numbers: host/program/random.c ---- */

/* 1 while networks are made only for inspection: rand_normal and rand_uniform draw nothing and return 0. */
extern int darknet_amp_draws_nothing;

/* Whether -seed N was given, which makes runs reproducible. */
int darknet_amp_is_seeded(void);
/* Returns the argument for srand: N of -seed N, or time(0) without -seed. */
unsigned darknet_amp_seed(void);
/* Replaces rand() in Darknet. With -seed, each loader thread has its own stream of numbers. */
int darknet_amp_rand(void);

/* ---- loading images and labels: host/data/loading.c, host/darknet/data.c, host/data/images.c ---- */

/* A loading job consists of parts, each loaded by one thread. args->job and args->part are the numbers of the
 * job and of the part. */
enum darknet_amp_job_event {
    AMP_JOB_STARTS,  /* in the thread that starts the job */
    AMP_PART_BEGINS, /* in the thread that loads the part */
    AMP_PART_ENDS    /* in the same thread, when the part's rows of args->d are made */
};
void darknet_amp_job(struct load_args *args, enum darknet_amp_job_event event);
/* Starts a loader thread, like pthread_create without attributes. If this fails in a program with a network
 * under AMP, the program ends: after a training's first batch, this function returns 0, and
 * darknet_amp_takes_batch later saves the training and ends the program; at any other time, this function
 * ends it. */
int darknet_amp_start_loader(pthread_t *thread, void *(*run)(void *), void *job);

/* Called after a loader thread has chosen `count` images of a batch. Keeps their names for debug=1. */
void darknet_amp_paths(char **paths, int count);

/* The next six functions report bad input in a program with a network under AMP, mostly in loader threads. A
 * fatal error ends the program; in a training, darknet_amp_takes_batch ends it later. The result 0 means that
 * the caller continues as in stock Darknet. */

/* Called before an image is read (tried 0), and after reading it has failed (tried 1). Returns 1 if the image
 * is missing, a FIFO, a device or a socket, or cannot be read. The image then gets no data, and the loader
 * calls darknet_amp_another_image, which puts the path of another image into paths[i]. */
int darknet_amp_bad_image(const char *file, int tried);
void darknet_amp_another_image(char **paths, int i);
/* Reads a detector's labels. Returns 1 if it has set *(box_label **)boxes and *count, as Darknet's read_boxes
 * would, but without the boxes that training ignores (outside the image, without area, or centred at 0 0).
 * After a bad label, which is a fatal error, there are no boxes. */
int darknet_amp_read_boxes(const char *file, void *boxes, int *count);
/* Called when an image's path contains `count` labels instead of one. Returns 1 if the plugin reports it. */
int darknet_amp_mislabelled(const char *path, int count);
/* Like fopen, but a FIFO, a device or a socket is a fatal error; the caller may then get an empty file. */
FILE *darknet_amp_fopen(const char *file, const char *mode);
/* Called when OpenCV could not crop, resize and distort an image to w x h. why: OpenCV's reason. Returns 1 if
 * the program will end when its loop reaches this batch; the caller then returns any image of w x h. Returns
 * 0 without AMP; stock then uses an image of another size, and accesses memory outside it. */
int darknet_amp_not_augmented(int w, int h, const char *why);

/* Replaces sprintf in Darknet's C files. room: the size of text; (size_t)-1: unknown, so the size of
 * Darknet's path buffers is assumed. If the result does not fit, the program ends. */
__attribute__((format(printf, 3, 4)))
int darknet_amp_sprintf(char *text, size_t room, const char *format, ...);

/* ---- an image: host/data/image_file.c, host/darknet/decode.c, host/data/image_cache.c ---- */

/* Whether the plugin reads images instead of Darknet. The plugin does so in a program with a network under
 * AMP, and in threads that load images to measure a network's accuracy. So training, measuring and predicting
 * read images in the same way. If the result is 0, Darknet does not use the other functions of this
 * section. */
int darknet_amp_reads(void);
/* Decodes a file with libjpeg-turbo or stb_image, to `channels` channels (0: as many as the file has).
 * Returns 1 if the plugin reads images. *data is then an array of (c,h,w) floats as Darknet would make them,
 * owned by the caller; or NULL if the file cannot be read and darknet_amp_bad_image was called. Where OpenCV
 * reads images, darknet_amp_imread is used instead (darknet_amp_opencv.hpp). */
int darknet_amp_read_image(const char *file, int channels, int *w, int *h, int *c, float **data);
/* Whether Darknet can process an image of this size. If not, calls darknet_amp_unreadable with the reason. */
int darknet_amp_image_fits(int w, int h, int c);
/* Sets the reason why an image cannot be read. darknet_amp_bad_image prints it. */
__attribute__((format(printf, 1, 2))) void darknet_amp_unreadable(const char *why, ...);

/* A cache of images that OpenCV has decoded. how: any number that identifies how the file was read.
 * darknet_amp_kept_bytes returns the image's bytes if the cache has them, else NULL. The cache owns the
 * bytes. They must not be written to, and are valid until the thread reads another image. */
unsigned char *darknet_amp_kept_bytes(const char *file, int how, int *w, int *h, int *c);
/* Offers a decoded image of w * h * c bytes to the cache. Returns the bytes that the caller must use instead
 * of `pixels`, owned by the cache as above. They may be a reduced copy, so *w and *h are set to its size.
 * Without a cache, returns `pixels` itself. */
unsigned char *darknet_amp_keep_bytes(const char *file, int how, unsigned char *pixels, int *w, int *h,
                                      int c);
/* Returns the reduction factor of the image that the calling thread read last. If it is above 1, sets *w and
 * *h to the size of the original photo. */
int darknet_amp_photo(int *w, int *h);

/* The next four functions convert a detector's image from bytes to the network's input in one pass. After
 * want_pixels, the next image that the calling thread loads stays in bytes; its floats are a placeholder. */
void darknet_amp_want_pixels(void);
/* Does what Darknet's place_image does. canvas: an image of (c, canvas_h, canvas_w) floats. Returns 0 if the
 * image is not in bytes, as is always the case without AMP. */
int darknet_amp_place_image(int w, int h, int dx, int dy, float *canvas, int canvas_w, int canvas_h);
/* Crops the image to w x h and resizes the crop to out_w x out_h, like Darknet's crop_image and resize_image.
 * The caller frees the floats. Returns NULL if the image is not in bytes, as always without AMP. */
float *darknet_amp_crop_image(int left, int top, int w, int h, int out_w, int out_h);
/* Does what Darknet's distort_image does, for `count` pixels. Returns 0 if it has done nothing. */
int darknet_amp_distort_image(float *planes, int count, int channels, float hue, float saturation,
                              float exposure);

/* ---- memory of loaders: host/data/loader_memory.c ---- */

/* Replaces calloc in Darknet's C files. text: the argument `count` as it is written in the source. If there
 * is no memory, ends a program that has a network under AMP. But while this network is being made, returns
 * NULL for an array whose size grows with the batch. */
void *darknet_amp_calloc(size_t count, size_t size, const char *text);
/* Called when there is no memory for `bytes` bytes. Ends a program that has a network under AMP. */
void darknet_amp_no_memory(size_t bytes);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
