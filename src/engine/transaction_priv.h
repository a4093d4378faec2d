/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A session's transaction as the engine's files share it: the queue belongs to transaction.c, the watches
 * to watch.c. */
#ifndef ENGINE_TRANSACTION_PRIV_H
#define ENGINE_TRANSACTION_PRIV_H

#include "base/str.h"
#include "engine/transaction.h"

struct transaction {
    session *who;
    request *queue; /* `count` of them; `owner` is the block with a request's slices and bytes */
    int count, cap;
    uint32_t any_flags, all_flags; /* of the queued commands */
    size_t memory, argument_bytes; /* of the queue */
    list watches;                  /* what it watches, oldest first */
    listNode watching;             /* place among those that watch something */
    size_t watch_memory;
    /* When the first of the watched keys dies that were alive when it was watched. INT64_MAX: never. */
    int64_t watch_expire_ms;
};

/* The session's transaction; made on first use. */
transaction *transactionOf(session *s);
/* Drops queue, watches and the struct itself: a session's end, RESET. */
void transactionFree(session *s);
/* EXEC will run nothing: `flag`, SESSION_MULTI_POISONED or SESSION_WATCH_DIRTY, says why. The queue goes. */
void transactionSpoil(session *s, uint32_t flag);
/* An error refuses the request of `c` before it runs. In MULTI that spoils the transaction. EXEC, which takes
 * it along, answers with another text: then true is returned, and the text in `instead`. */
bool transactionRefused(ctx *c, slice text, str *instead);

/* Whether a watched key has changed, or died, since it was watched. */
bool watchIsBroken(const session *s, int64_t now_ms);
/* Hook 5. */
void watchDbEvent(const dbEvent *e);

#endif
