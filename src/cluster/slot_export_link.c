/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The connection of an export (slot_export_priv.h). Until the target has accepted the job, replies
 * are read here line by line. Then the connection becomes a client, whose requests are the target's
 * part of the protocol.
 *
 * Invariant: at most one of `connection` and `who` is set. There is one server in a process, so the
 * callbacks do not use their argument. */
#include <errno.h>

#include "base/base.h"
#include "base/number.h"
#include "cluster/bus_names.h"
#include "cluster/server_map.h"
#include "cluster/slot_export.h"
#include "cluster/slot_export_priv.h"
#include "cluster/slot_migration.h"
#include "engine/deliver.h"
#include "engine/hot.h"
#include "io/net_addr.h"
#include "net/net.h"
#include "resp/resp.h"

enum {
    REPLY_MAX = 4096,
    NAME_MS = 5000, /* for the lookup of the name of a target */
};

/* The job with this connection. */
static slotJob *jobOfConn(const conn *c) {
    for (slotJob *job = exportNext(NULL); job; job = exportNext(job)) {
        if (exportOf(job)->connection == c) return job;
    }
    return NULL;
}

/* ------------------------------------------------------------------ output */

void exportLinkSend(slotJob *job, slice bytes) {
    hotCheck(bytes.len > 0);
    hotCheck(job->work);
    exportWork *w = exportOf(job);
    if (!w->who) return; /* it was lost */
    if (w->pack) {
        exportPackSoon(w);
        outbufAppend(&w->plain, bytes.ptr, bytes.len);
    } else {
        sessionDeliver(w->who, DELIVER_PUSH, bytes);
        sessionWantWrite(w->who);
    }
    w->given += bytes.len;
    w->sent_any_ms = engineHot.now_ms;
}

void exportLinkLend(slotJob *job, blob *bytes) {
    hotCheck(bytes->len > 0);
    hotCheck(job->work);
    exportWork *w = exportOf(job);
    if (!w->who) return; /* it was lost */
    if (w->pack) {
        exportPackSoon(w);
        outbufAppendShared(&w->plain, bytes, 0, bytes->len);
    } else {
        sessionDeliverShared(w->who, DELIVER_PUSH, bytes, 0, bytes->len);
        sessionWantWrite(w->who);
    }
    w->given += bytes->len;
    w->lent_end = w->given;
    w->lent = bytes->len;
    w->sent_any_ms = engineHot.now_ms;
}

size_t exportLinkPending(const slotJob *job) {
    const exportWork *w = exportOf(job);
    return w->who ? sessionOutputPending(w->who) + exportPackPending(w) : 0;
}

size_t exportLinkUnsent(const slotJob *job) {
    const exportWork *w = exportOf(job);
    hotCheck(w->lent_end <= w->given);
    size_t unsent = exportLinkPending(job);
    size_t as_given = w->pack ? exportPackPending(w) : unsent; /* what is not compressed */
    uint64_t after = w->given - w->lent_end;
    return as_given <= after ? unsent : unsent - sizeMin(w->lent, (size_t)(as_given - after));
}

/* A request of the handshake: a few hundred bytes, which the buffer of a new socket takes. */
static void sendFirst(slotJob *job, slice bytes) {
    exportWork *w = exportOf(job);
    struct iovec all = {.iov_base = (void *)(uintptr_t)bytes.ptr, .iov_len = bytes.len};
    check(w->connection);
    if (connWritev(w->connection, &all, 1) == (ssize_t)bytes.len) {
        exportOn(job, JOB_SENT);
    } else {
        exportFail(job, "Unable to write to target node");
    }
}

void exportLinkAuth(slotJob *job, slice user_name, slice password) {
    check(password.len > 0);
    slice words[3] = {SLICE("AUTH")};
    int count = 1;
    if (user_name.len) words[count++] = user_name;
    words[count++] = password;
    size_t len;
    char *bytes = respRequest(count, words, &len);
    sendFirst(job, sliceMake(bytes, len));
    memFree(bytes);
}

void exportLinkEstablish(slotJob *job) {
    str bytes = STR_EMPTY;
    size_t count = 0;
    str codecs = STR_EMPTY;
    const clusterNode *target = slotMovesPeer(&slotMigrations, job);
    slice *words = memNewArray(slice, 8 + 2 * job->ranges.count);
    char(*digits)[NUMBER_TEXT_MAX] = memAlloc(2 * job->ranges.count * sizeof(*digits));
    words[count++] = SLICE("ESTABLISH");
    words[count++] = SLICE("SOURCE");
    words[count++] = sliceMake(job->source, NODE_ID_LEN);
    words[count++] = SLICE("NAME");
    words[count++] = sliceMake(job->name, SLOT_IMPORT_NAME_LEN);
    if (target && target->takes_capa) exportPackOffer(&codecs);
    if (codecs.len) {
        words[count++] = SLICE("CAPA");
        words[count++] = strSlice(&codecs);
    }
    words[count++] = SLICE("SLOTSRANGE");
    for (size_t i = 0; i < 2 * job->ranges.count; i++) {
        const slotRange *r = &job->ranges.items[i / 2];
        words[count++] =
            sliceMake(digits[i], numberPrintInt(digits[i], i % 2 ? r->last : r->first));
    }
    check(count == (codecs.len ? 8 : 6) + 2 * job->ranges.count);
    slotWordsAppend(&bytes, (int)count, words);
    sendFirst(job, strSlice(&bytes));
    memFree(digits);
    memFree(words);
    strFree(&codecs);
    strFree(&bytes);
}

/* ------------------------------------------------------------------ the handshake */

/* A target that was offered codecs names one after OK, unless the stream is to be plain. False: the
 * job has failed. */
