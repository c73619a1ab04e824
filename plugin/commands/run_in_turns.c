/* The parent's side of turns: starts the child programs and decides whose turn it is. At the end of a step a
 * child writes a line into its socket and waits for the answer: a byte 'g' (continue) or 's' (stop). */
#define _GNU_SOURCE /* environ */
#include "run_in_turns.h"

#include "../host/fork.h"
#include "../host/program/clock.h"
#include "../host/program/failure.h"
#include "../host/program/turns.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* The first steps of a turn are slow: caches are cold, and the child that worked before is still loading its
 * next images. So a turn has at least LEAST_STEPS steps, even if they take longer than its slice. */
enum { LINE_ROOM = 8192, NO_CHILD = -1, LEAST_STEPS = 4, CHILDS_SOCKET = 3 };

typedef enum child_state {
    BUSY,  /* makes a step, or is starting */
    WAITS, /* waits for the parent's answer */
    GONE   /* has ended */
} child_state;

typedef struct child {
    pid_t process;
    int socket;               /* the parent's end, for reading the child's lines and writing answers */
    child_state state;
    int ready, told_to_stop;
    char text[LINE_ROOM];     /* the first `length` bytes of a line that is still incomplete */
    size_t length;
} child;

typedef struct schedule {
    amp_turns_program *programs;
    child *children;
    int count, turn;          /* turn: the child whose turn it is; NO_CHILD until all are ready */
    double slice, turn_began; /* in seconds: the length of a turn; the time when this turn began */
    int steps;                /* number of steps begun in this turn */
    const amp_turns_watcher *watcher;
    int (*stop)(void);
} schedule;

/* ---- starting ---- */

void amp_turns_add(amp_turns_program *p, ...)
{
    va_list words;
    va_start(words, p);
    for (const char *word; (word = va_arg(words, const char *));) p->argv[p->words++] = word;
    va_end(words);
}

void amp_turns_add_usual(amp_turns_program *p, const char *dtype, unsigned seed)
{
    snprintf(p->seed, sizeof p->seed, "%u", seed);
    snprintf(p->device, sizeof p->device, "%d", amp_fork_device());
    amp_turns_add(p, "-amp", strcmp(dtype, "stock") ? dtype : "off", "-seed", p->seed, "-i", p->device, NULL);
}

/* Starts a program, with a socket for its lines and a process group of its own, so that Ctrl-C on the
 * terminal does not reach it. Returns 0, or an errno. */
static int launch(child *c, const amp_turns_program *program, char *const *argv, char *const *environment)
{
    int ends[2], how = O_WRONLY | O_CREAT | (program->append ? O_APPEND : O_TRUNC);
    const char *output = program->output ? program->output : "/dev/null";
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t default_signals;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) return errno;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, output, how, 0666);
    posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&files, ends[1], CHILDS_SOCKET);
    sigemptyset(&default_signals);
    sigaddset(&default_signals, SIGINT);
    sigaddset(&default_signals, SIGTERM);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigdefault(&attributes, &default_signals);
    int reason = posix_spawn(&c->process, argv[0], &files, &attributes, argv, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    close(ends[1]);
    if (reason) close(ends[0]);
    else *c = (child){ .process = c->process, .socket = ends[0], .state = BUSY };
    return reason;
}

static amp_status start(child *c, const amp_turns_program *program, amp_error *error)
{
    char self[] = "/proc/self/exe";
    char descriptors[64];
    size_t variables = 0;
    while (environ[variables]) variables++;
    char *argv[AMP_TURNS_WORDS + 1] = { self };
    char *environment[variables + 2]; /* a copy, since other threads may be reading environ */
    memcpy(argv + 1, program->argv, sizeof program->argv);
    snprintf(descriptors, sizeof descriptors, AMP_TURNS "=%d,%d", CHILDS_SOCKET, CHILDS_SOCKET);
    memcpy(environment, environ, variables * sizeof *environment);
    environment[variables] = descriptors;
    environment[variables + 1] = NULL;
    int reason = launch(c, program, argv, environment);
    if (!reason) return AMP_OK;
    return amp_fail(error, AMP_IO_FAILED, "%s: cannot start `darknet %s %s`: %s",
                    program->output ? program->output : self, program->argv[0], program->argv[1],
                    strerror(reason));
}

