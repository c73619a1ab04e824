/* The cache file (cache_file.h) consists of a header, a table of entries, and pixels. Each process keeps a
 * copy of the entries with a hash table over them, and reads the entries that other processes have added. */
#define _DEFAULT_SOURCE /* flock */
#include "cache_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "../../files/checksum.h"
#include "../program/failure.h"
#include "data_files.h"

/* The last two digits are the version. */
static const char MAGIC[8] = "AMPIMG02";
/* room: the capacity of the table in entries. sum: the checksum of all fields before it. */
typedef struct header { char magic[8]; uint64_t room, unused[5], sum; } header;

/* An entry that is all zeros was not written yet. key: see amp_cache_file_key. offset: where the pixels begin
 * in the file. */
typedef struct entry {
    uint64_t key, offset, pixel_sum;
    int32_t w, h, c, photo_w, photo_h, reduction;
    uint64_t unused, sum;
} entry;

_Static_assert(sizeof(header) == 64 && sizeof(entry) == 64, "as in the file");

/* Whether an image's pixels match their checksum. A process checks this when it first uses the image. */
typedef enum state { UNCHECKED, GOOD, BAD } state;
typedef struct known { entry entry; _Atomic state state; } known;

struct amp_cache_file {
    char *name, *folder;    /* the cache file's name; the folder that relative image paths start from */
    int descriptor;
    size_t room;            /* the capacity of the table in entries */
    amp_photo_use use;
    double scale;
    amp_checksum empty;     /* the checksum of an empty input, with which each key starts */
    pthread_mutex_t adds;   /* held by the thread that appends to the file */
    int ended;              /* 1: this process appends nothing more; guarded by `adds` */
    pthread_mutex_t mutex;  /* guards the fields below */
    known *known;           /* `count` entries; a damaged entry is all zeros, with state BAD */
    size_t count, buckets;
    uint32_t *bucket;       /* the hash table: indices into `known` plus 1; 0: empty */
    atomic_int told;        /* 1: damaged images were already reported */
};

/* The number of tries to lock the file, and the time between two tries. Adding an image holds the lock for a
 * few milliseconds. */
enum { TRIES = 200, MILLISECONDS = 1 };

/* ---- entries ---- */

static uint64_t sum_of_header(const header *h) { return amp_quick_sum(h, offsetof(header, sum)); }
static uint64_t sum_of_entry(const entry *e) { return amp_quick_sum(e, offsetof(entry, sum)); }
static uint64_t pixels_begin(size_t room) { return sizeof(header) + room * sizeof(entry); }
static size_t pixels_of(const entry *e) { return (size_t)e->w * (size_t)e->h * (size_t)e->c; }

static int is_zero(const void *bytes, size_t size)
{
    static const char zeros[sizeof(entry)];
    return !memcmp(bytes, zeros, size);
}

static int is_whole(const entry *e, size_t room)
{
    const int r = e->reduction, most = 1 << 20;
    return e->sum == sum_of_entry(e) && (r == 1 || r == 2 || r == 4 || r == 8) && e->photo_w > 0
        && e->photo_h > 0 && e->photo_w <= most && e->photo_h <= most
        && e->w == amp_reduced_length(e->photo_w, r) && e->h == amp_reduced_length(e->photo_h, r) && e->c > 0
        && e->c <= 4 && e->offset >= pixels_begin(room);
}

static int is_of_use(const amp_cache_file *f, const entry *e)
{
    return e->reduction == amp_reduction(&f->use, f->scale, e->photo_w, e->photo_h);
}

uint64_t amp_cache_file_key(const amp_cache_file *f, const char *image, const char *decoder, int how)
{
    struct stat info;
    amp_checksum sum = f->empty;
    if (stat(image, &info) != 0) return 0;
    int64_t facts[] = { info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec, how };
    if (*image != '/') amp_checksum_add(&sum, f->folder, strlen(f->folder));
    if (*image != '/') amp_checksum_add(&sum, "/", 1);
    amp_checksum_add(&sum, image, strlen(image) + 1);
    amp_checksum_add(&sum, facts, sizeof facts);
    amp_checksum_add(&sum, decoder, strlen(decoder));
    uint64_t key = amp_checksum_value(&sum);
    return key ? key : 1;
}

