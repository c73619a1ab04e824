/* -map of `detector train`; without it all of these do nothing. */
#pragma once

struct network;

/* Before the loop, when it is known where it begins: BASE_map.csv and BASE_best.weights lie in the backup
 * folder. */
void amp_map_begin(struct network **nets, int count, const char *data_file, int train_images,
                   const char *backup_folder, const char *base);
/* After each step, before its files are saved, so that they are never of a step that was to be measured and
 * was not. */
void amp_map_step(void);
/* Whether the last step was measured; if so, what came out and the best so far, at an IoU of 0.5. */
int amp_map_measured(float *map50, float *best);
void amp_map_end(void);
