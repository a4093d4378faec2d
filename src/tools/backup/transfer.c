/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keys of the private server (transfer.h). Invariant: a value is brought as it is, by DUMP and
 * RESTORE, with an absolute expiry time; a key that exists in the target stays, unless --replace
 * was given. */
#include "tools/backup/transfer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <valkey/cluster.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/number.h"
#include "tools/cli/cluster_nodes.h"
#include "tools/cli/connection.h"
#include "tools/cli/info.h"
#include "tools/cli/interrupt.h"

enum { SCAN_COUNT = 500, RESTORE_ARGS = 6 };

/* ------------------------------------------------------------------ the target */

static int beginTls(struct valkeyContext *context, struct valkeyTLSContext *unused) {
    (void)unused; /* there is one for all connections */
    return toolTlsBegin(context) ? VALKEY_OK : VALKEY_ERR;
}

static status refused(const transferTarget *t, const char *what, reason *why) {
    return reasonSet(why, ERR_DENIED, "%s: %s", t->address, what);
}

static status connectCluster(transferTarget *t, const cliOptions *o, const char *nodes,
                             reason *why) {
    valkeyClusterOptions options = {.initial_nodes = nodes,
                                    .options = VALKEY_OPT_BLOCKING_INITIAL_UPDATE,
                                    .username = o->user,
                                    .password = o->password};
    if (o->tls.on) {
        options.tls = t; /* only tells that TLS is wanted */
        options.tls_init_fn = beginTls;
    }
    t->cluster = valkeyClusterConnectWithOptions(&options);
    if (t->cluster && !t->cluster->err) return OK;
    return refused(t, t->cluster ? t->cluster->errstr : "out of memory", why);
}

/* Calls a command on each primary of a cluster, or on the server. */
typedef status nodeVisit(const valkeyReply *reply, const transferTarget *t, reason *why);

static status visitReply(valkeyReply *reply, nodeVisit *visit, const transferTarget *t,
                         reason *why) {
    if (!reply) return refused(t, t->server ? t->server->errstr : t->cluster->errstr, why);
    status st =
        reply->type == VALKEY_REPLY_ERROR ? refused(t, reply->str, why) : visit(reply, t, why);
    freeReplyObject(reply);
    return st;
}

/* The arguments are words of text, or one that may have any bytes at the end. */
static status eachPrimary(const transferTarget *t, nodeVisit *visit, reason *why,
                          const char *format, const void *bytes, size_t len) {
    if (t->server) return visitReply(valkeyCommand(t->server, format, bytes, len), visit, t, why);
    valkeyClusterNodeIterator nodes;
    valkeyClusterNode *node;
    status st = OK;
    valkeyClusterInitNodeIterator(&nodes, t->cluster);
    while (st == OK && (node = valkeyClusterNodeNext(&nodes))) {
        if (node->role != VALKEY_ROLE_PRIMARY) continue;
        st = visitReply(valkeyClusterCommandToNode(t->cluster, node, format, bytes, len), visit, t,
                        why);
    }
    return st;
}

static status checkEmpty(const valkeyReply *reply, const transferTarget *t, reason *why) {
    if (!reply->str || infoKeys(reply->str) == 0) return OK;
    return refused(t, "the server is not empty; --keys brings single keys", why);
}

static status checkState(const valkeyReply *reply, const transferTarget *t, reason *why) {
    if (reply->str && strstr(reply->str, "cluster_state:ok")) return OK;
    return refused(t, "the cluster does not serve all slots (cluster_state)", why);
}

static status checkNothing(const valkeyReply *reply, const transferTarget *t, reason *why) {
    (void)reply, (void)t, (void)why; /* it is no error: that is enough */
    return OK;
}

static bool isCluster(valkeyContext *c) {
    valkeyReply *reply = valkeyCommand(c, "INFO cluster");
    bool yes = reply && reply->str && infoNumber(reply->str, "cluster_enabled") == 1;
    freeReplyObject(reply);
    return yes;
}

