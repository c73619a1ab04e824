/* Files beneath checkpoints: the checksum, and replacing a file so that its name never
 * stands for a part of one. */
#define _DEFAULT_SOURCE /* mkdtemp, setgroups */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include "child.h"
#include "files/checksum.h"
#include "files/safe_file.h"
#include "test_folder.h"

/* Others than root come in as well. */
static int enter_open_folder(void **state) { return enter_folder(state) || chmod(".", 0755); }

static void assert_holds(const char *path, const char *text)
{
    char found[64] = "";
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s is not there", path);
    found[fread(found, 1, sizeof found - 1, file)] = 0;
    fclose(file);
    assert_string_equal(found, text);
}

static void assert_absent(const char *path)
{
    struct stat info;
    if (lstat(path, &info) == 0) fail_msg("%s is there", path);
}

static unsigned mode_of(const char *path)
{
    struct stat info;
    assert_int_equal(lstat(path, &info), 0);
    return info.st_mode & 07777;
}

/* Replace name's content as a save does. */
static void replace(const char *name, const char *text)
{
    amp_safe_file f;
    amp_error error;
    if (amp_safe_file_begin(name, &f, &error) != AMP_OK) fail_msg("%s", error.message);
    put_file(f.temporary, text);
    if (amp_safe_file_commit(&f, &error) != AMP_OK) fail_msg("%s", error.message);
    amp_safe_file_end(&f);
}

/* ---- checksum ---- */

/* By the definition, bit by bit. */
static uint64_t crc64_xz(const unsigned char *bytes, size_t size)
{
    uint64_t crc = ~UINT64_C(0);
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ UINT64_C(0xC96C5795D7870F42) : crc >> 1;
    }
    return ~crc;
}

TEST(the_checksum_is_crc_64_xz)
{
    unsigned char bytes[100];
    assert_true(amp_checksum_of("123456789", 9) == UINT64_C(0x995DC9BBDF1939FA));
    assert_true(amp_checksum_of("", 0) == 0);
    for (int i = 0; i < 100; i++) bytes[i] = (unsigned char)(i * i + 3);
    for (size_t from = 0; from < 9; from++)
        for (size_t size = 0; size + from <= sizeof bytes; size++)
            assert_true(amp_checksum_of(bytes + from, size) == crc64_xz(bytes + from, size));
    for (size_t cut = 0; cut <= sizeof bytes; cut++) {
        amp_checksum c;
        amp_checksum_start(&c);
        amp_checksum_add(&c, bytes, cut);
        assert_true(amp_checksum_value(&c) == crc64_xz(bytes, cut));
        amp_checksum_add(&c, bytes + cut, sizeof bytes - cut);
        assert_true(amp_checksum_value(&c) == crc64_xz(bytes, sizeof bytes));
    }
}

TEST_WITH(a_files_checksum_is_that_of_its_bytes, enter_open_folder, leave_folder)
{
    size_t size = 300001;
    unsigned char *bytes = malloc(size);
    for (size_t i = 0; i < size; i++) bytes[i] = (unsigned char)(i * 7 + i / 251);
    put_bytes("f", bytes, size);
    uint64_t sum = 0;
    amp_error error;
    assert_int_equal(amp_file_checksum("f", &sum, &error), AMP_OK);
    assert_true(sum == crc64_xz(bytes, size));
    free(bytes);
    assert_int_equal(amp_file_checksum("none", &sum, &error), AMP_IO_FAILED);
    assert_non_null(strstr(error.message, "none: No such file"));
    assert_int_equal(amp_file_checksum(".", &sum, &error), AMP_IO_FAILED);
    assert_int_equal(mkfifo("link", 0600), 0);
    assert_int_equal(amp_file_checksum("link", &sum, &error), AMP_IO_FAILED);
}

/* ---- replacing ---- */

TEST_WITH(the_old_content_stays_until_the_commit, enter_open_folder, leave_folder)
{
    amp_safe_file f;
    replace("f", "old");
    assert_holds("f", "old");
    assert_int_equal(amp_safe_file_begin("f", &f, NULL), AMP_OK);
    assert_string_equal(f.temporary, "f.new");
    put_file(f.temporary, "half");
    assert_holds("f", "old");
    amp_safe_file_end(&f); /* given up */
    assert_holds("f", "old");
    assert_absent("f.new");
    replace("f", "new");
    assert_holds("f", "new");
    assert_absent("f.new");
}

TEST_WITH(a_save_that_is_given_up_leaves_no_descriptor_open, enter_open_folder, leave_folder)
{
    int next = dup(0);
    close(next);
    amp_safe_file f;
    assert_int_equal(amp_safe_file_begin("f", &f, NULL), AMP_OK);
    amp_safe_file_end(&f);
    int now = dup(0);
    close(now);
    assert_int_equal(now, next);
}

