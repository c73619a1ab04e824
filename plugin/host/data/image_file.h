/* What all readers of image files have in common: when the plugin reads them, which sizes are accepted, and
 * why one could not be read. The readers are host/darknet/decode.c (libjpeg-turbo, stb_image) and
 * include/darknet_amp_opencv.hpp; they call darknet_amp_reads, darknet_amp_image_fits and
 * darknet_amp_unreadable, which are implemented here too. */
#pragma once

/* begins 1: from now on the calling thread reads images to measure accuracy on them; 0: it no longer does.
 * The plugin reads these too, and returns one that cannot be read without data. */
void amp_image_file_measures(int begins);
int amp_image_file_is_measured(void);

/* Called before the calling thread reads an image: forgets why the last one could not be read, and clears
 * errno. */
void amp_image_file_begin(void);
/* Why the image that the calling thread has tried to read cannot be read. Valid until it reads another. */
const char *amp_image_file_failure(const char *file);
