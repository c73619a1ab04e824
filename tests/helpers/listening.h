/* What this program prints to one of its own streams, 1 or 2, goes into a file. Include testing.h first. */
#ifndef LISTENING_H
#define LISTENING_H

#include <unistd.h>

typedef struct heard { int stream, file, was; } heard;

static inline heard listen_to(int stream)
{
    char path[] = "/tmp/heard_XXXXXX";
    fflush(NULL);
    heard h = { stream, mkstemp(path), dup(stream) };
    assert_true(h.file >= 0 && h.was >= 0);
    unlink(path);
    dup2(h.file, stream);
    return h;
}

/* Returns the beginning of it, which is the caller's. */
static inline char *end_listening(heard h)
{
    enum { MOST = 1 << 16 };
    char *text = calloc(1, MOST);
    fflush(NULL);
    dup2(h.was, h.stream);
    close(h.was);
    assert_true(pread(h.file, text, MOST - 1, 0) >= 0);
    close(h.file);
    return text;
}

#endif
