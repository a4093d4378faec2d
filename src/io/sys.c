/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of system calls. Invariant: no field of the table in use is NULL. Read by any thread;
 * changed only before threads start. */
#define _GNU_SOURCE
#include "io/sys.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#ifndef __linux__
/* accept4() in three steps for platforms that lack it. */
static int acceptFlags(int fd, struct sockaddr *addr, socklen_t *len, int flags) {
    (void)flags; /* always both flags */
    int accepted = accept(fd, addr, len);
    if (accepted < 0) return -1;
    if (fcntl(accepted, F_SETFL, O_NONBLOCK) < 0 || fcntl(accepted, F_SETFD, FD_CLOEXEC) < 0) {
        close(accepted);
        return -1;
    }
    return accepted;
}
#define accept4 acceptFlags
#endif

#define KERNEL_CALLS \
    { read, write, readv, writev, recv, send, accept4, fsync, rename }

static const sysCalls kernel_calls = KERNEL_CALLS;
static sysCalls calls_now = KERNEL_CALLS;

const sysCalls *sysCallsNow(void) { return &calls_now; }

void sysCallsSet(const sysCalls *calls) {
    calls_now = kernel_calls;
    if (!calls) return;
    if (calls->read) calls_now.read = calls->read;
    if (calls->write) calls_now.write = calls->write;
    if (calls->readv) calls_now.readv = calls->readv;
    if (calls->writev) calls_now.writev = calls->writev;
    if (calls->recv) calls_now.recv = calls->recv;
    if (calls->send) calls_now.send = calls->send;
    if (calls->accept4) calls_now.accept4 = calls->accept4;
    if (calls->fsync) calls_now.fsync = calls->fsync;
    if (calls->rename) calls_now.rename = calls->rename;
}
