/* CUDA C++ on the CPU: force-included (g++ -std=c++17 -x c++ -include cuda_shim.h) it lets the CUDA backend's
 * .cu files compile without nvcc, and AMP_CUDA_RUN run their kernels, thread for thread, as fibres.
 *
 * It is there to find faults, not to be fast:
 *  - threads run one at a time, in an order that can be chosen (amp_shim_order), from one barrier to the
 *    next, so that a missing barrier gives wrong numbers; blocks run in that order too;
 *  - shared memory holds NaN when a block starts (a launch, where no hooks tell what a block has written);
 *  - a barrier that a thread of the block does not reach, because it waits elsewhere or has ended, a shuffle
 *    or __syncwarp that a named lane does not join, a shuffle from a lane that is not there, and a launch
 *    that a GPU would refuse are reported;
 *  - with AddressSanitizer (and -fsanitize-sections=amp_shared_*) every access outside of an array, shared or
 *    in device memory, is reported where it happens.
 * It knows what launch.h promises that kernels use, and no more: float atomics do not compile.
 * What it cannot show: races between blocks that run at the same time, occupancy, and the speed of
 * anything. */
#ifndef AMP_CUDA_SHIM_H
#define AMP_CUDA_SHIM_H

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>
#include <vector_functions.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "cuda_races.h"

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __constant__
#undef __forceinline__
#undef __noinline__
#undef __launch_bounds__
#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
/* The shim finds and poisons all shared memory: shared.ld gives it a section. For AddressSanitizer, which
 * puts gaps between arrays, it is one section for each line (the compiler refuses to have variables of
 * templates and others in one), and that of templates, whose section it forgets, is not poisoned. */
#ifdef __SANITIZE_ADDRESS__
#define __shared__ static __attribute__((section(AMP_SHIM_TEXT(AMP_SHIM_GLUE(amp_shared_, __LINE__)))))
#else
#define __shared__ static
#endif
#define AMP_SHIM_TEXT(x) AMP_SHIM_TEXT_(x)
#define AMP_SHIM_TEXT_(x) #x
#define AMP_SHIM_GLUE(a, b) AMP_SHIM_GLUE_(a, b)
#define AMP_SHIM_GLUE_(a, b) a##b

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
static const int warpSize = 32;

/* ----------------------------------------------------------------------------------------------- launches */

