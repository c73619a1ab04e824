/* What may be used at the same time by two threads of a kernel, or by two streams: races are seen whether or
 * not the numbers came out right. See cuda_races.cc. Between the doubles of CUDA; without AMP_SHIM_RACES
 * (builds with a sanitizer of the compiler's) nothing here does anything. */
#ifndef AMP_CUDA_RACES_H
#define AMP_CUDA_RACES_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace amp_shim {

/* Of each stream, by its number: how many of its operations are over by then. */
typedef std::map<int, uint64_t> moment;

/* An operation of a stream, as the runtime's double runs it: which of the stream's it is, counted from 1, and
 * what is over by then on others. */
struct races_operation {
    int stream;
    uint64_t number;
    std::shared_ptr<const moment> before;
    std::string what;
};

#if AMP_SHIM_RACES

/* ---- of the runtime's double ---- */

/* Device memory lies there, at most. False: the machine has no address space to watch it with. */
bool races_watch(char *base, size_t bytes);
/* And shared memory there. */
void races_watch_shared(char *base, size_t bytes);
/* Where shared memory may have been written since this was asked last. */
struct races_bytes { char *from, *to; };
races_bytes races_written_shared();
/* Which allocation holds p: its ends; both NULL if none does. */
extern void (*races_find)(const void *p, char **from, char **to);
/* New memory: nobody has used it. And memory given back, which nobody may use. */
void races_allocated(char *at, size_t bytes);
void races_freed();
/* It begins, or goes on; NULL: none runs. Returns the one that was running. */
const races_operation *races_run(const races_operation *);
/* The running operation uses memory as a whole. */
void races_use(const void *at, size_t bytes, bool writes);

/* ---- of the kernels' double ---- */

void races_grid(const char *kernel, const char *file, int line);
void races_block(size_t threads);
void races_thread(int thread); /* who runs now */
void races_block_barrier();    /* all threads of the block have met */
bool races_seen();             /* the program's kernels were compiled with hooks */
void races_warp_barrier(int first_of_warp, unsigned lanes);

#else

inline bool races_watch(char *, size_t) { return true; }
inline void races_watch_shared(char *, size_t) {}
struct races_bytes { char *from, *to; };
inline races_bytes races_written_shared() { return { nullptr, (char *)UINTPTR_MAX }; }
inline void races_allocated(char *, size_t) {}
inline void races_freed() {}
inline const races_operation *races_run(const races_operation *) { return nullptr; }
inline void races_use(const void *, size_t, bool) {}
inline void races_grid(const char *, const char *, int) {}
inline void races_block(size_t) {}
inline void races_thread(int) {}
inline void races_block_barrier() {}
inline bool races_seen() { return false; }
inline void races_warp_barrier(int, unsigned) {}

#endif

/* ---- of kernels (cuda_shim.h) ---- */

#if AMP_SHIM_RACES
void races_atomic(const void *at, size_t bytes);
void races_fence();
/* memcpy of more than the compiler's own hooks see. */
void *races_copy(void *to, const void *from, size_t bytes);
#else
inline void races_atomic(const void *, size_t) {}
inline void races_fence() {}
#endif

}

#endif
