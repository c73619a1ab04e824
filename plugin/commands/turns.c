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

/* The first steps of a turn find cold caches, and the images' loader of the last one at work: where steps are slow, a turn is
 * longer than its slice, so that most of them are not such. */
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
    int stopping;
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

/* In the child, between fork and exec: only what a signal handler may call. Its own process group keeps a terminal's Ctrl-C from
 * it; it does not outlive the caller, whoever kills that. */
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

/* A pipe whose ends no other program inherits. */
static int make_pipe(int ends[2])
{
    if (pipe(ends)) return -1;
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    return 0;
}

static void close_both(int ends[2])
{
    if (ends[0] >= 0) close(ends[0]);
    if (ends[1] >= 0) close(ends[1]);
    ends[0] = ends[1] = -1;
}

typedef struct plumbing { int answers[2], lines[2], errors[2], output; } plumbing;

static int open_plumbing(const amp_turns_program *program, plumbing *p)
{
    *p = (plumbing){ { -1, -1 }, { -1, -1 }, { -1, -1 }, -1 };
    int how = O_WRONLY | O_CREAT | O_CLOEXEC | (program->append ? O_APPEND : O_TRUNC);
    p->output = program->output ? open(program->output, how, 0666) : open("/dev/null", O_WRONLY | O_CLOEXEC);
    return p->output < 0 || make_pipe(p->answers) || make_pipe(p->lines) || make_pipe(p->errors) ? -1 : 0;
}

static void close_plumbing(plumbing *p)
{
    close_both(p->answers);
    close_both(p->lines);
    close_both(p->errors);
    if (p->output >= 0) close(p->output);
}

/* fork and exec; 0, or why not. The two descriptors the child keeps lose their close-on-exec in the child alone. */
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
    return amp_fail(error, AMP_IO_FAILED, "%s: cannot start `darknet %s %s`: %s", program->output ? program->output : self,
                    program->argv[0], program->argv[0] && program->argv[1] ? program->argv[1] : "", strerror(reason));
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

/* The next that waits, after the one whose turn it was. */
static int next_waiting(const game *g)
{
    for (int k = 1; k <= g->count; ++k) {
        int i = (g->turn + k + g->count) % g->count;
        if (g->players[i].state == WAITS) return i;
    }
    return NOBODY;
}

static int all_are_ready(const game *g)
{
    for (int i = 0; i < g->count; ++i) if (g->players[i].state != GONE && !g->players[i].ready) return 0;
    return 1;
}

/* Lets somebody work if nobody does: the one whose turn it is for the rest of its slice, then the next. Nobody begins before all
 * have made their networks, which takes the processor from whoever works. */
static void give_turn(game *g)
{
    if (!all_are_ready(g)) return;
    player *current = g->turn == NOBODY ? NULL : &g->players[g->turn];
    if (current && current->state == BUSY) return;
    int least = g->slice > 0 ? LEAST_STEPS : 1;
    int over = !current || current->state == GONE || (g->steps >= least
                                                      && amp_clock_seconds() - g->turn_began >= g->slice);
    int next = over ? next_waiting(g) : g->turn;
    if (next == NOBODY) return;
    if (over) {
        g->turn_began = amp_clock_seconds();
        g->steps = 0;
    }
    ++g->steps;
    g->turn = next;
    answer(g, next, 'g');
}

static void tell_all_to_stop(game *g)
{
    g->stopping = 1;
    for (int i = 0; i < g->count; ++i) answer(g, i, 's');
}

static amp_status take_line(game *g, int i, const char *line, amp_error *error)
{
    player *p = &g->players[i];
    if (!strcmp(line, "ready")) p->ready = 1;
    else AMP_TRY(g->watcher->line(g->watcher->context, i, line, error));
    return AMP_OK;
}

