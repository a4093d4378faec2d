/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a command may do besides replying: keep an argument, tell of changes, rewrite what is propagated.
 * Main thread only. */
#include "engine/ctx.h"

#include "base/base.h"
#include "engine/hooks_priv.h"
#include "engine/propagate.h"

blob *ctxTakeArg(ctx *c, int i) {
    if (!c->request) return NULL;
    for (int k = 0; k < c->request->large_count; k++) {
        requestLarge *large = &c->request->large[k];
        if (large->arg == i) return blobRetain(large->bytes);
    }
    return NULL;
}

void ctxTellObservers(ctx *c, slice key, const char *event) { hooksKeyChanged(c->db, key, event); }

void ctxDatasetChanged(ctx *c, uint64_t n) {
    c->flags |= CTX_CHANGED;
    engineHot.dirty += n;
}

void ctxPropagateAs(ctx *c, int argc, const slice *argv) {
    c->flags |= CTX_CHANGED | CTX_REWRITTEN;
    propagateCopy(c->who->db_id, argc, argv);
}

void ctxPropagateNothing(ctx *c) { c->flags |= CTX_NO_PROPAGATE; }
