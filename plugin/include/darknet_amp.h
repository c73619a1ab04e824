/* What a patched Darknet calls. Each hook is one line there and does nothing when AMP is off for that network.
 *
 * No type of Darknet's is needed to read this: a network is passed as the pointer it is. Every function that meets an
 * error it cannot survive prints one line that says what, where and what to do, and ends the program with status 1. */
#ifndef DARKNET_AMP_H
#define DARKNET_AMP_H

#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct network;
struct layer;
struct darknet_amp;         /* all that AMP knows of one network; network.amp, NULL when AMP is off */
struct darknet_amp_options; /* what one .cfg and the command line ask for, read before the layers are made */

/* main, before anything else: opens /dev/null in the place of standard streams that are closed, and has
 * OpenMP's threads sleep while they wait, unless the user's environment says otherwise. By default they spin,
 * and take the processors from the 64 threads that load images. OpenMP reads its environment when it is
 * loaded, so the program is started once more with it set. */
void darknet_amp_start(char **argv);

/* main: takes `-amp off|fp32|fp16|bf16`, `-seed N`, `-turns IN,OUT` and, of the two training commands below,
 * `-log FILE` and `-map [N]` out of the arguments, before anything else reads them. Returns the new argc. Use it:
 * removed options leave NULLs at the end of argv, and `darknet average` counts its arguments. Commands that
 * cannot run under AMP are noted: their networks are refused when they are made. */
int darknet_amp_arguments(int argc, char **argv);

/* main: `darknet amp VERB ...` and `darknet detector map ...`. Returns 1 if the command was one of these: the program ends
 * with *status. */
int darknet_amp_command(int argc, char **argv, int *status);

/* parse_network_cfg. options: reads and checks cfg_file's [amp] section, the same keys under [net] and amp= of every
 * layer; bad input ends the program before anything is made. strip: takes what options read out of read_cfg's
 * list, so that Darknet neither counts [amp] as a layer nor calls its keys unused. attach: sets net->amp (or leaves it
 * NULL) once all layers are made, and frees the options. */
struct darknet_amp_options *darknet_amp_options(const char *cfg_file);
void darknet_amp_strip(struct darknet_amp_options *options, void *sections);
void darknet_amp_attach(struct network *net, struct darknet_amp_options *options);

/* What AMP does not use of a layer is given back while the next is not made yet, so that a network that fits only under AMP
 * can be made: parse_network_cfg and, under AMP, resize_network. */
void darknet_amp_layer_made(struct network *net, struct darknet_amp_options *options, struct layer *made);
void darknet_amp_layer_resized(struct network *net, struct layer *resized);
/* Resizes, to an input of w x h, a layer that resize_network leaves out: one that Darknet can resize, or one
 * that AMP computes itself and whose shape is its input's. Returns 1, or 0 if it is none of them. */
int darknet_amp_resize_layer(struct layer *l, int w, int h);

/* network.c: called with net->amp set, instead of Darknet's own loop over the layers. */
void darknet_amp_forward(struct network *net);
void darknet_amp_backward(struct network *net);
void darknet_amp_update(struct network *net);

/* get_network_image_layer: ends the program if the layer's fp32 output is not kept under AMP. */
void darknet_amp_read_output(struct network *net, int layer);

/* cuda_set_device, with AMP and without: a negative number is -nogpu, given to a command that wants a GPU; ends the program. */
void darknet_amp_gpu_wanted(int gpu);

/* After a resize, after weights were loaded or written by anyone else, and when the network is freed. */
void darknet_amp_resized(struct network *net);
void darknet_amp_weights_changed(struct network *net);
void darknet_amp_free(struct network *net);

/* Replicas of one network, each trained by a thread of its own (-gpus). step_agreed: train_networks, when its threads
 * have joined: all replicas' GradScalers get the state that one update with any replica's found_inf gives. Returns whether
 * weights are to be averaged now, after `interval` steps; steps that were skipped do not count. synced: sync_nets, when it
 * has averaged the weights and added interval * (n-1) steps to every `seen`: half copies and seen are put right.
 * Replicas without AMP are left alone. */
int darknet_amp_step_agreed(struct network **nets, int n, int interval);
void darknet_amp_synced(struct network **nets, int n, int interval);

/* Loading and saving weights, under AMP. open_weights: in place of fopen, to save layers 0 to layers - 1; NULL where nothing
 * is to be written: the folder is missing or full (a line says so, and training goes on), or the loop asks again for what it
 * has saved. close_weights: in place of fclose; puts FILE and its sidecar FILE.amp into place once both are on the disk.
 * before_load: ends a save of FILE that was killed, where there is no FILE yet; a FILE that is missing or of another network ends the
 * program. loaded: whole if all layers were asked for,
 * ended if the file had fewer. clear: -clear was given, and what lies beside the weights is not to be read. */
