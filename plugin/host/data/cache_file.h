/* The cache file of cache=disk, in the folder for backups. It keeps the reduced photos of a training list,
 * for this training, concurrent ones and later ones.
 *
 * It begins with a table of entries. An entry is written after its pixels, so the file stays valid if a
 * program is killed. An entry is identified by the photo's path, size and modification time, and by how the
 * photo was decoded and reduced. Programs lock the file only while they append to it; existing contents never
 * change. Checksums detect damage by a crash of the machine or a bad disk. Damaged photos are read from their
 * own files again. */
#pragma once

#include <stdint.h>

#include "../../image/reduce.h"
#include "../../tensor/status.h"

typedef struct amp_cache_file amp_cache_file;

/* The mapped memory that contains an image's pixels; all zeros: nothing is mapped. */
typedef struct amp_cache_mapping { void *address; size_t length; } amp_cache_mapping;

/* Opens or creates the cache file, which stays open until the program ends, and prints how many images it
 * holds. images: the length of the training list. bytes: the estimated size of a reduced image. use, scale:
 * the arguments of amp_reduction. If the file cannot be used, prints the reason and sets *out to NULL.
 * AMP_IO_FAILED: the file is not a cache, or the disk has too little space for the missing images. */
amp_status amp_cache_file_open(const char *name, const amp_photo_use *use, double scale, size_t images,
                               size_t bytes, amp_cache_file **out, amp_error *error);

/* Returns the key of an image file in its present state; 0: it does not exist. Get the key before you read
 * the image: if the file changes meanwhile, its new state has another key. decoder: the library that decodes
 * the image. (Programs with different decoders may share the cache file, and only some decoders rotate images
 * by their EXIF data.) how: what the library is asked to do. */
uint64_t amp_cache_file_key(const amp_cache_file *, const char *image, const char *decoder, int how);

/* Returns 1 if the cache has the image. Its pixels are then mapped until amp_cache_file_unmap. */
int amp_cache_file_find(amp_cache_file *, uint64_t key, amp_pixels *pixels, amp_cache_mapping *mapped);
void amp_cache_file_unmap(amp_cache_mapping *mapped);

/* Adds an image. Returns 1 if it was added; 0 if the cache already has it, the write failed, or another
 * program keeps the file locked. */
int amp_cache_file_add(amp_cache_file *, uint64_t key, const amp_pixels *pixels);
