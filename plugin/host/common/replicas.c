/* Several replicas of one network, trained in one process (`-gpus 0,1`).
 *
 * Darknet's train_networks gives each replica its share of the images and a thread; each makes one step with
 * an engine and a GradScaler of its own. Every `interval` steps sync_nets averages the weights; momentum,
 * Adam's moments and step count t, and rolling statistics stay each replica's own.
 *
 * A replica whose gradient is not finite skips its own step, and the others take theirs. Afterwards all
 * scalers hold the state that one update with any replica's found_inf gives, as torch.amp.GradScaler's do
 * over several devices.
 *
 * `seen`, and with it learning rate and burn-in, must not count a batch that was skipped. Darknet looks at
 * the first replica's only: sync_nets adds interval * (n-1) batches for the others, and is due when the first
 * one's batch number is a multiple of interval. With skipped steps that counts steps that never were,
 * averages again after a skip without a step in between (and counts again), and averages far too often once
 * the number is out of step with interval. So the steps of each replica since the last averaging are counted:
 * averaging is due when some replica has made `interval` of them, and the others' are what is added. Where no
 * step is skipped, the numbers are Darknet's. */
#include "state.h"

static size_t images_per_step(const struct network *net)
{
    amp_view view = amp_fork_view(net);
    return (size_t)view.batch * (size_t)view.subdivisions;
}

/* Engines hand out copies of their scalers, and take them back. */
static void agree(struct network **nets, int n)
{
    amp_scaler states[n], *scalers[n];
    int found_inf[n], count = 0;
    for (int i = 0; i < n; i++) {
        const struct darknet_amp *amp = amp_fork_state(nets[i]);
        if (!amp) continue;
        states[count] = *amp_engine_scaler(amp->engine);
        scalers[count] = &states[count];
        found_inf[count++] = amp->step_skipped;
    }
    if (count) amp_scaler_agree(scalers, found_inf, count);
    for (int i = 0, k = 0; i < n; i++)
        if (amp_fork_state(nets[i])) amp_engine_set_scaler(amp_fork_state(nets[i])->engine, &states[k++]);
}

int darknet_amp_step_agreed(struct network **nets, int n, int interval)
{
    agree(nets, n);
    for (int i = 0; i < n; i++)
        if (amp_fork_state(nets[i]) && amp_fork_state(nets[i])->unsynced_steps >= (unsigned long)interval)
            return 1;
    return 0;
}

/* Darknet has added interval * (n-1) steps to the first replica's seen, and given it to all. Unsigned
 * arithmetic: the sum is right whichever of the two is larger. */
static void count_steps_taken(struct network **nets, int n, int interval)
{
    size_t seen = amp_fork_counters(nets[0]).seen;
    seen -= (size_t)interval * (size_t)(n - 1) * images_per_step(nets[0]);
    for (int i = 1; i < n; i++) seen += amp_fork_state(nets[i])->unsynced_steps * images_per_step(nets[i]);
    for (int i = 0; i < n; i++)
        amp_fork_set_counters(nets[i], (amp_counters){ seen, amp_fork_counters(nets[i]).t });
}

void darknet_amp_synced(struct network **nets, int n, int interval)
{
    int replicas = 0;
    for (int i = 0; i < n; i++) replicas += amp_fork_state(nets[i]) != NULL;
    if (interval > 0 && replicas == n) count_steps_taken(nets, n, interval);
    for (int i = 0; i < n; i++) {
        if (!amp_fork_state(nets[i])) continue;
        amp_host_weights_changed(nets[i]);
        /* 0: before a checkpoint; counting goes on */
        if (interval > 0) amp_fork_state(nets[i])->unsynced_steps = 0;
    }
}