/* ---- turns ---- */

static void reply(schedule *s, int i, char byte)
{
    child *c = &s->children[i];
    if (c->state != WAITS) return;
    c->state = BUSY;
    c->told_to_stop |= byte == 's';
    (void)!write(c->socket, &byte, 1); /* if the child has ended, read_from notices it */
}

/* Starts a step of the child whose turn it is, unless this child is still making a step. When its slice is
 * over, the next waiting child gets the turn. No child gets a turn before all have made their networks,
 * because making a network slows other children's steps. */
static void give_turn(schedule *s)
{
    const child *current = s->turn == NO_CHILD ? NULL : &s->children[s->turn];
    double now = amp_clock_seconds();
    for (int i = 0; i < s->count; i++) if (s->children[i].state != GONE && !s->children[i].ready) return;
    if (current && current->state == BUSY) return;
    int least = s->slice > 0 ? LEAST_STEPS : 1;
    if (!current || current->state == GONE || (s->steps >= least && now - s->turn_began >= s->slice)) {
        int next = NO_CHILD;
        for (int k = s->count; k > 0; --k) {
            int i = (s->turn + k + s->count) % s->count;
            if (s->children[i].state == WAITS) next = i;
        }
        if (next == NO_CHILD) return;
        s->turn = next;
        s->turn_began = now;
        s->steps = 0;
    }
    ++s->steps;
    reply(s, s->turn, 'g');
}

/* Gives the watcher each complete line of a child except "ready". After a line that begins with a space
 * (amp_turns_send) the child continues; after any other (amp_turns_yield) it waits for an answer. */
static amp_status take_lines(schedule *s, int i, amp_error *error)
{
    child *c = &s->children[i];
    char *begin = c->text, *end;
    amp_status status = AMP_OK;
    while (status == AMP_OK && (end = memchr(begin, '\n', c->length - (size_t)(begin - c->text)))) {
        int continues = *begin == ' ';
        *end = 0;
        if (!strcmp(begin, "ready")) c->ready = 1;
        else if (s->watcher->line)
            status = s->watcher->line(s->watcher->context, i, begin + continues, error);
        if (!continues) c->state = WAITS;
        begin = end + 1;
    }
    c->length -= (size_t)(begin - c->text);
    memmove(c->text, begin, c->length);
    if (c->length == LINE_ROOM) c->length = 0; /* drop an overlong line, which no child should write */
    return status;
}

static int wait_for_end(child *c)
{
    int status = 0;
    while (waitpid(c->process, &status, 0) < 0 && errno == EINTR) {}
    close(c->socket);
    c->state = GONE;
    return status;
}

static amp_status read_from(schedule *s, int i, amp_error *error)
{
    child *c = &s->children[i];
    ssize_t got = read(c->socket, c->text + c->length, LINE_ROOM - c->length);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return AMP_OK;
    if (got > 0) {
        c->length += (size_t)got;
        return take_lines(s, i, error);
    }
    int status = wait_for_end(c);
    amp_turns_end *end = &s->programs[i].end;
    *end = (amp_turns_end){ .exited = WIFEXITED(status), .stopped = c->told_to_stop,
                            .status = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status) };
    return s->watcher->ended ? s->watcher->ended(s->watcher->context, i, end, error) : AMP_OK;
}

/* Returns when all children have ended. A signal interrupts poll; a signal that arrives just before poll is
 * noticed at most a tenth of a second later. */
