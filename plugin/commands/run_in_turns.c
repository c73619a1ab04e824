/* Programs in turns: the side that starts them and gives the turns. */
#define _GNU_SOURCE /* environ, readlink, setenv */
#include "run_in_turns.h"

#include "../host/common/clock.h"
#include "../host/common/failure.h"
#include "../host/training/turns.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* The first steps of a turn find cold caches, and the images' loader of the last one at work: where steps are
 * slow, a turn is longer than its slice, so that most of them are not such. */
enum { LINE_ROOM = 8192, NOBODY = -1, LEAST_STEPS = 4, CHILDS_SOCKET = 3 };

typedef enum turn_state { BUSY /* works, or starts */, WAITS /* for its byte */, GONE } turn_state;

typedef struct player {
    pid_t process;
    int socket;               /* what it writes, and where it is answered */
    turn_state state;
    int ready, told_to_stop;
    char text[LINE_ROOM];     /* read, and not a whole line yet */
    size_t length;
} player;

typedef struct game {
    player *players;
    int count, turn;          /* whose; NOBODY before the first is ready */
    double slice, turn_began;
    int steps;                /* answered in this turn */
    const amp_turns_watcher *watcher;
    const volatile sig_atomic_t *stop;
} game;

/* ---- starting ---- */

/* Starts a program whose lines come out of a socket, into which its answers go. A process group of its own
 * keeps a terminal's Ctrl-C from it. Returns 0, or why it could not be started. */
static int launch(player *p, const amp_turns_program *program, char *const *argv)
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
    int reason = posix_spawn(&p->process, argv[0], &files, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    close(ends[1]);
    if (reason) close(ends[0]);
    else *p = (player){ .process = p->process, .socket = ends[0], .state = BUSY };
    return reason;
}

static amp_status start(player *p, const amp_turns_program *program, char *self, amp_error *error)
{
    char descriptors[32];
    size_t count = 0;
    while (program->argv[count]) count++;
    char *argv[count + 2];
    argv[0] = self;
    memcpy(argv + 1, program->argv, (count + 1) * sizeof *argv);
    snprintf(descriptors, sizeof descriptors, "%d,%d", CHILDS_SOCKET, CHILDS_SOCKET);
    setenv(AMP_TURNS, descriptors, 1);
    int reason = launch(p, program, argv);
    unsetenv(AMP_TURNS);
    if (!reason) return AMP_OK;
    return amp_fail(error, AMP_IO_FAILED, "%s: cannot start `darknet %s %s`: %s",
                    program->output ? program->output : self, program->argv[0],
                    program->argv[0] && program->argv[1] ? program->argv[1] : "", strerror(reason));
}

/* ---- turns ---- */

static void answer(game *g, int i, char byte)
{
    player *p = &g->players[i];
    if (p->state != WAITS) return;
    p->state = BUSY;
    p->told_to_stop |= byte == 's';
    (void)!write(p->socket, &byte, 1); /* if it is gone, reading says so */
}

/* Lets somebody work if nobody does: the one whose turn it is for the rest of its slice, then the next that
 * waits. Nobody begins before all have made their networks, which takes the processor from whoever works. */
static void give_turn(game *g)
{
    const player *current = g->turn == NOBODY ? NULL : &g->players[g->turn];
    double now = amp_clock_seconds();
    for (int i = 0; i < g->count; i++) if (g->players[i].state != GONE && !g->players[i].ready) return;
    if (current && current->state == BUSY) return;
    int least = g->slice > 0 ? LEAST_STEPS : 1;
    if (!current || current->state == GONE || (g->steps >= least && now - g->turn_began >= g->slice)) {
        int next = NOBODY;
        for (int k = g->count; k > 0; --k) {
            int i = (g->turn + k + g->count) % g->count;
            if (g->players[i].state == WAITS) next = i;
        }
        if (next == NOBODY) return;
        g->turn = next;
        g->turn_began = now;
        g->steps = 0;
    }
    ++g->steps;
    answer(g, g->turn, 'g');
}

/* What a program tells on the side (amp_turns_tell puts a blank before it) is no step, and wants no
 * answer. */
static amp_status take_lines(game *g, int i, amp_error *error)
{
    player *p = &g->players[i];
    char *begin = p->text, *end;
    amp_status status = AMP_OK;
    while (status == AMP_OK && (end = memchr(begin, '\n', p->length - (size_t)(begin - p->text)))) {
        int told = *begin == ' ';
        *end = 0;
        if (!strcmp(begin, "ready")) p->ready = 1;
        else status = g->watcher->line(g->watcher->context, i, begin + told, error);
        if (!told) p->state = WAITS;
        begin = end + 1;
    }
    p->length -= (size_t)(begin - p->text);
    memmove(p->text, begin, p->length);
    if (p->length == LINE_ROOM) p->length = 0; /* no line of ours is that long */
    return status;
}

