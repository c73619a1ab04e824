/* Programs in turns: the side that starts them and gives the turns. */
#define _DEFAULT_SOURCE /* readlink, setenv */
#include "turns.h"

#include "../host/common/clock.h"
#include "../host/training/turns.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

/* The first steps of a turn find cold caches, and the images' loader of the last one at work: where steps are
 * slow, a turn is longer than its slice, so that most of them are not such. */
enum { LINE_ROOM = 8192, NOBODY = -1, LEAST_STEPS = 4 };

typedef enum turn_state { BUSY /* works, or starts */, WAITS /* for its byte */, GONE } turn_state;

typedef struct player {
    pid_t process;
    int in, out;              /* what it writes; where it is answered */
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

static const char **arguments_of(const amp_turns_program *program, const char *self)
{
    size_t count = 0;
    while (program->argv[count]) ++count;
    const char **argv = calloc(count + 2, sizeof *argv);
    if (!argv) return NULL;
    argv[0] = self;
    memcpy(argv + 1, program->argv, count * sizeof *argv);
    return argv;
}

/* In the child, between fork and exec: only what a signal handler may call. Its own process group keeps a
 * terminal's Ctrl-C from it; it does not outlive the caller, whoever kills that. */
static _Noreturn void become(const char *self, const char **argv, int output, int errors, pid_t parent)
{
    setpgid(0, 0);
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() != parent) _exit(127);
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    execv(self, (char *const *)argv);
    int reason = errno;
    (void)!write(errors, &reason, sizeof reason);
    _exit(127);
}

/* Pipes to and from a program, one that tells why exec failed, and the file for what it prints. */
typedef struct plumbing { int answers[2], lines[2], errors[2], output; } plumbing;

/* No other program inherits their ends. */
static int open_plumbing(const amp_turns_program *program, plumbing *p)
{
    int *pipes[] = { p->answers, p->lines, p->errors }, failed = 0;
    int how = O_WRONLY | O_CREAT | O_CLOEXEC | (program->append ? O_APPEND : O_TRUNC);
    *p = (plumbing){ { -1, -1 }, { -1, -1 }, { -1, -1 }, -1 };
    p->output = open(program->output ? program->output : "/dev/null",
                     program->output ? how : O_WRONLY | O_CLOEXEC, 0666);
    for (int k = 0; k < 3 && p->output >= 0 && !failed; k++) {
        failed = pipe(pipes[k]);
        for (int end = 0; end < 2 && !failed; end++) fcntl(pipes[k][end], F_SETFD, FD_CLOEXEC);
    }
    return failed || p->output < 0 ? -1 : 0;
}

static void close_plumbing(const plumbing *p)
{
    const int ends[] = { p->answers[0], p->answers[1], p->lines[0], p->lines[1], p->errors[0], p->errors[1],
                         p->output };
    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++) if (ends[k] >= 0) close(ends[k]);
}

/* fork and exec; 0, or why not. The two descriptors the child keeps lose their close-on-exec in the child
 * alone. */
static int launch(player *player, plumbing *p, const char *self, const char **argv)
{
    int reason = 0;
    pid_t parent = getpid();
    player->process = fork();
    if (player->process < 0) return errno;
    if (player->process == 0) {
        fcntl(p->answers[0], F_SETFD, 0);
        fcntl(p->lines[1], F_SETFD, 0);
        become(self, argv, p->output, p->errors[1], parent);
    }
    setpgid(player->process, player->process); /* whoever comes first */
    close(p->errors[1]);
    p->errors[1] = -1;
    ssize_t got;
    do got = read(p->errors[0], &reason, sizeof reason); while (got < 0 && errno == EINTR);
    if (got != sizeof reason) return 0;
    waitpid(player->process, NULL, 0);
    return reason;
}

static amp_status start(player *player, const amp_turns_program *program, const char *self, amp_error *error)
{
    plumbing p;
    char descriptors[32];
    int reason = open_plumbing(program, &p) ? errno : 0;
    snprintf(descriptors, sizeof descriptors, "%d,%d", p.answers[0], p.lines[1]);
    const char **argv = reason ? NULL : arguments_of(program, self);
    if (!reason && (!argv || setenv(AMP_TURNS, descriptors, 1) != 0)) reason = ENOMEM;
    if (!reason) reason = launch(player, &p, self, argv);
    unsetenv(AMP_TURNS);
    free(argv);
    if (!reason) {
        player->in = p.lines[0];
        player->out = p.answers[1];
        p.lines[0] = p.answers[1] = -1;
        player->state = BUSY;
    }
    close_plumbing(&p);
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
    (void)!write(p->out, &byte, 1); /* if it is gone, its end of the other pipe says so */
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
    close(p->in);
    close(p->out);
    p->state = GONE;
    return status;
}

static amp_status listen_to(game *g, int i, amp_error *error)
{
    player *p = &g->players[i];
    ssize_t got = read(p->in, p->text + p->length, LINE_ROOM - p->length);
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
            watched[i] = (struct pollfd){ .fd = here ? g->players[i].in : -1, .events = POLLIN };
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
    game g = { .players = calloc((size_t)count + 1, sizeof *g.players), .turn = NOBODY, .slice = slice,
               .watcher = watcher, .stop = stop };
    if (!g.players) return amp_fail(error, AMP_NO_MEMORY, "no memory for %d programs", count);
    struct sigaction ignore = { .sa_handler = SIG_IGN }, before;
    sigaction(SIGPIPE, &ignore, &before); /* a program that died is noticed by its end of the other pipe */
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
