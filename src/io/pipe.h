/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pipes between processes for plain bytes; messages go through message_pipe.h. ANY_THREAD. */
#ifndef IO_PIPE_H
#define IO_PIPE_H

#include <stddef.h>
#include <sys/types.h>

#include "base/alloc.h"
#include "base/error.h"

typedef struct bytePipe {
    int read_fd, write_fd; /* -1: closed */
} bytePipe;

/* `capacity` in bytes is a wish; 0: the system's. Both ends block. */
status pipeOpen(bytePipe *p, int capacity, reason *why) MUST_USE;
status pipeSetNonblocking(int fd) MUST_USE;
void pipeCloseReading(bytePipe *p);
void pipeCloseWriting(bytePipe *p);
/* Closes a descriptor, if there is one, and sets it to -1. */
void pipeCloseEnd(int *fd);
/* As read(), repeated when interrupted: 0 at the end, -1 with errno. */
ssize_t pipeRead(int fd, void *dst, size_t cap);
/* Writes everything or fails. */
status pipeWrite(int fd, const void *bytes, size_t len, reason *why) MUST_USE;
/* Returns when all writers have closed their ends; what they wrote is discarded. */
void pipeWaitForEnd(int fd);

#endif