/* ---- this process's copy of the entries; the caller holds f->mutex ---- */

static void remember(amp_cache_file *f, const entry *e)
{
    known *k = &f->known[f->count++];
    if (!is_whole(e, f->room)) {
        k->state = BAD;
        return;
    }
    k->entry = *e;
    size_t at = e->key % f->buckets;
    while (f->bucket[at]) at = (at + 1) % f->buckets;
    f->bucket[at] = (uint32_t)f->count;
}

/* Reads the entries that were added since the previous call. is_locked=0: stops at an entry that is still
 * being written. */
static void read_entries(amp_cache_file *f, int is_locked)
{
    entry e[64];
    for (;;) {
        size_t most = f->room - f->count < 64 ? f->room - f->count : 64;
        ssize_t got = pread(f->descriptor, e, most * sizeof *e, (off_t)pixels_begin(f->count));
        size_t read = got > 0 ? (size_t)got / sizeof *e : 0;
        for (size_t i = 0; i < read; i++) {
            if (is_zero(&e[i], sizeof *e) || (!is_locked && !is_whole(&e[i], f->room))) return;
            remember(f, &e[i]);
        }
        if (!read) return;
    }
}

/* Returns the entry for key, if this network can use it and it is not known to be damaged; otherwise NULL. */
static known *look_up(amp_cache_file *f, uint64_t key)
{
    for (size_t at = key % f->buckets; f->bucket[at]; at = (at + 1) % f->buckets) {
        known *k = &f->known[f->bucket[at] - 1];
        if (k->entry.key == key && k->state != BAD && is_of_use(f, &k->entry)) return k;
    }
    return NULL;
}

static known *find(amp_cache_file *f, uint64_t key, int is_locked)
{
    pthread_mutex_lock(&f->mutex);
    known *k = look_up(f, key);
    if (!k || is_locked) {
        read_entries(f, is_locked);
        k = look_up(f, key);
    }
    pthread_mutex_unlock(&f->mutex);
    return k;
}

/* ---- pixels ---- */

static void tell_damage(amp_cache_file *f)
{
    if (!atomic_exchange(&f->told, 1))
        amp_host_print("amp: cache=disk: %s: images in it are damaged; they are read from their files again",
                       f->name);
}

void amp_cache_file_unmap(amp_cache_mapping *mapped)
{
    if (mapped->address) munmap(mapped->address, mapped->length);
    *mapped = (amp_cache_mapping){ 0 };
}

/* Maps an entry's pixels and returns their address; NULL: mapping failed, or the file was truncated. */
static unsigned char *map_entry(amp_cache_file *f, const entry *e, amp_cache_mapping *mapped)
{
    struct stat info;
    uint64_t before = e->offset % (uint64_t)sysconf(_SC_PAGESIZE);
    size_t length = pixels_of(e) + before;
    if (fstat(f->descriptor, &info) != 0 || (uint64_t)info.st_size < e->offset
        || (uint64_t)info.st_size - e->offset < pixels_of(e)) return NULL;
    void *address = mmap(NULL, length, PROT_READ, MAP_SHARED, f->descriptor, (off_t)(e->offset - before));
    if (address == MAP_FAILED) return NULL;
    *mapped = (amp_cache_mapping){ address, length };
    return (unsigned char *)address + before;
}

