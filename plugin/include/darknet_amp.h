/* What a patched Darknet calls. Each hook is one line there and does nothing when AMP
 * is off for that network.
 *
 * No type of Darknet's is needed to read this: a network is passed as the pointer it is. Every function that
 * meets an error it cannot survive prints one line that says what, where and what to do, and ends the program
 * with status 1. libdarknet.so exports these functions of the plugin, those of amp/scaler.h, and no
 * others. */
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
struct darknet_amp; /* all that AMP knows of one network; network.amp, NULL when AMP is off */

/* ---- main ---- */

/* Before anything else. Opens /dev/null in the place of standard streams that are closed. Takes `-amp TYPE`,
 * `-seed N` and, of `detector train` and `classifier train`, `-log FILE` and `-map [N]` out of the arguments,
 * which then end with NULLs; returns the new argc. Checks the files that a training under AMP names. Such a
 * training, and a measurement, is started once more with OMP_WAIT_POLICY=passive, unless the environment says
 * how OpenMP's threads wait: by default they spin, and take the processors from the
 * threads that load images. */
int darknet_amp_start(int argc, char **argv);

/* Whether Darknet, built with OpenCV, has no display to open windows on; then a line says so. */
int darknet_amp_no_display(void);

/* `darknet amp VERB ...` and `darknet detector map ...`, once the GPU is chosen. Returns 1 if the command was
 * one of these: the program ends with *status. */
int darknet_amp_command(int argc, char **argv, int *status);

/* Ends the program with this line and status 1, in any thread. */
__attribute__((noreturn, format(printf, 1, 2))) void darknet_amp_refuse(const char *format, ...);

/* ---- making and resizing a network ---- */

/* read_cfg, in place of fopen. Reads and checks the [amp] section, the same keys under [net] and amp= of
 * every layer. The stream holds the .cfg with blank lines in their place, so that Darknet neither counts
 * [amp] as a layer nor calls its keys unused. */
FILE *darknet_amp_open_cfg(const char *file);

/* A layer was made or resized, while the next one is not yet: what AMP does not use of it is given back, so
 * that a network can be made that fits under AMP only. NULL: all layers were. At the end of parsing that sets
 * net->amp, or leaves it NULL. */
void darknet_amp_made(struct network *net, struct layer *made);

/* Resizes, to an input of w x h, a layer that resize_network leaves out: one that Darknet can resize, or one
 * that AMP computes itself and whose shape is its input's. Returns 1, or 0 if it is none of them. */
int darknet_amp_resize_layer(struct layer *l, int w, int h);

/* Before resize_network resizes a layer. */
void darknet_amp_resizes(struct network *net, const struct layer *l);

/* cuda_make_array in Darknet's C files; name: the array as it is written there. While a network under AMP is
 * made or resized nothing is copied of what is written before it is read, such as outputs and deltas: it is
 * zeros on the GPU. Of a layer that AMP computes a resize gets NULL, since AMP would give it back at once. */
float *darknet_amp_gpu_array(float *array, size_t count, const char *name);

/* AlexeyAB's set_batch_network has chosen other algorithms for its own convolutions: what these want is
 * measured and made anew. */
void darknet_amp_workspace(struct network *net);

void darknet_amp_free(struct network *net);

/* rand_normal and rand_uniform return 0 and draw nothing while networks are made that are only looked at. */
extern int darknet_amp_draws_nothing;

/* Whether Darknet's GPU code is to run on CUDA's default stream, and not on a stream of its own: once a
 * network under AMP is asked for, whose stream is in order with that one alone. */
int darknet_amp_default_stream(void);

/* ---- a step ---- */

/* Called with net->amp set, instead of Darknet's own loop over the layers. */
void darknet_amp_forward(struct network *net);
void darknet_amp_backward(struct network *net);
void darknet_amp_update(struct network *net);
/* Whether that update was skipped: the weights are those of the step before. */
int darknet_amp_skipped(const struct network *net);

/* At the end of a prediction, with AMP and without: ends the program with a line if the network's output, or
 * what boxes are made of, is not finite. */
void darknet_amp_predicted(struct network *net, const float *output);

/* Darknet's gemm (gemm_cpu, gemm_gpu), before it computes: 1 if the product was made, since it belongs to a
 * layer whose products AMP makes. Arguments as gemm's. */
int darknet_amp_gemm(int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float *a,
                     int lda, const float *b, int ldb, float beta, float *c, int ldc);

/* Called after Darknet has written to the weights of a network, with AMP or without: AMP copies them to 16
 * bits again. A program that changes weights in memory calls it too. On a CPU a prediction notices by itself
 * when the weights of a layer change as a whole, as rgbgr_weights changes them, but not when single numbers
 * do. */
void darknet_amp_weights_changed(struct network *net);

