/* Files of a training, on the host's side: .weights files are written so that a kill or a full disk leaves the old or the new
 * one whole, each with its sidecar (../amp/checkpoint.h), and a training that starts from such a pair goes on where it was
 * saved. The hooks themselves are in darknet_amp.h. */
#ifndef AMP_HOST_RESUME_H
#define AMP_HOST_RESUME_H

#include "host.h"

/* One per struct darknet_amp. NULL: no memory. */
struct amp_resume *amp_resume_create(void);
void amp_resume_free(struct amp_resume *);

/* The file that was last saved or loaded as a whole, or NULL. Lives until the next save or load. */
const char *amp_host_last_checkpoint(struct darknet_amp *);

#endif