TEST_WITH(leftovers_are_replaced, enter_open_folder, leave_folder)
{
    put_file("f.new", "a longer leftover");
    replace("f", "new");
    assert_holds("f", "new");
    put_file("real", "kept");
    assert_int_equal(symlink("real", "f.new"), 0); /* not written through */
    replace("f", "newer");
    assert_holds("f", "newer");
    assert_holds("real", "kept");
    assert_int_equal(mkdir("f.new", 0700), 0);
    amp_safe_file f;
    amp_error error;
    assert_int_equal(amp_safe_file_begin("f", &f, &error), AMP_IO_FAILED);
    assert_non_null(strstr(error.message, "f.new: "));
}

TEST_WITH(a_symbolic_link_stays_one, enter_open_folder, leave_folder)
{
    assert_int_equal(mkdir("sub", 0700), 0);
    put_file("sub/real", "old");
    assert_int_equal(symlink("real", "sub/link"), 0); /* relative to its own folder */
    assert_int_equal(symlink("sub/link", "link"), 0);
    amp_safe_file f;
    assert_int_equal(amp_safe_file_locate("link", &f, NULL), AMP_OK);
    assert_string_equal(f.target, "sub/real");
    assert_string_equal(f.temporary, "sub/real.new");
    amp_safe_file_end(&f);
    replace("link", "new");
    assert_holds("sub/real", "new");
    struct stat info;
    assert_int_equal(lstat("link", &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(lstat("sub/link", &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    unlink("sub/real"); /* a link to what does not exist yet */
    replace("link", "newer");
    assert_holds("sub/real", "newer");
    enum { LINKS = 40 }; /* as many as Linux follows */
    for (int i = 0; i < LINKS; i++) {
        char from[16], to[16];
        snprintf(from, sizeof from, "link%d", i);
        snprintf(to, sizeof to, i ? "link%d" : "sub/real", i - 1);
        assert_int_equal(symlink(to, from), 0);
    }
    replace("link39", "newest");
    assert_holds("sub/real", "newest");
    unlink("sub/link");
    assert_int_equal(symlink("../link", "sub/link"), 0);
    amp_error error;
    assert_int_equal(amp_safe_file_begin("link", &f, &error), AMP_IO_FAILED);
    assert_non_null(strstr(error.message, "symbolic links"));
}

TEST_WITH(permissions_stay, enter_open_folder, leave_folder)
{
    mode_t old = umask(027);
    replace("f", "first");
    assert_int_equal(mode_of("f"), 0640);
    assert_int_equal(chmod("f", 0604), 0);
    replace("f", "second");
    assert_int_equal(mode_of("f"), 0604);
    struct stat info;
    if (chown("f", (uid_t)-1, getegid() + 1) == 0) { /* as root */
        replace("f", "third");
        assert_int_equal(stat("f", &info), 0);
        assert_int_equal(info.st_gid, getegid() + 1);
    }
    umask(old);
}

/* The system's functions, which fail with `refusal` if it is not 0. */
static int refusal;
static int refuses(void) { return (errno = refusal) != 0; }
int fchown(int file, uid_t owner, gid_t group)
{
    return refuses() ? -1 : (int)syscall(SYS_fchown, file, owner, group);
}
int fchmod(int file, mode_t mode) { return refuses() ? -1 : (int)syscall(SYS_fchmod, file, mode); }

/* In a container that lacks the owner both fail with EINVAL, on some file systems with ENOTSUP. */
TEST_WITH(a_system_that_refuses_owners_and_permissions_saves, enter_open_folder, leave_folder)
{
    static const int refusals[] = { EPERM, EINVAL, ENOTSUP };
    for (int i = 0; i < 3; i++) {
        put_file("f", "old");
        assert_int_equal(chmod("f", 0666), 0);
        refusal = refusals[i];
        replace("f", "new");
        refusal = 0;
        assert_holds("f", "new");
    }
}

TEST_WITH(what_is_no_file_is_written_directly, enter_open_folder, leave_folder)
{
    amp_safe_file f;
    amp_error error;
    assert_int_equal(amp_safe_file_locate("/dev/null", &f, &error), AMP_OK);
    assert_true(f.direct);
    assert_string_equal(f.temporary, "/dev/null");
    amp_safe_file_end(&f);
    assert_int_equal(mkfifo("f", 0600), 0);
    assert_int_equal(amp_safe_file_begin("f", &f, &error), AMP_OK);
    assert_true(f.direct);
    assert_string_equal(f.temporary, "f");
    assert_int_equal(amp_safe_file_commit(&f, &error), AMP_OK);
    amp_safe_file_end(&f);
    struct stat info;
    assert_int_equal(lstat("f", &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    assert_absent("f.new");
    assert_int_equal(amp_safe_file_begin(".", &f, &error), AMP_IO_FAILED);
    assert_non_null(strstr(error.message, "Is a directory"));
}

/* Two trainings into one folder: the second is told so, and the first one's file is not touched. */
TEST_WITH(a_file_that_is_being_saved_is_left_alone, enter_open_folder, leave_folder)
{
    amp_safe_file f, g;
    amp_error error;
    for (int ends = 0; ends < 3; ends++) {
        put_file("f", "old");
        assert_int_equal(amp_safe_file_begin("f", &f, &error), AMP_OK);
        put_file(f.temporary, "first");
        assert_true(amp_safe_file_busy(&f));
        assert_int_equal(amp_safe_file_begin("f", &g, &error), AMP_IO_FAILED);
        assert_string_equal(error.message, "cannot write f.new: another program is writing it; give each "
                            "training a folder of its own");
        assert_holds("f.new", "first");
        if (ends == 0) assert_int_equal(amp_safe_file_commit(&f, &error), AMP_OK);
        if (ends == 1) amp_safe_file_leave(&f);
        amp_safe_file_end(&f);
        assert_holds("f", ends == 0 ? "first" : "old");
        replace("f", "second");
        assert_holds("f", "second");
    }
}

/* What is printed into a closed stream would go into the file that has its descriptor now. */
TEST_WITH(nothing_is_saved_while_a_standard_stream_is_closed, enter_open_folder, leave_folder)
{
    put_file("f", "old");
    assert_int_equal(mkfifo("link", 0600), 0);
    for (int closed = 0; closed < 3; closed++) {
        int status, kept = dup(closed);
        char expected[200];
        amp_error error;
        amp_safe_file f;
        snprintf(
            expected, sizeof expected,
            "cannot write f: file descriptor %d is closed, so printed text may end up in the file; redirect "
            "it to /dev/null",
            closed);
        close(closed);
        status = amp_safe_file_begin("f", &f, &error);
        int also = amp_safe_file_begin("link", &f, NULL);
        dup2(kept, closed);
        close(kept);
        assert_int_equal(status, AMP_IO_FAILED);
        assert_int_equal(also, AMP_IO_FAILED);
        assert_string_equal(error.message, expected);
        assert_holds("f", "old");
        assert_absent("f.new");
    }
    replace("f", "new");
}

TEST_WITH(a_leftover_is_removed_unless_it_is_being_written, enter_open_folder, leave_folder)
{
    amp_safe_file f, g;
    amp_error error;
    assert_int_equal(amp_safe_file_locate("f", &g, &error), AMP_OK);
    assert_int_equal(amp_safe_file_remove_leftover(&g, &error), AMP_OK); /* there is none */
    put_file("f", "old");
    put_file("f.new", "left");
    assert_int_equal(amp_safe_file_remove_leftover(&g, &error), AMP_OK);
    assert_absent("f.new");
    assert_int_equal(amp_safe_file_begin("f", &f, &error), AMP_OK);
    assert_int_equal(amp_safe_file_remove_leftover(&g, &error), AMP_IO_FAILED);
    assert_non_null(strstr(error.message, "another program is writing it"));
    assert_int_equal(access("f.new", F_OK), 0);
    amp_safe_file_end(&f);
    amp_safe_file_end(&g);
    assert_holds("f", "old");
}

static void begin(void *name)
{
    amp_safe_file f;
    amp_error error = { 0 };
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(99);
    int result = amp_safe_file_begin(name, &f, &error);
    fputs(error.message, stderr);
    _exit(result);
}

/* As somebody who is not root: root may write everywhere. What begin says goes to `said`. */
static int begin_as_nobody(const char *name, char *said, size_t size)
{
    return in_child(begin, (void *)name, said, size);
}

TEST_WITH(a_protected_file_or_folder_is_left_alone, enter_open_folder, leave_folder)
{
    char said[512];
    assert_int_equal(mkdir("sub", 0777), 0);
    put_file("sub/f", "precious");
    assert_int_equal(chmod("sub/f", 0444), 0);
    assert_int_equal(chmod("sub", 0777), 0);
    assert_int_equal(begin_as_nobody("sub/f", said, sizeof said), AMP_IO_FAILED);
    assert_string_equal(said, "cannot write sub/f: Permission denied");
    assert_int_equal(chmod("sub/f", 0666), 0);
    assert_int_equal(chmod("sub", 0555), 0);
    assert_int_equal(begin_as_nobody("sub/f", said, sizeof said), AMP_IO_FAILED);
    assert_string_equal(said, "cannot write sub/f.new: Permission denied");
    assert_holds("sub/f", "precious");
    assert_int_equal(chmod("sub", 0777), 0);
    assert_int_equal(begin_as_nobody("none/f", said, sizeof said), AMP_IO_FAILED);
    assert_string_equal(said, "cannot write none/f.new: No such file or directory");
}

int main(void) { return run_listed_tests("files", NULL, NULL); }