/* ---- the loop of `detector train` and `classifier train`, with and without AMP ---- */

/* Once the networks are made and the generator is seeded: ends the program if they do not fit the .data
 * file's classes, and reads the sidecar of the weights that were loaded. Other commands do without it:
 * momentum, loss scale and counters are then restored at the first step. Several networks (-gpus) share each
 * step from here on, as ranks: each is given a part of the step's images, in a thread of its own. The array
 * stays. */
void darknet_amp_resume(struct network **nets, int count);

/* Before each step: whether the loop goes on. The first call begins it, with -log and -map; the two numbers
 * that it carries from step to step stay valid until loop_ended. Where the training is to stop early, because
 * of a signal or since the program's turns are over, BACKUP_FOLDER/BASE.backup is saved and the program ends,
 * with status 128 + N after signal N. train_images: how many the list has. */
int darknet_amp_next_step(struct network **nets, int count, float *average_loss, int *loop_count,
                          const char *data_file, int train_images, const char *backup_folder,
                          const char *base);
/* Called when the loop takes the batch that was loaded. If the loaders met a fault that no training survives
 * (under AMP), saves BACKUP_FOLDER/BASE.backup, prints the fault's line, and ends the program with status
 * 1. */
void darknet_amp_takes_batch(struct network **nets);
/* A step was made, of which *average_loss knows already: where ranks share it, *loss becomes the mean over
 * all, and *average_loss what follows from that. */
void darknet_amp_mean_loss(float *loss, float *average_loss);
/* ... in place of printf: prints its line, under AMP with loss scale, skipped steps and images/s
 * before its newline; writes its row (-log) and measures (-map), before the step's files are saved. */
__attribute__((format(printf, 3, 4)))
void darknet_amp_step(float loss, float average_loss, const char *format, ...);
/* What the chart's line says of that step beyond Darknet's own words: ", scale 65536, 1 skipped"; empty
 * without AMP. Valid until the next step; below 128 bytes. */
const char *darknet_amp_chart_ending(void);
/* Whether that step measured mAP; if so, *map is it and *best the best so far, both 0 to 1. */
int darknet_amp_measured(float *map, float *best);
/* The next iteration, which may be this one, at which -map measures; 0: none. */
long darknet_amp_next_map(void);
/* Whether this program draws the chart: of ranks that train together only rank 0 does. */
int darknet_amp_draws_chart(void);
/* Behind the last save: ends the program with status 1 if that one failed. */
void darknet_amp_loop_ended(struct network **nets);

/* ---- files of weights, under AMP ---- */

/* In place of fopen, for layers first to layers - 1; only a file of all layers gets a sidecar, and averaged
 * weights, which want none, are saved with a first of 1. "wb": NULL where nothing is to be written, because
 * the folder is missing or full (a line says so, and training goes on), or since the loop asks again for what
 * it has saved. "rb": ends a save of FILE that was killed, where there is no FILE yet; a FILE that is missing
 * or of another network ends the program. */
FILE *darknet_amp_open_weights(struct network *net, const char *file, const char *mode, int first,
                               int layers);
/* In place of fclose. Saved: puts FILE and its sidecar FILE.amp into place once both are on the disk. Loaded:
 * half copies are made anew, and a training that begins now goes on from the sidecar. */
void darknet_amp_close_weights(struct network *net, FILE *file);
/* For how many of the network's layers, from the first, the file that is being loaded has weights. */
int darknet_amp_held_layers(const struct network *net);

/* ---- loading images and labels ---- */

/* Reproducible runs (-seed N). is_seeded: whether -seed was given. seed: what srand(time(0)) gets: N, or
 * time(0) without -seed. rand: Darknet's rand(): the C library's own, but in loader threads with -seed the
 * calling thread's own stream. */
int darknet_amp_is_seeded(void);
unsigned darknet_amp_seed(void);
int darknet_amp_rand(void);

/* A loading job starts, in the thread that starts it; one of the parts that its threads load begins, and
 * ends, in its own: the rows of args->d are made. args->job and args->part number them. */
enum darknet_amp_job_event { AMP_JOB_STARTS, AMP_PART_BEGINS, AMP_PART_ENDS };
void darknet_amp_job(struct load_args *args, enum darknet_amp_job_event event);

/* For debug=1, the names of the images in a batch: a loader thread has picked count of them. */
void darknet_amp_paths(char **paths, int count);
/* get_next_batch is to copy these rows into a network's input, one of `floats` floats an image; with the
 * first of them, waiting for a step's images is over. 1: they are copied, and may be freed and NULL, which
 * only the loops above, under AMP, allow. 0: as in stock. */
int darknet_amp_fill(float *input, float **rows, int count, int floats);

