/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sessions: creation, reset, end, and the list of sessions with pending output. Invariant: a
 * session is in one of the three lists if and only if it has the flag SESSION_PENDING_... of that
 * list, and in the two others not. Main thread only. */
#include "engine/session.h"

#include "base/base.h"
#include "engine/block.h"
#include "engine/deliver.h"
#include "engine/gate_priv.h"
#include "engine/hooks_priv.h"
#include "engine/hot.h"
#include "engine/pause.h"
#include "engine/session_priv.h"
#include "engine/session_slot.h"
#include "engine/transaction_priv.h"
#include "resp/outbuf_drop.h"
#include "store/store.h"

static struct {
    list pending, pushed, later;
    uint64_t next_id;
} sessions;

static void leaveLists(session *s) {
    if (!(s->flags & SESSION_PENDING)) return;
    list *l = s->flags & SESSION_PENDING_OUT    ? &sessions.pending
              : s->flags & SESSION_PENDING_PUSH ? &sessions.pushed
                                                : &sessions.later;
    listRemove(l, &s->pending);
    s->flags &= ~SESSION_PENDING;
}

static void freeExtra(session *s, void *state) {
    (void)s; /* the session ends */
    sessionExtra *extra = state;
    strFree(&extra->name);
    strFree(&extra->lib_name);
    strFree(&extra->lib_version);
    memFree(extra);
}

static const sessionSlot extra_slot = {.name = "names", .free = freeExtra};

static int extraSlot(void) {
    static int index = -1;
    if (index < 0) index = sessionSlotRegister(&extra_slot);
    return index;
}

void sessionInit(session *s, const sessionCarrier *carrier, uint64_t flags) {
    if (!sessions.pending.head.next) {
        listInit(&sessions.pending);
        listInit(&sessions.pushed);
        listInit(&sessions.later);
    }
    memset(s, 0, sizeof(*s));
    s->flags = flags;
    s->carrier = carrier;
    s->proto = 2;
    s->targets = PROPAGATE_ALL;
    s->db = engineHot.dbs[0];
    s->created_ms = s->active_ms = engineHot.now_ms;
    outbufInit(&s->out);
    if (flags & SESSION_INTERNAL) {
        sessionSetAuthenticated(s, NULL, true);
        return;
    }
    s->id = ++sessions.next_id;
    sessionSetAuthenticated(s, NULL, true);
    /* acl sets the default user, and revokes it if a password is required */
    hooksSessionEvent(s, SESSION_OPENED);
}

void sessionClear(session *s) {
    /* An internal session may have subscriptions, or be tracked, by what a module calls. */
    bool is_known = !(s->flags & SESSION_INTERNAL) || s->slots;
    if (is_known && !(s->flags & SESSION_CLOSING)) {
        s->flags |= SESSION_CLOSING;
        hooksSessionEvent(s, SESSION_ENDING);
    }
    pauseForget(s);
    blockForget(s); /* with its user, whose rights the end of a job needs */
    userMoveSession(s, NULL);
    leaveLists(s);
    outbufDrop(&s->out);
    transactionFree(s);
    sessionSlotsClear(s);
}

void sessionReset(session *s) {
    const uint64_t lasting = SESSION_PENDING | SESSION_UNIX_SOCKET | SESSION_LOCAL |
                             SESSION_IN_BATCH | SESSION_CLOSE_SOON | SESSION_CLOSE_NOW |
                             SESSION_CLOSING | SESSION_PAUSED | SESSION_CAPA_REDIRECT |
                             SESSION_ADMIN_PORT | SESSION_GATEWAY | SESSION_EVER_AUTHENTICATED;
    hooksSessionEvent(s, SESSION_WAS_RESET);
    transactionFree(s);
    s->flags &= lasting;
    s->armed = 0;
    s->proto = 2;
    userMoveSession(s, NULL);
    s->db_id = 0;
    s->db = engineHot.dbs[0];
    sessionExtra *extra = sessionSlotGet(s, extraSlot());
    if (extra) strClear(&extra->name);
    hooksForgetSession(s);
    sessionSetAuthenticated(s, NULL, true);
    hooksSessionEvent(s, SESSION_OPENED);
}

void sessionSetOrigin(session *s, ctxOrigin origin) {
    hotCheck(origin < ORIGIN_COUNT);
    static const uint8_t targets[ORIGIN_COUNT] = {
        [ORIGIN_CLIENT] = PROPAGATE_ALL, [ORIGIN_SCRIPT] = PROPAGATE_ALL,
        [ORIGIN_MODULE] = PROPAGATE_ALL, [ORIGIN_PRIMARY] = PROPAGATE_AOF | PROPAGATE_SLOT_EXPORT,
        [ORIGIN_IMPORT] = PROPAGATE_AOF, /* a slot that is being imported is not exported */
    };
    s->origin = (uint8_t)origin;
    s->targets = targets[origin];
    s->flags &= ~(SESSION_PRIMARY | SESSION_REPLAY);
    if (origin == ORIGIN_PRIMARY) s->flags |= SESSION_PRIMARY;
    if (origin >= ORIGIN_PRIMARY) s->flags |= SESSION_REPLAY;
}

void sessionCloseSoon(session *s) {
    if (s->flags & (SESSION_CLOSE_SOON | SESSION_CLOSE_NOW)) return;
    s->flags |= SESSION_CLOSE_SOON;
    if (s->carrier && s->carrier->close_soon) s->carrier->close_soon(s);
    hotCheck(s->flags & (SESSION_CLOSE_SOON | SESSION_CLOSE_NOW));
}

