/* The file of cache=disk: whatever kills a program while it writes, damages the file, fills the disk or
 * writes at the same time, an image that is found has its own pixels, and the others can be kept again. */
#define _DEFAULT_SOURCE /* syscall */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>

#include "child.h"
#include "host/data/cache_file.h"
#include "test_folder.h"
#include "threads.h"

enum { IMAGES = 7, PHOTO_W = 40, PHOTO_H = 30, THREADS = 3 };

static const char name[] = "list.images";
static const amp_photo_use whole = { 30, 30, 0 }, small = { 9, 9, 0 };

/* The plugin's writes to the file: the one at this number, from 1, is cut short, by a signal or because the
 * disk is full from then on. */
static struct writes { int number, at, kills; size_t written; } writes;

ssize_t pwrite(int descriptor, const void *bytes, size_t size, off_t offset);
ssize_t pwrite(int descriptor, const void *bytes, size_t size, off_t offset)
{
    int is_cut = ++writes.number == writes.at, is_full = writes.at && writes.number > writes.at;
    if (is_cut && writes.written < size) size = writes.written;
    ssize_t got = size && !is_full ? syscall(SYS_pwrite64, descriptor, bytes, size, offset) : 0;
    if (is_cut && writes.kills) kill(getpid(), SIGKILL);
    errno = ENOSPC;
    return got ? got : -1;
}

static void put_photo(int i, const char *text)
{
    char image[32];
    snprintf(image, sizeof image, "%d.jpg", i);
    put_file(image, text);
}

static int set_up(void **state)
{
    if (enter_folder(state)) return -1;
    for (int i = 0; i < IMAGES; i++) put_photo(i, "a photo");
    writes = (struct writes){ 0 };
    return 0;
}

static amp_cache_file *opened(const amp_photo_use *use)
{
    amp_error error;
    amp_cache_file *file;
    if (amp_cache_file_open(name, use, 1, IMAGES, PHOTO_W * PHOTO_H * 3, &file, &error) != AMP_OK)
        fail_msg("%s", error.message);
    return file;
}

static amp_pixels pixels_of(int i, int reduction)
{
    amp_pixels p = { malloc(PHOTO_W * PHOTO_H * 3), 0, 0, 1 + i % 3, PHOTO_W - i, PHOTO_H, reduction };
    p.w = amp_reduced_length(p.photo_w, reduction);
    p.h = amp_reduced_length(p.photo_h, reduction);
    for (size_t k = 0; k < amp_pixels_size(&p); k++)
        p.bytes[k] = (unsigned char)(k * 7 + (size_t)i * 31 + k / 256);
    return p;
}

/* 0: it is not found. Else its pixels are its own. */
static int is_found(amp_cache_file *file, int i, int reduction)
{
    char image[32];
    amp_pixels found, p = pixels_of(i, reduction);
    amp_cache_mapping mapped = { 0 };
    snprintf(image, sizeof image, "%d.jpg", i);
    int is = amp_cache_file_find(file, amp_cache_file_key(file, image, "decoder", 3), &found, &mapped);
    if (is) {
        assert_true(found.w == p.w && found.h == p.h && found.c == p.c && found.photo_w == p.photo_w
                    && found.photo_h == p.photo_h && found.reduction == reduction);
        assert_memory_equal(found.bytes, p.bytes, amp_pixels_size(&p));
        amp_cache_file_unmap(&mapped);
    }
    free(p.bytes);
    return is;
}

/* As a loader does; returns how many were found. */
static int load_all(amp_cache_file *file, int reduction)
{
    int found = 0;
    for (int i = 0; i < IMAGES; i++) {
        char image[32];
        snprintf(image, sizeof image, "%d.jpg", i);
        if (is_found(file, i, reduction)) {
            found++;
            continue;
        }
        amp_pixels p = pixels_of(i, reduction);
        amp_cache_file_add(file, amp_cache_file_key(file, image, "decoder", 3), &p);
        free(p.bytes);
    }
    return found;
}

/* What a program leaves: the next one can keep everything. */
static int found_by_the_next(void)
{
    int found = load_all(opened(&whole), 1);
    assert_int_equal(load_all(opened(&whole), 1), IMAGES);
    return found;
}

static void load_in_child(void *out)
{
    (void)out;
    load_all(opened(&whole), 1);
}

/* At each write of the file, before it, within it and behind it. */
TEST_WITH(a_kill_at_any_write_loses_one_image_at_most, set_up, leave_folder)
{
    char said[4096];
    const size_t parts[] = { 0, 20, 1 << 20 };
    for (int at = 1, ends = 0; !ends; at++)
        for (size_t k = 0; k < COUNT(parts) && !ends; k++) {
            unlink(name);
            writes = (struct writes){ .at = at, .kills = 1, .written = parts[k] };
            ends = in_child(load_in_child, NULL, said, sizeof said) == 0;
            writes = (struct writes){ 0 };
            int found = found_by_the_next(), whole_images = (at - 2) / 2 + (at % 2 && k == 2);
            if (at > 1 && found != (ends ? IMAGES : whole_images))
                fail_msg("killed at write %d, part %zu: %d images are found", at, k, found);
            assert_true(at < 50);
        }
}

TEST_WITH(a_full_disk_ends_keeping_and_gives_its_space_back, set_up, leave_folder)
{
    struct stat before, after;
    for (size_t part = 0; part < 2; part++)
        for (int at = 2; at < 6; at++) {
            unlink(name);
            amp_cache_file *file = opened(&whole);
            writes = (struct writes){ .number = 1, .at = at, .written = 10 * part };
            load_all(file, 1);
            assert_true(stat(name, &before) == 0);
            assert_int_equal(load_all(file, 1), at / 2 - 1);
            assert_true(stat(name, &after) == 0 && after.st_size == before.st_size);
            writes = (struct writes){ 0 };
            assert_int_equal(load_all(opened(&whole), 1), at / 2 - 1);
        }
}

