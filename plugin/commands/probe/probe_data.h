/* Batches as `detector train` and `classifier train` load them: the same images, augmented in the same way, in the same order
 * where -seed is the same. */
#ifndef AMP_COMMANDS_PROBE_PROBE_DATA_H
#define AMP_COMMANDS_PROBE_PROBE_DATA_H

#include "../../tensor/status.h"

#include "darknet.h"

typedef struct amp_batches amp_batches;

/* Reads the .data file and starts to load; net has the size that is trained at, and may get the classes' tree. AMP_BAD_CONFIG: a
 * file that is missing or empty, or classes that are not the network's. AMP_UNSUPPORTED: neither detector nor classifier. */
amp_status amp_batches_open(const char *data_file, network *net, amp_batches **out, amp_error *);
/* The next step's images and labels, batch x subdivisions of them; the caller's with free_data. The one after it is being loaded
 * when this returns, unless it is the last. */
amp_status amp_batches_next(amp_batches *, int last, data *out, amp_error *);
void amp_batches_close(amp_batches *); /* NULL is fine */

#endif