FILE *darknet_amp_open_weights(struct network *net, const char *file, int layers);
void darknet_amp_close_weights(struct network *net, FILE *file);
void darknet_amp_before_load(struct network *net, const char *file, int start, int cutoff);
void darknet_amp_loaded(struct network *net, const char *file, int whole, int ended);
void darknet_amp_clear(struct network *net);

/* The loop of `detector train` and `classifier train`, with and without AMP, in the order of their calls.
 * check_files: before anything else; looks at the .data file, its list of images and a classifier's labels. Does nothing
 *   for a .cfg without AMP.
 * resume: once the networks are made and the generator is seeded; ends the program if the networks do not fit the .data
 *   file's classes, and reads the sidecar of the weights that were loaded. Other commands do without it; momentum, loss
 *   scale and counters are then restored at the first step.
 * loop: before the first step. What the loop carries from step to step stays valid until loop_ended; -log and -map begin.
 * batch_loaded: the step's images are there.
 * step: the step was made. Prints the step's line, with loss scale, skipped steps and images/s before its newline under
 *   AMP; writes its row (-log) and measures (-map), before the step's files are saved.
 * step_ended: the step's files are saved. Takes turns; where the training is to stop early it saves
 *   BACKUP_FOLDER/BASE.backup and returns 1. stopped: returns the same, also before the first step.
 * loop_ended: ends the program with status 1 if the last save failed, and with 128 + N after signal N stopped the loop. */
void darknet_amp_check_files(const char *data_file, const char *cfg, int classifier);
void darknet_amp_resume(struct network **nets, int count);
void darknet_amp_loop(struct network **nets, int count, float *average_loss, int *loop_count, const char *data_file,
                      int train_images, const char *backup_folder, const char *base);
void darknet_amp_batch_loaded(void);
__attribute__((format(printf, 3, 4))) void darknet_amp_step(float loss, float average_loss, const char *format, ...);
int darknet_amp_step_ended(const char *backup_folder, const char *base);
int darknet_amp_stopped(void);
void darknet_amp_loop_ended(struct network **nets, int count);

/* Darknet's gemm (gemm_cpu, gemm_gpu), before it computes: 1 if the product was made, since it belongs to a layer whose products
 * AMP makes. Arguments as gemm's. */
int darknet_amp_gemm(int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float *a, int lda, const float *b,
                     int ldb, float beta, float *c, int ldc);

/* Reproducible runs (-seed N). is_seeded: whether -seed was given. seed: what srand(time(0)) gets: N, or time(0) without
 * -seed. rand: Darknet's rand() in code
 * that loader threads run: the C library's own without -seed, else the calling thread's own stream. next_job: numbers
 * the loading jobs, called by the thread that starts them. */
int darknet_amp_is_seeded(void);
unsigned darknet_amp_seed(void);
int darknet_amp_rand(void);
unsigned long darknet_amp_next_job(void);

/* rand_normal and rand_uniform: whether they are to return 0 and draw nothing, as long as networks are made that are only
 * looked at. */
int darknet_amp_draws_nothing(void);

/* A loader thread begins a part of a job, and has made rows of what it picked: random numbers of its own (-seed), bad input,
 * and for debug=1 the names of the images in a batch. paths: the thread has picked count of them. filled:
 * get_next_batch has copied these rows into a network's input, one an image; count 0: nobody knows what lies there. */
struct load_args;
void darknet_amp_loading(struct load_args *args);
void darknet_amp_loaded_rows(struct load_args *args);
void darknet_amp_paths(char **paths, int count);
void darknet_amp_filled(const float *input, float **rows, int count);

/* Bad input of loader threads, in a program with a network under AMP. image_failed: an image could not be read; 1: the
 * caller returns one without data, and who loads takes another: another_image puts it in paths[i]. 0: as in stock.
 * read_boxes: a detector's labels; 1: *(box_label **)boxes and *count are what Darknet's read_boxes would give.
 * mislabelled: a path that holds `count` of the labels; 1: a line was printed. */
int darknet_amp_image_failed(const char *file);
void darknet_amp_another_image(char **paths, int i);
int darknet_amp_read_boxes(const char *file, void *boxes, int *count);
int darknet_amp_mislabelled(const char *path, int count);

/* sprintf in Darknet's C files. room: of text, (size_t)-1 where the compiler does not know it. A text that
 * does not fit, which is a path in nearly all cases, ends the program with a line. path_fits: the same for
 * path with part put into it, mask_fits for the word `mask` of file, which was read no further. */
__attribute__((format(printf, 3, 4)))
int darknet_amp_sprintf(char *text, size_t room, const char *format, ...);
void darknet_amp_path_fits(const char *path, const char *part, size_t room);
void darknet_amp_mask_fits(const char *file, const char *mask, size_t room);

/* In a program with a network under AMP. is_device: whether file is a FIFO, a device or a socket, which is no
 * image. fopen: the same as C's, but such a file ends the program with a line. */
int darknet_amp_is_device(const char *file);
FILE *darknet_amp_fopen(const char *file, const char *mode);

#ifdef __cplusplus
}
#endif
#endif
