/* The ranks that train together with this program, each with a network of its own: see comm/comm.h.
 *
 * Rank 0 prints, logs and saves. How they share a step's images: sharing.h. */
#ifndef AMP_HOST_RANKS_H
#define AMP_HOST_RANKS_H

#include "../../comm/comm.h"

/* For the program's start, before there are threads: joins the others if a launcher has started several. All
 * ranks but 0 are silent then, but for errors. */
void amp_ranks_start(void);

/* NULL: the program is alone. */
amp_comm *amp_ranks(void);
int amp_ranks_count(void);
/* Whether this is rank 0, or alone. */
int amp_ranks_leads(void);

#endif
