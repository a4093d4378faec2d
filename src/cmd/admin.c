/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Administrative commands: TIME, SHUTDOWN. Main thread only. */
#include "base/base.h"
#include "cmd/procs.h"
#include "engine/hooks.h"
#include "engine/block.h"
#include "engine/lifecycle.h"
#include "engine/reply.h"

/* ------------------------------------------------------------------ TIME, SHUTDOWN */

/* TIME. Reply: Unix time as seconds and microseconds. */
void timeCommand(ctx *c) {
    /* All commands of a transaction or script see the same time. */
    int64_t now_us = c->outer ? c->now_ms * 1000 : clockWallUs();
    const int64_t parts[] = {now_us / 1000000, now_us % 1000000};
    replyArray(c, COUNT_OF(parts));
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        str text = STR_EMPTY;
        strAppendInt(&text, parts[i]);
        replyBulk(c, strSlice(&text));
        strFree(&text);
    }
}

/* Parses the options of SHUTDOWN; false if one is unknown or if two contradict each other. */
static bool parseShutdown(const ctx *c, uint32_t *flags, bool *abort) {
    static const struct {
        const char *word;
        uint32_t flag;
    } words[] = {
        {"save", SHUTDOWN_SAVE},   {"nosave", SHUTDOWN_NOSAVE}, {"now", SHUTDOWN_NOW},
        {"force", SHUTDOWN_FORCE}, {"safe", SHUTDOWN_SAFE},     {"failover", SHUTDOWN_FAILOVER},
    };
    *flags = 0;
    *abort = false;
    for (int i = 1; i < c->argc; i++) {
        size_t at = 0;
        while (at < COUNT_OF(words) && !ctxArgIs(c, i, words[at].word)) at++;
        if (at < COUNT_OF(words)) {
            *flags |= words[at].flag;
        } else if (ctxArgIs(c, i, "abort")) {
            *abort = true;
        } else {
            return false;
        }
    }
    const uint32_t both = SHUTDOWN_SAVE | SHUTDOWN_NOSAVE;
    return (*flags & both) != both && !(*abort && *flags);
}

static void replyShutdownFailed(ctx *c) {
    replyError(c, SLICE("ERR Errors trying to SHUTDOWN. Check logs."));
}

/* Ends the wait of SHUTDOWN with an error. A shutdown that succeeds ends the process instead. */
static bool shutdownHasFailed(const blockQuery *q) {
    (void)q; /* there is one shutdown */
    return !engineShutdownWaits();
}

/* SHUTDOWN [NOSAVE|SAVE] [NOW] [FORCE] [SAFE] [FAILOVER] or SHUTDOWN ABORT. On success there is no
 * reply: the connection ends with the server. */
void shutdownCommand(ctx *c) {
    uint32_t flags;
    bool abort;
    if (!parseShutdown(c, &flags, &abort)) {
        replyError(c, ERR_SYNTAX_TEXT);
        return;
    }
    if (flags & SHUTDOWN_FAILOVER && !engineCluster()) {
        replyError(c, SLICE("ERR SHUTDOWN FAILOVER is only supported in cluster mode."));
        return;
    }
    reason why = {""};
    status st = engineShutdown(flags, abort, &why);
    if (abort) {
        if (st == OK) {
            replyOk(c);
        } else {
            replyError(c, SLICE("ERR No shutdown in progress."));
        }
    } else if (st == OK) {
        sessionCloseSoon(c->who);
    } else if (st == ERR_AGAIN) {
        blockStart(c, &(blockParams){.kind = BLOCK_CUSTOM,
                                     .ready = shutdownHasFailed,
                                     .finish = replyShutdownFailed});
    } else {
        replyShutdownFailed(c);
    }
}