void sessionCloseNow(session *s) {
    if (s->flags & SESSION_CLOSE_NOW) return;
    s->flags |= SESSION_CLOSE_NOW;
    if (s->carrier && s->carrier->close_now) s->carrier->close_now(s);
    hotCheck(s->flags & SESSION_CLOSE_NOW);
}

status sessionSelect(session *s, int64_t id) {
    if (id < 0 || id >= storeDbCount()) return ERR_RANGE;
    s->db_id = (int32_t)id;
    s->db = engineHot.dbs[id];
    return OK;
}

void sessionPeer(const session *s, str *out) {
    if (s->carrier && s->carrier->peer) s->carrier->peer(s, out);
}

const sessionExtra *sessionExtraFind(const session *s) { return sessionSlotGet(s, extraSlot()); }

sessionExtra *sessionExtraOf(session *s) {
    sessionExtra *extra = sessionSlotGet(s, extraSlot());
    if (extra) return extra;
    extra = memNew(sessionExtra);
    sessionSlotSet(s, extraSlot(), extra);
    return extra;
}

slice sessionName(const session *s) {
    const sessionExtra *extra = sessionExtraFind(s);
    return extra ? strSlice(&extra->name) : SLICE("");
}

void sessionSetAuthenticated(session *s, user *user, bool yes) {
    bool is_other = s->user != user;
    userMoveSession(s, user);
    if (yes) {
        s->flags |= SESSION_AUTHENTICATED;
        if (user && !(s->flags & SESSION_INTERNAL)) s->flags |= SESSION_EVER_AUTHENTICATED;
    } else {
        s->flags &= ~SESSION_AUTHENTICATED;
    }
    sessionUpdateSpecial(s);
    if (is_other && !(s->flags & SESSION_INTERNAL)) hooksSessionEvent(s, SESSION_USER_CHANGED);
}

void sessionSetReplyMode(session *s, uint64_t modes) {
    hotCheck((modes & ~SESSION_REPLY_MODES) == 0);
    s->flags = (s->flags & ~SESSION_REPLY_MODES) | modes;
    sessionUpdateSpecial(s);
}

void sessionUpdateSpecial(session *s) {
    bool must_log_in = !(s->flags & SESSION_AUTHENTICATED);
    if (must_log_in || s->flags & SESSION_REPLY_MODES || s->observed) {
        s->armed |= GATE_BIT_SPECIAL;
    } else {
        s->armed &= ~GATE_BIT_SPECIAL;
    }
}

static void enlist(session *s, uint64_t flag, list *l, bool first) {
    hotCheck(!(s->flags & SESSION_PENDING));
    s->flags |= flag;
    if (first) {
        listPrepend(l, &s->pending);
    } else {
        listAppend(l, &s->pending);
    }
}

/* sessionWantWrite() of a session that has had deliveries, or that is a stream. */
static NO_INLINE void wantUnusualWrite(session *s) {
    bool pushed = s->flags & SESSION_PENDING_PUSH;
    if (s->flags & SESSION_STREAMS) {
        sessionWantPush(s);
        return;
    }
    leaveLists(s);
    enlist(s, SESSION_PENDING_OUT, &sessions.pending, pushed);
}

void sessionWantWrite(session *s) {
    if (s->flags & (SESSION_PENDING_OUT | SESSION_INTERNAL)) return;
    if (unlikely(s->flags & (SESSION_PENDING | SESSION_STREAMS))) {
        wantUnusualWrite(s);
    } else {
        enlist(s, SESSION_PENDING_OUT, &sessions.pending, false);
    }
}

void sessionWantPush(session *s) {
    if (s->flags & (SESSION_PENDING_PUSH | SESSION_INTERNAL)) return;
    bool streams = s->flags & SESSION_STREAMS, replies = s->flags & SESSION_PENDING_OUT;
    leaveLists(s);
    if (replies && !streams) {
        enlist(s, SESSION_PENDING_OUT, &sessions.pending, true);
    } else {
        enlist(s, SESSION_PENDING_PUSH, &sessions.pushed, streams);
    }
}

void sessionWantLater(session *s) {
    if (s->flags & (SESSION_PENDING | SESSION_INTERNAL)) return;
    enlist(s, SESSION_PENDING_LATER, &sessions.later, false);
}

session *sessionFirstLater(void) {
    if (likely(!sessions.later.count)) return NULL;
    return LIST_OWNER(listFirst(&sessions.later), session, pending);
}

void sessionTakeLater(session *first) {
    hotCheck(first->flags & SESSION_PENDING_LATER);
    leaveLists(first);
}

size_t sessionLaterCount(void) { return sessions.later.count; }

/* Removes and returns the first session of the list that may be written; NULL if there is none. In
 * a nested turn of the loop the reply of a running command is not written, because it may still be
 * truncated or completed, and must not be sent before its changes are logged. */
static session *takeFirst(list *l, uint64_t flag) {
    listNode *n = listFirst(l);
    while (unlikely(engineHot.current != NULL) && n &&
           sessionIsExecuting(LIST_OWNER(n, session, pending)))
        n = listNext(l, n);
    if (!n) return NULL;
    session *s = LIST_OWNER(n, session, pending);
    listRemove(l, n);
    s->flags &= ~flag;
    return s;
}

session *sessionNextPushed(void) {
    if (likely(!sessions.pushed.count)) return NULL;
    return takeFirst(&sessions.pushed, SESSION_PENDING_PUSH);
}

session *sessionNextPending(void) {
    if (!sessions.pending.head.next) return NULL;
    return takeFirst(&sessions.pending, SESSION_PENDING_OUT);
}