status transferConnect(transferTarget *t, const cliOptions *options, const char *address,
                       bool must_be_empty, reason *why) {
    *t = (transferTarget){.address = address};
    str host = STR_EMPTY;
    int port, bus_port;
    if (!clusterNodeParseAddress(address, &host, &port, &bus_port))
        return reasonSet(why, ERR_SYNTAX, "--into wants host:port");
    t->server = connectionOpen(options, strText(&host), port);
    strFree(&host);
    status st = t->server && !t->server->err
                    ? OK
                    : refused(t, t->server ? t->server->errstr : "out of memory", why);
    if (st == OK && options->password)
        st = visitReply(connectionLogIn(options, t->server), checkNothing, t, why);
    if (st == OK && isCluster(t->server)) {
        valkeyFree(t->server);
        t->server = NULL;
        st = connectCluster(t, options, address, why);
        if (st == OK) st = eachPrimary(t, checkState, why, "CLUSTER INFO", NULL, 0);
    }
    if (st == OK && must_be_empty) st = eachPrimary(t, checkEmpty, why, "INFO keyspace", NULL, 0);
    if (st != OK) transferDisconnect(t);
    return st;
}

void transferDisconnect(transferTarget *t) {
    valkeyFree(t->server);
    valkeyClusterFree(t->cluster);
    t->server = NULL;
    t->cluster = NULL;
}

/* ------------------------------------------------------------------ keys */

/* Keys of one step of SCAN. */
typedef struct keyBatch {
    valkeyReply *scan; /* cursor and keys */
    valkeyReply **keys;
    size_t count;
} keyBatch;

static status nextReply(valkeyContext *c, valkeyReply **out, reason *why) {
    void *reply = NULL;
    if (valkeyGetReply(c, &reply) != VALKEY_OK)
        return reasonSet(why, ERR_IO, "private server: %s", c->errstr);
    *out = reply;
    return OK;
}

/* False in `*more` at the end; the cursor is in `cursor`, which begins as "0". */
static status scanStep(privateServer *s, const char *pattern, str *cursor, keyBatch *out,
                       bool *more, reason *why) {
    status st = privateServerCommand(s, &out->scan, why, "SCAN %s MATCH %s COUNT %d",
                                     strText(cursor), pattern, SCAN_COUNT);
    if (st != OK) return st;
    check(out->scan->elements == 2);
    strClear(cursor);
    strAppendText(cursor, out->scan->element[0]->str);
    out->keys = out->scan->element[1]->element;
    out->count = out->scan->element[1]->elements;
    *more = strcmp(strText(cursor), "0") != 0;
    return OK;
}

typedef status batchProc(privateServer *s, const keyBatch *batch, void *arg, reason *why);

static status eachBatch(privateServer *s, const char *pattern, batchProc *proc, void *arg,
                        reason *why) {
    str cursor = STR_EMPTY;
    bool more = true;
    status st = OK;
    strAppendText(&cursor, "0");
    while (st == OK && more) {
        if (interruptPending()) {
            st = reasonSet(why, ERR_IO, "interrupted");
            break;
        }
        keyBatch batch;
        st = scanStep(s, pattern, &cursor, &batch, &more, why);
        if (st != OK) break;
        st = proc(s, &batch, arg, why);
        freeReplyObject(batch.scan);
    }
    strFree(&cursor);
    return st;
}

/* The expiry time in the target; 0: none, -1: the key has expired. */
static int64_t timeFor(int64_t expires_ms, ttlMode ttl, int64_t shift_ms) {
    if (expires_ms < 0 || ttl == TTL_DROP) return 0;
    if (ttl == TTL_SHIFT) return expires_ms + shift_ms;
    return expires_ms > clockWallMs() ? expires_ms : -1;
}

typedef struct moving {
    transferTarget *target;
    const cliOptions *options;
    ttlMode ttl;
    int64_t shift_ms;
    transferCounts *counts;
    uint64_t queued;
} moving;

