/* -fit: see fits.h. fits.c makes the choice; this file calls it and applies the result. */
#include "fits.h"

#include <malloc.h>

#include "../data/data_check.h"
#include "../fork_commands.h"
#include "../program/cfg.h"
#include "../program/program.h"
#include "../program/failure.h"
#include "../program/memory.h"
#include "../program/random.h"
#include "../program/ranks.h"
#include "../program/sharing.h"

/* images: per step; given: the .cfg's subdivisions. */
static void print_choice(const amp_fitting *c, int images, int given, const char *what)
{
    if (!c->there) {
        fprintf(stderr, "amp: -fit: the amount of memory is unknown: nothing is changed\n");
        return;
    }
    if (c->subdivisions == given && c->again == 0) {
        fprintf(stderr, "amp: -fit: the training fits as the .cfg has it: it needs %.0f MiB, and there are "
                "%.0f MiB of %s\n", amp_mib(c->needs), amp_mib(c->there), what);
        return;
    }
    fprintf(stderr, "amp: -fit: as the .cfg has it the training needs %.0f MiB, but there are %.0f MiB of "
                    "%s; it needs %.0f MiB with:\n", amp_mib(c->given), amp_mib(c->there), what,
                    amp_mib(c->needs));
    if (c->subdivisions != given)
        fprintf(stderr, "amp: -fit: subdivisions=%d in [net], not %d: images of a pass, and so of each batch "
                        "norm: %d, not %d\n", c->subdivisions, given, images / c->subdivisions,
                images / given);
    if (c->again > 0)
        fprintf(stderr, "amp: -fit: checkpoint=auto in [amp]: %.1f %% of a forward's arithmetic is repeated, "
                        "with the same results\n", 100 * c->again);
}

/* For a training with -fit, before its network is made: makes a network with one image per pass, and chooses.
 * Ends the program if nothing can fit. */
static void choose(amp_program *program, const char *cfg_file)
{
    amp_error error;
    cfg_document *cfg;
    const char *what = "";
    unsigned char generator[AMP_HOST_RANDOM_BYTES];
    amp_fitting choice;
    amp_host_check(amp_cfg_document(cfg_file, &cfg, &error), &error);
    int images = (int)cfg_net_number(cfg, "batch", 1);
    int cut = (int)amp_sharing_cut(amp_ranks_of_step(), (int)cfg_net_number(cfg, "subdivisions", 1));
    amp_document_give_back(cfg);
    if (images % cut) return; /* an error, which is reported when the network is made */
    fprintf(stderr, "amp: -fit: the network is made twice, first to find out what fits\n");
    /* Large blocks, also those of the network that is trained, are returned to the system when freed: by
     * default the C library learns from the first freed one to keep them. */
    mallopt(M_MMAP_THRESHOLD, 128 << 10);
    program->chosen.subdivisions = images;
    program->chosen.recompute = 1;
    int saved = amp_random_save(generator); /* the training must draw the same numbers as without -fit */
    struct network *net = amp_fork_make_network(cfg_file, cfg_file, 0);
    amp_host_check(amp_host_choose_fit(net, cut, &choice, &what, &error), &error);
    amp_fork_free_network(net);
    malloc_trim(0);
    if (saved) amp_random_restore(generator);
    program->chosen.subdivisions = choice.there ? choice.subdivisions : 0;
    program->chosen.recompute = choice.again > 0;
    program->chosen.memory = choice.limit;
    print_choice(&choice, images, cut, what);
}

void amp_fitting_choose(const char *cfg_file)
{
    amp_program *program = amp_program_to_set();
    if (program->fit != AMP_FIT_ASKED || !program->trains) return;
    program->fit = AMP_FIT_LOOKS;
    choose(program, cfg_file);
    program->fit = AMP_FIT_CHOSEN;
}
