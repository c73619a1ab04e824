/* hank-ai's Darknet, which is C++, as C11 sees it: what files of ../darknet and ../family find in the place
 * of AlexeyAB's darknet.h. The structs are printed from its own headers (structs.awk) and compared with them
 * (layout.cpp). Functions are called through shims.cpp, by the names that AlexeyAB's C has for them. */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef GPU
#include <cuda_runtime.h>
#endif
#ifdef CUDNN
#include <cudnn.h> /* layers have its descriptors */
#endif

#include "hooks.hpp"

typedef struct tree tree;
struct network_state;
/* Of other forks, so that tables can name them; no layer and no loading job here is of such a type. */
#define AMP_OTHER_LAYERS \
    LOCAL = 32, GRU, ACTIVE, BATCHNORM, CROP, NORMALIZATION, DETECTION, DECONVOLUTIONAL, ISEG, REORG_OLD, \
    CONV_LSTM, HISTORY, IMPLICIT, LOGXENT, L2NORM,
#define AMP_OTHER_DATA CLASSIFICATION_DATA = 32, TAG_DATA, REGRESSION_DATA
#include "structs.h"

#define SHIM(name) __asm__("amp_shim_" #name)

network parse_network_cfg(char *cfg) SHIM(parse_network_cfg);
void free_network(network *net) SHIM(free_network);
void forward_network(network *net, network_state state) SHIM(forward_network);
void backward_network(network *net, network_state state) SHIM(backward_network);
void update_network(network *net) SHIM(update_network);
float train_network_datum(network *net, float *x, float *y) SHIM(train_network_datum);
float *network_predict(network *net, float *x) SHIM(network_predict);
float get_network_cost(const network *net) SHIM(get_network_cost);
float get_current_rate(const network *net) SHIM(get_current_rate);
int get_network_output_size(const network *net) SHIM(get_network_output_size);
int is_ema_initialized(const network *net) SHIM(is_ema_initialized);
int resize_network(network *net, int w, int h) SHIM(resize_network);
void set_batch_network(network *net, int b) SHIM(set_batch_network);
void load_weights(network *net, char *file) SHIM(load_weights);
void save_weights(network *net, char *file) SHIM(save_weights);
size_t get_convolutional_workspace_size(layer *l) SHIM(get_convolutional_workspace_size);
int *amp_gpu_index(void) SHIM(gpu_index);

void binarize_weights(float *weights, int n, int size, float *binary) SHIM(binarize_weights);
void gradient_array(const float *x, int n, ACTIVATION a, float *delta) SHIM(gradient_array);
void gradient_array_swish(const float *x, int n, const float *sigmoid, float *delta)
    SHIM(gradient_array_swish);
void gradient_array_mish(int n, const float *activation_input, float *delta) SHIM(gradient_array_mish);
float rand_uniform(float least, float most) SHIM(rand_uniform);
void top_k(float *a, int n, int k, int *index) SHIM(top_k);
void hierarchy_predictions(float *predictions, int n, tree *hierarchy, int only_leaves)
    SHIM(hierarchy_predictions);

image crop_image(image im, int dx, int dy, int w, int h) SHIM(crop_image);
image resize_image(image im, int w, int h) SHIM(resize_image);
image letterbox_image(image im, int w, int h) SHIM(letterbox_image);
void free_image(image im); /* these four are C here, too */
detection *get_network_boxes(void *net, int w, int h, float thresh, float hier, int *map, int relative,
                             int *num, int letter);
void do_nms_sort(detection *dets, int total, int classes, float thresh);
void diounms_sort(detection *dets, int total, int classes, float thresh, NMS_KIND kind, float beta);
void free_detections(detection *dets, int n);

pthread_t load_data(load_args args) SHIM(load_data);
void free_load_threads(load_args *args) SHIM(free_load_threads);
void free_data(data d) SHIM(free_data);
void get_next_batch(data d, int n, int offset, float *x, float *y) SHIM(get_next_batch);
char *basecfg(char *cfg) SHIM(basecfg);
void replace_image_to_label(const char *image, char *path) SHIM(replace_image_to_label);

#ifdef GPU
void cuda_set_device(int number); /* is C, too */
float *cuda_make_array(float *x, size_t count) SHIM(cuda_make_array);
void cuda_push_array(float *x_gpu, float *x, size_t count) SHIM(cuda_push_array);
void cuda_free_host(float *x) SHIM(cuda_free_host);
void forward_network_gpu(network *net, network_state state) SHIM(forward_network_gpu);
void backward_network_gpu(network *net, network_state state) SHIM(backward_network_gpu);
void update_network_gpu(network *net) SHIM(update_network_gpu);

void fill_ongpu(int n, float a, float *x, int ix) SHIM(fill_ongpu);
void const_ongpu(int n, float a, float *x, int ix) SHIM(const_ongpu);
void copy_ongpu(int n, float *x, int ix, float *y, int iy) SHIM(copy_ongpu);
void axpy_ongpu(int n, float a, float *x, int ix, float *y, int iy) SHIM(axpy_ongpu);
void mul_ongpu(int n, float *x, int ix, float *y, int iy) SHIM(mul_ongpu);
void pow_ongpu(int n, float a, float *x, int ix, float *y, int iy) SHIM(pow_ongpu);
void scal_add_ongpu(int n, float a, float b, float *x, int ix) SHIM(scal_add_ongpu);
void scale_bias_gpu(float *x, float *scales, int batch, int n, int size) SHIM(scale_bias_gpu);
void backward_scale_gpu(float *x, float *delta, int batch, int n, int size, float *updates)
    SHIM(backward_scale_gpu);
void softmax_gpu_new_api(float *x, int n, int batch, int batch_offset, int groups, int group_offset,
                         int stride, float temp, float *y) SHIM(softmax_gpu_new_api);
void activate_array_ongpu(float *x, int n, ACTIVATION a) SHIM(activate_array_ongpu);
void activate_array_swish_ongpu(float *x, int n, float *sigmoid, float *y) SHIM(activate_array_swish_ongpu);
void activate_array_mish_ongpu(float *x, int n, float *input, float *y) SHIM(activate_array_mish_ongpu);
void gradient_array_ongpu(float *x, int n, ACTIVATION a, float *delta) SHIM(gradient_array_ongpu);
void gradient_array_swish_ongpu(float *x, int n, float *sigmoid, float *delta)
    SHIM(gradient_array_swish_ongpu);
void gradient_array_mish_ongpu(int n, float *input, float *delta) SHIM(gradient_array_mish_ongpu);
#endif
