/* Running the programs of a benchmark, one for each side. */
#ifndef AMP_COMMANDS_BENCH_BENCH_RUN_H
#define AMP_COMMANDS_BENCH_BENCH_RUN_H

#include "bench.h"

/* Fills b->sides with what their programs tell. A dtype that the machine cannot run is left out if request->dtypes is NULL, and
 * an error otherwise. All programs have ended when this returns, also after Ctrl-C, which is an error. */
amp_status amp_bench_run(const amp_bench_request *request, amp_bench *b, amp_error *error);

#endif
