/* hank-ai's functions that the plugin's C code calls: SHIM(result, name, (parameters in C), expression in
 * C++). darknet.h turns these rows into prototypes, shims.cpp into functions. */
SHIM(network, parse_network_cfg, (char *cfg), parse_network_cfg(cfg))
SHIM(void, free_network, (network *net), free_network(*net))
SHIM(void, forward_network, (network *net, network_state state), forward_network(*net, state))
SHIM(void, backward_network, (network *net, network_state state), backward_network(*net, state))
SHIM(void, update_network, (network *net), update_network(*net))
SHIM(float, train_network_datum, (network *net, float *x, float *y), train_network_datum(*net, x, y))
SHIM(float *, network_predict, (network *net, float *x), network_predict(*net, x))
SHIM(float, get_network_cost, (const network *net), get_network_cost(*net))
SHIM(float, get_current_rate, (const network *net), get_current_rate(*net))
SHIM(int, get_network_output_size, (network *net), get_network_output_size(*net))
SHIM(int, is_ema_initialized, (const network *net), is_ema_initialized(*net))
SHIM(int, resize_network, (network *net, int w, int h), resize_network(net, w, h))
SHIM(void, set_batch_network, (network *net, int b), set_batch_network(net, b))
SHIM(void, load_weights, (network *net, char *file), load_weights(net, file))
SHIM(void, save_weights, (network *net, char *file), save_weights(*net, file))
SHIM(size_t, get_convolutional_workspace_size, (layer *l), get_convolutional_workspace_size(*l))
SHIM(int *, amp_gpu_index, (void), &Darknet::CfgAndState::get().gpu_index)
SHIM(int, amp_is_verbose, (void), Darknet::CfgAndState::get().is_verbose)

SHIM(void, binarize_weights, (float *weights, int n, int size, float *binary),
     binarize_weights(weights, n, size, binary))
SHIM(void, gradient_array, (const float *x, int n, ACTIVATION a, float *delta),
     gradient_array(x, n, a, delta))
SHIM(void, gradient_array_swish, (const float *x, int n, const float *sigmoid, float *delta),
     gradient_array_swish(x, n, sigmoid, delta))
SHIM(void, gradient_array_mish, (int n, const float *input, float *delta),
     gradient_array_mish(n, input, delta))
SHIM(float, rand_uniform, (float least, float most), rand_uniform(least, most))
SHIM(void, top_k, (float *a, int n, int k, int *index), top_k(a, n, k, index))
SHIM(void, hierarchy_predictions, (float *predictions, int n, tree *hierarchy, int only_leaves),
     Darknet::hierarchy_predictions(predictions, n, hierarchy, only_leaves))

/* AMP_OWN_TREE_GROUP: see ../darknet/own.h. */
SHIM(void, amp_tree_group, (const tree *t, int i, int *first, int *count),
     (void)(*first = t->group_offset[t->group[i]], *count = t->group_size[t->group[i]]))

SHIM(image, crop_image, (image im, int dx, int dy, int w, int h), Darknet::crop_image(im, dx, dy, w, h))
SHIM(image, resize_image, (image im, int w, int h), Darknet::resize_image(im, w, h))
SHIM(image, load_image, (char *file, int w, int h, int c), Darknet::load_image(file, w, h, c))
SHIM(image, letterbox_image, (image im, int w, int h), Darknet::letterbox_image(im, w, h))

SHIM(void, free_data, (data d), Darknet::free_data(d))
SHIM(void, free_load_threads, (load_args *), Darknet::stop_image_loading_threads())
SHIM(void, get_next_batch, (data d, int n, int offset, float *x, float *y),
     get_next_batch(d, n, offset, x, y))
SHIM(char *, basecfg, (char *cfg), const_cast<char *>(basecfg(cfg)))
SHIM(void, replace_image_to_label, (const char *image, char *path), replace_image_to_label(image, path))

#if defined(GPU) || defined(DARKNET_GPU) /* the macro's name in C, and in C++ */
SHIM(float *, cuda_make_array, (float *x, size_t count), cuda_make_array(x, count))
SHIM(void, cuda_push_array, (float *x_gpu, float *x, size_t count), cuda_push_array(x_gpu, x, count))
SHIM(void, cuda_free_host, (float *x), cuda_free_host(x))
SHIM(void, forward_network_gpu, (network *net, network_state state), forward_network_gpu(*net, state))
SHIM(void, backward_network_gpu, (network *net, network_state state),
     backward_network_gpu(*net, state))
SHIM(void, update_network_gpu, (network *net), update_network_gpu(*net))

SHIM(void, fill_ongpu, (int n, float a, float *x, int ix), fill_ongpu(n, a, x, ix))
SHIM(void, const_ongpu, (int n, float a, float *x, int ix), const_ongpu(n, a, x, ix))
SHIM(void, copy_ongpu, (int n, float *x, int ix, float *y, int iy), copy_ongpu(n, x, ix, y, iy))
SHIM(void, axpy_ongpu, (int n, float a, float *x, int ix, float *y, int iy), axpy_ongpu(n, a, x, ix, y, iy))
SHIM(void, mul_ongpu, (int n, float *x, int ix, float *y, int iy), mul_ongpu(n, x, ix, y, iy))
SHIM(void, pow_ongpu, (int n, float a, float *x, int ix, float *y, int iy), pow_ongpu(n, a, x, ix, y, iy))
SHIM(void, scal_add_ongpu, (int n, float a, float b, float *x, int ix), scal_add_ongpu(n, a, b, x, ix))
SHIM(void, scale_bias_gpu, (float *x, float *scales, int batch, int n, int size),
     scale_bias_gpu(x, scales, batch, n, size))
SHIM(void, backward_scale_gpu, (float *x, float *delta, int batch, int n, int size, float *updates),
     backward_scale_gpu(x, delta, batch, n, size, updates))
SHIM(void, softmax_gpu_new_api, (float *x, int n, int batch, int batch_offset, int groups, int group_offset,
                                 int stride, float temp, float *y),
     softmax_gpu_new_api(x, n, batch, batch_offset, groups, group_offset, stride, temp, y))
SHIM(void, activate_array_ongpu, (float *x, int n, ACTIVATION a), activate_array_ongpu(x, n, a))
SHIM(void, activate_array_swish_ongpu, (float *x, int n, float *sigmoid, float *y),
     activate_array_swish_ongpu(x, n, sigmoid, y))
SHIM(void, activate_array_mish_ongpu, (float *x, int n, float *input, float *y),
     activate_array_mish_ongpu(x, n, input, y))
SHIM(void, gradient_array_ongpu, (float *x, int n, ACTIVATION a, float *delta),
     gradient_array_ongpu(x, n, a, delta))
SHIM(void, gradient_array_swish_ongpu, (float *x, int n, float *sigmoid, float *delta),
     gradient_array_swish_ongpu(x, n, sigmoid, delta))
SHIM(void, gradient_array_mish_ongpu, (int n, float *input, float *delta),
     gradient_array_mish_ongpu(n, input, delta))
#endif
