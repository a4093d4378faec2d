/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocking input and output of a client while its command runs: the debugger of scripts, in the
 * server or in a process forked from it, and the last output of replicas at shutdown. Neither uses
 * the event loop, which a forked process shares with its parent. Main thread only. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/base.h"
#include "net/client.h"
#include "net/net.h"
#include "net/net_thread.h"

enum { IOVECS = 16 };

/* One write of what is pending. False: nothing was written, errno tells why. */
static bool writeSome(session *s) {
    client *cl = clientOf(s);
    struct iovec iov[IOVECS];
    int count = outbufIovecs(&s->out, iov, IOVECS);
    ssize_t written = connWritev(&cl->conn, iov, count);
    if (written < 0) return false;
    outbufConsume(&s->out, (size_t)written);
    outbufReap(&s->out);
    s->bytes_out += (uint64_t)written;
    netTotals()->bytes_out += (uint64_t)written;
    return true;
}

bool converseWriteAll(session *s) {
    while (outbufPending(&s->out)) {
        if (writeSome(s)) continue;
        if (errno != EAGAIN || connWait(&clientOf(s)->conn, LOOP_WRITE, -1) != OK) return false;
    }
    return true;
}

bool netSendNow(session *s, int wait_ms) {
    hotCheck(threadIsMain());
    if (outbufPending(&s->out) && !writeSome(s)) {
        if (errno != EAGAIN || connWait(&clientOf(s)->conn, LOOP_WRITE, wait_ms) != OK)
            return false;
        if (!writeSome(s)) return false;
    }
    while (outbufPending(&s->out) && writeSome(s)) continue;
    return true;
}

void netSendEnd(session *s) {
    char dropped[4096];
    conn *c = &clientOf(s)->conn;
    if (!netIsTls(s)) (void)shutdown(c->fd, SHUT_WR); /* fails if the peer has ended it already */
    while (connRead(c, dropped, sizeof(dropped)) > 0) continue;
}

int netLendToChild(session *s) {
    client *cl = clientOf(s);
    if (netIsTls(s) || clientIsAway(cl)) return -1;
    struct iovec iov[IOVECS];
    int count = outbufIovecs(&s->out, iov, IOVECS);
    ssize_t written = count ? connWritev(&cl->conn, iov, count) : 0;
    if (written < 0) return -1;
    outbufConsume(&s->out, (size_t)written);
    outbufReap(&s->out);
    s->bytes_out += (uint64_t)written;
    netTotals()->bytes_out += (uint64_t)written;
    return outbufPending(&s->out) ? -1 : dup(cl->conn.fd);
}

size_t converseReadWait(session *s, void *dst, size_t cap) {
    client *cl = clientOf(s);
    for (;;) {
        ssize_t got = connRead(&cl->conn, dst, cap);
        if (got < 0 && errno == EAGAIN && connWait(&cl->conn, LOOP_READ, -1) == OK) continue;
        if (got <= 0) return 0;
        s->bytes_in += (uint64_t)got;
        netTotals()->bytes_in += (uint64_t)got;
        return (size_t)got;
    }
}

void converseHandOver(session *s) {
    hotCheck(threadIsMain());
    client *cl = clientOf(s);
    outbufClear(&s->out);
    cl->conn.state = CONN_FAILED; /* TLS sends no close_notify then */
    sessionCloseNow(s);
}
