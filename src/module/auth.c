/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Authentication by modules. The callback that was registered last is called first. If a module
 * sets the user of a client and passes a callback, the client has a record until another user is
 * set or the client ends; then the callback is called, once. */
#include "module/auth.h"

#include "base/base.h"
#include "engine/execute.h"
#include "engine/reply.h"
#include "engine/session_slot.h"
#include "engine/user.h"
#include "module/block_client.h"
#include "module/context.h"
#include "module/generated/api.h"
#include "module/server_events.h"
#include "module/user.h"
#include "net/net.h"

typedef struct authCallback {
    struct authCallback *next;
    module *owner;
    uint64_t id; /* grows */
    ValkeyModuleAuthCallback func;
} authCallback;

/* A client that a module has authenticated. */
typedef struct authRecord {
    listNode node;
    session *who;
    module *owner;
    ValkeyModuleUserChangedFunc changed;
    void *private;
} authRecord;

static authCallback *callbacks; /* the newest first */
static list records;

/* ------------------------------------------------------------------ clients with a record */

/* Tells the module that the client has another user, or ends. */
static void tellChanged(session *s, void *state) {
    authRecord *r = state;
    hotCheck(r->who == s);
    hotCheck(listHas(&r->node));
    listRemove(&records, &r->node);
    if (r->changed) r->changed(s->id, r->private);
    memFree(r);
}

static const sessionSlot record_slot = {.name = "module user", .free = tellChanged};

static int recordSlot(void) {
    static int index = -1;
    if (index < 0) {
        index = sessionSlotRegister(&record_slot);
        listInit(&records);
    }
    return index;
}

void authOnSession(session *s, sessionEvent e) {
    if (e != SESSION_USER_CHANGED || !records.head.next) return;
    void *state = sessionSlotGet(s, recordSlot());
    if (!state) return;
    sessionSlotSet(s, recordSlot(), NULL);
    tellChanged(s, state);
}

/* Makes the session that of `u`. */
static int become(ValkeyModuleCtx *x, session *s, user *u, ValkeyModuleUserChangedFunc changed,
                  void *private, uint64_t *client_id) {
    if (!s || s->flags & SESSION_INTERNAL || !u || !userIsOn(u)) return VALKEYMODULE_ERR;
    sessionSetAuthenticated(s, u, true);
    hotCheck(s->user == u);
    int slot = recordSlot();
    void *before = sessionSlotGet(s, slot); /* the user is the same as before */
    if (before) {
        sessionSlotSet(s, slot, NULL);
        tellChanged(s, before);
    }
    if (changed) {
        authRecord *r = memNew(authRecord);
        *r = (authRecord){.who = s, .owner = x->module, .changed = changed, .private = private};
        listAppend(&records, &r->node);
        sessionSlotSet(s, slot, r);
    }
    if (client_id) *client_id = s->id;
    return VALKEYMODULE_OK;
}

static session *clientOfContext(ValkeyModuleCtx *x) { return x->run ? x->run->who : NULL; }

int apiAuthenticateClientWithUser(ValkeyModuleCtx *ctx, ValkeyModuleUser *user,
                                  ValkeyModuleUserChangedFunc callback, void *privdata,
                                  uint64_t *client_id) {
    return become(ctx, clientOfContext(ctx), moduleUserOf(user), callback, privdata, client_id);
}

int apiAuthenticateClientWithACLUser(ValkeyModuleCtx *ctx, const char *name, size_t len,
                                     ValkeyModuleUserChangedFunc callback, void *privdata,
                                     uint64_t *client_id) {
    return become(ctx, clientOfContext(ctx), userFind(sliceMake(name, len)), callback, privdata,
                  client_id);
}

/* Nobody is logged in any more, and the connection ends. */
static void dismiss(session *s) {
    hotCheck(!(s->flags & SESSION_INTERNAL));
    sessionSetAuthenticated(s, userFind(SLICE("default")), false);
    userCloseSession(s);
}

int apiDeauthenticateAndCloseClient(ValkeyModuleCtx *ctx, uint64_t client_id) {
    (void)ctx; /* any client may be meant */
    session *s = netFindClient(client_id);
    if (!s) return VALKEYMODULE_ERR;
    dismiss(s);
    return VALKEYMODULE_OK;
}

/* ------------------------------------------------------------------ callbacks */

void apiRegisterAuthCallback(ValkeyModuleCtx *ctx, ValkeyModuleAuthCallback cb) {
    if (!ctx->module || !cb) return;
    authCallback *c = memNew(authCallback);
    static uint64_t last_id;
    *c = (authCallback){.next = callbacks, .owner = ctx->module, .id = ++last_id, .func = cb};
    callbacks = c;
}

