/* A file that is not a valid sidecar is rejected with a reason; a sidecar that cannot be written completely,
 * or is useless, leaves no file. */
#define _DEFAULT_SOURCE /* mkstemps */
#include "testing.h"

#include <signal.h>
#include <sys/resource.h>

#include "sidecar_networks.h"

/* ---- invalid files ---- */

static void refused(const void *bytes, size_t size, const char *reason)
{
    amp_error error = { 0 };
    amp_sidecar *c = (void *)&error;
    amp_status status = parse_copy(bytes, size, "name.amp", &c, &error);
    if (status != AMP_BAD_SIDECAR || c || strncmp(error.message, "name.amp: ", 10)
        || !strstr(error.message, reason) || !strstr(error.message, "remove the sidecar to start")
        || !is_one_line(error.message))
        fail_msg("status %d, \"%s\" instead of \"%s\"", status, error.message, reason);
}

static unsigned char *small_sidecar(const char *net_keys, int window, size_t *size)
{
    char text[1024];
    snprintf(text, sizeof text, "[net]\nbatch=2\nsubdivisions=2\nwidth=4\nheight=4\nchannels=1\n"
             "momentum=0.9\n%s" CONV(2, "") "[cost]\n", net_keys);
    network *net = parse(text, "fp32");
    train_step(net, 1);
    save(net, window);
    release(net);
    return file_bytes(sidecar, size);
}

TEST(every_truncation_is_refused)
{
    size_t size;
    unsigned char *bytes = small_sidecar("", 1, &size);
    for (size_t length = 0; length < size; length++) {
        refused(bytes, length, length == 0 ? "empty" : length < 8 ? "did not write this" : "cut off");
        unsigned char *cut = malloc(length ? length : 1); /* in a separate block, so that sanitizers see
                                                             its end */
        memcpy(cut, bytes, length);
        seal_sidecar(cut, length);
        refused(cut, length, "");
        free(cut);
    }
    bytes[size] = 0;
    refused(bytes, size + 1, "1 bytes follow its end");
    free(bytes);
}

TEST(every_flipped_byte_is_refused)
{
    size_t size;
    unsigned char *bytes = small_sidecar("adam=1\n", 1, &size);
    for (size_t at = 0; at < size; at++)
        for (int bit = 0; bit <= 8; bit++) {
            unsigned char flip = bit < 8 ? (unsigned char)(1 << bit) : 0xff;
            bytes[at] ^= flip;
            refused(bytes, size, "");
            bytes[at] ^= flip;
        }
    amp_sidecar *c;
    assert_int_equal(parse_copy(bytes, size, "name.amp", &c, NULL), AMP_OK);
    amp_sidecar_free(c);
    free(bytes);
}

TEST(a_later_version_is_refused_by_its_number)
{
    size_t size;
    unsigned char *bytes = small_sidecar("", 0, &size);
    amp_store_u32(bytes + 8, 6);
    refused(bytes, size, "version 6 of its format, but this program reads only versions up to 5; update the "
                         "program, or remove the sidecar");
    refused(bytes, 12, "version 6");
    amp_store_u32(bytes + 8, 3);
    refused(bytes, size, "it has version 3 of its format, which this program does not read; remove the "
                         "sidecar");
    free(bytes);
}

