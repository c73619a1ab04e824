/* What the patches add to hank-ai's headers. darknet_internal.hpp includes this file. darknet.h of this
 * folder includes it too, because the patches add fields to the structs, inside DARKNET_AMP(...). In a build
 * without -DDARKNET_AMP=ON the hooks are empty, and random number generators are Darknet's std::mt19937. */
#ifndef DARKNET_AMP_HOOKS_HPP
#define DARKNET_AMP_HOOKS_HPP

#ifdef AMP

#include "../../include/darknet_amp.h"

#define DARKNET_AMP(...) __VA_ARGS__
#define DARKNET_PATH 4096
#define DARKNET_FOPEN(file, mode) darknet_amp_fopen(file, mode)

#ifdef __cplusplus
extern "C" {
#endif
/* Sorts the words of a command, which hank-ai's Darknet accepts in any order, into the order of AlexeyAB's
 * commands, and normalizes the spelling of options. Moves argv's pointers. */
void darknet_amp_order(int argc, char **argv);
/* Whether a training of this .cfg runs under AMP, or was started by `amp compare`. Then Darknet does not ask
 * whether to train on a CPU, and all GPUs train from the first step even without a weights file (stock would
 * begin with one). */
int darknet_amp_means_it(const char *cfg);
/* Whether this word of the command line names a file of weights, whatever its extension. */
int darknet_amp_names_weights(const char *word);
/* Called before Darknet prints a backtrace and aborts. In the plugin's commands, and after a network under
 * AMP was requested, ends the program with the line `message` and status 1. */
void darknet_amp_fatal(const char *message);

/* Under AMP, ends the program if the .weights file that the command reads is missing; Darknet would predict
 * with random weights. */
void darknet_amp_need_weights(void);
/* Sets the GPU for the plugin's commands, which run before main chooses one. Negative: none. */
void darknet_amp_use_gpu(int number);
#ifdef __cplusplus
}

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <sstream>
#include <string>

#include "../../include/darknet_amp_opencv.hpp"

/* A network or a layer as C code expects it. */
#define AMP_C(net) reinterpret_cast<struct network *>(&(net))
#define AMP_LAYER(l) reinterpret_cast<struct layer *>(&(l))

/* Under AMP, calls the hook `pass` with a copy of the network that has the state's input, truth, delta and
 * train, and returns. */
#define DARKNET_AMP_PASS(pass) if (net.amp) { Darknet::Network amp_net = net; amp_net.input = state.input; \
    amp_net.truth = state.truth; amp_net.delta = state.delta; amp_net.train = state.train; \
    pass(AMP_C(amp_net)); return; }
/* For Darknet's functions on a GPU. Under AMP, DARKNET_AMP_ON_GPU rejects a function that runs the layers
 * itself. DARKNET_AMP_TRAIN and DARKNET_AMP_PREDICT call AMP's hooks, with images and labels in CPU memory,
 * and return from the function. */
#define DARKNET_AMP_ON_GPU if (net.amp) darknet_amp_refuse("amp: this command itself runs the layers " \
    "on the GPU, which AMP does not support; run it with -amp off");
#define DARKNET_AMP_TRAIN(x, y) if (net.amp and not net.adversarial) { Darknet::Network amp_net = net; \
    amp_net.input = x; amp_net.truth = y; amp_net.train = 1; darknet_amp_forward(AMP_C(amp_net)); \
    darknet_amp_backward(AMP_C(amp_net)); return; }
#define DARKNET_AMP_PREDICT(image) if (net.amp) { Darknet::Network amp_net = net; amp_net.input = image; \
    amp_net.truth = nullptr; amp_net.train = 0; darknet_amp_forward(AMP_C(amp_net)); \
    return get_network_output_gpu(net); }
#define DARKNET_AMP_POINTERS(n) auto amp_nets = std::make_unique<struct network *[]>(n); \
    for (int amp_i = 0; amp_i < (n); ++amp_i) amp_nets[amp_i] = AMP_C(nets[amp_i]);

/* Returns the text of the .cfg that Darknet must read, for std::getline. */
inline std::istringstream amp_open_cfg(const std::string & file)
{
    std::string text;
    FILE * opened = darknet_amp_open_cfg(file.c_str());
    for (int c; opened and (c = std::getc(opened)) != EOF;) text += static_cast<char>(c);
    if (opened) std::fclose(opened);
    return std::istringstream(text);
}
/* Returns the canonical path, or `file` if it has none (a .cfg in memory). */
inline std::filesystem::path amp_canonical(const std::filesystem::path & file)
{
    std::error_code error;
    const std::filesystem::path found = std::filesystem::canonical(file, error);
    return error ? file : found;
}
#define DARKNET_CANONICAL(file) amp_canonical(file)
#define DARKNET_CFG_STREAM std::istringstream
#define DARKNET_OPEN_CFG(file) amp_open_cfg(file)

/* A generator of random bits. With -seed it is the plugin's generator, and each part of a loading job has its
 * own (../program/random.h). Without -seed it is std::mt19937, as in stock. */
class amp_engine
{
public:
    using result_type = std::mt19937::result_type;
    static constexpr result_type min() { return std::mt19937::min(); }
    static constexpr result_type max() { return std::mt19937::max(); }
    explicit amp_engine(unsigned seed) : own(seed) { }
    result_type operator()()
    {
        if (not darknet_amp_is_seeded()) return own();
        /* the upper 16 of darknet_amp_rand's 31 bits, twice */
        const result_type high = static_cast<unsigned>(darknet_amp_rand()) >> 15;
        return high << 16 | static_cast<unsigned>(darknet_amp_rand()) >> 15;
    }
private:
    std::mt19937 own;
};
#define DARKNET_ENGINE amp_engine

/* Gives a loading job its number, in the thread that requests the job. */
template <typename Args> Args amp_job(Args args)
{
    darknet_amp_job(&args, AMP_JOB_STARTS);
    return args;
}
#define DARKNET_JOB(args) amp_job(args)
#define DARKNET_LINE amp_line

#define DARKNET_SEED darknet_amp_seed()
/* Whether cuDNN must use fp32 instead of TF32 in Darknet's own convolutions: only with DARKNET_MATH=fp32. */
inline bool amp_wants_fp32()
{
    const char * math = std::getenv("DARKNET_MATH");
    const std::string asked = math ? math : "";
    if (not asked.empty() and asked != "fp32" and asked != "tf32")
        darknet_amp_refuse("DARKNET_MATH=%.99s: expected fp32 or tf32", math);
    return asked == "fp32";
}
#define DARKNET_MATH_TYPE (amp_wants_fp32() ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH)
#endif

#elif defined(__cplusplus)

#define DARKNET_AMP(...)
#define DARKNET_PATH 256
#define DARKNET_FOPEN(file, mode) std::fopen(file, mode)
#define DARKNET_CANONICAL(file) std::filesystem::canonical(file)
#define DARKNET_CFG_STREAM std::ifstream
#define DARKNET_OPEN_CFG(file) std::ifstream(file)
#define DARKNET_ENGINE std::mt19937
#define DARKNET_JOB(args) args
#define DARKNET_LINE *cfg_and_state.output
#define DARKNET_SEED time(0)
#define DARKNET_MATH_TYPE CUDNN_TENSOR_OP_MATH

#endif
#endif