namespace amp_shim {

struct launch {
    const char *kernel; /* as the source writes it */
    const char *file;
    int line;
    dim3 grid, block;
    std::function<void()> body; /* one thread's work, arguments by value */
};

/* Run it now, whole. Returns false, after amp_cuda_report, if the kernel did what a GPU does not allow. */
bool run_grid(const launch &);

/* What the runtime's double does with a launch: check its numbers and pointers, and run it, now or later. */
struct argument { const void *bytes; std::vector<size_t> addresses; /* where in it they stand: offsets */ };
void enqueue(launch, cudaStream_t, const std::vector<argument> &);

/* ---- which of an argument's bytes are addresses: by its type; padding, or two numbers, may look so ---- */

template <class T> std::vector<size_t> addresses_of();

/* Initialises whatever member it is given to, and notes where that lies, and which of its
 * bytes are addresses. */
struct member {
    size_t *end; /* of the members before it */
    std::vector<size_t> *addresses;
    template <class T> operator T() const
    {
        size_t at = (*end + alignof(T) - 1) / alignof(T) * alignof(T);
        for (size_t within : addresses_of<T>()) addresses->push_back(at + within);
        *end = at + sizeof(T);
        return T();
    }
};

template <class T, class... M> auto is_made_of(int) -> decltype(T{ std::declval<M>()... }, std::true_type());
template <class T, class... M> std::false_type is_made_of(...);
template <size_t> using any_member = member;
template <class T, size_t... I> constexpr bool has_as_many(std::index_sequence<I...>)
{
    return decltype(is_made_of<T, any_member<I>...>(0))::value;
}

/* How many values T{ ... } takes, an array's elements counted one by one: between Least and Most. */
template <class T, size_t Least, size_t Most> constexpr size_t count_members()
{
    if constexpr (Least == Most) return Least;
    else if constexpr (has_as_many<T>(std::make_index_sequence<(Least + Most + 1) / 2>()))
        return count_members<T, (Least + Most + 1) / 2, Most>();
    else return count_members<T, Least, (Least + Most + 1) / 2 - 1>();
}

template <class T, size_t... I> std::vector<size_t> addresses_in(std::index_sequence<I...>)
{
    std::vector<size_t> addresses;
    size_t end = 0;
    (void)T{ any_member<I>{ &end, &addresses }... };
    /* Laid out in another way. */
    if ((end + alignof(T) - 1) / alignof(T) * alignof(T) != sizeof(T)) std::abort();
    return addresses;
}

template <class T> std::vector<size_t> addresses_of()
{
    if constexpr (std::is_pointer<T>::value) return { 0 };
    else if constexpr (std::is_class<T>::value) {
        static_assert(std::is_aggregate<T>::value,
                      "the double must know the members of what kernels are given");
        return addresses_in<T>(std::make_index_sequence<count_members<T, 0, sizeof(T)>()>());
    } else return {};
}

/* A count of blocks or threads as it is written, a plain integer (which must fit) or a dim3. */
inline dim3 dims(dim3 d) { return d; }
template <class I, class = std::enable_if_t<std::is_integral<I>::value>> dim3 dims(I count)
{
    return count < 0 || (unsigned long long)count > 0xffffffffull ? dim3(0) : dim3((unsigned)count);
}

long long cycles(); /* of the device's clock, which goes on at each look */

template <class... P, class B, class T, class... A>
void call(const char *name, const char *file, int line, void (*kernel)(P...), B blocks, T threads,
          cudaStream_t stream, A &&...given)
{
    static_assert(sizeof...(P) == sizeof...(A), "the kernel takes another number of arguments");
    std::tuple<std::decay_t<P>...> arguments(static_cast<P>(given)...);
    std::vector<argument> seen;
    std::apply([&](const auto &...a) {
        (seen.push_back({ &a, addresses_of<std::decay_t<decltype(a)>>() }), ...);
    }, arguments);
    enqueue({ name, file, line, dims(blocks), dims(threads), [=] { std::apply(kernel, arguments); } },
            stream, seen);
}

}

