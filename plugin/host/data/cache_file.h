/* The file of cache=disk. It lies in the folder for backups. It keeps reduced photos of a training list for
 * this training, for other trainings that run at the same time, and for later trainings.
 *
 * It begins with a table of entries. An entry is written after its pixels, so the file stays valid if a
 * program is killed at any moment. An entry is identified by the photo's path, size and modification time,
 * and by the way in which the photo was read and reduced. So a photo that has changed is read again. Programs
 * lock the file only while they append to it; existing contents never change. Checksums detect damage by a
 * crash of the machine or a bad disk. Damaged photos are read from their own files again. */
#pragma once

#include <stdint.h>

#include "../../image/reduce.h"
#include "../../tensor/status.h"

typedef struct amp_cache_file amp_cache_file;

/* The mapped memory that contains an image's pixels; all zeros: nothing is mapped. */
typedef struct amp_cache_mapping { void *address; size_t length; } amp_cache_mapping;

/* Opens or creates the cache file and prints how many images it holds. images: the number of images in the
 * training list. bytes: about how many bytes a reduced image takes. use, scale: the arguments of
 * amp_reduction, which says how far a photo is reduced. The file stays open until the program ends. If the
 * file cannot be used to keep images, prints the reason and sets *out to NULL. AMP_IO_FAILED: the file exists
 * but is not a cache, or the disk has too little space for the missing images. */
amp_status amp_cache_file_open(const char *name, const amp_photo_use *use, double scale, size_t images,
                               size_t bytes, amp_cache_file **out, amp_error *error);

/* Returns the key of an image file in its present state; 0: the file does not exist. Get the key before you
 * read the image: if the file changes meanwhile, its new state has another key. decoder, how: the name of the
 * library that decodes the file, and a number for what it is asked to do. Programs with other decoders may
 * share the cache file, and decoders differ, for example in EXIF rotation. */
uint64_t amp_cache_file_key(const amp_cache_file *, const char *image, const char *decoder, int how);

/* Returns 1 if the cache has the image. Its pixels are then mapped until amp_cache_file_unmap. */
int amp_cache_file_find(amp_cache_file *, uint64_t key, amp_pixels *pixels, amp_cache_mapping *mapped);
void amp_cache_file_unmap(amp_cache_mapping *mapped);

/* Adds an image. Returns 1 if it was added; 0 if the cache already has it, the write failed, or another
 * program keeps the file locked. */
int amp_cache_file_add(amp_cache_file *, uint64_t key, const amp_pixels *pixels);
