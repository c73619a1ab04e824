/* `amp plan -ranks N`: how ranks share a step, what the all-reduce of gradients costs, and the efficiency:
 * the speedup over one rank, divided by the number of ranks. All numbers are calculated, not measured.
 *
 * In a ring all-reduce of V bytes of gradients, each rank sends and receives 2·V·(N-1)/N bytes, at best at
 * the link's rate. Backward is assumed to take two thirds of a pass. Gradients accumulate over the
 * subdivisions of a step, so only the step's last backward can overlap with the all-reduce. The gradients of
 * the first layers are ready last, so their all-reduce cannot overlap; these gradients are assumed to fill
 * one bucket. The sums of sync_batchnorm, for which all ranks wait, are not counted. */
#include "plan_report.h"

#include "../../amp/parallel.h"
#include "../../host/network/state.h"
#include "../../host/program/sharing.h"
#include "../table.h"

static double efficiency(double alone, double waited) { return 100 * alone / (alone + waited); }

static amp_plan_ranks share(const amp_plan_report *r, const amp_plan_link *link, int ranks)
{
    amp_plan_ranks row = { ranks, .megabytes = -1, .wire_seconds = -1, .blocking = -1, .overlapped = -1 };
    long step = amp_sharing_cut(ranks, r->subdivisions);
    int cut = (int)(step / r->subdivisions);
    double bytes = (double)r->parameters * sizeof(float), rate = link->gbit * 1e9 / 8;
    double part = 2.0 * (ranks - 1) / ranks, bucket = (double)AMP_BUCKET * sizeof(float);
    if (r->images % cut) return row;
    row.passes = (int)(step / ranks);
    row.images = r->images / cut;
    row.megabytes = part * bytes / 1e6;
    row.wire_seconds = part * bytes / rate;
    if (link->step_ms <= 0) return row;
    double alone = link->step_ms / 1000 / ranks, hidden = alone / row.passes * 2 / 3;
    double last = part * (bytes < bucket ? bytes : bucket) / rate;
    double left = row.wire_seconds - last - hidden;
    row.blocking = efficiency(alone, row.wire_seconds);
    row.overlapped = efficiency(alone, last + (left > 0 ? left : 0));
    return row;
}

void amp_plan_share(amp_plan_report *r, amp_plan_link link)
{
    r->link = link;
    if (!link.ranks) return;
    for (int ranks = 2; ranks < link.ranks; ranks *= 2) r->ranks[r->rank_rows++] = share(r, &link, ranks);
    r->ranks[r->rank_rows++] = share(r, &link, (int)link.ranks);
}

#define RANKS(member, heading, ...) AMP_FIELD(amp_plan_ranks, member, .title = heading, __VA_ARGS__)
static const amp_field fields[] = {
    RANKS(ranks, "ranks", .known = AMP_ANY), RANKS(passes, "passes", .known = AMP_ABOVE_0, .none = "0"),
    RANKS(images, "images/pass", .known = AMP_ABOVE_0, .none = "0"),
    RANKS(megabytes, "sent", .known = AMP_FROM_0, .none = "cannot share", .format = "%.1f MB"),
    RANKS(wire_seconds, "takes", .known = AMP_FROM_0, .none = "cannot share", .format = "%.1f ms",
          .unit = .001),
    RANKS(blocking, "efficiency: after", .known = AMP_FROM_0, .none = "-", .format = "%.0f %%"),
    RANKS(overlapped, "during backward", .known = AMP_FROM_0, .none = "-", .format = "%.0f %%"), { 0 } };

void amp_plan_print_ranks(const amp_plan_report *r, FILE *stream)
{
    if (!r->rank_rows) return;
    fprintf(stream, "\nRanks with links of %g Gbit/s, gradients in fp32; calculated, not measured%s\n",
            r->link.gbit, r->link.step_ms > 0 ? "" : "; add -step MS to see the efficiency");
    amp_table_print(stream, 2, fields, r->ranks, sizeof *r->ranks, r->rank_rows, r);
    if (amp_fork_state(r->net)->config->sync_batchnorm)
        fprintf(stream, "  Not counted: the sums of sync_batchnorm=1, for which all ranks wait.\n");
}

void amp_plan_write_ranks(const amp_plan_report *r, amp_json *json)
{
    if (r->rank_rows) amp_json_records(json, "ranks", r->ranks, sizeof *r->ranks, r->rank_rows, fields);
}