static amp_status run_until_all_end(schedule *s, amp_error *error)
{
    struct pollfd watched[s->count];
    amp_status status = AMP_OK;
    amp_error later;
    double began = amp_clock_seconds();
    for (int stopping = 0;;) {
        int left = 0;
        double seconds = amp_clock_seconds() - began;
        stopping |= status != AMP_OK || (s->stop && s->stop());
        for (int i = 0; stopping && i < s->count; i++) reply(s, i, 's');
        if (!stopping) give_turn(s);
        for (int i = 0; i < s->count; i++) {
            int here = s->children[i].state != GONE;
            double most = s->programs[i].most_seconds;
            if (here && most > 0 && seconds > most) kill(s->children[i].process, SIGKILL);
            watched[i] = (struct pollfd){ .fd = here ? s->children[i].socket : -1, .events = POLLIN };
            left += here;
        }
        if (!left) return status;
        if (poll(watched, (nfds_t)s->count, 100) <= 0) continue;
        for (int i = 0; i < s->count; i++) {
            if (watched[i].fd < 0 || !watched[i].revents) continue;
            amp_status now_failed = read_from(s, i, status == AMP_OK ? error : &later);
            if (status == AMP_OK) status = now_failed;
        }
    }
}

amp_status amp_turns_run(amp_turns_program *programs, int count, double slice, int (*stop)(void),
                         const amp_turns_watcher *watcher, amp_error *error)
{
    schedule s = { .programs = programs, .turn = NO_CHILD,
                   .children = amp_allocated(calloc((size_t)count + 1, sizeof *s.children)),
                   .slice = slice, .watcher = watcher, .stop = stop };
    struct sigaction ignore = { .sa_handler = SIG_IGN }, before;
    sigaction(SIGPIPE, &ignore, &before); /* a program's death is noticed when its socket is read */
    amp_status status = AMP_OK;
    while (s.count < count
           && (status = start(&s.children[s.count], &programs[s.count], error)) == AMP_OK) ++s.count;
    if (status == AMP_OK) status = run_until_all_end(&s, error);
    for (int i = 0; i < s.count; i++) {
        if (s.children[i].state == GONE) continue; /* if a child could not be started, kill the others */
        kill(s.children[i].process, SIGKILL);
        wait_for_end(&s.children[i]);
    }
    sigaction(SIGPIPE, &before, NULL);
    free(s.children);
    return status;
}

/* ---- signals ---- */

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
    if (++interrupted > 2) _exit(128 + signal);
}

void amp_turns_watch_signals(void)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
    struct sigaction action = { .sa_handler = interrupt }, before;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (!sigaction(signals[i], NULL, &before) && before.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
}

int amp_turns_interrupted(void) { return interrupted; }

/* ---- after the end of a program ---- */

/* Whether the line cannot say why a program ended: Darknet's usual output, a number, or a single word. */
static int is_usual_output(const char *line)
{
    static const char *const usual[] = { "Loaded:", "Saving weights", "Loading weights", "Learning Rate",
                                         "Resizing", "layer  ", "Region ", "amp: summary", "STB Reason:",
                                         "amp: cache=", "amp: loading is slower", NULL };
    line += strspn(line, " \t");
    if (!*line || (*line >= '0' && *line <= '9') || !strchr(line, ' ')) return 1;
    for (int k = 0; usual[k]; k++) if (!strncmp(line, usual[k], strlen(usual[k]))) return 1;
    return 0;
}

/* Returns what follows `start` in a line that begins with `start`; NULL if the line begins otherwise. */
static const char *behind(const char *line, const char *start)
{
    size_t length = strlen(start);
    return strncmp(line, start, length) ? NULL : line + length;
}

/* "amp: no memory" becomes "no memory". */
static const char *without_sender(const char *line)
{
    const char *words = behind(line, "amp: ");
    if (!words) words = behind(line, "amp bench: ");
    return words ? words : line;
}

void amp_turns_last_message(const char *log, const char *sender, char *words, size_t size)
{
    enum { TAIL = 8192 };
    char text[TAIL + 1];
    FILE *file = fopen(log, "r");
    words[0] = 0;
    if (!file) return;
    if (fseek(file, -TAIL, SEEK_END)) rewind(file);
    size_t length = fread(text, 1, TAIL, file);
    fclose(file);
    text[length] = 0;
    for (char *next, *line = text; line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        const char *said = sender ? behind(line, sender) : is_usual_output(line) ? NULL
                         : without_sender(line);
        if (said) snprintf(words, size, "%s", said);
    }
}