static int wait_for_end(player *p)
{
    int status = 0;
    while (waitpid(p->process, &status, 0) < 0 && errno == EINTR) {}
    close(p->socket);
    p->state = GONE;
    return status;
}

static amp_status listen_to(game *g, int i, amp_error *error)
{
    player *p = &g->players[i];
    ssize_t got = read(p->socket, p->text + p->length, LINE_ROOM - p->length);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return AMP_OK;
    if (got > 0) {
        p->length += (size_t)got;
        return take_lines(g, i, error);
    }
    int status = wait_for_end(p);
    const amp_turns_end end = { .exited = WIFEXITED(status), .stopped = p->told_to_stop,
                                .status = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status) };
    return g->watcher->ended ? g->watcher->ended(g->watcher->context, i, &end, error) : AMP_OK;
}

/* A signal wakes poll; one that comes just before it is seen after a tenth of a second. */
static amp_status play(game *g, amp_error *error)
{
    struct pollfd watched[g->count];
    amp_status status = AMP_OK;
    amp_error later;
    for (int stopping = 0;;) {
        int left = 0;
        stopping |= status != AMP_OK || (g->stop && *g->stop);
        for (int i = 0; stopping && i < g->count; i++) answer(g, i, 's');
        if (!stopping) give_turn(g);
        for (int i = 0; i < g->count; i++) {
            int here = g->players[i].state != GONE;
            watched[i] = (struct pollfd){ .fd = here ? g->players[i].socket : -1, .events = POLLIN };
            left += here;
        }
        if (!left) return status;
        if (poll(watched, (nfds_t)g->count, 100) <= 0) continue;
        for (int i = 0; i < g->count; i++) {
            if (watched[i].fd < 0 || !watched[i].revents) continue;
            amp_status now_failed = listen_to(g, i, status == AMP_OK ? error : &later);
            if (status == AMP_OK) status = now_failed;
        }
    }
}

amp_status amp_turns_run(const amp_turns_program *programs, int count, double slice,
                         const volatile sig_atomic_t *stop, const amp_turns_watcher *watcher,
                         amp_error *error)
{
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0)
        return amp_fail(error, AMP_IO_FAILED, "/proc/self/exe: cannot find this program: %s",
                        strerror(errno));
    self[length] = 0;
    game g = { .players = amp_host_allocated(calloc((size_t)count + 1, sizeof *g.players)), .turn = NOBODY,
               .slice = slice, .watcher = watcher, .stop = stop };
    struct sigaction ignore = { .sa_handler = SIG_IGN }, before;
    sigaction(SIGPIPE, &ignore, &before); /* a program that died is noticed when its socket is read */
    amp_status status = AMP_OK;
    while (g.count < count
           && (status = start(&g.players[g.count], &programs[g.count], self, error)) == AMP_OK) ++g.count;
    if (status == AMP_OK) status = play(&g, error);
    for (int i = 0; i < g.count; i++) {
        if (g.players[i].state == GONE) continue; /* else one of them could not be started */
        kill(g.players[i].process, SIGKILL);
        wait_for_end(&g.players[i]);
    }
    sigaction(SIGPIPE, &before, NULL);
    free(g.players);
    return status;
}

/* ---- after it ---- */

/* What Darknet prints all the time, and single words. */
static int says_nothing(const char *line)
{
    static const char *const usual[] = { "Loaded:", "Saving weights", "Loading weights", "Learning Rate",
                                         "Resizing", "layer  ", "Region ", "amp: summary", "STB Reason:",
                                         NULL };
    line += strspn(line, " \t");
    if (!*line || (*line >= '0' && *line <= '9') || !strchr(line, ' ')) return 1;
    for (int k = 0; usual[k]; k++) if (!strncmp(line, usual[k], strlen(usual[k]))) return 1;
    return 0;
}

static const char *without_sender(const char *line)
{
    static const char *const senders[] = { "amp: ", "amp bench: " };
    for (int k = 0; k < 2; k++)
        if (!strncmp(line, senders[k], strlen(senders[k]))) return line + strlen(senders[k]);
    return line;
}

void amp_turns_last_words(const char *log, char *words, size_t size)
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
        if (!says_nothing(line)) snprintf(words, size, "%s", without_sender(line));
    }
}
