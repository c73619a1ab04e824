/* Signal handlers that make a training end after its current step: see stopping.h. */
#include "stopping.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "exchange.h"
#include "ranks.h"

/* SIGUSR1 is handled only with several ranks. It is needed because a launcher forwards SIGUSR1 to all ranks,
 * but kills them soon after SIGINT or SIGTERM. */
static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGUSR1 };
enum { SIGNALS = sizeof signals / sizeof *signals };

/* The handlers' state. A program has only one, and a handler may run in any thread. */
static struct {
    atomic_int asked, watched[SIGNALS];
    struct sigaction before[SIGNALS];
} stopping;

static const char note[] = "\namp: stopping after this step, with a backup; press Ctrl-C again to stop at "
                           "once\n";

static void ask(int signal)
{
    struct sigaction at_once = { .sa_handler = SIG_DFL };
    int why = errno;
    stopping.asked = signal;
    for (size_t i = 0; i < SIGNALS; i++) if (stopping.watched[i]) sigaction(signals[i], &at_once, NULL);
    /* a failed write does not matter, because then nobody reads stderr */
    if (write(STDERR_FILENO, note, sizeof note - 1) < 0) stopping.asked = signal;
    errno = why;
}

void amp_stopping_watch(void)
{
    struct sigaction action = { .sa_handler = ask, .sa_flags = SA_RESTART };
    sigfillset(&action.sa_mask); /* a second signal waits until `ask` has restored the default action */
    for (size_t i = 0; i < SIGNALS; i++) {
        sigaction(signals[i], NULL, &stopping.before[i]);
        stopping.watched[i] = stopping.before[i].sa_handler != SIG_IGN
                              && (signals[i] != SIGUSR1 || amp_ranks());
        if (stopping.watched[i]) sigaction(signals[i], &action, NULL);
    }
}

void amp_stopping_unwatch(void)
{
    for (size_t i = 0; i < SIGNALS; i++)
        if (stopping.watched[i])
            sigaction(signals[i], stopping.asked ? &(struct sigaction){ .sa_handler = SIG_DFL }
                      : &stopping.before[i], NULL);
    for (size_t i = 0; i < SIGNALS; i++) stopping.watched[i] = 0;
}

static void survive(int fatal)
{
    struct sigaction now;
    if (sigaction(fatal, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
        sigaction(fatal, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
}

void amp_stopping_survive_large_files(void) { survive(SIGXFSZ); }

void amp_stopping_survive_writes(void)
{
    survive(SIGPIPE);
    amp_stopping_survive_large_files();
}

int amp_stopping_signal(void) { return stopping.asked; }

int amp_stopping_agree(void)
{
    amp_comm *comm = amp_ranks();
    if (!comm) return stopping.asked;
    int agreed = 0, mine = stopping.asked, *all = amp_exchange_gather(comm, &mine, sizeof mine);
    for (int i = 0; i < comm->size && !agreed; i++) agreed = all[i];
    free(all);
    if (agreed) stopping.asked = agreed; /* not reset to 0: a signal may have arrived meanwhile */
    return agreed;
}
