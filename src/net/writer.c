/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Output: one writev() per session and turn, in stage WRITE; the rest in a later turn, when the
 * connection has become writable. Main thread only. */
#include "net/client.h"

#include <errno.h>
#include <sys/uio.h>

#include "base/base.h"
#include "engine/deliver.h"
#include "engine/hot.h"
#include "io/loop.h"
#include "net/io_threads.h"
#include "net/net.h"
#include "net/net_priv.h"
#include "net/net_thread.h"

enum { WRITER_IOVECS = 64 };

void writerWritable(conn *c) {
    client *cl = CONTAINER_OF(c, client, conn);
    /* In a nested turn the reply is incomplete; it is written after the command. */
    if (unlikely(engineHot.current != NULL) && sessionIsExecuting(&cl->session))
        check(connOnWrite(c, NULL) == OK);
    /* Not here: replies to what this turn has run wait for stage LOG. */
    sessionWantWrite(&cl->session);
}

/* Waits until the connection is writable; a thread that has the client does so by itself. */
static void waitWritable(client *cl) {
    if (cl->conn.on_write) return;
    if (connOnWrite(&cl->conn, writerWritable) != OK) clientCloseLater(cl);
    if (unlikely(cl->conn.thread)) ioThreadsServe(cl);
}

void writerSent(client *cl, size_t written) {
    hotCheck(threadIsMain());
    session *s = &cl->session;
    outbufConsume(&s->out, written);
    outbufReap(&s->out);
    s->bytes_out += (uint64_t)written;
}

static inline void endWrite(client *cl) {
    session *s = &cl->session;
    limitsRecount(cl);
    if (outbufPending(&s->out) == 0) {
        if (unlikely(cl->conn.on_write != NULL)) check(connOnWrite(&cl->conn, NULL) == OK);
        cl->soft_limit_since_ms = 0;
        if (unlikely(s->flags & SESSION_CLOSE_SOON)) clientCloseLater(cl);
        return;
    }
    if (limitsCheckOutput(cl)) return;
    waitWritable(cl);
}

void writerEnd(client *cl) { endWrite(cl); }

/* Cuts off what is beyond `most` bytes: while the receiver goes on, the system would take all. */
NO_INLINE int writerLimitIovecs(struct iovec *iov, int count, size_t most) {
    hotCheck(most > 0);
    for (int i = 0; i < count; i++) {
        if (iov[i].iov_len >= most) {
            iov[i].iov_len = most;
            return i + 1;
        }
        most -= iov[i].iov_len;
    }
    return count;
}

/* Called after a write has failed. A node that imports slots sends the reason when it ends a job,
 * and closes the connection. If this makes the write fail, the reason must still be read: the
 * output is dropped, and the reader detects the end. */
static NO_INLINE void writeFailed(client *cl) {
    session *s = &cl->session;
    bool has_ended = errno == EPIPE || errno == ECONNRESET;
    hotCheck(errno != EAGAIN);
    if (has_ended && s->flags & SESSION_SLOT_EXPORT && cl->conn.on_read) {
        outbufClear(&s->out);
        endWrite(cl);
    } else {
        clientFailed(cl, "Writing", connErrorText(&cl->conn));
    }
}

void writerWrite(client *cl) {
    hotCheck(threadIsMain());
    session *s = &cl->session;
    if (listHas(&cl->closing)) return;
    netThread *thread = netThreadOf(cl);
    netStatistics *counted = &thread->counted;
    size_t written_now = 0;
    size_t pending = outbufPending(&s->out);
    if (pending > counted->recent_output_max) counted->recent_output_max = pending;
    while (pending) {
        struct iovec iov[WRITER_IOVECS];
        int count = outbufIovecs(&s->out, iov, WRITER_IOVECS);
        if (unlikely(pending > thread->write_bytes_max))
            count = writerLimitIovecs(iov, count, thread->write_bytes_max);
        ssize_t written = connWritev(&cl->conn, iov, count);
        counted->writes++;
        if (written < 0) {
            if (errno == EAGAIN) break;
            writeFailed(cl);
            return;
        }
        writerSent(cl, (size_t)written);
        counted->bytes_out += (uint64_t)written;
        if (unlikely(s->flags & (SESSION_REPLICA | SESSION_SLOT_EXPORT)))
            *(s->flags & SESSION_REPLICA ? &counted->repl_out : &counted->slots_out) +=
                (uint64_t)written;
        written_now += (size_t)written;
        pending -= (size_t)written;
        if (written_now >= thread->write_bytes_max) break;
    }
    endWrite(cl);
}

