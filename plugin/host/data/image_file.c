/* The code that all readers of image files share. The readers are host/darknet/decode.c (libjpeg-turbo,
 * stb_image) and include/darknet_amp_opencv.hpp. */
#include "data_files.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../include/darknet_amp.h"
#include "../program/program.h"

/* OpenCV's limit for the side of an image, in pixels. Within it, an image's side times a network's side fits
 * into an int. */
enum { MOST_SIDE = 1 << 20 };

int darknet_amp_reads(void) { return amp_this_program()->watches_images || amp_this_thread()->measures; }

void darknet_amp_unreadable(const char *why, ...)
{
    amp_thread_state *reader = amp_this_thread();
    va_list args;
    va_start(args, why);
    vsnprintf(reader->unreadable, sizeof reader->unreadable, why, args);
    va_end(args);
}

int darknet_amp_image_fits(int w, int h, int c)
{
    const int most = INT_MAX / (c > 3 ? c : 3); /* an int must be able to count an image's floats */
    if (w < 1 || h < 1) darknet_amp_unreadable("it has no pixels: its size is %d x %d", w, h);
    else if (w > MOST_SIDE || h > MOST_SIDE || (double)w * h > most)
        darknet_amp_unreadable("its size of %d x %d is too large: at most %d pixels a side, %d in all", w, h,
                               (int)MOST_SIDE, most);
    else return 1;
    return 0;
}

const char *amp_image_file_failure(const char *file)
{
    struct stat status;
    if (!*file) return "the list has a blank line";
    if (stat(file, &status) != 0 || access(file, R_OK) != 0) return strerror(errno);
    if (S_ISDIR(status.st_mode)) return "it is a folder";
    if (!S_ISREG(status.st_mode)) return "it is not a regular file";
    if (status.st_size == 0) return "it is empty";
    if (*amp_this_thread()->unreadable) return amp_this_thread()->unreadable;
    return "it is damaged, too large, or not a JPEG, PNG, BMP or other image that Darknet reads";
}
