/* SPDX-License-Identifier: BSD-3-Clause
 *
 * DEBUG subcommands about replication; what they do is registered by `repl`. Main thread only. */
#include <limits.h>

#include "base/base.h"
#include "base/number.h"
#include "cmd/debug_priv.h"
#include "engine/lifecycle.h"
#include "engine/reply.h"

void debugChangeReplId(ctx *c) {
    engineReplication()->change_id();
    replyOk(c);
}

void debugReplicate(ctx *c) {
    hotCheck(c->argc > 2);
    engineReplication()->replicate(c->argc - 2, c->argv + 2);
    replyOk(c);
}

void debugDelayRdbClientFree(ctx *c) {
    hotCheck(c->argc > 2);
    int64_t seconds;
    if (!ctxArgIntIn(c, 2, 0, INT_MAX, &seconds, NULL)) return;
    engineReplication()->set_dataset_grace((int)seconds);
    replyOk(c);
}

void debugPauseAfterFork(ctx *c) {
    hotCheck(c->argc > 2);
    int64_t on;
    if (!ctxArgInt(c, 2, &on)) return;
    engineReplication()->pause_after_fork(on != 0);
    replyOk(c);
}
