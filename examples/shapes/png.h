/* Pictures to files, through the stb writer that Darknet's source tree carries. */
#ifndef SHAPES_PNG_H
#define SHAPES_PNG_H

#include "draw.h"

/* 0, or -1 with errno set: a file written short is an error. */
int png_write(const char *path, const canvas *c);

#endif
