/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Operations of a command other than replying: keeping an argument, signalling changes, changing
 * what is propagated. Main thread only. */
#include "engine/ctx.h"

#include "base/base.h"
#include "engine/hooks_priv.h"
#include "engine/keyspace.h"
#include "engine/propagate.h"

/* Bit set of secret arguments of the current command; the highest bit means all from there on.
 * Valid only for a ctx with CTX_SECRETS: commands with secrets run no other commands. */
static uint64_t secrets;

static uint64_t secretBit(int i) { return UINT64_C(1) << (i < 63 ? i : 63); }

void ctxRedact(ctx *c, int i) {
    hotCheck(i > 0);
    hotCheck(i < c->argc);
    if (!(c->flags & CTX_SECRETS)) secrets = 0;
    c->flags |= CTX_SECRETS;
    secrets |= secretBit(i);
}

void ctxRedactAfter(ctx *c, int first, const char *word, int count) {
    hotCheck(first > 0);
    for (int i = first; i < c->argc; i++) {
        if (!sliceIs(c->argv[i], word)) continue;
        for (int k = i + 1; k <= i + count && k < c->argc; k++) ctxRedact(c, k);
    }
}

uint64_t ctxSecrets(const ctx *c) { return c->flags & CTX_SECRETS ? secrets : 0; }

void ctxSetSecrets(ctx *c, uint64_t marked) {
    if (!marked) return;
    c->flags |= CTX_SECRETS;
    secrets = marked;
}

bool ctxArgIsSecret(const ctx *c, int i) {
    return (c->flags & CTX_SECRETS) && (secrets & secretBit(i));
}

blob *ctxTakeArg(ctx *c, int i) {
    hotCheck(i > 0);
    hotCheck(i < c->argc);
    if (!c->request) return NULL;
    for (int k = 0; k < c->request->large_count; k++) {
        requestLarge *large = &c->request->large[k];
        if (large->arg == i) return blobRetain(large->bytes);
    }
    return NULL;
}

void ctxInitInner(ctx *c, ctx *outer) {
    hotCheck(threadIsMain());
    *c = (ctx){.who = outer->who,
               .db = outer->db,
               .out = outer->out,
               .proto = outer->proto,
               .origin = outer->origin,
               .targets = outer->targets,
               .now_ms = outer->now_ms,
               .look = outer->look,
               .outer = outer};
}

void ctxInitLater(ctx *c, session *s, request *r, outbuf *out) {
    hotCheck(threadIsMain());
    *c = (ctx){.who = s,
               .db = s->db,
               .argv = r->argv,
               .argc = r->argc,
               .cmd = r->command,
               .out = out,
               .proto = s->proto,
               .origin = s->origin,
               .targets = s->targets,
               .now_ms = engineHot.now_ms,
               .look = keyspaceLookOf(s, engineHot.now_ms),
               .key_hash = r->key_hash,
               .request = r};
}

void ctxSetProto(ctx *c, int proto) {
    hotCheck(proto == 2 || proto == 3);
    hotCheck(threadIsMain());
    session *s = c->who;
    s->proto = (uint8_t)proto;
    for (ctx *at = c; at; at = at->outer) {
        if (at->who == s) at->proto = s->proto;
    }
}

void ctxTellObservers(ctx *c, slice key, const keyEvent *event) {
    hooksKeyChanged(c->db, key, event);
}

void ctxNotifyEvent(ctx *c, slice key, const keyEvent *event) { hooksKeyEvent(c->db, key, event); }

void ctxDatasetChanged(ctx *c, uint64_t n) {
    c->flags |= CTX_CHANGED;
    engineHot.dirty += n;
}

void ctxPropagateAs(ctx *c, int argc, const slice *argv) {
    ctxPropagateIn(c, c->who->db_id, argc, argv);
}

void ctxPropagateIn(ctx *c, int db_id, int argc, const slice *argv) {
    hotCheck(argc > 0);
    if (!(c->flags & CTX_REWRITTEN)) propagateOwnBegins();
    c->flags |= CTX_CHANGED | CTX_REWRITTEN;
    if (!engineHot.sinks) return;
    propagateTo to = propagateToOf(c);
    to.db_id = db_id;
    propagateCopy(to, argc, argv);
}

void ctxPropagateTo(ctx *c, uint32_t targets) {
    hotCheck((targets & ~(uint32_t)PROPAGATE_ALL) == 0);
    c->flags |= CTX_CHANGED;
    if (engineHot.sinks) c->targets &= (uint8_t)targets; /* finish() puts it back */
}

void ctxPropagateNothing(ctx *c) { c->flags |= CTX_NO_PROPAGATE; }