static void *load_in_thread(void *file)
{
    load_all(file, 1);
    return NULL;
}

static void load_in_threads(void)
{
    in_threads(load_in_thread, opened(&whole), 0, THREADS);
}

/* Each image is kept once. */
TEST_WITH(programs_and_threads_share_a_file, set_up, leave_folder)
{
    struct stat once, now;
    load_all(opened(&whole), 1);
    assert_true(stat(name, &once) == 0);
    for (int round = 0; round < 20; round++) {
        pid_t children[3];
        unlink(name);
        for (int k = 0; k < 3; k++)
            if (!(children[k] = fork())) {
                load_in_threads();
                _exit(0);
            }
        for (int k = 0; k < 3; k++) {
            int status;
            waitpid(children[k], &status, 0);
            assert_int_equal(status, 0);
        }
        assert_int_equal(load_all(opened(&whole), 1), IMAGES);
        assert_true(stat(name, &now) == 0 && now.st_size == once.st_size);
    }
    /* one that was open before sees what others have added */
    unlink(name);
    amp_cache_file *first = opened(&whole), *second = opened(&whole);
    assert_int_equal(load_all(first, 1), 0);
    assert_int_equal(load_all(second, 1), IMAGES);
}

TEST_WITH(what_another_library_decoded_is_not_found, set_up, leave_folder)
{
    amp_pixels found;
    amp_cache_mapping mapped = { 0 };
    amp_cache_file *file = opened(&whole);
    load_all(file, 1);
    assert_false(amp_cache_file_find(file, amp_cache_file_key(file, "0.jpg", "OpenCV", 3), &found, &mapped));
    assert_false(amp_cache_file_find(file, amp_cache_file_key(file, "0.jpg", "decoder", 1), &found, &mapped));
    assert_true(amp_cache_file_find(file, amp_cache_file_key(file, "0.jpg", "decoder", 3), &found, &mapped));
    amp_cache_file_unmap(&mapped);
}

TEST_WITH(what_has_changed_is_not_found, set_up, leave_folder)
{
    amp_cache_file *file = opened(&whole);
    assert_int_equal(load_all(file, 1), 0);
    put_photo(2, "another photo");
    struct timespec times[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000, .tv_nsec = 7 } };
    assert_int_equal(utimensat(AT_FDCWD, "3.jpg", times, 0), 0);
    unlink("4.jpg");
    for (int i = 0; i < IMAGES; i++) assert_int_equal(is_found(file, i, 1), i < 2 || i > 4);
    assert_int_equal(load_all(file, 1), IMAGES - 3);
    /* a network of another size has images of its own */
    amp_cache_file *smaller = opened(&small);
    assert_int_equal(load_all(smaller, 4), 0);
    assert_int_equal(load_all(smaller, 4), IMAGES - 1);
    assert_int_equal(load_all(opened(&whole), 1), IMAGES - 1);
}

/* Wrong bytes in any place; and a file that ends in any place, also while it is open. */
TEST_WITH(damage_is_noticed, set_up, leave_folder)
{
    size_t size, other;
    unsigned char *bytes;
    load_all(opened(&whole), 1);
    bytes = file_bytes(name, &size);
    for (size_t at = 0; at < size; at += at < 600 ? 3 : size / 60) {
        bytes[at] ^= 0x10;
        unlink(name);
        put_bytes(name, bytes, size);
        amp_error error;
        amp_cache_file *file;
        int is_ours = at >= 6;
        amp_status status = amp_cache_file_open(name, &whole, 1, IMAGES, 1, &file, &error);
        assert_int_equal(status, is_ours ? AMP_OK : AMP_IO_FAILED);
        if (is_ours) found_by_the_next();
        bytes[at] ^= 0x10;
    }
    for (size_t length = 0; length < size; length += length < 600 ? 37 : size / 60) {
        unlink(name);
        put_bytes(name, bytes, size);
        amp_cache_file *file = opened(&whole);
        assert_int_equal(truncate(name, (off_t)length), 0);
        for (int i = 0; i < IMAGES; i++) is_found(file, i, 1);
        found_by_the_next();
    }
    free(bytes);
    put_file(name, "somebody's notes");
    amp_error error;
    amp_cache_file *file;
    assert_int_equal(amp_cache_file_open(name, &whole, 1, IMAGES, 1, &file, &error), AMP_IO_FAILED);
    assert_non_null(strstr(error.message, "list.images is not a cache of images; move it"));
    bytes = file_bytes(name, &other);
    assert_int_equal(other, strlen("somebody's notes"));
    free(bytes);
}

TEST_WITH(too_little_space_is_told_before, set_up, leave_folder)
{
    amp_error error;
    amp_cache_file *file;
    assert_int_equal(amp_cache_file_open(name, &whole, 1, IMAGES, (size_t)1 << 55, &file, &error),
                     AMP_IO_FAILED);
    assert_non_null(strstr(error.message, "7 images would take about"));
    assert_int_equal(amp_cache_file_open("nowhere/x.images", &whole, 1, IMAGES, 1, &file, &error), AMP_OK);
    assert_null(file); /* a line says so, and nothing is kept */
}

int main(void) { return run_listed_tests("cache_file", NULL, NULL); }