/* Bad input of loader threads, in a program with a network under AMP. A fault that no training survives ends
 * the program; a training ends at darknet_amp_takes_batch.
 * bad_image: called before an image is read (tried 0), and after that has failed (tried 1). 1: the image is
 * missing, a FIFO, a device or a socket, or cannot be read. The caller returns an image without data, and its
 * caller loads another, which another_image puts in paths[i]. 0: as in stock.
 * read_boxes: a detector's labels; 1: *(box_label **)boxes and *count are what Darknet's read_boxes would
 * give.
 * mislabelled: a path that holds `count` of the labels; 1: a line was printed.
 * fopen: C's, but a FIFO, a device or a socket ends the program, or is read as an empty file. */
int darknet_amp_bad_image(const char *file, int tried);
void darknet_amp_another_image(char **paths, int i);
int darknet_amp_read_boxes(const char *file, void *boxes, int *count);
int darknet_amp_mislabelled(const char *path, int count);
FILE *darknet_amp_fopen(const char *file, const char *mode);
/* OpenCV could not crop, resize and distort an image to w x h, because of `why`. A program with a network
 * under AMP ends here; or 1 is returned: it will end when its loop comes to this batch, and the caller
 * returns any image of w x h. 0: as in stock, which continues with an image of another size, and reads and
 * writes outside it. */
int darknet_amp_not_augmented(int w, int h, const char *why);

/* Reading images in a program with a network under AMP, and in threads that read images to measure them:
 * training, measuring and predicting read alike. reads: whether the plugin reads them; else Darknet reads
 * as in stock, and the other functions are not called. read_image: decodes a file by libjpeg-turbo or
 * stb_image, to `channels` (0: as many as it has). 1: *data are (c,h,w) floats, the caller's, as Darknet
 * would make them, or NULL after a failure that bad_image has named. 0: as in stock. Where OpenCV reads
 * images, darknet_amp_imread does this (darknet_amp_opencv.hpp). image_fits: whether Darknet can work with an
 * image of this size; 0: unreadable says why not. unreadable: why the image cannot be read, for
 * bad_image's line. */
int darknet_amp_reads(void);
int darknet_amp_read_image(const char *file, int channels, int *w, int *h, int *c, float **data);
int darknet_amp_image_fits(int w, int h, int c);
__attribute__((format(printf, 1, 2))) void darknet_amp_unreadable(const char *why, ...);
/* A cache where OpenCV reads images. kept_bytes: an image's bytes, if they were kept, which stay the cache's,
 * are not written to, and are there until the thread reads another; else NULL. keep_bytes: w·h·c bytes were
 * decoded: the bytes that the training is to see, in the same way; *w and *h become theirs. how: any number
 * that says how the file was read. photo: the size of the photo that the thread has read last, and by how
 * much its image is reduced; w and h stay as they are where it is not (1). */
unsigned char *darknet_amp_kept_bytes(const char *file, int how, int *w, int *h, int *c);
unsigned char *darknet_amp_keep_bytes(const char *file, int how, unsigned char *pixels, int *w, int *h,
                                      int c);
int darknet_amp_photo(int *w, int *h);
/* A detector's image goes from bytes to the network's input in one pass. want_pixels: the next image that
 * the calling thread loads stays bytes, and its "floats" are a block without meaning, until one of the
 * next two functions is called. place_image: Darknet's place_image, onto a canvas of planes. crop_image:
 * crop_image to w x h, then resize_image to out_w x out_h; the caller frees the floats. 0, NULL: there are
 * no bytes, as without AMP. distort_image: Darknet's, of `count` pixels; 0: nothing was done. */
void darknet_amp_want_pixels(void);
int darknet_amp_place_image(int w, int h, int dx, int dy, float *canvas, int canvas_w, int canvas_h);
float *darknet_amp_crop_image(int left, int top, int w, int h, int out_w, int out_h);
int darknet_amp_distort_image(float *planes, int count, int channels, float hue, float saturation,
                              float exposure);

/* pthread_create of a loader, without attributes. No thread can be had: ends the program. */
int darknet_amp_start_loader(pthread_t *thread, void *(*run)(void *), void *job);

/* calloc in Darknet's C files; text: `count` as it is written there. Where there is no memory a program with
 * a network under AMP ends; NULL is for what grows with the batch while such a network is made, and for
 * programs without one. */
void *darknet_amp_calloc(size_t count, size_t size, const char *text);
/* There was no memory for `bytes` bytes: ends a program with a network under AMP, and returns in any
 * other. */
void darknet_amp_no_memory(size_t bytes);

/* sprintf in Darknet's C files. room: of text; (size_t)-1 where the compiler does not know it, which is then
 * a path's. A text that does not fit, which is a path in nearly all cases, ends the program. */
__attribute__((format(printf, 3, 4)))
int darknet_amp_sprintf(char *text, size_t room, const char *format, ...);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
