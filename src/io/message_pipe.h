/* SPDX-License-Identifier: BSD-3-Clause
 *
 * messagePipe: sends messages (a kind and some bytes) from one process to another that runs the
 * same binary, such as the reports of a forked child to its parent. Each end is used by one
 * thread. */
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
    str received;          /* bytes read; those before `taken` have been returned */
    size_t taken;
} messagePipe;

/* Maximal size of a message in bytes. */
enum { MESSAGE_BYTES_MAX = 1 << 20 };

/* Opens both ends, with FD_CLOEXEC. Called before fork(). */
status messagePipeOpen(messagePipe *p, reason *why) MUST_USE;
/* After fork(): each process keeps one end. Reading does not block, writing does. */
void messagePipeKeepReading(messagePipe *p);
void messagePipeKeepWriting(messagePipe *p);
/* For use within one process: keeps both ends; reading does not block. */
void messagePipeSetNonblocking(messagePipe *p);
/* ERR_IO if the reader has closed its end, ERR_LIMIT if the message is too long. */
status messagePipeSend(messagePipe *p, uint32_t kind, slice bytes) MUST_USE;
/* The next complete message that has arrived; false if there is none now, or the writer has closed
 * its end. `bytes` is borrowed until the next call. */
bool messagePipeReceive(messagePipe *p, uint32_t *kind, slice *bytes);
void messagePipeClose(messagePipe *p);

#endif