/* Damage that the checksum does not show, because the file was made that way. */
TEST(content_that_makes_no_sense_is_refused)
{
    enum { SCALER, RUN, NET, SPIKES, ARRAY, HEADER };
    static const struct {
        const char *reason; int part, nth; long at; int bytes; uint64_t value;
    } changes[] = {
        { "optimizer 3", HEADER, 0, 32, 4, 3 },
        { "in its first bytes", HEADER, 0, 12, 4, 41 },
        { "bytes after the last", HEADER, 0, 36, 4, 3 },
        { "it holds 0 records", HEADER, 0, 36, 4, 0 },
        { "longer than the file", HEADER, 0, 36, 4, 0xffffffff },
        { "longer than the file", SCALER, 0, -8, 8, UINT64_MAX },
        { "longer than the file", ARRAY, 3, -8, 8, UINT64_MAX - 11 },
        { "does not belong there", RUN, 0, -12, 4, AMP_TAG_SCALER },
        { "does not belong there", ARRAY, 1, -12, 4, AMP_TAG_RUN },
        { "does not belong there", ARRAY, 1, -12, 4, 0x12345678 },
        { "loss scaler", SCALER, 0, 0, 4, 0x7fc00000 },       /* NaN */
        { "loss scaler", SCALER, 0, 0, 4, 0x7f800000 },       /* inf */
        { "loss scaler", SCALER, 0, 0, 4, 0 },
        { "loss scaler", SCALER, 0, 0, 4, 0xbf800000 },       /* -1 */
        { "loss scaler", SCALER, 0, 4, 4, 2 },
        { "loss scaler", SCALER, 0, 8, 4, 0xffffffff },
        { "negative", RUN, 0, 8, 8, UINT64_MAX },             /* t */
        { "negative", RUN, 0, 32, 4, 0x80000000 },            /* width */
        { "negative", RUN, 0, 48, 4, 0xffffffff },            /* window */
        { "out of range", RUN, 0, 8, 8, INT32_MAX },          /* t: the host continues counting from it */
        { "out of range", RUN, 0, 8, 8, INT64_MAX },
        { "out of range", RUN, 0, 200, 4, INT32_MAX },        /* loop_count */
        { "out of range", RUN, 0, 204, 4, 0x7fc00000 },       /* average_loss */
        { "neither 0 nor 1", RUN, 0, 52, 4, 2 },              /* seeded */
        { "the network is invalid", NET, 0, 0, 4, 1 },    /* layers */
        { "the network is invalid", NET, 0, 0, 4, 0x7fffffff },
        { "the network is invalid", NET, 0, 4, 1, 0 },    /* an empty type */
        { "the network is invalid", NET, 0, 5, 1, '\n' },
        { "the network is invalid", NET, 0, 4, 1, 255 },
        /* the first parameter's layer */
        { "the network is invalid", NET, 0, 4 + 14 + 5 + 4, 4, 2 },
        { "the network is invalid", NET, 0, 4 + 14 + 5 + 4 + 4, 4, 2 },        /* its flag */
        { "does not fit", NET, 0, 4 + 14 + 5 + 4 + 8, 8, UINT64_MAX / 4 },         /* its count */
        { "counters are out of range", SPIKES, 0, 0, 8, UINT64_MAX },
        { "counters are out of range", SPIKES, 0, 16, 8, 9 }, /* number of norms seen; fewer losses */
        { "a number is not finite", SPIKES, 0, 8, 8, UINT64_C(0x7ff8) << 48 },
        { "a number is not finite", SPIKES, 0, 24, 8, UINT64_C(0x7ff0) << 48 },
        { "a number is not finite", SPIKES, 0, 24 + 8 * 128 + 8 + 8 * 127, 8, UINT64_C(0xfff0) << 48 },
        { "a norm is negative", SPIKES, 0, 24 + 8 * 127, 8, UINT64_C(0xbff0) << 48 },
        { "does not fit", ARRAY, 0, 0, 4, 7 },                /* kind */
        { "does not fit", ARRAY, 0, 0, 4, UINT32_MAX },
        { "does not fit", ARRAY, 0, 0, 4, AMP_SAVED_M },      /* Adam's in an SGD file */
        { "does not fit", ARRAY, 0, 4, 4, 3 },                /* index */
        { "does not fit", ARRAY, 0, 4, 4, UINT32_MAX },
        /* a count whose number of bytes wraps to the right one */
        { "does not fit", ARRAY, 0, 8, 8, UINT64_MAX / 2 + 10 },
        { "does not fit", ARRAY, 0, 8, 8, (UINT64_C(1) << 62) + 18 },
        { "does not fit", ARRAY, 4, 4, 4, 1 },                /* the same array twice */
        { "not finite", ARRAY, 0, 16, 4, 0x7f800000 },
        { "not finite", ARRAY, 0, 16 + 4 * 17, 4, 0xffc00001 },
    };
    static const uint32_t tags[] = { AMP_TAG_SCALER, AMP_TAG_RUN, AMP_TAG_NETWORK, AMP_TAG_SPIKES,
                                     AMP_TAG_ARRAY };
    size_t size;
    unsigned char *bytes = small_sidecar("", 1, &size), *copy = malloc(size);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        memcpy(copy, bytes, size);
        unsigned char *part = changes[i].part == HEADER ? copy
            : sidecar_record(copy, size, tags[changes[i].part], changes[i].nth);
        assert_non_null(part);
        for (int k = 0; k < changes[i].bytes; k++)
            part[changes[i].at + k] = (unsigned char)(changes[i].value >> 8 * k);
        seal_sidecar(copy, size);
        refused(copy, size, changes[i].reason);
    }
    free(copy);
    free(bytes);
}

TEST(a_negative_second_moment_is_refused)
{
    size_t size;
    unsigned char *bytes = small_sidecar("adam=1\n", 0, &size);
    unsigned char *v = sidecar_record(bytes, size, AMP_TAG_ARRAY, 1);
    assert_int_equal(amp_fetch_u32(v), AMP_SAVED_V);
    amp_store_u32(v + 16, 0xbf800000);
    seal_sidecar(bytes, size);
    refused(bytes, size, "not finite");
    free(bytes);
}

/* Gradients of an unfinished batch may be inf: the step is skipped at its end, as it would have been without
 * the restart. */
