/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages through a pipe: 4 bytes of kind, 4 of length, the bytes (message_pipe.h).
 *
 * Invariant: `received` holds whole messages from `taken` on, and at most a part of one after them.
 * Cost: one write() per message, one read() per 4 KB. */
#include "io/message_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/base.h"
#include "io/pipe.h"

typedef struct messageHead {
    uint32_t kind, len;
} messageHead;

status messagePipeOpen(messagePipe *p, reason *why) {
    int ends[2];
    *p = (messagePipe){.read_fd = -1, .write_fd = -1};
    if (pipe(ends) != 0) return reasonSetErrno(why, "Can't create a pipe");
    for (int i = 0; i < 2; i++)
        (void)fcntl(ends[i], F_SETFD, FD_CLOEXEC); /* cannot fail on a new pipe */
    p->read_fd = ends[0];
    p->write_fd = ends[1];
    return OK;
}

void messagePipeSetNonblocking(messagePipe *p) {
    (void)fcntl(p->read_fd, F_SETFL, O_NONBLOCK); /* cannot fail on an open pipe */
}

void messagePipeKeepReading(messagePipe *p) {
    pipeCloseEnd(&p->write_fd);
    messagePipeSetNonblocking(p);
}

void messagePipeKeepWriting(messagePipe *p) { pipeCloseEnd(&p->read_fd); }

status messagePipeSend(messagePipe *p, uint32_t kind, slice bytes) {
    check(p->write_fd >= 0);
    if (bytes.len > MESSAGE_BYTES_MAX) return ERR_LIMIT;
    messageHead head = {.kind = kind, .len = (uint32_t)bytes.len};
    str all = STR_EMPTY;
    strAppend(&all, &head, sizeof(head));
    strAppendSlice(&all, bytes);
    size_t sent = 0;
    while (sent < all.len) {
        ssize_t n = write(p->write_fd, all.ptr + sent, all.len - sent);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) break;
        sent += (size_t)n;
    }
    bool whole = sent == all.len;
    strFree(&all);
    return whole ? OK : ERR_IO;
}

/* True if something was read. */
static bool readMore(messagePipe *p) {
    hotCheck(p->taken <= p->received.len);
    char bytes[4096];
    if (p->read_fd < 0) return false;
    ssize_t n;
    do { n = read(p->read_fd, bytes, sizeof(bytes)); } while (n < 0 && errno == EINTR);
    if (n <= 0) return false;
    strAppend(&p->received, bytes, (size_t)n);
    return true;
}

static bool takeOne(messagePipe *p, uint32_t *kind, slice *bytes) {
    messageHead head;
    size_t left = p->received.len - p->taken;
    if (left < sizeof(head)) return false;
    memcpy(&head, p->received.ptr + p->taken, sizeof(head));
    check(head.len <= MESSAGE_BYTES_MAX); /* the writer runs the same code */
    if (left < sizeof(head) + head.len) return false;
    *kind = head.kind;
    *bytes = sliceMake(p->received.ptr + p->taken + sizeof(head), head.len);
    p->taken += sizeof(head) + head.len;
    return true;
}

bool messagePipeReceive(messagePipe *p, uint32_t *kind, slice *bytes) {
    hotCheck(p->taken <= p->received.len);
    while (!takeOne(p, kind, bytes)) {
        if (p->taken > 0) {
            size_t left = p->received.len - p->taken;
            memmove(p->received.ptr, p->received.ptr + p->taken, left);
            p->received.len = left;
            p->taken = 0;
        }
        if (!readMore(p)) return false;
    }
    return true;
}

void messagePipeClose(messagePipe *p) {
    pipeCloseEnd(&p->read_fd);
    pipeCloseEnd(&p->write_fd);
    strFree(&p->received);
    p->taken = 0;
}