#define AMP_CUDA_RUN(kernel, blocks, threads, stream, ...) \
    amp_shim::call(#kernel, __FILE__, __LINE__, kernel, blocks, threads, stream, ##__VA_ARGS__)

/* ----------------------------------------------------------------------------------------------- barriers */

#define AMP_SHIM_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE() /* of the caller */

namespace amp_shim {

enum class sync { block, warp, exchange };

/* The running thread waits for the others. `source` is the lane whose value an exchange
 * brings, -1 for its own. */
void wait(sync, unsigned mask, unsigned value, int source, const char *file, int line);
unsigned taken(); /* what the exchange brought */
int lane();

template <class V> V shuffle(unsigned mask, V value, int source, const char *file, int line)
{
    static_assert(sizeof(V) == 4, "shuffles here move 32-bit values");
    unsigned bits;
    std::memcpy(&bits, &value, 4);
    wait(sync::exchange, mask, bits, source, file, line);
    bits = taken();
    std::memcpy(&value, &bits, 4);
    return value;
}

}

static inline void __syncthreads(AMP_SHIM_HERE)
{
    amp_shim::wait(amp_shim::sync::block, 0, 0, -1, file, line);
}
static inline void __syncwarp(unsigned mask = 0xffffffffu, AMP_SHIM_HERE)
{
    amp_shim::wait(amp_shim::sync::warp, mask, 0, -1, file, line);
}
template <class V> V __shfl_xor_sync(unsigned mask, V value, int by, int width = 32, AMP_SHIM_HERE)
{
    int self = amp_shim::lane(), from = self ^ by;
    return amp_shim::shuffle(mask, value, from < (self & -width) + width ? from : -1, file, line);
}

/* By exchanges, which whole warps only can make. */
static inline unsigned __ballot_sync(unsigned mask, int vote, AMP_SHIM_HERE)
{
    unsigned votes = vote ? 1u << amp_shim::lane() : 0;
    for (int by = 16; by; by /= 2) votes |= __shfl_xor_sync(mask, votes, by, 32, file, line);
    return votes;
}

static inline void __threadfence() { amp_shim::races_fence(); }
static inline long long clock64() { return amp_shim::cycles(); }

/* ------------------------------------------------------------------------------------------------ atomics */

#define AMP_SHIM_INLINE inline __attribute__((always_inline)) /* so that reports name the kernel's line */

namespace amp_shim {
template <class T>
constexpr bool atomic_type = std::is_same<T, int>::value || std::is_same<T, unsigned>::value ||
    std::is_same<T, unsigned long long>::value;
template <class T> struct same { typedef T type; };
/* The hooks of plain accesses stay out of it. */
template <class T, class F> __attribute__((noinline, no_sanitize("thread"))) T replace(T *at, F next)
{
    T old = *at;
    *at = next(old);
    return old;
}
template <class T, class F> AMP_SHIM_INLINE T exchange(T *at, F next)
{
    static_assert(atomic_type<T>, "atomics on integers only: those on floats depend on the order of threads");
    races_atomic(at, sizeof *at);
    return replace(at, next);
}
}

template <class T> AMP_SHIM_INLINE T atomicAdd(T *at, typename amp_shim::same<T>::type v)
{
    return amp_shim::exchange(at,
                              [=](T old) { return (T)((unsigned long long)old + (unsigned long long)v); });
}

/* --------------------------------------------------------------------------------------------- arithmetic */

static inline float __uint_as_float(unsigned bits) { float v; std::memcpy(&v, &bits, 4); return v; }
static inline unsigned __float_as_uint(float v) { unsigned bits; std::memcpy(&bits, &v, 4); return bits; }
/* What is rounded once, whatever comes next: the compiler does not see how it came about. */
template <class T> static inline T rounded(T value)
{
#if defined(__x86_64__)
    asm("" : "+x"(value));
#elif defined(__aarch64__)
    asm("" : "+w"(value));
#endif
    return value;
}
static inline float __fadd_rn(float a, float b) { return rounded(rounded(a) + rounded(b)); }
static inline float __fmul_rn(float a, float b) { return rounded(a * b); }
static inline float __fdiv_rn(float a, float b) { return a / b; }
/* The special function units' results are wrong by as many units in the last place as the CUDA C++
 * Programming Guide allows, to either side. */
static inline float off_by(float value, float units)
{
    return value + (__float_as_uint(value) & 1 ? units : -units) * value * 0x1p-24f;
}
static inline float __fdividef(float a, float b) { return std::fabs(b) > 0x1p126f ? 0 : off_by(a / b, 2); }
static inline float shim_expf(float x) { return off_by(std::exp(x), 2 + std::floor(std::fabs(1.173f * x))); }
#define __expf shim_expf /* the C library has one, too */
static inline float __fsqrt_rn(float a) { return std::sqrt(a); }
static inline int __ffs(int a) { return __builtin_ffs(a); }

/* CUDA has these for any two arithmetic types. */
template <class A, class B> static inline typename std::common_type<A, B>::type min(A a, B b)
{
    typedef typename std::common_type<A, B>::type T;
    return (T)b < (T)a ? (T)b : (T)a;
}
template <class A, class B> static inline typename std::common_type<A, B>::type max(A a, B b)
{
    typedef typename std::common_type<A, B>::type T;
    return (T)a < (T)b ? (T)b : (T)a;
}

/* ------------------------------------------------------------------------------------------------- memory */

#if AMP_SHIM_RACES && defined(__SANITIZE_THREAD__)
/* The compiler puts no hook before a copy that it leaves to the library. */
#define memcpy(to, from, bytes) ((bytes) <= 16 && !((bytes) & ((bytes) - 1)) \
    ? __builtin_memcpy(to, from, bytes) : amp_shim::races_copy(to, from, bytes))
#endif

#endif
