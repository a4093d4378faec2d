/* SPDX-License-Identifier: BSD-3-Clause
 *
 * BGREWRITEAOF, WAITAOF. Main thread only. */
#include "base/base.h"
#include "base/number.h"
#include "engine/block.h"
#include "engine/child.h"
#include "engine/hot.h"
#include "engine/propagate.h"
#include "engine/reply.h"
#include "persist/aof.h"
#include "persist/aof_rewrite.h"
#include "persist/procs.h"
#include "persist/sync.h"

static void replyStart(ctx *c) {
    if (aofRewriteStartFailed()) {
        replyError(
            c, SLICE("ERR Can't execute an AOF background rewriting. Please check the server logs "
                     "for more information."));
    } else if (aofRewriteIsStarting() && aofRewriteIsScheduled()) {
        replyStatus(c, SLICE("Background append only file rewriting scheduled"));
    } else {
        replyStatus(c, SLICE("Background append only file rewriting started"));
    }
}

static bool startIsOver(const blockQuery *q) {
    (void)q; /* there is one rewrite at a time */
    return !aofRewriteIsStarting() || aofRewriteIsScheduled();
}

/* BGREWRITEAOF: rewrites the append only file in a child. The reply waits until there is one. */
void bgrewriteaofCommand(ctx *c) {
    if (aofRewriteIsRunning()) {
        replyError(c, SLICE("ERR Background append only file rewriting already in progress"));
    } else if (childAlive() != CHILD_NONE || c->flags & CTX_IN_MULTI) {
        /* A child forked within EXEC would save a part of the transaction. */
        aofRewriteSchedule();
        replyStatus(c, SLICE("Background append only file rewriting scheduled"));
    } else if (aofRewriteStart() != OK || !aofRewriteIsStarting() || blockIsDenied(c)) {
        replyStart(c);
    } else {
        blockStart(c, &(blockParams){.kind = BLOCK_OFFSET,
                                     .ready = startIsOver,
                                     .finish = replyStart,
                                     .not_by_user = true});
    }
}

/* ------------------------------------------------------------------ WAITAOF */

typedef struct waitAof {
    uint64_t number; /* of the session's last change */
    int64_t local, replicas;
    int64_t offset; /* in the stream of replicas, after the same change */
} waitAof;

static const syncReplicas *replicas; /* NULL: there are none */

void syncSetReplicas(const syncReplicas *functions) { replicas = functions; }

static int countReplicas(const waitAof *w) {
    return replicas ? replicas->count_fsynced(w->offset) : 0;
}

static bool isLocal(const waitAof *w) {
    return aofStateNow() != AOF_IS_OFF && aofSyncedNumber() >= w->number;
}

static void replyWait(ctx *c, const waitAof *w) {
    hotCheck(w->replicas >= 0);
    if (w->local && aofStateNow() == AOF_IS_OFF) {
        replyError(
            c,
            SLICE("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled."));
        return;
    }
    replyArray(c, 2);
    replyInteger(c, isLocal(w));
    replyInteger(c, countReplicas(w));
}

static void endWait(ctx *c) { replyWait(c, blockState(c)); }

static bool waitIsReady(const blockQuery *q) {
    const waitAof *w = q->state;
    if (w->local && aofStateNow() == AOF_IS_OFF) return true;
    return countReplicas(w) >= w->replicas && (!w->local || isLocal(w));
}

/* WAITAOF numlocal numreplicas timeout: waits until the session's changes are on disk here, and on
 * that many replicas. */
void waitaofCommand(ctx *c) {
    hotCheck(c->argc == 4);
    waitAof w = {.number = propagateNumberOf(c->who)};
    int64_t deadline_ms;
    if (!numberParseInt(c->argv[1], &w.local)) {
        replyError(c, SLICE("ERR value is not an integer or out of range"));
        return;
    }
    if (w.local < 0 || w.local > 1) {
        replyError(c, SLICE("ERR value is out of range, value must between 0 and 1"));
        return;
    }
    if (!numberParseInt(c->argv[2], &w.replicas) || w.replicas < 0) {
        replyError(c, SLICE("ERR value is out of range, must be positive"));
        return;
    }
    if (!blockArgDeadlineMs(c, 3, &deadline_ms)) return;
    if (replicas && replicas->is_replica()) {
        replyError(c, SLICE("ERR WAITAOF cannot be used with replica instances. Please also note "
                            "that writes to replicas are just local and are not propagated."));
        return;
    }
    if (replicas) w.offset = replicas->offset_of(c->who);
    blockQuery now = {.state = &w};
    if (waitIsReady(&now) || blockIsDenied(c)) {
        replyWait(c, &w);
        return;
    }
    if (w.replicas > 0 && replicas) replicas->want_acks();
    waitAof *state = memNew(waitAof);
    *state = w;
    blockStart(c, &(blockParams){.kind = BLOCK_OFFSET,
                                 .ready = waitIsReady,
                                 .deadline_ms = deadline_ms,
                                 .timed_out = endWait,
                                 .finish = endWait,
                                 .state = state,
                                 .free_state = memFree});
}
