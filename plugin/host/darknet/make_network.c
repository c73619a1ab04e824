/* Makes and frees a command's network. If Darknet's parser crashes or exits, a line names the .cfg. */
#define _DEFAULT_SOURCE /* setenv */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "own.h"
#include "utils.h"

/* Printed after a signal or an exit inside the parser. A signal handler must not format text. */
static char message[600];
static volatile sig_atomic_t making;

static void end_with_message(int signal)
{
    ssize_t ignored = write(STDERR_FILENO, message, strlen(message));
    (void)ignored;
    _exit(1);
}

static void end_at_exit(void)
{
    if (making) end_with_message(0);
}

static const int deaths[] = { SIGSEGV, SIGFPE, SIGABRT, SIGBUS, SIGILL };
enum { DEATHS = sizeof deaths / sizeof *deaths };

network *amp_fork_make_network(const char *cfg, const char *name, int draws)
{
    static int registered;
    struct sigaction catch = { .sa_handler = end_with_message }, before[DEATHS];
    snprintf(message, sizeof message,
             "\n%.400s: Darknet cannot make this network; the line above says why, or names the layer; check "
             "that layer's keys\n", name);
    if (!registered) registered = !atexit(end_at_exit);
    for (int k = 0; k < DEATHS; k++) sigaction(deaths[k], &catch, &before[k]);
    int untimed = !draws && !getenv("AMP_CUDA_TUNE"); /* no pass will run: do not time algorithms */
    if (untimed) setenv("AMP_CUDA_TUNE", "0", 1);
    making = 1;
    darknet_amp_draws_nothing = !draws;
    network *net = amp_own_parse((char *)cfg);
    darknet_amp_draws_nothing = 0;
    making = 0;
    if (untimed) unsetenv("AMP_CUDA_TUNE"); /* a training may follow: see -fit */
    for (int k = 0; k < DEATHS; k++) sigaction(deaths[k], &before[k], NULL);
    return net;
}

void amp_fork_seed(unsigned seed)
{
#if AMP_OWN_KEEPS_A_NORMAL
    srand(seed);
    int next = rand();
    srand(seed);
    rand_normal();
    if (rand() != next) rand_normal(); /* the first rand_normal drew two new numbers and kept the second: this
                                          call removes the kept one */
#endif
    srand(seed);
}

void amp_fork_free_network(struct network *net)
{
    if (!net) return;
    amp_host_free_array(&net->workspace, amp_host_on_gpu(net));
    amp_own_free(net);
}