/* What a program tells on the side (amp_turns_tell puts a blank before it) is no step, and wants no answer. */
static amp_status take_lines(game *g, int i, amp_error *error)
{
    player *p = &g->players[i];
    char *begin = p->text, *end;
    amp_status status = AMP_OK;
    while (status == AMP_OK && (end = memchr(begin, '\n', p->length - (size_t)(begin - p->text)))) {
        *end = 0;
        int told = *begin == ' ';
        status = take_line(g, i, begin + told, error);
        if (!told) p->state = WAITS;
        begin = end + 1;
    }
    p->length -= (size_t)(begin - p->text);
    memmove(p->text, begin, p->length);
    if (p->length == LINE_ROOM) p->length = 0; /* no line of ours is that long */
    return status;
}

static amp_status bury(game *g, int i, amp_error *error)
{
    player *p = &g->players[i];
    int status;
    while (waitpid(p->process, &status, 0) < 0 && errno == EINTR) {}
    close(p->in);
    close(p->out);
    p->state = GONE;
    amp_turns_end end = { .exited = WIFEXITED(status), .stopped = p->told_to_stop };
    end.status = end.exited ? WEXITSTATUS(status) : WTERMSIG(status);
    return g->watcher->ended ? g->watcher->ended(g->watcher->context, i, &end, error) : AMP_OK;
}

static amp_status listen_to(game *g, int i, amp_error *error)
{
    player *p = &g->players[i];
    ssize_t got = read(p->in, p->text + p->length, LINE_ROOM - p->length);
    if (got < 0) return errno == EINTR || errno == EAGAIN ? AMP_OK : bury(g, i, error);
    if (got == 0) return bury(g, i, error);
    p->length += (size_t)got;
    return take_lines(g, i, error);
}

static int any_left(const game *g)
{
    for (int i = 0; i < g->count; ++i) if (g->players[i].state != GONE) return 1;
    return 0;
}

/* A signal wakes poll; one that comes just before it is seen after a tenth of a second. */
static amp_status play(game *g, amp_error *error)
{
    struct pollfd watched[g->count];
    amp_status status = AMP_OK;
    amp_error later;
    while (any_left(g)) {
        if (status != AMP_OK || g->stopping || (g->stop && *g->stop)) tell_all_to_stop(g);
        else give_turn(g);
        for (int i = 0; i < g->count; ++i)
            watched[i] = (struct pollfd){ .fd = g->players[i].state == GONE ? -1 : g->players[i].in, .events = POLLIN };
        if (poll(watched, (nfds_t)g->count, 100) <= 0) continue;
        for (int i = 0; i < g->count; ++i) {
            if (watched[i].fd < 0 || !watched[i].revents) continue;
            amp_status now_failed = listen_to(g, i, status == AMP_OK ? error : &later);
            if (status == AMP_OK) status = now_failed;
        }
    }
    return status;
}

static void kill_all(game *g)
{
    for (int i = 0; i < g->count; ++i) {
        player *p = &g->players[i];
        if (p->state == GONE) continue;
        kill(p->process, SIGKILL);
        waitpid(p->process, NULL, 0);
        close(p->in);
        close(p->out);
    }
}

amp_status amp_turns_run(const amp_turns_program *programs, int count, double slice, const volatile sig_atomic_t *stop,
                         const amp_turns_watcher *watcher, amp_error *error)
{
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0) return amp_fail(error, AMP_IO_FAILED, "/proc/self/exe: cannot find this program: %s", strerror(errno));
    self[length] = 0;
    game g = { .players = calloc((size_t)count + 1, sizeof *g.players), .turn = NOBODY, .slice = slice,
               .watcher = watcher, .stop = stop };
    if (!g.players) return amp_fail(error, AMP_NO_MEMORY, "no memory for %d programs", count);
    struct sigaction ignore = { .sa_handler = SIG_IGN }, before;
    sigaction(SIGPIPE, &ignore, &before); /* a program that died is noticed by its end of the other pipe */
    amp_status status = AMP_OK;
    for (; status == AMP_OK && g.count < count; ++g.count) {
        status = start(&g.players[g.count], &programs[g.count], self, error);
        if (status != AMP_OK) break;
    }
    if (status == AMP_OK) status = play(&g, error);
    else kill_all(&g);
    sigaction(SIGPIPE, &before, NULL);
    free(g.players);
    return status;
}
