/* Measures mAP during `detector train` (-map). Without -map these functions do nothing. */
#pragma once

struct network;

/* Called once the weights are loaded. Writes BASE_map.csv and BASE_best.weights in the backup folder. */
void amp_map_begin(struct network **nets, int count, const char *data_file, int train_images,
                   const char *backup_folder, const char *base);
/* Called after each step, before the step's files are saved, so that a resumed training need not measure
 * again. */
void amp_map_step(void);
/* Whether -patience ends the training here. If so, prints a line on stderr. */
int amp_map_stops(void);
void amp_map_end(void);