static bool takeCodec(slotJob *job, slice line) {
    static const char before[] = "+OK CODEC ";
    const size_t skip = sizeof(before) - 1;
    reason why;
    if (line.len < skip + 2 || memcmp(line.ptr, before, skip) != 0) return true;
    slice codec = sliceMake(line.ptr + skip, line.len - skip - 2);
    if (exportPackBegin(job, codec, &why) == OK) return true;
    exportFail(job, why.text);
    return false;
}

/* The target has accepted the job: from now on it sends requests, and gets the stream. */
static void adopt(slotJob *job, slice rest) {
    exportWork *w = exportOf(job);
    session *s;
    if (netOutgoingAdopt(w->connection, &s) != OK) {
        exportFail(job, "The connection to the target cannot be watched");
        return;
    }
    w->connection = NULL;
    w->who = s;
    s->flags |= SESSION_SLOT_EXPORT;
    sessionSetAuthenticated(s, NULL, true);
    exportOn(job, JOB_REPLIED_OK);
    str copy = strNew(rest);
    netOutgoingStart(s, strSlice(&copy));
    strFree(&copy);
}

static void takeReply(slotJob *job, slice line, slice rest) {
    check(line.len > 0);
    bool is_ok = line.len >= 3 && !memcmp(line.ptr, "+OK", 3);
    bool is_auth = job->state == JOB_READING_AUTH;
    str message = STR_EMPTY;
    if (is_ok && is_auth) {
        logNotice("Successfully authenticated slot migration %s", slotMigrationLabel(job).text);
        exportOn(job, JOB_REPLIED_OK);
    } else if (is_ok) {
        if (takeCodec(job, line)) adopt(job, rest);
    } else if (is_auth) {
        line.len -= 2;
        strAppendFormat(&message, "Failed to AUTH to target node: %.*s", (int)line.len, line.ptr);
    } else {
        strAppendFormat(&message, "Received error during handshake to target: %.*s", (int)line.len,
                        line.ptr);
    }
    if (message.len) exportFail(job, strText(&message));
    strFree(&message);
}

static void readable(conn *c) {
    slotJob *job = jobOfConn(c);
    check(job);
    exportWork *w = exportOf(job);
    ssize_t n = connRead(c, strReserve(&w->received, REPLY_MAX), REPLY_MAX);
    if (n < 0 && errno == EAGAIN) return;
    if (n > 0) strGrow(&w->received, (size_t)n);
    slice all = strSlice(&w->received);
    const char *end = n > 0 ? memchr(all.ptr, '\n', all.len) : NULL;
    if (n <= 0 || (!end && all.len > REPLY_MAX)) {
        exportFail(job, n == 0 ? "Connection to target node closed" : connErrorText(c));
    } else if (end) {
        str received = w->received;
        size_t len = (size_t)(end - all.ptr) + 1;
        w->received = STR_EMPTY;
        takeReply(job, sliceMake(all.ptr, len), sliceMake(all.ptr + len, all.len - len));
        strFree(&received);
    }
}

static void failToConnect(slotJob *job, const char *why) {
    str message = STR_EMPTY;
    check(!exportOf(job)->who);
    strAppendFormat(&message, "Unable to connect to target node: %s", why);
    exportFail(job, strText(&message));
    strFree(&message);
}

static void connectEnded(conn *c) {
    if (c->state == CONN_CONNECTING || c->state == CONN_HANDSHAKING) return;
    slotJob *job = jobOfConn(c);
    check(job);
    if (c->state == CONN_OPEN && connOnWrite(c, NULL) == OK && connOnRead(c, readable) == OK) {
        logNotice("Slot migration %s connection established.", slotMigrationLabel(job).text);
        exportOn(job, JOB_OPENED);
        return;
    }
    failToConnect(job, connErrorText(c));
}

void slotExportConnect(void *arg, slotJob *job) {
    (void)arg;
    exportWork *w = exportOf(job);
    check(!w->connection);
    check(!w->who);
    const clusterNode *target = clusterMapFind(&serverMap, sliceMake(job->target, NODE_ID_LEN));
    reason why = {{0}};
    if (!target) {
        failToConnect(job, "it is not known any more");
        return;
    }
    const char *host = strText(&target->ip);
    int port = clusterNodePort(target, netTlsForReplication());
    const char *ip = busNameAddress(host, slotMigrations.now_ms);
    if (!ip && slotMigrations.now_ms - job->run.since_ms < NAME_MS) {
        job->run.has_begun = false; /* in the next turn, once the name was looked up */
        return;
    }
    if (!ip) {
        failToConnect(job, "its name has no address");
        return;
    }
    logNotice("Connecting slot migration %s (ip: %s, port %d)", slotMigrationLabel(job).text, ip,
              port);
    w->connection = netOutgoingOpen(ip, port, host, false, &why);
    if (w->connection) (void)netSetNoDelay(w->connection->fd, true); /* it works without */
    if (w->connection && connOnWrite(w->connection, connectEnded) == OK) return;
    failToConnect(job, why.text);
}

/* ------------------------------------------------------------------ end */

void exportLinkClose(slotJob *job) {
    check(job->work);
    exportWork *w = exportOf(job);
    if (w->connection) netOutgoingClose(w->connection);
    w->connection = NULL;
    session *s = w->who;
    if (!s) return;
    w->who = NULL;
    sessionCloseNow(s);
}

void exportLinkLimit(slotJob *job) {
    session *s = exportOf(job)->who;
    check(s);
    netLimitReplica(s, exportLinkUnsent(job), 0);
}

size_t exportLinkMemory(const slotJob *job) {
    const exportWork *w = exportOf(job);
    size_t waiting = outbufMemory(&w->plain);
    return sizeof(*w) + waiting + w->received.cap + (w->who ? netClientMemory(w->who) : 0);
}
