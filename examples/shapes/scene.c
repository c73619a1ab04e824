#include "scene.h"

#include <stdlib.h>
#include <string.h>

enum { PLACE_TRIES = 40, COLOUR_TRIES = 60, COLOUR_APART = 150 };

typedef struct sight { int area, visible; } sight; /* of a figure, in pixels */

/* The pixels that a figure would take; taken[i] of them from the figure that owner numbers i + 1. */
static int area_of(const figure *f, int size, const unsigned char *owner, int taken[SCENE_MOST])
{
    point low, high;
    int area = 0;
    memset(taken, 0, SCENE_MOST * sizeof *taken);
    figure_bounds(f, &low, &high);
    for (int y = low.y / UNIT; y <= high.y / UNIT && y < size; y++)
        for (int x = low.x / UNIT; x <= high.x / UNIT && x < size; x++) {
            if (figure_coverage(f, x, y) < COVERAGE_FULL / 2) continue;
            int below = owner[(size_t)y * size + x];
            if (below) ++taken[below - 1];
            ++area;
        }
    return area;
}

static void own(const figure *f, int size, unsigned char *owner, int number)
{
    point low, high;
    figure_bounds(f, &low, &high);
    for (int y = low.y / UNIT; y <= high.y / UNIT && y < size; y++)
        for (int x = low.x / UNIT; x <= high.x / UNIT && x < size; x++)
            if (figure_coverage(f, x, y) >= COVERAGE_FULL / 2)
                owner[(size_t)y * size + x] = (unsigned char)number;
}

static figure random_figure(int size, shapes_random *random)
{
    int kind = random_between(random, 0, KINDS - 1);
    /* A triangle fills least of the circle around it, so it is drawn larger: the boxes come out alike. */
    int smallest = size * UNIT * (kind == CIRCLE ? 16 : 20) / 200,
        largest = size * UNIT * (kind == CIRCLE ? 42 : 50) / 200;
    int radius = random_between(random, smallest, largest);
    int margin = radius + UNIT, reach = size * UNIT - margin;
    point centre = {random_between(random, margin, reach), random_between(random, margin, reach)};
    return figure_make(kind, centre, radius, random_between(random, 0, ANGLES - 1));
}

static int may_stand(const scene *s, const sight *seen, const int taken[SCENE_MOST], const figure *f,
                     int size)
{
    for (int i = 0; i < s->count; i++) {
        int64_t dx = f->centre.x - s->figures[i].centre.x, dy = f->centre.y - s->figures[i].centre.y;
        int64_t apart = size * UNIT / 10;
        if (dx * dx + dy * dy < apart * apart) return 0; /* a detector's grid cell could answer for only
                                                            one */
        if (4 * (seen[i].visible - taken[i]) < 3 * seen[i].area) return 0;
    }
    return 1;
}

/* A colour well apart from all `others`, or the furthest that was met. */
static colour distinct_colour(const colour *others, int count, shapes_random *random)
{
    colour best = {{0, 0, 0}};
    int best_distance = -1;
    for (int t = 0; t < COLOUR_TRIES && best_distance < COLOUR_APART; t++) {
        colour c = random_colour(random);
        int nearest = 3 * 255;
        for (int i = 0; i < count; i++) {
            int distance = colour_distance(c, others[i]);
            if (distance < nearest) nearest = distance;
        }
        if (nearest > best_distance) {
            best = c;
            best_distance = nearest;
        }
    }
    return best;
}

scene scene_draw(canvas *c, unsigned char *owner, shapes_random *random)
{
    scene s = {0};
    sight seen[SCENE_MOST];
    colour used[2 + SCENE_MOST];
    draw_background(c, random, used);
    memset(owner, 0, (size_t)c->size * c->size);

    int wanted = random_between(random, 1, SCENE_MOST);
    for (int t = 0; t < PLACE_TRIES && s.count < wanted; t++) {
        int taken[SCENE_MOST];
        figure f = random_figure(c->size, random);
        int area = area_of(&f, c->size, owner, taken);
        if (!may_stand(&s, seen, taken, &f, c->size)) continue;
        for (int i = 0; i < s.count; i++) seen[i].visible -= taken[i];
        f.fill = used[2 + s.count] = distinct_colour(used, 2 + s.count, random);
        seen[s.count] = (sight){area, area};
        s.figures[s.count++] = f;
        own(&f, c->size, owner, s.count);
        draw_figure(c, &f);
    }
    draw_noise(c, random, random_between(random, 0, 20));
    return s;
}
