/* SPDX-License-Identifier: BSD-3-Clause
 *
 * System calls that tests can replace to simulate short reads, EAGAIN or full disks. All transfers
 * in io/ go through this table; release builds never change it. ANY_THREAD. */
#ifndef IO_SYS_H
#define IO_SYS_H

#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

typedef struct sysCalls {
    ssize_t (*read)(int fd, void *dst, size_t len);
    ssize_t (*write)(int fd, const void *src, size_t len);
    ssize_t (*readv)(int fd, const struct iovec *iov, int count);
    ssize_t (*writev)(int fd, const struct iovec *iov, int count);
    /* For sockets: about 50 ns faster than read() and write(). */
    ssize_t (*recv)(int fd, void *dst, size_t len, int flags);
    ssize_t (*send)(int fd, const void *src, size_t len, int flags);
    int (*accept4)(int fd, struct sockaddr *addr, socklen_t *len, int flags);
    int (*fsync)(int fd);
    int (*rename)(const char *from, const char *to);
} sysCalls;

/* The table in use. */
const sysCalls *sysCallsNow(void);
/* Installs `calls` (NULL fields mean the kernel's functions); NULL restores all. Before threads
 * start. */
void sysCallsSet(const sysCalls *calls);

#endif