static status queueRestore(moving *m, const valkeyReply *key, const valkeyReply *value,
                           int64_t expires_ms, reason *why) {
    const transferTarget *t = m->target;
    char digits[NUMBER_TEXT_MAX];
    str name = STR_EMPTY;
    if (m->options->backup.prefix) strAppendText(&name, m->options->backup.prefix);
    strAppend(&name, key->str, key->len);
    digits[numberPrintInt(digits, expires_ms)] = '\0';
    const char *argv[RESTORE_ARGS] = {"RESTORE",  strText(&name), digits,
                                      value->str, "ABSTTL",       "REPLACE"};
    size_t lengths[RESTORE_ARGS] = {7, name.len, strlen(digits), value->len, 6, 7};
    int argc = m->options->backup.replace ? RESTORE_ARGS : RESTORE_ARGS - 1;
    int done = t->server ? valkeyAppendCommandArgv(t->server, argc, argv, lengths)
                         : valkeyClusterAppendCommandArgv(t->cluster, argc, argv, lengths);
    strFree(&name);
    m->queued += done == VALKEY_OK;
    if (done == VALKEY_OK) return OK;
    return refused(t, t->server ? t->server->errstr : t->cluster->errstr, why);
}

static status takeResults(moving *m, reason *why) {
    transferTarget *t = m->target;
    status st = OK;
    for (; m->queued; m->queued--) {
        void *got = NULL;
        int done =
            t->server ? valkeyGetReply(t->server, &got) : valkeyClusterGetReply(t->cluster, &got);
        valkeyReply *reply = got;
        if (done != VALKEY_OK || !reply)
            return refused(t, t->server ? t->server->errstr : t->cluster->errstr, why);
        if (reply->type != VALKEY_REPLY_ERROR) {
            m->counts->keys++;
        } else if (!strncmp(reply->str, "BUSYKEY", 7)) {
            m->counts->existing++;
        } else if (st == OK) {
            st = refused(t, reply->str, why);
        }
        freeReplyObject(reply);
    }
    if (t->cluster) valkeyClusterReset(t->cluster);
    return st;
}

static status moveBatch(privateServer *s, const keyBatch *batch, void *arg, reason *why) {
    moving *m = arg;
    for (size_t i = 0; i < batch->count; i++) {
        const valkeyReply *key = batch->keys[i];
        valkeyAppendCommand(s->link, "PEXPIRETIME %b", key->str, key->len);
        valkeyAppendCommand(s->link, "DUMP %b", key->str, key->len);
    }
    status st = OK;
    for (size_t i = 0; i < batch->count; i++) {
        valkeyReply *time = NULL, *value = NULL;
        status got = nextReply(s->link, &time, why);
        if (got == OK) got = nextReply(s->link, &value, why);
        int64_t at = got == OK && time->type == VALKEY_REPLY_INTEGER
                         ? timeFor(time->integer, m->ttl, m->shift_ms)
                         : -1;
        if (st == OK) st = got;
        if (st == OK && (at < 0 || value->type != VALKEY_REPLY_STRING)) {
            m->counts->expired++;
        } else if (st == OK) {
            st = queueRestore(m, batch->keys[i], value, at, why);
        }
        freeReplyObject(time);
        freeReplyObject(value);
        if (got != OK) return got;
    }
    status taken = takeResults(m, why);
    return st == OK ? taken : st;
}

static status selectDb(moving *m, privateServer *from, int id, reason *why) {
    const transferTarget *t = m->target;
    status st = privateServerCommand(from, NULL, why, "SELECT %d", id);
    if (st != OK) return st;
    if (t->server)
        return visitReply(valkeyCommand(t->server, "SELECT %d", id), checkNothing, t, why);
    return id == 0 ? OK
                   : refused(t,
                             "the backup has keys in databases other than 0, which are not "
                             "brought into a cluster",
                             why);
}

