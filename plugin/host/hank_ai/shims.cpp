/* hank-ai's functions, which are C++, for the plugin's C: shims.h lists them. No exception passes through C's
 * frames: one that these functions throw ends the program with a line. */
#include "darknet_internal.hpp"

#include <pthread.h>
#include <unistd.h>

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

} // namespace

namespace amp_shims {

/* The names that C has for them. */
using network = Darknet::Network;
using network_state = Darknet::NetworkState;
using layer = Darknet::Layer;
using image = Darknet::Image;
using tree = Darknet::Tree;

#define SHIM(result, name, parameters, expression) \
    extern "C" result amp_shim_##name parameters \
    { return guarded(#name, [&]() -> result { return expression; }); }
#include "shims.h"

} // namespace amp_shims

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
        cv::Mat mat;
        if (access(path, R_OK)) { /* at which OpenCV would print a line of its own */
            *why = strerror(errno);
            return nullptr;
        }
        *why = "it has more pixels than OpenCV reads";
        try { mat = cv::imread(path, cv::IMREAD_COLOR); } catch (const cv::Exception &) { return nullptr; }
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
