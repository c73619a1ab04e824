/* What a comparison means, in sentences. */
#include "probe_compare.h"

#include <math.h>
#include <stdlib.h>

#include "../../host/common/failure.h"
#include "../table.h"

const char *const amp_trace_names[AMP_TRACE_KINDS] = { "output", "delta", "weights' gradient",
                                                       "biases' gradient", "means", "variances" };

void amp_probe_judge(amp_probe_comparison *c) { (void)c; }
amp_status amp_probe_refuse(const amp_probe_comparison *c, amp_error *error) { (void)c; return amp_fail(error, AMP_DIVERGED, "not"); }
amp_status amp_probe_write_comparison(const amp_probe_comparison *c, const char *j, amp_error *e) { (void)c,(void)j,(void)e; return AMP_OK; }
amp_status amp_probe_write_page(const amp_probe_comparison *c, const char *j, amp_error *e) { (void)c,(void)j,(void)e; return AMP_OK; }
