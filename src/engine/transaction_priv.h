/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A session's transaction: the queue is used by transaction.c, the watches by watch.c. */
#ifndef ENGINE_TRANSACTION_PRIV_H
#define ENGINE_TRANSACTION_PRIV_H

#include "base/str.h"
#include "engine/transaction.h"

struct transaction {
    session *who;
    request *queue; /* `count` requests; `owner` is the block with a request's slices and bytes */
    int count, cap;
    uint64_t any_flags, all_flags; /* of the queued commands */
    const user *of;                /* the session's user at MULTI; NULL: none */
    uint64_t rights_version;       /* userRightsVersion() then */
    size_t memory, argument_bytes; /* of the queue */
    list watches;                  /* watched keys, oldest first */
    struct watcher *watcher;       /* what they belong to; NULL: there are none */
    listNode watching;             /* node in the list of transactions with watches */
    size_t watch_memory;
    /* Earliest expiry time of the watched keys that were not expired when watched. INT64_MAX:
     * never. */
    int64_t watch_expire_ms;
};

/* The session's transaction; allocated on first use. */
transaction *transactionOf(session *s);
/* Frees queue, watches and the struct itself: when the session ends, and for RESET. */
void transactionFree(session *s);
/* Makes EXEC fail: `flag` is SESSION_MULTI_POISONED or SESSION_WATCH_DIRTY. Frees the queue. */
void transactionFail(session *s, uint64_t flag);
/* Called when an error refuses the request of `c` before it runs. In MULTI this makes the
 * transaction fail. For EXEC, whose transaction is discarded, returns true and the text to reply
 * instead. */
bool transactionRefused(ctx *c, slice text, str *instead);

typedef enum execVerdict { EXEC_RUNS, EXEC_NULL, EXEC_ERROR } execVerdict;
/* Decides whether the conditions in the arguments of EXEC hold: all of them (EXEC_RUNS), not all
 * (EXEC_NULL), or one cannot be decided, with the error in `error`. Changes nothing. */
execVerdict execConditionsJudge(const ctx *c, slice *error);

/* True if a watched key has changed or expired since it was watched. */
bool watchIsBroken(const session *s, int64_t now_ms);
/* Implements on_db. */
void watchDbEvent(const dbEvent *e);

#endif
