/* For every test program: CMocka, with the headers that it needs, and TEST, which registers a test where it
 * is defined.
 *
 *   TEST(a_value_is_cast_once) { ... }
 *   TEST_WITH(a_file_stays, enter_folder, leave_folder) { ... }    CMocka's set-up and tear-down of one test
 *   int main(void) { return run_listed_tests("values", NULL, NULL); }     and those of all, or NULL
 *
 * Tests run in the order of the file. `state` is CMocka's, for tests that need it. */
#ifndef TESTING_H
#define TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct CMUnitTest listed_tests[64];
static size_t listed_count;

static inline void list_test(struct CMUnitTest test)
{
    if (listed_count == COUNT(listed_tests)) abort();
    listed_tests[listed_count++] = test;
}

/* The number that each use gets makes the order that of the file. */
#define TEST_WITH(name, set_up, tear_down) LIST_TEST(name, set_up, tear_down, __COUNTER__)
#define TEST(name) TEST_WITH(name, NULL, NULL)
#define LIST_TEST(name, set_up, tear_down, number) \
    static void name(void **); \
    __attribute__((constructor(1000 + number))) static void list_##name(void) \
    { \
        list_test((struct CMUnitTest)cmocka_unit_test_setup_teardown(name, set_up, tear_down)); \
    } \
    static void name(__attribute__((unused)) void **state)

/* The folder of this program: it has the networks of tests/cfg as .cfg files. Layers that name files (trees)
 * are relative to it. */
static inline const char *networks_folder(void)
{
    static char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof "cfg");
    if (length < 0) fail_msg("cannot read /proc/self/exe");
    path[length] = '\0';
    strcpy(strrchr(path, '/') + 1, "cfg");
    return path;
}

/* Returns the number of tests that failed. */
static inline int run_listed_tests(const char *group, CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    return _cmocka_run_group_tests(group, listed_tests, listed_count, set_up, tear_down);
}

#endif
