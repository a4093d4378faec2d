/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Transaction commands: MULTI starts queueing, EXEC runs the queue, DISCARD drops it, WATCH makes
 * EXEC conditional. Main thread only. */
#include "cmd/procs.h"
#include "engine/reply.h"
#include "store/store.h"
#include "engine/transaction.h"
#include "engine/watch.h"

/* MULTI. Reply: OK. Inside MULTI it is refused by a gate. */
void multiCommand(ctx *c) {
    transactionBegin(c->who);
    replyOk(c);
}

/* EXEC [IFEQ key value|IFNE key value|NX key|XX key]... Reply: an array with the reply of each
 * queued command; null if a watched key was changed, or a condition does not hold. */
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

/* WATCH key [key ...]. Reply: OK. Inside MULTI it is refused by a gate. */
void watchCommand(ctx *c) {
    hotCheck(c->argc >= 2);
    for (int i = 1; i < c->argc; i++) {
        uint64_t hash = i == 1 ? c->key_hash : storeHash(c->argv[i]);
        watchKey(c->who, c->argv[i], hash, c->now_ms);
    }
    replyOk(c);
}

/* UNWATCH. Reply: OK. Has no effect in a transaction: EXEC unwatches all keys before running it. */
void unwatchCommand(ctx *c) {
    watchForget(c->who);
    replyOk(c);
}
