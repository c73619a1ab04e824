/* Runs code that ends the program in a child process. Include testing.h first. */
#ifndef CHILD_H
#define CHILD_H

#include <sys/wait.h>

/* A child runs `run` and then exits with 0. Its stderr goes to `said`; returns its exit status, or -1 if a
 * signal ended it. */
static inline int in_child(void (*run)(void *), void *context, char *said, size_t size)
{
    int pipes[2], status;
    size_t length = 0;
    assert_int_equal(pipe(pipes), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(pipes[1], STDERR_FILENO);
        close(pipes[0]);
        run(context);
        _exit(0);
    }
    close(pipes[1]);
    for (ssize_t got; (got = read(pipes[0], said + length, size - 1 - length)) > 0;) length += (size_t)got;
    said[length] = 0;
    close(pipes[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static inline void begin_this_program(void *arguments)
{
    execv("/proc/self/exe", arguments);
    _exit(127);
}

/* Runs this program again with these arguments; the first is its name, and NULL ends them. (OpenMP's threads
 * do not survive a fork.) */
static inline int this_program_again(const char *const *arguments, char *said, size_t size)
{
    return in_child(begin_this_program, (void *)arguments, said, size);
}

#endif
