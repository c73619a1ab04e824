/* Records which image files reach a network's input: see images.h. */
#include "images.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../../include/darknet_amp.h"

enum { ROWS = 1 << 16, /* number of rows that are remembered; the rows of two steps suffice */
       INPUTS = 64 };  /* maximum number of networks that are trained at the same time */

/* A row that a loader filled, and the path of its image. */
typedef struct loaded { const float *row; char *path; } loaded;
/* The paths of the images in a network's input; NULL: unknown. */
typedef struct filling { const float *input; char **paths; int count; } filling;

static struct {
    pthread_mutex_t mutex;
    int on; /* set once, before any thread starts */
    loaded rows[ROWS];
    filling fillings[INPUTS];
    unsigned next_row, next_filling;
} trail = { .mutex = PTHREAD_MUTEX_INITIALIZER };

/* The paths that this thread's loader has picked and not yet loaded into rows. */
static _Thread_local struct { char **paths; int count; } picked;

void amp_images_note(void) { trail.on = 1; }

static void free_paths(char **paths, int count)
{
    for (int i = 0; paths && i < count; i++) free(paths[i]);
    free(paths);
}

void darknet_amp_paths(char **paths, int count)
{
    if (!trail.on) return;
    free_paths(picked.paths, picked.count);
    picked.paths = calloc((size_t)count + 1, sizeof *picked.paths);
    picked.count = picked.paths ? count : 0;
    for (int i = 0; i < picked.count; i++) picked.paths[i] = strdup(paths[i]);
}

void amp_images_replaced(int i, const char *path)
{
    if (!trail.on || i >= picked.count) return;
    free(picked.paths[i]);
    picked.paths[i] = strdup(path);
}

void amp_images_loaded(float *const *row, int rows)
{
    if (!trail.on || !picked.paths) return;
    int per_row = rows > 0 ? picked.count / rows : 0; /* 2 if a row is made from a pair of images */
    pthread_mutex_lock(&trail.mutex);
    for (int i = 0; per_row && i < rows; i++) {
        loaded *place = &trail.rows[trail.next_row++ % ROWS];
        free(place->path);
        *place = (loaded){ row[i], picked.paths[i * per_row] };
        picked.paths[i * per_row] = NULL;
    }
    pthread_mutex_unlock(&trail.mutex);
    free_paths(picked.paths, picked.count);
    picked.paths = NULL;
}

/* Returns the path of a row, or NULL. The caller holds the mutex. */
static const char *path_of(const float *row)
{
    for (unsigned back = 1; back <= ROWS; back++) { /* newest first, because addresses are reused */
        const loaded *l = &trail.rows[(trail.next_row - back) % ROWS];
        if (l->row == row || !l->row) return l->path;
    }
    return NULL;
}

void amp_images_filled(const float *input, float **rows, int count)
{
    if (!trail.on) return;
    filling made = { input, calloc((size_t)count + 1, sizeof *made.paths), 0 };
    pthread_mutex_lock(&trail.mutex);
    for (int i = 0; made.paths && i < count; i++) {
        const char *path = path_of(rows[i]);
        made.paths[made.count++] = path ? strdup(path) : NULL;
    }
    filling *place = NULL;
    for (int i = 0; i < INPUTS && !place; i++)
        if (trail.fillings[i].input == input) place = &trail.fillings[i];
    if (!place) place = &trail.fillings[trail.next_filling++ % INPUTS];
    free_paths(place->paths, place->count);
    *place = made;
    pthread_mutex_unlock(&trail.mutex);
}

char *amp_images_path(const float *input, int images, int one)
{
    char *path = NULL;
    if (!trail.on) return NULL;
    pthread_mutex_lock(&trail.mutex);
    for (const filling *f = trail.fillings; !path && f < trail.fillings + INPUTS; f++)
        if (f->input == input && f->count == images && f->paths[one]) path = strdup(f->paths[one]);
    pthread_mutex_unlock(&trail.mutex);
    return path;
}
