/* The file of cache=disk: reduced photos of a training list, next to the backups, for this training, for
 * others beside it and for later ones.
 *
 * It begins with a table of entries, each written behind the one before when its pixels are in the file. An
 * entry is found by the photo's path, size and time of change, and by how it was read and reduced: of what
 * has changed since nothing is found. Programs lock the file while they add to its end, and only then; what
 * is in it never changes. So after a kill at any moment the file is whole. Checksums tell what a crash of the
 * machine or a bad disk has damaged, which is then read from the photos again. */
#pragma once

#include <stdint.h>

#include "../../image/reduce.h"
#include "../../tensor/status.h"

typedef struct amp_cache_file amp_cache_file;

/* Where pixels of the file are in memory; zeroed: nowhere. */
typedef struct amp_cache_mapping { void *address; size_t length; } amp_cache_mapping;

/* Opens or makes the file for a list of `images` images of about `bytes` bytes each, reduced by `scale` for
 * this use of them, and prints what it holds. It stays open until the program ends. *out is NULL where
 * nothing can be kept, which is printed. AMP_IO_FAILED: it is no such file, or the disk has too little space
 * for what is missing. */
amp_status amp_cache_file_open(const char *name, const amp_photo_use *use, double scale, size_t images,
                               size_t bytes, amp_cache_file **out, amp_error *error);

/* The key of an image file as it is now, asked for before it is read: one that is changed meanwhile is not
 * found by what was read. how: any number that says how it is decoded. 0: there is no such file. */
uint64_t amp_cache_file_key(const amp_cache_file *, const char *image, int how);

/* Whether the image was kept: its pixels, in memory until amp_cache_file_unmap. */
int amp_cache_file_find(amp_cache_file *, uint64_t key, amp_pixels *pixels, amp_cache_mapping *mapped);
void amp_cache_file_unmap(amp_cache_mapping *mapped);

/* Keeps the pixels, and returns 1. Where that does not work, or another program is writing for long, nothing
 * is kept. */
int amp_cache_file_add(amp_cache_file *, uint64_t key, const amp_pixels *pixels);
