/* Measures mAP during `detector train` (-map). Without -map these functions do nothing. */
#pragma once

struct network;

/* Called before the loop, when the weights have been loaded. Results go to BASE_map.csv, and the best weights
 * to BASE_best.weights, in the backup folder. */
void amp_map_begin(struct network **nets, int count, const char *data_file, int train_images,
                   const char *backup_folder, const char *base);
/* Called after each step. Measures if a measurement is due at this iteration. Call it before the step's files
 * are saved. A training that resumes from these files then need not repeat the measurement. */
void amp_map_step(void);
/* Whether -patience ends the training here. If it does, prints a line on stderr. */
int amp_map_stops(void);
void amp_map_end(void);
