/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ctrl-C (interrupt.h). The signal handler writes into a pipe, so that a signal just before poll()
 * is not lost. */
#include "tools/cli/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>
#include <valkey/valkey.h>

#include "base/assert.h"

static volatile sig_atomic_t pending;
static int ends[2] = {-1, -1};

static void onInterrupt(int signal_number) {
    (void)signal_number;
    int saved = errno;
    pending = 1;
    /* If the pipe is full, it is readable already. */
    if (write(ends[1], "", 1) < 0) errno = saved;
    errno = saved;
}

void interruptInstall(void) {
    check(pipe(ends) == 0);
    for (int i = 0; i < 2; i++) {
        fcntl(ends[i], F_SETFL, O_NONBLOCK);
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    }
    struct sigaction action = {.sa_handler = onInterrupt};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}

bool interruptPending(void) { return pending != 0; }
int interruptDescriptor(void) { return ends[0]; }

bool interruptWait(const valkeyContext *context, int timeout_ms) {
    /* TLS may have decoded more than was read. */
    if (context->funcs->has_pending && context->funcs->has_pending((valkeyContext *)context))
        return true;
    struct pollfd fds[2] = {{.fd = context->fd, .events = POLLIN},
                            {.fd = ends[0], .events = POLLIN}};
    return poll(fds, 2, timeout_ms) > 0 && fds[0].revents != 0;
}

void interruptClear(void) {
    char bytes[64];
    pending = 0;
    while (read(ends[0], bytes, sizeof(bytes)) > 0) {}
}
