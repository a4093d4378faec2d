/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Commands of transactions: MULTI queues, EXEC runs, DISCARD forgets, WATCH makes EXEC depend on keys. */
#include "cmd/procs.h"
#include "engine/reply.h"
#include "store/store.h"
#include "engine/transaction.h"
#include "engine/watch.h"

/* MULTI. Reply: OK. Inside MULTI a gate refuses it. */
void multiCommand(ctx *c) {
    transactionBegin(c->who);
    replyOk(c);
}

/* EXEC. Reply: an array with the reply of each queued command; null when a watched key has changed. */
void execCommand(ctx *c) {
    if (c->who->flags & SESSION_IN_MULTI) {
        transactionRun(c);
    } else {
        replyError(c, SLICE("ERR EXEC without MULTI"));
    }
}

/* DISCARD. Reply: OK. */
void discardCommand(ctx *c) {
    if (c->who->flags & SESSION_IN_MULTI) {
        transactionDiscard(c->who);
        replyOk(c);
    } else {
        replyError(c, SLICE("ERR DISCARD without MULTI"));
    }
}

/* WATCH key [key ...]. Reply: OK. Inside MULTI a gate refuses it. */
void watchCommand(ctx *c) {
    for (int i = 1; i < c->argc; i++) {
        uint64_t hash = i == 1 ? c->key_hash : storeHash(c->argv[i]);
        watchKey(c->who, c->argv[i], hash, c->now_ms);
    }
    replyOk(c);
}

/* UNWATCH. Reply: OK. In a transaction it comes too late: EXEC has forgotten the keys before it. */
void unwatchCommand(ctx *c) {
    watchForget(c->who);
    replyOk(c);
}