int amp_cache_file_find(amp_cache_file *f, uint64_t key, amp_pixels *pixels, amp_cache_mapping *mapped)
{
    for (known *k; key && (k = find(f, key, 0));) {
        const entry *e = &k->entry;
        unsigned char *bytes = map_entry(f, e, mapped);
        if (!bytes) k->state = BAD;
        else if (k->state == UNCHECKED)
            k->state = amp_quick_sum(bytes, pixels_of(e)) == e->pixel_sum ? GOOD : BAD;
        *pixels = (amp_pixels){ bytes, e->w, e->h, e->c, e->photo_w, e->photo_h, e->reduction };
        if (k->state == GOOD) return 1;
        amp_cache_file_unmap(mapped);
        tell_damage(f);
    }
    return 0;
}

/* ---- adding ---- */

/* Locks the file. Returns 0 if that is impossible, or if another program keeps it locked. */
static int lock(int descriptor)
{
    for (int i = 0; i < TRIES; i++) {
        if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) return 1;
        if (errno != EWOULDBLOCK && errno != EINTR) return 0;
        nanosleep(&(struct timespec){ .tv_nsec = MILLISECONDS * 1000000L }, NULL);
    }
    return 0;
}

static int write_at(int descriptor, const void *bytes, size_t size, uint64_t offset)
{
    while (size) {
        ssize_t written = pwrite(descriptor, bytes, size, (off_t)offset);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return 0;
        bytes = (const char *)bytes + written;
        offset += (uint64_t)written;
        size -= (size_t)written;
    }
    return 1;
}

static int end_adding(amp_cache_file *f, const char *why)
{
    f->ended = 1;
    amp_host_print("amp: cache=disk: %s: no more images will be added: %s", f->name, why);
    return 0;
}

/* Appends an image. The caller has locked the file and has read all its entries. */
static int append(amp_cache_file *f, uint64_t key, const amp_pixels *p)
{
    struct stat info;
    size_t size = amp_pixels_size(p), index = f->count;
    if (index == f->room) return end_adding(f, "its table is full; remove the file to begin a new one");
    if (fstat(f->descriptor, &info) != 0) return end_adding(f, strerror(errno));
    entry e = { .key = key, .offset = (uint64_t)info.st_size, .pixel_sum = amp_quick_sum(p->bytes, size),
                .w = p->w, .h = p->h, .c = p->c, .photo_w = p->photo_w, .photo_h = p->photo_h,
                .reduction = p->reduction };
    if (e.offset < pixels_begin(f->room)) e.offset = pixels_begin(f->room);
    e.sum = sum_of_entry(&e);
    if (!write_at(f->descriptor, p->bytes, size, e.offset)
        || !write_at(f->descriptor, &e, sizeof e, pixels_begin(index))) {
        const char *why = strerror(errno);
        if (ftruncate(f->descriptor, info.st_size) != 0) why = strerror(errno);
        return end_adding(f, why);
    }
    return 1;
}

int amp_cache_file_add(amp_cache_file *f, uint64_t key, const amp_pixels *p)
{
    int added = 0;
    pthread_mutex_lock(&f->adds);
    if (key && !f->ended && lock(f->descriptor)) {
        if (!find(f, key, 1)) added = append(f, key, p);
        flock(f->descriptor, LOCK_UN);
    }
    pthread_mutex_unlock(&f->adds);
    return added;
}

/* ---- opening ---- */

/* The number of entries that this network can use. */
static size_t count_usable(const amp_cache_file *f)
{
    size_t usable = 0;
    for (size_t i = 0; i < f->count; i++)
        usable += f->known[i].state != BAD && is_of_use(f, &f->known[i].entry);
    return usable;
}

static amp_status check_space(const amp_cache_file *f, size_t images, size_t bytes, amp_error *error)
{
    struct statvfs disk;
    size_t usable = count_usable(f), missing = images > usable ? images - usable : 0;
    double mib = (double)missing * (double)bytes / 0x1p20;
    double there = fstatvfs(f->descriptor, &disk) ? mib * 2
                                                  : (double)disk.f_bavail * (double)disk.f_frsize / 0x1p20;
    if (mib > .9 * there)
        return amp_fail(error, AMP_IO_FAILED, "amp: cache=disk: %zu images would take about %.0f MiB in "
                        "%.300s, but only %.0f MiB are free; set a lower cache_scale, another backup folder, "
                        "or cache=off", missing, mib, f->name, there);
    fprintf(stderr, "amp: cache=disk: %s holds %zu images for this network; the other %zu of the training "
            "list take about %.1f MiB of the %.0f MiB that are free\n", f->name, usable, missing, mib, there);
    return AMP_OK;
}

