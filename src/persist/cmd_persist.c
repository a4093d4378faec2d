/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SAVE, BGSAVE, LASTSAVE. Main thread only. */
#include "base/base.h"
#include "engine/child.h"
#include "engine/reply.h"
#include "persist/persist.h"
#include "persist/procs.h"
#include "persist/snapshot.h"

/* SAVE: saves in this process; no client is served meanwhile. */
void saveCommand(ctx *c) {
    reason why;
    status st = snapshotSave(&why);
    if (st == OK) {
        replyOk(c);
    } else if (st == ERR_EXISTS) {
        replyError(c, SLICE("ERR Background save already in progress"));
    } else {
        replyErrorFormat(c, "ERR %s", why.text);
    }
}

static void cancel(ctx *c) {
    bool running;
    if (!snapshotCancel(&running)) {
        replyError(c, SLICE("ERR Background saving is currently not in progress or scheduled"));
    } else {
        replyStatus(c, running ? SLICE("Background saving cancelled")
                               : SLICE("Scheduled background saving cancelled"));
    }
}

/* BGSAVE [SCHEDULE | CANCEL]: saves in a child. */
void bgsaveCommand(ctx *c) {
    bool schedule = c->argc == 2 && ctxArgIs(c, 1, "schedule");
    if (c->argc == 2 && ctxArgIs(c, 1, "cancel")) {
        cancel(c);
        return;
    }
    if (c->argc > 2 || (c->argc == 2 && !schedule)) {
        replyError(c, ERR_SYNTAX_TEXT);
        return;
    }
    reason why;
    if (snapshotIsRunning()) {
        replyError(c, SLICE("ERR Background save already in progress"));
    } else if (c->flags & CTX_IN_MULTI || (schedule && childAlive() != CHILD_NONE)) {
        /* A child forked within EXEC would save a part of the transaction. */
        snapshotSchedule();
        replyStatus(c, SLICE("Background saving scheduled"));
    } else if (childAlive() != CHILD_NONE) {
        replyError(
            c,
            SLICE(
                "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE "
                "in order to schedule a BGSAVE whenever possible."));
    } else if (snapshotStart(&why) == OK) {
        replyStatus(c, SLICE("Background saving started"));
    } else {
        replyErrorFormat(c, "ERR %s", why.text);
    }
}

/* LASTSAVE. Reply: Unix time of the last successful save. */
void lastsaveCommand(ctx *c) { replyInteger(c, snapshotLastSave()); }