/* ------------------------------------------------------------------ held output */

static netHoldProc *hold;

void netSetHold(netHoldProc *proc) { hold = proc; }

static netLateOutputProc *late;

void netSetLateOutput(netLateOutputProc *proc) {
    hotCheck(!proc || !late);
    late = proc;
}

void writerLateOutput(void) {
    hotCheck(threadIsMain());
    if (late) late();
}

/* Writes at most `most` bytes: the rest of the output is held. */
static void writePart(client *cl, size_t most) {
    session *s = &cl->session;
    hotCheck(most <= outbufPending(&s->out));
    while (most) {
        struct iovec iov[WRITER_IOVECS];
        int count = writerLimitIovecs(iov, outbufIovecs(&s->out, iov, WRITER_IOVECS), most);
        ssize_t written = connWritev(&cl->conn, iov, count);
        netThreadOf(cl)->counted.writes++;
        if (written < 0) {
            if (errno == EAGAIN) {
                endWrite(cl);
            } else {
                clientFailed(cl, "Writing", connErrorText(&cl->conn));
            }
            return;
        }
        writerSent(cl, (size_t)written);
        netThreadOf(cl)->counted.bytes_out += (uint64_t)written;
        most -= (size_t)written;
    }
}

void writerWriteReleased(client *cl) {
    hotCheck(threadIsMain());
    session *s = &cl->session;
    if (listHas(&cl->closing)) return;
    if (s->flags & SESSION_LENT) {
        ioThreadsWrite(cl); /* notes it */
        return;
    }
    /* Its reply is incomplete; it is in the list again after its command. */
    if (engineHot.current && sessionIsExecuting(s)) return;
    size_t most = hold ? hold(s) : SIZE_MAX;
    if (most == SIZE_MAX) {
        if (ioThreadsInUse()) {
            ioThreadsWrite(cl);
        } else {
            writerWrite(cl);
        }
        return;
    }
    if (cl->conn.on_write) check(connOnWrite(&cl->conn, NULL) == OK);
    if (cl->conn.thread && ioThreadsWritePart(cl, most)) return;
    writePart(cl, most);
    limitsRecount(cl);
    if (!limitsCheckOutput(cl) && cl->conn.thread) ioThreadsServe(cl);
}

/* Messages that many receive are written over several turns: those that are published meanwhile are
 * sent with the same system call, and requests of others are served in between. All are written
 * once those that wait longest hold PENDING_MAX bytes. */
static NO_INLINE void writeLater(void (*write)(client *cl)) {
    enum { SESSIONS_MIN = 16, SHARE = 32, PENDING_MAX = 64 * 1024 };
    size_t most = sizeMax(SESSIONS_MIN, sessionLaterCount() / SHARE);
    session *s;
    for (size_t i = 0; (s = sessionFirstLater()); i++) {
        if (i >= most && outbufPending(&s->out) < PENDING_MAX) {
            loopLimitSleep(netLoop(), 0);
            return;
        }
        sessionTakeLater(s);
        if (unlikely(engineHot.current != NULL) && sessionIsExecuting(s)) {
            sessionWantWrite(s); /* a nested turn: its reply is incomplete */
        } else {
            write(clientOf(s));
        }
    }
}

/* In the order that engine/session.h says. */
static inline void writeAll(void (*write)(client *cl), bool threads) {
    session *s;
    while (unlikely((s = sessionNextPushed()) != NULL)) write(clientOf(s));
    if (unlikely(threads)) ioThreadsBeginReplies();
    while ((s = sessionNextPending())) write(clientOf(s));
    if (unlikely(sessionLaterCount() > 0)) writeLater(write);
}

void writerRun(void) {
    hotCheck(threadIsMain());
    bool threads = ioThreadsInUse();
    if (unlikely(threads)) ioThreadsBeginWrites();
    if (unlikely(hold != NULL)) {
        writeAll(writerWriteReleased, threads);
    } else if (unlikely(threads)) {
        writeAll(ioThreadsWrite, true);
    } else {
        writeAll(writerWrite, false);
    }
    (void)limitsEvict(); /* the number of bytes is not needed */
}