static status moveFunctions(const transferTarget *t, privateServer *from, reason *why) {
    valkeyReply *dump;
    status st = privateServerCommand(from, &dump, why, "FUNCTION DUMP");
    if (st != OK) return st;
    st = eachPrimary(t, checkNothing, why, "FUNCTION RESTORE %b REPLACE", dump->str, dump->len);
    freeReplyObject(dump);
    return st;
}

/* Calls `proc` with the databases that have keys. */
typedef status dbProc(privateServer *s, int id, void *arg, reason *why);

static status eachDb(privateServer *s, dbProc *proc, void *arg, reason *why) {
    valkeyReply *info;
    infoDatabase db;
    status st = privateServerCommand(s, &info, why, "INFO keyspace");
    if (st != OK) return st;
    for (const char *at = info->str; st == OK && infoNextDatabase(&at, &db);)
        st = proc(s, db.id, arg, why);
    freeReplyObject(info);
    return st;
}

static status moveDb(privateServer *s, int id, void *arg, reason *why) {
    moving *m = arg;
    const char *pattern = m->options->backup.keys ? m->options->backup.keys : "*";
    status st = selectDb(m, s, id, why);
    return st == OK ? eachBatch(s, pattern, moveBatch, m, why) : st;
}

status transferKeys(transferTarget *t, privateServer *from, const cliOptions *options, ttlMode ttl,
                    int64_t shift_ms, transferCounts *counts, reason *why) {
    moving m = {
        .target = t, .options = options, .ttl = ttl, .shift_ms = shift_ms, .counts = counts};
    status st = options->backup.keys ? OK : moveFunctions(t, from, why);
    return st == OK ? eachDb(from, moveDb, &m, why) : st;
}

/* ------------------------------------------------------------------ other expiry times */

typedef struct shifting {
    ttlMode ttl;
    int64_t shift_ms;
    uint64_t changed;
} shifting;

static status shiftBatch(privateServer *s, const keyBatch *batch, void *arg, reason *why) {
    shifting *sh = arg;
    status st = OK;
    size_t queued = 0;
    for (size_t i = 0; i < batch->count; i++)
        valkeyAppendCommand(s->link, "PEXPIRETIME %b", batch->keys[i]->str, batch->keys[i]->len);
    int64_t *times = memNewArray(int64_t, batch->count + 1);
    for (size_t i = 0; st == OK && i < batch->count; i++) {
        valkeyReply *reply = NULL;
        st = nextReply(s->link, &reply, why);
        times[i] = st == OK && reply->type == VALKEY_REPLY_INTEGER ? reply->integer : -1;
        freeReplyObject(reply);
    }
    for (size_t i = 0; st == OK && i < batch->count; i++) {
        const valkeyReply *key = batch->keys[i];
        if (times[i] < 0) continue;
        int64_t at = timeFor(times[i], sh->ttl, sh->shift_ms);
        if (at) {
            valkeyAppendCommand(s->link, "PEXPIREAT %b %lld", key->str, key->len, (long long)at);
        } else {
            valkeyAppendCommand(s->link, "PERSIST %b", key->str, key->len);
        }
        queued++;
    }
    for (; st == OK && queued; queued--) {
        valkeyReply *reply = NULL;
        st = nextReply(s->link, &reply, why);
        sh->changed += st == OK && reply->type == VALKEY_REPLY_INTEGER && reply->integer == 1;
        freeReplyObject(reply);
    }
    memFree(times);
    return st;
}

static status shiftDb(privateServer *s, int id, void *arg, reason *why) {
    status st = privateServerCommand(s, NULL, why, "SELECT %d", id);
    return st == OK ? eachBatch(s, "*", shiftBatch, arg, why) : st;
}

status transferShiftTimes(privateServer *s, ttlMode ttl, int64_t shift_ms, uint64_t *changed,
                          reason *why) {
    check(ttl != TTL_KEEP);
    shifting sh = {.ttl = ttl, .shift_ms = shift_ms};
    status st = eachDb(s, shiftDb, &sh, why);
    *changed = sh.changed;
    return st;
}
