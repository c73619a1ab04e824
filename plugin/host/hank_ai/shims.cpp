/* hank-ai's functions, which are C++, for the plugin's C: darknet.h declares them. No exception passes
 * through C's frames: one that these functions throw ends the program with a line. */
#include "darknet_internal.hpp"

#include <pthread.h>

namespace {

template <typename Function> auto guarded(const char *name, Function function) -> decltype(function())
{
    try {
        return function();
    } catch (const std::exception & e) {
        darknet_amp_refuse("amp: Darknet's %s: %s", name, e.what());
    } catch (...) {
        darknet_amp_refuse("amp: Darknet's %s threw an exception", name);
    }
}

using Network = Darknet::Network;
using Image = Darknet::Image;

} // namespace

/* SHIM(result, name, (what C passes), expression): a function of C's that computes the expression. */
#define SHIM(result, name, parameters, expression) \
    extern "C" result amp_shim_##name parameters \
    { return guarded(#name, [&]() -> result { return expression; }); }

SHIM(Network, parse_network_cfg, (char *cfg), parse_network_cfg(cfg))
SHIM(void, free_network, (Network *net), free_network(*net))
SHIM(void, forward_network, (Network *net, Darknet::NetworkState state), forward_network(*net, state))
SHIM(void, backward_network, (Network *net, Darknet::NetworkState state), backward_network(*net, state))
SHIM(void, update_network, (Network *net), update_network(*net))
SHIM(float, train_network_datum, (Network *net, float *x, float *y), train_network_datum(*net, x, y))
SHIM(float *, network_predict, (Network *net, float *x), network_predict(*net, x))
SHIM(float, get_network_cost, (const Network *net), get_network_cost(*net))
SHIM(float, get_current_rate, (const Network *net), get_current_rate(*net))
SHIM(int, get_network_output_size, (Network *net), get_network_output_size(*net))
SHIM(int, is_ema_initialized, (const Network *net), is_ema_initialized(*net))
SHIM(int, resize_network, (Network *net, int w, int h), resize_network(net, w, h))
SHIM(void, set_batch_network, (Network *net, int b), set_batch_network(net, b))
SHIM(void, load_weights, (Network *net, char *file), load_weights(net, file))
SHIM(void, save_weights, (Network *net, char *file), save_weights(*net, file))
SHIM(size_t, get_convolutional_workspace_size, (Darknet::Layer *l), get_convolutional_workspace_size(*l))
SHIM(int *, gpu_index, (void), &Darknet::CfgAndState::get().gpu_index)

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
SHIM(void, hierarchy_predictions, (float *predictions, int n, Darknet::Tree *tree, int only_leaves),
     Darknet::hierarchy_predictions(predictions, n, tree, only_leaves))

SHIM(Image, crop_image, (Image im, int dx, int dy, int w, int h), Darknet::crop_image(im, dx, dy, w, h))
SHIM(Image, resize_image, (Image im, int w, int h), Darknet::resize_image(im, w, h))
SHIM(Image, letterbox_image, (Image im, int w, int h), Darknet::letterbox_image(im, w, h))

SHIM(void, free_data, (data d), Darknet::free_data(d))
SHIM(void, free_load_threads, (load_args *), Darknet::stop_image_loading_threads())
SHIM(void, get_next_batch, (data d, int n, int offset, float *x, float *y),
     get_next_batch(d, n, offset, x, y))
SHIM(char *, basecfg, (char *cfg), const_cast<char *>(basecfg(cfg)))
SHIM(void, replace_image_to_label, (const char *image, char *path), replace_image_to_label(image, path))

#ifdef DARKNET_GPU
SHIM(float *, cuda_make_array, (float *x, size_t count), cuda_make_array(x, count))
SHIM(void, cuda_push_array, (float *x_gpu, float *x, size_t count), cuda_push_array(x_gpu, x, count))
SHIM(void, cuda_free_host, (float *x), cuda_free_host(x))
SHIM(void, forward_network_gpu, (Network *net, Darknet::NetworkState state), forward_network_gpu(*net, state))
SHIM(void, backward_network_gpu, (Network *net, Darknet::NetworkState state),
     backward_network_gpu(*net, state))
SHIM(void, update_network_gpu, (Network *net), update_network_gpu(*net))

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

/* ---- what needs more than a call ---- */

extern "C" void darknet_amp_use_gpu(int number)
{
#ifdef DARKNET_GPU
    Darknet::CfgAndState::get().gpu_index = number;
    if (number >= 0) cuda_set_device(number);
#else
    std::ignore = number;
#endif
}

static void *load(void *job)
{
    load_args args = *static_cast<load_args *>(job);
    delete static_cast<load_args *>(job);
    guarded("load_data", [&] { Darknet::run_image_loading_control_thread(args); });
    return nullptr;
}

/* As AlexeyAB's: a thread that ends when *args.d is filled. */
extern "C" pthread_t amp_shim_load_data(load_args args)
{
    pthread_t thread;
    if (pthread_create(&thread, nullptr, load, new load_args(amp_job(args))))
        darknet_amp_refuse("amp: no thread can be had that loads images");
    return thread;
}

extern "C" unsigned char *amp_own_decode(const char *path, int *w, int *h, const char **why)
{
    return guarded("imread", [&]() -> unsigned char * {
        cv::Mat mat = cv::imread(path, cv::IMREAD_COLOR);
        const size_t bytes = mat.total() * 3;
        *why = errno ? strerror(errno) : "OpenCV cannot read it as an image";
        if (mat.empty()) return nullptr;
        auto *pixels = static_cast<unsigned char *>(std::malloc(bytes));
        *why = "it is too large for this machine's memory";
        if (not pixels) return nullptr;
        cv::cvtColor(mat, cv::Mat(mat.rows, mat.cols, CV_8UC3, pixels), cv::COLOR_BGR2RGB);
        *w = mat.cols;
        *h = mat.rows;
        return pixels;
    });
}

/* OpenCV tells an image's size no earlier than it decodes it. */
extern "C" int amp_own_image_size(const char *path, int *w, int *h)
{
    const char *why;
    unsigned char *pixels = amp_own_decode(path, w, h, &why);
    std::free(pixels);
    return pixels != nullptr;
}

/* What Darknet says during one of our commands goes to stderr, as AlexeyAB's does, since a command's own text
 * is on stdout. */
extern "C" void amp_print_to_stderr(void) { Darknet::CfgAndState::get().output = &std::cerr; }

#ifdef DARKNET_USE_OPENBLAS
#error "AMP does not know OpenBLAS's products yet: configure with -DDARKNET_TRY_OPENBLAS=OFF"
#endif