/* Replies why it is denied: the module's text, which has a code of its own if it begins with -. */
static void replyDenied(ctx *c, ValkeyModuleString *why) {
    slice text = moduleStringSlice(why);
    if (text.len && text.ptr[0] == '-') {
        replyError(c, sliceMake(text.ptr + 1, text.len - 1));
    } else {
        replyErrorFormat(c, "ERR %.*s", (int)text.len, text.ptr);
    }
    moduleStringRelease(why);
}

/* Asks one callback, for whose wait `b` the client has waited if that is not NULL. */
static authVerdict ask(module *owner, ValkeyModuleAuthCallback func, ctx *c, slice name,
                       slice password, user **who, blockedClient **b) {
    hotCheck(func);
    hotCheck(c->who);
    ValkeyModuleCtx x;
    contextInit(&x, owner, c);
    x.flags = CONTEXT_HAS_CLIENT | CONTEXT_AUTH;
    x.blocked = *b;
    if (*b) x.flags |= CONTEXT_REPLY;
    ValkeyModuleString *given = moduleStringNew(name), *secret = moduleStringNew(password);
    ValkeyModuleString *why = NULL;
    bool before = sessionIsAuthenticated(c->who);
    const user *user_before = c->who->user;
    c->who->flags &= ~SESSION_AUTHENTICATED; /* who sets a user sets it again */
    int result = func(&x, given, secret, &why);
    bool granted = sessionIsAuthenticated(c->who);
    if (!granted && before && c->who->user == user_before) c->who->flags |= SESSION_AUTHENTICATED;
    if (x.blocked && x.blocked != *b) { /* what waits may read them */
        x.blocked->login[0] = given;
        x.blocked->login[1] = secret;
    } else {
        moduleStringRelease(given);
        moduleStringRelease(secret);
    }
    *b = x.blocked;
    bool replied = x.flags & CONTEXT_AUTH_REPLIED;
    contextClear(&x);
    if (granted) *who = c->who->user;
    if (result == VALKEYMODULE_AUTH_HANDLED) serverEventsTellLogin(owner, c->who, name, granted);
    if (result == VALKEYMODULE_AUTH_HANDLED && !granted && why && !replied) {
        replyDenied(c, why);
        return AUTH_REPLIED;
    }
    if (why) moduleStringRelease(why);
    if (replied) return AUTH_REPLIED;
    if (result != VALKEYMODULE_AUTH_HANDLED) return AUTH_NOT_MINE;
    return granted ? AUTH_GRANTED : AUTH_DENIED;
}

/* Asks a callback; it may block the client. `newest` and `below`: those between were asked. */
static authVerdict askOne(const authCallback *callback, ctx *c, slice name, slice password,
                          user **who, uint64_t newest) {
    blockedClient *b = NULL;
    uint64_t id = callback->id;
    authVerdict verdict = ask(callback->owner, callback->func, c, name, password, who, &b);
    if (!b || !b->who) return verdict;
    b->auth_newest = newest;
    b->auth_below = id;
    return AUTH_BLOCKED;
}

/* Asks the module that has blocked the client, now that it has unblocked it. */
static authVerdict askBlocker(blockedClient *b, ctx *c, slice name, slice password, user **who) {
    hotCheck(b->on_auth);
    hotCheck(b->who == c->who);
    b->replied = true;
    authVerdict verdict = AUTH_DENIED;
    blockedClient *asked = b;
    if (b->auth_reply) verdict = ask(b->module, b->auth_reply, c, name, password, who, &asked);
    executeCountWork(c, false, blockClientWork(b));
    return verdict;
}

authVerdict authAsk(ctx *c, slice name, slice password, user **who) {
    blockedClient *b = unlikely(c->flags & CTX_WOKEN) ? blockState(c) : NULL;
    if (likely(!callbacks && !b)) return AUTH_NOT_MINE;
    if (!name.ptr) name = SLICE("default");
    /* Those with ids from `below` to `newest` have been asked. */
    uint64_t newest = b ? b->auth_newest : 0, below = b ? b->auth_below : UINT64_MAX;
    authVerdict verdict = b ? askBlocker(b, c, name, password, who) : AUTH_NOT_MINE;
    uint64_t latest = callbacks ? callbacks->id : 0;
    for (const authCallback *at = callbacks; at && verdict == AUTH_NOT_MINE; at = at->next) {
        if (at->id >= below && at->id <= newest) continue;
        verdict = askOne(at, c, name, password, who, latest);
    }
    return verdict;
}

void authRemove(module *m) {
    hotCheck(m);
    for (authCallback **at = &callbacks; *at;) {
        authCallback *c = *at;
        if (c->owner != m) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        memFree(c);
    }
    if (!records.head.next) return;
    for (listNode *n = listFirst(&records), *next; n; n = next) {
        next = listNext(&records, n);
        authRecord *r = LIST_OWNER(n, authRecord, node);
        if (r->owner == m) dismiss(r->who);
    }
}
