/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pipes (pipe.h). */
#include "io/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "base/assert.h"

status pipeOpen(bytePipe *p, int capacity, reason *why) {
    int fds[2];
    if (pipe(fds) < 0) {
        *p = (bytePipe){-1, -1};
        return reasonSetErrno(why, "Can't create a pipe");
    }
    *p = (bytePipe){fds[0], fds[1]};
#ifdef F_SETPIPE_SZ
    if (capacity) (void)fcntl(p->write_fd, F_SETPIPE_SZ, capacity); /* may be refused */
#else
    (void)capacity; /* cannot be chosen */
#endif
    return OK;
}

status pipeSetNonblocking(int fd) { return fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? ERR_IO : OK; }

void pipeCloseEnd(int *fd) {
    if (*fd >= 0) (void)close(*fd); /* a pipe: nothing can be lost */
    *fd = -1;
}

void pipeCloseReading(bytePipe *p) { pipeCloseEnd(&p->read_fd); }
void pipeCloseWriting(bytePipe *p) { pipeCloseEnd(&p->write_fd); }

ssize_t pipeRead(int fd, void *dst, size_t cap) {
    ssize_t n;
    do { n = read(fd, dst, cap); } while (n < 0 && errno == EINTR);
    return n;
}

status pipeWrite(int fd, const void *bytes, size_t len, reason *why) {
    const char *at = bytes;
    while (len) {
        ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) {
            struct pollfd writable = {.fd = fd, .events = POLLOUT};
            (void)poll(&writable, 1, -1); /* whatever it returns, the next write tells */
            continue;
        }
        if (n <= 0) return reasonSetErrno(why, "Can't write to a pipe");
        at += n;
        len -= (size_t)n;
    }
    return OK;
}

void pipeWaitForEnd(int fd) {
    char bytes[64];
    while (pipeRead(fd, bytes, sizeof(bytes)) > 0) continue;
}
