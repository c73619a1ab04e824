/* Makes hank-ai's C++ functions callable from C: shims.h lists them. No exception may pass through C code, so
 * an exception ends the program with a line that says why. */
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

} // namespace

namespace amp_shims {

/* The names of these types in C. */
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

/* Works like AlexeyAB's load_data: starts a thread, which ends when *args.d is filled. */
extern "C" pthread_t amp_shim_load_data(load_args args)
{
    pthread_t thread;
    if (darknet_amp_start_loader(&thread, load, new load_args(amp_job(args))))
        darknet_amp_refuse("amp: cannot start a thread that loads images");
    return thread;
}

/* ---- where Darknet would abort ---- */

static bool runs_ours; /* the program runs one of the plugin's commands */

extern "C" void amp_cfg_refuse(const char *reason); /* ../program/cfg.h, which is C */

static bool ends_with_a_line() { return runs_ours or darknet_amp_default_stream(); }

extern "C" void darknet_amp_fatal(const char *message)
{
    if (ends_with_a_line()) amp_cfg_refuse(message);
}

static std::terminate_handler default_end;

/* Called for an uncaught exception. Most come from a thread, where main's handler does not see them. */
static void end_uncaught()
{
    if (not ends_with_a_line()) default_end();
    try {
        if (std::current_exception()) throw;
    } catch (const std::exception & e) {
        darknet_amp_fatal(e.what());
    } catch (...) {
        darknet_amp_fatal("amp: Darknet threw an exception");
    }
    default_end();
}

/* During one of the plugin's commands, Darknet's output goes to stderr, as AlexeyAB's does, because stdout is
 * for the command's own text. */
extern "C" void amp_note_command(int is_ours)
{
    runs_ours = is_ours;
    default_end = std::set_terminate(end_uncaught);
    if (is_ours) Darknet::CfgAndState::get().output = &std::cerr;
}

#ifdef DARKNET_USE_OPENBLAS
#error "AMP does not support OpenBLAS yet: configure with -DDARKNET_TRY_OPENBLAS=OFF"
#endif
