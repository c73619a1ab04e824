/* Starts and ends ranks. At the start, finds the other copies of this program, and the processors and the GPU
 * of each copy. If one program ends too early, ends all others. */
#include <omp.h>
#include <string.h>
#include <unistd.h>

#include "../../comm/comm.h"
#include "../../include/darknet_amp.h"
#include "../fork.h"
#include "cfg.h"
#include "exchange.h"
#include "failure.h"
#include "random.h"
#include "ranks.h"
#include "program.h"
#include "version.h"

/* ---- the end ---- */

/* Runs at every exit(). Darknet itself may have ended the program with a message. Only rank 0's messages are
 * visible, so any other rank prints how the user can see Darknet's message. */
static void leave_or_end(void)
{
    amp_comm *comm = amp_ranks();
    if (!comm || amp_this_program()->ranks.over) {
        amp_ranks_leave();
        return;
    }
    if (!amp_ranks_leads())
        darknet_amp_refuse("ranks: the program ended on this rank before its training was over; run the same "
                           "command alone, without the launcher, to see why");
    if (comm->prints_error) comm->prints_error(comm);
    comm->abort(comm, 1);
}

/* ---- settings that ranks share ---- */

/* Gives all ranks the same seed, because each rank draws the same sequence of images and loads its own part
 * of it. Without -seed, the seed comes from rank 0's clock. */
static void share_seed(void)
{
    amp_error error;
    unsigned seed = darknet_amp_seed();
    amp_comm *comm = amp_ranks();
    if (darknet_amp_is_seeded()) return; /* -seed gives all ranks the same seed */
    if (comm) amp_host_check(comm->broadcast(comm, &seed, sizeof seed, 0, &error), &error);
    amp_random_set_seed(seed);
}

/* Warns if ranks have too few processors. By default, a launcher that binds ranks to cores gives each rank
 * one core. OpenMP then has one thread, which shares this core with the threads that load images and
 * communicate. */
static void check_processors(void)
{
    amp_comm *comm = amp_ranks();
    /* allowed: processors that this rank may use; threads: its OpenMP threads; fair: an equal part of the
     * machine's processors */
    typedef struct processors { int allowed, threads, fair; } processors;
    processors mine = { .allowed = omp_get_num_procs(), .threads = omp_get_max_threads(),
                        .fair = (int)sysconf(_SC_NPROCESSORS_ONLN) / comm->local_size };
    processors *all = amp_exchange_gather(comm, &mine, sizeof mine);
    for (int i = 0; i < comm->size && amp_ranks_leads(); i++) {
        const processors *p = &all[i];
        int cores = p->threads > p->fair ? p->threads : p->fair;
        /* two processors may be two hardware threads of one core: enough only if the machine has no more
         * processors per rank */
        if (p->allowed >= p->threads && (p->allowed > 2 || p->allowed >= p->fair)) continue;
        fprintf(stderr, "ranks: rank %d may use only %d processors, for %d OpenMP threads and the threads "
                        "that load images and sum gradients; if the launcher binds ranks to processors, use "
                        "mpirun --bind-to none, or --map-by slot:PE=%d\n", i, p->allowed, p->threads, cores);
        break;
    }
    free(all);
}

void amp_ranks_take_gpu(void)
{
    const amp_comm *comm = amp_ranks();
    int taken = comm ? amp_fork_take_gpu(comm->local_rank) : 1;
    if (taken > 0) return;
    if (taken < 0)
        darknet_amp_refuse("ranks: rank %d cannot choose a GPU, because MPI has already started CUDA; set "
                           "CUDA_VISIBLE_DEVICES to another GPU for each rank before the program starts, or "
                           "choose each rank's GPU with -i", comm->rank);
    darknet_amp_refuse("ranks: rank %d is number %d on its machine (counted from 0), but the machine "
                       "has no GPU with that number; start no more ranks on a machine than it has GPUs "
                       "(mpirun --map-by ppr:GPUS:node), or choose each rank's GPU with -i", comm->rank,
                       comm->local_rank);
}

/* ---- measuring with some of the ranks ---- */

void amp_ranks_gather(void)
{
    amp_comm *launched = amp_this_program()->ranks.launched;
    if (!launched) return;
    if (amp_ranks()) amp_ranks()->destroy(amp_ranks());
    amp_ranks_set(launched, 1);
    amp_program_to_set()->ranks.launched = NULL;
}

int amp_ranks_part(int count)
{
    amp_error error;
    amp_comm *part;
    amp_ranks_gather();
    amp_ranks_phase("measuring %d of the ranks", count);
    amp_comm *launched = amp_program_to_set()->ranks.launched = amp_ranks();
    amp_host_check(launched->part(launched, count, &part, &error), &error);
    amp_ranks_set(part, 1);
    return launched->rank < count;
}