typedef enum kind { OURS, DAMAGED, NO_CACHE, NOT_OPEN } kind;

/* Opens and locks the file, and reads its header. If the file is new, writes the header. */
static kind read_header(const char *name, size_t images, int *opened, size_t *room)
{
    struct stat info;
    header h = { .room = 2 * (uint64_t)images + 1024 };
    int descriptor = *opened = amp_open_locked(name, 0, TRIES, MILLISECONDS);
    if (descriptor < 0) return NOT_OPEN;
    if (fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) return NO_CACHE;
    if (info.st_size == 0) {
        memcpy(h.magic, MAGIC, sizeof MAGIC);
        h.sum = sum_of_header(&h);
        int is_written = ftruncate(descriptor, (off_t)pixels_begin(h.room)) == 0
            && write_at(descriptor, &h, sizeof h, 0);
        *room = h.room;
        return is_written ? OURS : DAMAGED;
    }
    ssize_t got = pread(descriptor, &h, sizeof h, 0);
    size_t named = got < 6 ? (size_t)got : 6; /* compare only the magic, without its version */
    if (got <= 0 || (memcmp(h.magic, MAGIC, named) && !is_zero(&h, (size_t)got))) return NO_CACHE;
    *room = h.room;
    return got == sizeof h && !memcmp(h.magic, MAGIC, sizeof MAGIC) && h.sum == sum_of_header(&h)
        && (uint64_t)info.st_size >= pixels_begin(h.room) ? OURS : DAMAGED;
}

static amp_cache_file *make(const char *name, int descriptor, size_t room)
{
    amp_cache_file *f = amp_allocated(calloc(1, sizeof *f));
    char folder[4096];
    f->name = amp_allocated(strdup(name));
    f->folder = amp_allocated(strdup(getcwd(folder, sizeof folder) ? folder : ""));
    f->descriptor = descriptor;
    f->room = room;
    f->buckets = 2 * room + 1;
    f->known = amp_allocated(calloc(room, sizeof *f->known));
    f->bucket = amp_allocated(calloc(f->buckets, sizeof *f->bucket));
    amp_checksum_start(&f->empty);
    pthread_mutex_init(&f->adds, NULL);
    pthread_mutex_init(&f->mutex, NULL);
    return f;
}

amp_status amp_cache_file_open(const char *name, const amp_photo_use *use, double scale, size_t images,
                               size_t bytes, amp_cache_file **out, amp_error *error)
{
    size_t room = 0;
    int descriptor;
    kind found = read_header(name, images, &descriptor, &room);
    *out = NULL;
    if (found == DAMAGED) {
        fprintf(stderr, "amp: cache=disk: %s is damaged; a new one is made\n", name);
        unlink(name);
        close(descriptor);
        found = read_header(name, images, &descriptor, &room);
    }
    if (found != OURS) {
        if (found != NO_CACHE)
            fprintf(stderr, "amp: cache=disk: cannot use %s (%s); images will not be cached\n", name,
                    strerror(errno));
        if (descriptor >= 0) close(descriptor);
        return found != NO_CACHE ? AMP_OK
             : amp_fail(error, AMP_IO_FAILED, "amp: cache=disk: %.500s is not a cache of images; move it, "
                                              "since cache=disk needs this name", name);
    }
    amp_cache_file *f = make(name, descriptor, room);
    f->use = *use;
    f->scale = scale;
    read_entries(f, 1);
    flock(descriptor, LOCK_UN);
    for (size_t i = 0; i < f->count; i++) if (f->known[i].state == BAD) tell_damage(f);
    *out = f;
    return check_space(f, images, bytes, error);
}
