/* Follows symbolic links, and locks, flushes and renames a temporary file: see safe_file.h. */
#include "safe_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_LINKS = 40, LINK_BYTES = 4096 }; /* MAX_LINKS: as many links as Linux follows */

amp_status amp_cannot_write(const char *path, int why, amp_error *error)
{
    return amp_fail(error, AMP_IO_FAILED, "cannot write %.500s: %s", path, strerror(why));
}

/* Concatenates the first `length` bytes of a with b. The caller frees the result. */
static char *joined(const char *a, size_t length, const char *b)
{
    size_t rest = strlen(b) + 1;
    char *text = amp_allocated(malloc(length + rest));
    memcpy(text, a, length);
    memcpy(text + length, b, rest);
    return text;
}

/* The length of path up to and including its last slash; 0 if it has no slash. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Returns the target of the symbolic link `path`; a relative target is prefixed with the folder of `path`.
 * The caller frees the result. Returns NULL and sets errno if `path` is not a link. */
static char *follow(const char *path)
{
    char text[LINK_BYTES];
    ssize_t length = readlink(path, text, sizeof text - 1);
    if (length < 0) return NULL;
    text[length] = 0;
    return joined(path, text[0] == '/' ? 0 : folder_length(path), text);
}

/* Follows all symbolic links of `name`, and returns the path that they lead to. There need not be a file at
 * this path. The caller frees the result. Returns NULL and sets errno on failure. */
static char *resolve(const char *name)
{
    char *path = joined(name, strlen(name), "");
    for (int links = 0; links <= MAX_LINKS; links++) {
        char *next = follow(path);
        if (!next && (errno == EINVAL || errno == ENOENT)) return path; /* not a link, or missing */
        int why = errno;
        free(path);
        errno = why;
        if (!next) return NULL;
        path = next;
    }
    free(path);
    errno = ELOOP;
    return NULL;
}

/* Whether `path` names the file *info. A link in /proc may lead to something without a path (a pipe). */
static int is_same_file(const char *path, const struct stat *info)
{
    struct stat other;
    return stat(path, &other) == 0 && other.st_dev == info->st_dev && other.st_ino == info->st_ino;
}

amp_status amp_safe_file_locate(const char *name, amp_safe_file *out, amp_error *error)
{
    struct stat info;
    int exists = stat(name, &info) == 0;
    *out = (amp_safe_file){ 0 };
    if (exists && S_ISDIR(info.st_mode))
        return amp_fail(error, AMP_IO_FAILED, "%.500s: %s", name, strerror(EISDIR));
    errno = 0;
    out->direct = exists && !S_ISREG(info.st_mode);
    if (!out->direct && !(out->target = resolve(name))) return amp_cannot_write(name, errno, error);
    if (exists && !out->direct && !is_same_file(out->target, &info)) {
        free(out->target);
        out->direct = 1;
    }
    if (out->direct) out->target = joined(name, strlen(name), "");
    out->temporary = joined(out->target, strlen(out->target), out->direct ? "" : ".new");
    return AMP_OK;
}

/* Gives the new file the owner and the permissions of the old file, if the system allows it. Only root can
 * change owners, but not in a container that lacks the old owner, and some file systems have neither owners
 * nor permissions. A failure is ignored, because the file can still be saved. */
static void copy_permissions(int file, const struct stat *old)
{
    int ignored = fchown(file, old->st_uid, old->st_gid);
    ignored = fchmod(file, old->st_mode & 0777);
    (void)ignored;
}

/* Locks a temporary file, so that two programs cannot save under one name at once. The system releases a
 * killed program's lock. Returns 0 if another program holds the lock; else 1, even on a file system without
 * locks. */
static int lock(int file) { return flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK; }

int amp_safe_file_busy(const amp_safe_file *f)
{
    int file = open(f->temporary, O_WRONLY | O_NONBLOCK | O_CLOEXEC), busy = 0;
    if (file < 0) return 0;
    busy = !lock(file);
    close(file);
    return busy;
}

static amp_status is_busy(const char *temporary, amp_error *error)
{
    return amp_fail(error, AMP_IO_FAILED, "cannot write %.500s: another program is writing it; "
                    "give each training a folder of its own", temporary);
}

/* Removes the temporary file of an interrupted save, after locking it so that no other program uses it. If
 * the name then refers to a different file, another program has begun to save to that file. */
static amp_status remove_leftover(const char *temporary, amp_error *error)
{
    struct stat mine, now;
    int file = open(temporary, O_WRONLY | O_NONBLOCK | O_CLOEXEC), why = 0, busy = file >= 0 && !lock(file);
    if (file >= 0 && fstat(file, &mine) == 0 && stat(temporary, &now) == 0)
        busy |= mine.st_dev != now.st_dev || mine.st_ino != now.st_ino;
    if (!busy && unlink(temporary) != 0 && errno != ENOENT) why = errno;
    if (file >= 0) close(file);
    if (busy) return is_busy(temporary, error);
    return why ? amp_cannot_write(temporary, why, error) : AMP_OK;
}

