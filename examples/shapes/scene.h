/* One picture of the data set: which figures stand where, and the labels that say so. */
#ifndef SHAPES_SCENE_H
#define SHAPES_SCENE_H

#include "draw.h"

enum { SCENE_MOST = 5 }; /* figures in one picture */

typedef struct scene {
    int count;
    figure figures[SCENE_MOST];
} scene;

/* Draws a whole picture on c. Every figure drawn is wholly inside, stands out in colour, and keeps
 * at least three quarters of its area in sight, so every figure deserves its label. owner: scratch,
 * one byte per pixel. */
scene scene_draw(canvas *c, unsigned char *owner, shapes_random *random);

#endif
