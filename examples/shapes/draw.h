/* What a picture is made of: a square RGB canvas, a background, and filled figures with soft edges.
 *
 * Places and lengths are in sixteenths of a pixel, and everything is integer arithmetic:
 * see random.h for why. */
#ifndef SHAPES_DRAW_H
#define SHAPES_DRAW_H

#include "random.h"

enum { UNIT = 16 };                               /* one pixel */
enum { CIRCLE, SQUARE, TRIANGLE, KINDS };         /* also the class numbers in the labels */
enum { ANGLES = 72, COVERAGE_FULL = 16 };         /* steps of 5 degrees; samples per pixel */

typedef struct colour { int channel[3]; } colour; /* 0..255 each */
typedef struct point { int x, y; } point;

typedef struct figure {
    int kind;
    point centre;
    int radius;      /* of the circle, or of the circle through the corners */
    int corners;     /* 0 for a circle */
    point corner[4];
    colour fill;
} figure;

typedef struct canvas {
    int size;           /* width and height in pixels */
    unsigned char *rgb; /* size * size * 3, owned by whoever made it */
} canvas;

figure figure_make(int kind, point centre, int radius, int angle);

/* The smallest upright box around the figure: top left and bottom right. */
void figure_bounds(const figure *f, point *low, point *high);

/* How much of pixel (x, y) the figure covers, 0..COVERAGE_FULL. */
int figure_coverage(const figure *f, int x, int y);

void draw_figure(canvas *c, const figure *f);

/* Fills the canvas: a gradient, stripes, a chequerboard or clouds between two colours,
 * which are handed back. */
void draw_background(canvas *c, shapes_random *random, colour used[2]);

/* Adds to every channel a value of at most `strength` either way. */
void draw_noise(canvas *c, shapes_random *random, int strength);

colour random_colour(shapes_random *random);
int colour_distance(colour a, colour b); /* sum over the channels, 0..765 */

#endif