static amp_status make_temporary(amp_safe_file *f, amp_error *error)
{
    struct stat old;
    int exists = stat(f->target, &old) == 0;
    if (exists && access(f->target, W_OK) != 0) return amp_cannot_write(f->target, errno, error);
    AMP_TRY(remove_leftover(f->temporary, error));
    int file = open(f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, exists ? 0600 : 0666);
    if (file < 0) return amp_cannot_write(f->temporary, errno, error);
    if (!lock(file)) {
        close(file);
        return is_busy(f->temporary, error);
    }
    if (exists) copy_permissions(file, &old);
    f->locked = file;
    f->pending = 1;
    return AMP_OK;
}

amp_status amp_safe_file_remove_leftover(const amp_safe_file *f, amp_error *error)
{
    return f->direct ? AMP_OK : remove_leftover(f->temporary, error);
}

/* Fails if a standard stream is closed: the file opened next would then receive that stream's output. */
static amp_status check_streams(const char *name, amp_error *error)
{
    for (int file = STDIN_FILENO; file <= STDERR_FILENO; file++)
        if (fcntl(file, F_GETFD) < 0)
            return amp_fail(
                error, AMP_IO_FAILED,
                "cannot write %.500s: file descriptor %d is closed, so printed text may end up in the file; "
                "redirect it to /dev/null",
                name, file);
    return AMP_OK;
}

amp_status amp_safe_file_begin(const char *name, amp_safe_file *out, amp_error *error)
{
    AMP_TRY(check_streams(name, error));
    AMP_TRY(amp_safe_file_locate(name, out, error));
    if (out->direct) return AMP_OK;
    amp_status status = make_temporary(out, error);
    if (status != AMP_OK) amp_safe_file_end(out);
    return status;
}

amp_status amp_safe_file_flush(const amp_safe_file *f, amp_error *error)
{
    if (f->direct) return AMP_OK;
    int file = open(f->temporary, O_WRONLY | O_CLOEXEC), why = 0;
    if (file < 0) return amp_cannot_write(f->temporary, errno, error);
    if (fsync(file) != 0) why = errno;
    if (close(file) != 0 && !why) why = errno;
    return why ? amp_cannot_write(f->temporary, why, error) : AMP_OK;
}

/* Flushes the folder of `path` to disk, which makes a rename durable. If the folder cannot be opened or
 * flushed, the system writes it later; this is not an error. */
static amp_status sync_folder_of(const char *path, amp_error *error)
{
    size_t length = folder_length(path);
    char *folder = length ? joined(path, length, "") : joined(".", 1, "");
    int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), why = 0;
    free(folder);
    if (file < 0) return AMP_OK;
    if (fsync(file) != 0 && errno == EIO) why = EIO;
    close(file);
    return why ? amp_cannot_write(path, why, error) : AMP_OK;
}

static amp_status rename_file(const char *from, const char *to, amp_error *error)
{
    if (rename(from, to) == 0) return AMP_OK;
    return amp_fail(error, AMP_IO_FAILED, "cannot rename %.400s to %.400s: %s", from, to, strerror(errno));
}

amp_status amp_replace_file(const char *temporary, const char *target, amp_error *error)
{
    AMP_TRY(rename_file(temporary, target, error));
    return sync_folder_of(target, error);
}

amp_status amp_safe_file_place(amp_safe_file *f, amp_error *error)
{
    if (f->direct) return AMP_OK;
    AMP_TRY(rename_file(f->temporary, f->target, error));
    amp_safe_file_leave(f);
    return sync_folder_of(f->target, error);
}

amp_status amp_safe_file_commit(amp_safe_file *f, amp_error *error)
{
    AMP_TRY(amp_safe_file_flush(f, error));
    return amp_safe_file_place(f, error);
}

void amp_safe_file_leave(amp_safe_file *f)
{
    if (f->pending) close(f->locked);
    f->pending = 0;
}

void amp_safe_file_end(amp_safe_file *f)
{
    if (f->pending) unlink(f->temporary);
    amp_safe_file_leave(f);
    free(f->target);
    free(f->temporary);
    *f = (amp_safe_file){ 0 };
}

int amp_file_exists(const char *path) { return access(path, F_OK) == 0; }

int amp_name_is_taken(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

int amp_is_same_file(const char *a, const char *b)
{
    struct stat info;
    return stat(b, &info) == 0 && is_same_file(a, &info);
}

int amp_is_younger(const char *a, const char *b)
{
    struct stat x, y;
    if (stat(a, &x) != 0 || stat(b, &y) != 0) return 0;
    if (x.st_mtim.tv_sec != y.st_mtim.tv_sec) return x.st_mtim.tv_sec > y.st_mtim.tv_sec;
    return x.st_mtim.tv_nsec > y.st_mtim.tv_nsec;
}

const char *amp_file_name(const char *path) { return path + folder_length(path); }
