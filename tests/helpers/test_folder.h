/* A separate folder for a test, which is deleted with its contents, and files in it. Include testing.h
 * first. */
#ifndef TEST_FOLDER_H
#define TEST_FOLDER_H

#include <sys/stat.h>

static char test_folder[] = "/tmp/amp_test_XXXXXX";

/* CMocka's set-up and tear-down, for one test or for all: in between the folder is the current directory. */
static inline int enter_folder(void **state)
{
    (void)state;
    strcpy(test_folder + sizeof test_folder - 7, "XXXXXX");
    return !mkdtemp(test_folder) || chdir(test_folder);
}

static inline int leave_folder(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", test_folder);
    return chdir("/") || system(command);
}

static inline void put_bytes(const char *name, const void *bytes, size_t count)
{
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static inline void put_file(const char *name, const char *text) { put_bytes(name, text, strlen(text)); }

/* A file's bytes, followed by 64 unused ones; owned by the caller. */
static inline void *file_bytes(const char *name, size_t *size)
{
    struct stat info;
    FILE *file = fopen(name, "rb");
    if (!file || stat(name, &info)) fail_msg("%s is not there", name);
    char *bytes = malloc((size_t)info.st_size + 64);
    assert_non_null(bytes);
    *size = fread(bytes, 1, (size_t)info.st_size, file);
    fclose(file);
    return bytes;
}

/* A .cfg under a name that was not used before, since a program keeps the first .cfg that it reads. */
static inline void put_cfg(char name[32], const char *text)
{
    static int count;
    snprintf(name, 32, "net%d.cfg", count++);
    put_file(name, text);
}

/* For files that are written very often: overwriting in place would wait for the disk each time. */
static inline void put_anew(const char *name, const char *text)
{
    unlink(name);
    put_file(name, text);
}

#endif
