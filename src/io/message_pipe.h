/* SPDX-License-Identifier: BSD-3-Clause
 *
 * messagePipe: messages of a kind and some bytes from one process to another that shares its binary: a forked child
 * reports to its parent. One thread uses each end. */
#ifndef IO_MESSAGE_PIPE_H
#define IO_MESSAGE_PIPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/str.h"

typedef struct messagePipe {
    int read_fd, write_fd; /* -1: closed */
    str received;          /* bytes read; those before `taken` were returned */
    size_t taken;
} messagePipe;

/* Bytes of one message; a longer one is refused. */
enum { MESSAGE_BYTES_MAX = 1 << 20 };

/* Opens both ends, which are not inherited by other programs. Before fork(). */
status messagePipeOpen(messagePipe *p, reason *why) MUST_USE;
/* After fork(): each process keeps one end. Reading does not block, writing does. */
void messagePipeKeepReading(messagePipe *p);
void messagePipeKeepWriting(messagePipe *p);
/* Within one process: both ends stay, and reading does not block. */
void messagePipeSetNonblocking(messagePipe *p);
/* ERR_IO when the reader is gone, ERR_LIMIT for a message that is too long. */
status messagePipeSend(messagePipe *p, uint32_t kind, slice bytes) MUST_USE;
/* The next complete message that has arrived; false if there is none yet, or none any more. `bytes` is borrowed until
 * the next call. */
bool messagePipeReceive(messagePipe *p, uint32_t *kind, slice *bytes);
void messagePipeClose(messagePipe *p);

#endif
