/* The client side of taking turns with other programs: see turns.h. */
#define _DEFAULT_SOURCE /* unsetenv */
#include "turns.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "clock.h"
#include "program.h"

enum { LONGEST_LINE = 4096 };

amp_status amp_turns_take(amp_error *error)
{
    const char *descriptors = getenv(AMP_TURNS);
    char *end, *last = NULL;
    if (!descriptors) return AMP_OK;
    long in = strtol(descriptors, &end, 10), out = *end == ',' ? strtol(end + 1, &last, 10) : -1;
    if (!last || *last || last == end + 1 || end == descriptors || in < 0 || out < 0 || in > 65535
        || out > 65535 || fcntl((int)in, F_GETFD) < 0 || fcntl((int)out, F_GETFD) < 0)
        return amp_fail(error, AMP_BAD_CONFIG, AMP_TURNS "=%s: expected two open file descriptors, IN,OUT; "
                        "only `darknet amp compare` and `bench` set this variable; unset it", descriptors);
    unsetenv(AMP_TURNS); /* child processes must not see it */
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* kill this program too if the other side is killed */
    amp_program_to_set()->turns = (struct amp_turns){ .taken = 1, .in = (int)in, .out = (int)out };
    fcntl((int)in, F_SETFD, FD_CLOEXEC);
    fcntl((int)out, F_SETFD, FD_CLOEXEC);
    setvbuf(stdout, NULL, _IOLBF, 0); /* stdout and stderr have a common log: keep their lines in order */
    return AMP_OK;
}

int amp_turns_taken(void) { return amp_this_program()->turns.taken; }
double amp_turns_waited(void) { return amp_this_program()->turns.waited; }

/* Sends a line that begins with `before`, which is "" or " ". Returns 0 if the other side is gone: the
 * program ignores SIGPIPE, so the write fails. */
static int send_line(const char *before, const char *format, va_list args)
{
    char text[LONGEST_LINE];
    size_t length = (size_t)snprintf(text, sizeof text, "%s", before), sent = 0;
    int printed = vsnprintf(text + length, sizeof text - 1 - length, format, args);
    length += printed < (int)(sizeof text - 1 - length) ? (size_t)printed : sizeof text - 2 - length;
    text[length++] = '\n';
    while (sent < length) {
        ssize_t written = write(amp_this_program()->turns.out, text + sent, length - sent);
        if (written < 0 && errno != EINTR) return 0;
        if (written > 0) sent += (size_t)written;
    }
    return 1;
}

static int wait_for_byte(char *byte)
{
    ssize_t got;
    do got = read(amp_this_program()->turns.in, byte, 1); while (got < 0 && errno == EINTR);
    return got == 1;
}

int amp_turns_yield(const char *format, ...)
{
    char answer = 's';
    va_list args;
    if (!amp_turns_taken()) return 0;
    double began = amp_clock_seconds();
    va_start(args, format);
    int stop = !send_line("", format, args) || !wait_for_byte(&answer) || answer != 'g';
    va_end(args);
    amp_program_to_set()->turns.waited += amp_clock_seconds() - began;
    return stop;
}

int amp_turns_ready(void) { return amp_turns_yield("ready"); }

void amp_turns_send(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (amp_turns_taken()) send_line(" ", format, args);
    va_end(args);
}
