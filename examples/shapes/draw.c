#include "draw.h"

#include <stdlib.h>

/* sin(0, 5, ..., 90 degrees) * 2^14 */
static const int quarter_sine[19] = {0, 1428, 2845, 4240, 5604, 6924, 8192, 9397, 10531, 11585, 12551, 13421,
                                     14189, 14849, 15396, 15826, 16135, 16322, 16384};

static int sine(int step)
{
    step = ((step % ANGLES) + ANGLES) % ANGLES;
    if (step > ANGLES / 2) return -sine(step - ANGLES / 2);
    return quarter_sine[step > ANGLES / 4 ? ANGLES / 2 - step : step];
}

static int cosine(int step) { return sine(step + ANGLES / 4); }

static int smaller(int a, int b) { return a < b ? a : b; }
static int larger(int a, int b) { return a > b ? a : b; }
static int clamp(int value) { return value < 0 ? 0 : value > 255 ? 255 : value; }

figure figure_make(int kind, point centre, int radius, int angle)
{
    figure f = {.kind = kind, .centre = centre, .radius = radius};
    f.corners = kind == SQUARE ? 4 : kind == TRIANGLE ? 3 : 0;
    for (int i = 0; i < f.corners; i++) {
        int step = angle + i * (ANGLES / f.corners);
        f.corner[i].x = centre.x + radius * cosine(step) / (1 << 14);
        f.corner[i].y = centre.y + radius * sine(step) / (1 << 14);
    }
    return f;
}

void figure_bounds(const figure *f, point *low, point *high)
{
    if (f->corners == 0) {
        *low = (point){f->centre.x - f->radius, f->centre.y - f->radius};
        *high = (point){f->centre.x + f->radius, f->centre.y + f->radius};
        return;
    }
    *low = *high = f->corner[0];
    for (int i = 1; i < f->corners; i++) {
        *low = (point){smaller(low->x, f->corner[i].x), smaller(low->y, f->corner[i].y)};
        *high = (point){larger(high->x, f->corner[i].x), larger(high->y, f->corner[i].y)};
    }
}

static int contains(const figure *f, int x, int y)
{
    if (f->corners == 0) {
        int64_t dx = x - f->centre.x, dy = y - f->centre.y;
        return dx * dx + dy * dy <= (int64_t)f->radius * f->radius;
    }
    for (int i = 0; i < f->corners; i++) { /* inside is to the same side of every edge */
        point a = f->corner[i], b = f->corner[(i + 1) % f->corners];
        if ((int64_t)(b.x - a.x) * (y - a.y) - (int64_t)(b.y - a.y) * (x - a.x) < 0) return 0;
    }
    return 1;
}

int figure_coverage(const figure *f, int x, int y)
{
    int covered = 0;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) covered += contains(f, x * UNIT + 2 + 4 * i, y * UNIT + 2 + 4 * j);
    return covered;
}

void draw_figure(canvas *c, const figure *f)
{
    point low, high;
    figure_bounds(f, &low, &high);
    for (int y = larger(0, low.y / UNIT); y <= smaller(c->size - 1, high.y / UNIT); y++)
        for (int x = larger(0, low.x / UNIT); x <= smaller(c->size - 1, high.x / UNIT); x++) {
            int covered = figure_coverage(f, x, y);
            unsigned char *pixel = c->rgb + 3 * ((size_t)y * c->size + x);
            for (int k = 0; k < 3; k++)
                pixel[k] = (unsigned char)(pixel[k] + (f->fill.channel[k] - pixel[k]) * covered
                                           / COVERAGE_FULL);
        }
}

colour random_colour(shapes_random *random)
{
    colour c;
    for (int k = 0; k < 3; k++) c.channel[k] = random_between(random, 0, 255);
    return c;
}

int colour_distance(colour a, colour b)
{
    int sum = 0;
    for (int k = 0; k < 3; k++) sum += abs(a.channel[k] - b.channel[k]);
    return sum;
}

/* One of the four backgrounds: how far pixel (x, y) is on the way between the two colours, 0..256. */
enum { GRADIENT, STRIPES, CHEQUER, CLOUDS, BACKGROUNDS };
enum { LATTICE = 9 };

typedef struct texture {
    int kind, angle, period;       /* period in pixels */
    int lattice[LATTICE][LATTICE]; /* the heights of the clouds */
} texture;

static int along(const texture *t, int x, int y) /* pixels * 2^14 in the texture's direction */
{
    return x * cosine(t->angle) + y * sine(t->angle);
}

static int texture_mix(const texture *t, int size, int x, int y)
{
    if (t->kind == GRADIENT) {
        int reach = larger(1, abs(cosine(t->angle)) + abs(sine(t->angle)));
        int64_t centred = along(t, 2 * x - size, 2 * y - size);
        return (int)(128 + centred * 128 / ((int64_t)reach * size));
    }
    if (t->kind == STRIPES) {
        int position = (along(t, x, y) >> 14) + 4 * size; /* never negative */
        return (position / t->period) % 2 * 256;
    }
    if (t->kind == CHEQUER) return (x / t->period + y / t->period) % 2 * 256;
    int scale = (size + LATTICE - 2) / (LATTICE - 1); /* pixels per lattice cell; bilinear between its
                                                         corners */
    int i = x / scale, j = y / scale, u = x % scale, v = y % scale;
    int top = t->lattice[j][i] * (scale - u) + t->lattice[j][i + 1] * u;
    int bottom = t->lattice[j + 1][i] * (scale - u) + t->lattice[j + 1][i + 1] * u;
    return (top * (scale - v) + bottom * v) / (scale * scale);
}

void draw_background(canvas *c, shapes_random *random, colour used[2])
{
    texture t;
    t.kind = random_between(random, 0, BACKGROUNDS - 1);
    t.angle = random_between(random, 0, ANGLES - 1);
    t.period = random_between(random, larger(2, c->size / 32), larger(3, c->size / 8));
    for (int j = 0; j < LATTICE; j++)
        for (int i = 0; i < LATTICE; i++) t.lattice[j][i] = random_between(random, 0, 256);

    /* A pattern is kept faint, or its own squares would deserve a label. */
    int contrast = t.kind == GRADIENT ? 90 : t.kind == CLOUDS ? 60 : 25;
    used[0] = used[1] = random_colour(random);
    for (int k = 0; k < 3; k++)
        used[1].channel[k] = clamp(used[0].channel[k] + random_between(random, -contrast, contrast));

    for (int y = 0; y < c->size; y++)
        for (int x = 0; x < c->size; x++) {
            int mix = texture_mix(&t, c->size, x, y);
            unsigned char *pixel = c->rgb + 3 * ((size_t)y * c->size + x);
            for (int k = 0; k < 3; k++)
                pixel[k] = (unsigned char)clamp(used[0].channel[k] +
                                                (used[1].channel[k] - used[0].channel[k]) * mix / 256);
        }
}

void draw_noise(canvas *c, shapes_random *random, int strength)
{
    for (size_t i = 0; i < (size_t)c->size * c->size * 3; i++)
        c->rgb[i] = (unsigned char)clamp(c->rgb[i] + random_between(random, -strength, strength));
}