/* ---- the program's start ---- */

/* Whether the first two words are `amp VERB`. */
static int is_amp(const char *const *words, const char *verb)
{
    return !strcmp(words[0], "amp") && !strcmp(words[1], verb);
}

/* Whether ranks can share this command: only these two loops have AMP's hooks (training/loop.h). */
static int is_shared(const char *command)
{
    return !strcmp(command, "detector") || !strcmp(command, "classifier");
}

/* Whether this program must join the other copies that a launcher has started: true for bench and for a
 * training under AMP. A training without AMP also joins (in a build with MPI), only so that amp_ranks_start
 * can reject it on all ranks. */
static int is_one_of_several(const char *const *words, int count, int under_amp)
{
    return amp_comm_is_launched() && count >= 2
        && (is_amp(words, "bench") || (!strcmp(words[1], "train") && (under_amp || amp_comm_is_here)));
}

/* Handles -gpus: with -gpus 0,1 this program trains two networks, one per GPU. */
static void start_networks(const char *const *words, int count, int under_amp, const char *gpus)
{
    int networks = 1;
    for (; under_amp && count > 1 && !strcmp(words[1], "train") && *gpus; gpus++) networks += *gpus == ',';
    if (networks == 1) return;
    if (amp_fork_device() < 0)
        darknet_amp_refuse("command line: -gpus: this program was built without GPU=1 and trains on the CPU; "
                           "remove -gpus, and use mpirun -np %d for several ranks", networks);
    if (!is_shared(words[0]))
        darknet_amp_refuse("command line: -gpus: under AMP only `detector train` and `classifier train` use "
                           "several GPUs; name one GPU, or use -amp off");
    amp_ranks_set(NULL, networks);
    share_seed();
    fprintf(stderr, "ranks: %d, all in this program, one per GPU\n", networks);
}

void amp_ranks_start(const char *const *words, int count, int under_amp, const char *gpus)
{
    amp_error error;
    amp_comm *comm = NULL;
    if (amp_ranks()) return;
    if (amp_comm_is_launched() && count >= 2 && is_amp(words, "compare"))
        darknet_amp_refuse("command line: a launcher started several copies of this program, but `amp "
                           "compare` starts its trainings itself; start it without the launcher");
    if (is_one_of_several(words, count, under_amp))
        amp_host_check(amp_comm_join(amp_host_communicator_lost, &comm, &error), &error);
    else if (amp_comm_is_launched() && count >= 2)
        fprintf(stderr, "ranks: rank %d runs `%s %s` by itself%s\n", amp_comm_launched_rank(), words[0],
                words[1], amp_comm_is_here ? "" : ", since this program was built without MPI");
    amp_ranks_set(comm, 1);
    if (!comm) {
        start_networks(words, count, under_amp, gpus);
        return;
    }
    atexit(leave_or_end);
    amp_ranks_phase("comparing what the ranks were given");
    amp_ranks_note("version %s\n%s %s %s AMP\n", AMP_VERSION, words[0], words[1],
                   under_amp ? "under" : "without");
    if (darknet_amp_is_seeded()) amp_ranks_note("-seed %u\n", darknet_amp_seed());
    else amp_ranks_note("no -seed\n");
    if (is_shared(words[0]) && count > 3) amp_ranks_note_file("a .cfg", words[3]);
    amp_ranks_agree();
    if (!under_amp && is_shared(words[0]) && count > 3)
        amp_host_cfg_uses_amp(words[3], CFG_FOR_ANYTHING, NULL); /* ends the program if the .cfg or -amp is
                                                                    wrong */
    if (!under_amp || (!is_shared(words[0]) && !is_amp(words, "bench")))
        amp_ranks_refuse("command line: a launcher started %d copies of this program, but only "
                         "`detector train` and `classifier train` under AMP, and `amp bench`, share the "
                         "work; use one of these with -amp fp32 (or bf16, fp16), or start the program "
                         "without the launcher", comm->size);
    if (strchr(gpus, ','))
        amp_ranks_refuse("command line: -gpus %s: a launcher started %d copies of this program, and each "
                         "trains on one GPU; remove -gpus, and start as many ranks as GPUs", gpus,
                         comm->size);
    share_seed();
    if (amp_ranks_leads())
        fprintf(stderr, "ranks: %d, %d of them on this machine; %s\n", comm->size, comm->local_size,
                comm->name);
    check_processors();
    if (amp_ranks_leads()) return;
    amp_host_keep_error_stream();
    if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
        darknet_amp_refuse("amp: /dev/null cannot be written to");
}