TEST(an_overflow_in_a_half_done_batch_is_kept)
{
    size_t size;
    unsigned char *bytes = small_sidecar("", 1, &size);
    unsigned char *gradient = sidecar_record(bytes, size, AMP_TAG_ARRAY, 1);
    assert_int_equal(amp_fetch_u32(gradient), AMP_SAVED_GRADIENT);
    amp_store_u32(gradient + 16, 0x7f800000);
    seal_sidecar(bytes, size);
    amp_sidecar *c;
    assert_int_equal(parse_copy(bytes, size, "name.amp", &c, NULL), AMP_OK);
    amp_sidecar_free(c);
    free(bytes);
}

TEST(a_missing_array_is_refused)
{
    size_t size;
    unsigned char *bytes = small_sidecar("", 0, &size);
    uint32_t records = amp_fetch_u32(bytes + 36);
    unsigned char *last = sidecar_record(bytes, size, AMP_TAG_ARRAY, (int)records - 7);
    size = (size_t)(last - 12 - bytes) + 8;
    amp_store_u32(bytes + 36, records - 1);
    seal_sidecar(bytes, size);
    refused(bytes, size, "an array is missing");
    free(bytes);
}

static void refused_file(const char *path, amp_status expected, const char *reason)
{
    amp_error error = { 0 };
    amp_sidecar *c = (void *)&error;
    amp_status status = amp_sidecar_read(path, &c, &error);
    if (status != expected || c || !strstr(error.message, path) || !strstr(error.message, reason)
        || !strstr(error.message, "remove the sidecar to start") || !is_one_line(error.message))
        fail_msg("status %d, \"%s\" instead of \"%s\"", status, error.message, reason);
}

TEST(files_that_are_no_sidecars_are_refused)
{
    static const char path[] = "none";
    network *net = make("", "fp32");
    save(net, 0);
    release(net);
    refused_file(weights, AMP_BAD_SIDECAR, "Darknet AMP did not write this file");
    refused_file(test_folder, AMP_IO_FAILED, "Is a directory");
    refused_file("/dev/null", AMP_IO_FAILED, "not a regular file");
    refused_file(path, AMP_IO_FAILED, "No such file");
    put_file(path, "");
    refused_file(path, AMP_BAD_SIDECAR, "empty");
    put_file(path, "[net]\nbatch=1\n");
    refused_file(path, AMP_BAD_SIDECAR, "Darknet AMP did not write this file");
    if (geteuid() != 0) { /* root reads everything */
        assert_int_equal(chmod(path, 0), 0);
        refused_file(path, AMP_IO_FAILED, "Permission denied");
    }
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    refused_file(path, AMP_IO_FAILED, "not a regular file");
    unlink(path);
    assert_int_equal(symlink("nowhere", path), 0);
    refused_file(path, AMP_IO_FAILED, "it is a symbolic link to a missing file");
    unlink(path);
    assert_int_equal(symlink(path, path), 0);
    refused_file(path, AMP_IO_FAILED, "Too many levels of symbolic links");
    unlink(path);
}

/* ---- writing ---- */

TEST(a_full_disk_leaves_no_file_and_a_reason)
{
    network *net = make("", "fp32");
    amp_run_state run = run_of(net, 0);
    amp_error error;
    struct stat info;
    save(net, 0);
    assert_int_equal(stat(sidecar, &info), 0);
    struct rlimit old, tight;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_IGN);
    for (off_t limit = 0; limit < info.st_size; limit += limit < 64 ? 1 : 517) {
        tight = (struct rlimit){ (rlim_t)limit, old.rlim_max };
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
        amp_status status = amp_sidecar_write(sidecar, engine_of(net), &run, 1, &error);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        assert_int_equal(status, AMP_IO_FAILED);
        if (!strstr(error.message, sidecar) || !strstr(error.message, "File too large"))
            fail_msg("%s", error.message);
        assert_int_equal(access(sidecar, F_OK), -1);
    }
    assert_int_equal(amp_sidecar_write("/dev/full", engine_of(net), &run, 1, &error), AMP_IO_FAILED);
    assert_non_null(strstr(error.message, "No space left on device"));
    assert_int_equal(access("/dev/full", F_OK), 0);
    assert_int_equal(amp_sidecar_write("/dev/null/x", engine_of(net), &run, 1, &error), AMP_IO_FAILED);
    assert_non_null(strstr(error.message, "Not a directory"));
    release(net);
}

TEST(a_state_with_nan_is_not_saved)
{
    network *net = make("adam=1\n", "fp32");
    amp_run_state run = run_of(net, 0);
    amp_error error;
    save(net, 0);
    int count;
    const amp_param *p = engine_params(engine_of(net), &count);
    float *arrays[] = { p[1].master, p[0].m, p[2].v };
    for (int i = 0; i < 3; i++) {
        float old = arrays[i][0];
        arrays[i][0] = i ? INFINITY : NAN;
        assert_int_equal(amp_sidecar_write(sidecar, engine_of(net), &run, 1, &error), AMP_DIVERGED);
        arrays[i][0] = old;
    }
    amp_sidecar_free(read_back()); /* the previous one still exists */
    release(net);
}

int main(void) { return run_listed_tests("sidecar damage", enter_folder, leave_folder); }
