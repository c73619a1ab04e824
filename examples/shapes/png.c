#include "png.h"

#include <errno.h>
#include <stdio.h>

#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include "stb_image_write.h" /* Darknet's */

typedef struct sink { FILE *file; int failed; } sink;

static void append(void *context, void *data, int size)
{
    sink *s = context;
    if (fwrite(data, 1, (size_t)size, s->file) != (size_t)size) s->failed = errno ? errno : EIO;
}

int png_write(const char *path, const canvas *c)
{
    sink s = {fopen(path, "wb"), 0};
    if (!s.file) return -1;
    errno = 0;
    if (!stbi_write_png_to_func(append, &s, c->size, c->size, 3, c->rgb, 3 * c->size) && !s.failed)
        s.failed = ENOMEM;
    if (fclose(s.file) != 0 && !s.failed) s.failed = errno;
    if (!s.failed) return 0;
    errno = s.failed;
    return -1;
}
