/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: keyspace events, and jobs at the end of a unit.
 *
 * A subscriber is called in the middle of the command that causes the event, as a part of its unit;
 * keys do not expire meanwhile. It is not called for events that it causes itself, unless its
 * module has asked for that. One key observer serves all subscribers.
 *
 * Events that a lookup or an insertion causes are delivered before the next event, at the latest
 * after the command: a subscriber may delete what the command has found or inserted, and is about
 * to use. Main thread only. */
#include "module/key_events.h"

#include "base/base.h"
#include "engine/execute.h"
#include "engine/hooks.h"
#include "engine/propagate.h"
#include "module/context.h"
#include "module/generated/api.h"
#include "module/owned.h"
#include "module/thread_context.h"
#include "pubsub/pubsub.h"
#include "repl/repl.h"
#include "store/compressed.h"
#include "store/store.h"

typedef struct subscriber {
    ownedEntry entry;
    uint32_t classes;
    bool running;
    ValkeyModuleNotificationFunc proc;
} subscriber;

typedef struct job {
    listNode node;
    module *owner;
    int db_id;
    ValkeyModulePostNotificationJobFunc proc;
    void *data;
    void (*free_data)(void *data);
} job;

/* An event that a subscriber is told later. */
typedef struct lateEvent {
    listNode node;
    subscriber *to;
    db *where;
    str key;
    const keyEvent *event;
} lateEvent;

static struct {
    ownedList subscribers;
    uint32_t classes; /* that any of them wants */
    list jobs;
    list late;
    bool telling_late;
    bool at_once; /* a module has caused the event, and expects that it is told now */
} events;

static list *allJobs(void) {
    if (!events.jobs.head.next) listInit(&events.jobs);
    return &events.jobs;
}

static job *jobAt(listNode *n) { return n ? LIST_OWNER(n, job, node) : NULL; }

/* ------------------------------------------------------------------ telling */

typedef struct telling {
    const subscriber *to;
    slice key;
    const keyEvent *event;
} telling;

static void tellOne(ValkeyModuleCtx *x, void *arg) {
    const telling *t = arg;
    hotCheck(t->to->running);
    x->run->look = lookAtAll();
    x->flags |= CONTEXT_NOTIFICATION;
    argArray *key = argArrayNew(&t->key, 1);
    (void)t->to->proc(x, (int)t->event->class, t->event->name, key->argv[0]); /* has no meaning */
    argArrayEnd(key);
}

/* What the callback propagates comes before the command, which is propagated if the callback has
 * changed anything, even if it only reads. */
static void tellInCommand(module *m, int db_id, telling *t) {
    struct ctx *c = engineHot.current;
    uint64_t dirty = engineHot.dirty;
    propagateMark begun = propagateCallbackBegins();
    contextRun(m, db_id, tellOne, t);
    hotCheck(engineHot.current == c);
    if (c && engineHot.dirty != dirty) c->flags |= CTX_CHANGED;
    propagateCallbackEnded(begun, c && c->flags & CTX_REWRITTEN);
}

/* True if it is to be told: not of what it causes itself. */
static bool isToBeTold(const subscriber *s, const keyEvent *event) {
    bool nested =
        s->entry.owner->options & VALKEYMODULE_OPTIONS_ALLOW_NESTED_KEYSPACE_NOTIFICATIONS;
    return s->classes & event->class && (!s->running || nested);
}

static void tellSubscriber(subscriber *s, db *d, slice key, const keyEvent *event) {
    hotCheck(s->entry.owner);
    bool before = s->running;
    telling t = {s, key, event};
    s->running = true;
    compressedKeep(true); /* the command may have read texts that it still needs */
    tellInCommand(s->entry.owner, dbId(d), &t);
    compressedKeep(false);
    s->running = before;
}

/* Those that are late, in the order in which they happened. */
static void tellLate(void) {
    if (likely(!events.late.count) || events.telling_late) return;
    events.telling_late = true;
    ownedWalkBegin(&events.subscribers);
    for (listNode *n; (n = listFirst(&events.late));) {
        lateEvent *e = LIST_OWNER(n, lateEvent, node);
        listRemove(&events.late, n);
        tellSubscriber(e->to, e->where, strSlice(&e->key), e->event);
        strFree(&e->key);
        memFree(e);
    }
    ownedWalkEnd(&events.subscribers);
    events.telling_late = false;
}

static void atUnitEnd(void);

static void tellLater(subscriber *s, db *d, slice key, const keyEvent *event) {
    hotCheck(engineHot.current);
    if (!events.late.head.next) listInit(&events.late);
    lateEvent *e = memNew(lateEvent);
    *e = (lateEvent){.to = s, .where = d, .key = strNew(key), .event = event};
    listAppend(&events.late, &e->node);
    engineHot.current->flags |= CTX_LATE_EVENTS;
    propagateAtEnd(atUnitEnd); /* arms a sink; and not every unit is a command */
}

/* True if the command that is being executed goes on with what it has just found or inserted. */
static bool isTooEarly(const keyEvent *event) {
    if (!engineHot.current || events.at_once) return false;
    return event->class & (NOTIFY_NEW | NOTIFY_KEY_MISS) || event == &eventXgroupCreateconsumer;
}

static void tell(db *d, slice key, const keyEvent *event) {
    bool wanted = event && event->class & events.classes;
    if (wanted && engineHot.loading && event->class & NOTIFY_NEW) return; /* it is LOADED */
    bool later = wanted && isTooEarly(event);
    if (!later) tellLate();
    if (!wanted) return;
    ownedWalkBegin(&events.subscribers);
    for (subscriber *s = ownedFirst(&events.subscribers); s;
         s = ownedNext(&events.subscribers, &s->entry)) {
        if (!isToBeTold(s, event)) continue;
        if (later) {
            tellLater(s, d, key, event);
        } else {
            tellSubscriber(s, d, key, event);
        }
    }
    ownedWalkEnd(&events.subscribers);
}

static uint32_t notesWanted(void) { return events.classes; }

static const keyObserver observer = {
    .name = "modules", .changed = tell, .event = tell, .notes = notesWanted};

/* The set of subscribers has changed. */
static void rearm(void) {
    events.classes = 0;
    for (const subscriber *s = ownedFirst(&events.subscribers); s;
         s = ownedNext(&events.subscribers, &s->entry)) {
        events.classes |= s->classes;
    }
    keyObserverArm(&observer, events.classes != 0);
}

int apiSubscribeToKeyspaceEvents(ValkeyModuleCtx *ctx, int types, ValkeyModuleNotificationFunc cb) {
    if (!ctx->module || !cb) return VALKEYMODULE_ERR;
    subscriber *s = memNew(subscriber);
    s->classes = (uint32_t)types & ~(uint32_t)(NOTIFY_KEYSPACE | NOTIFY_KEYEVENT);
    s->proc = cb;
    ownedAdd(&events.subscribers, &s->entry, ctx->module);
    executeSetLateProc(tellLate);
    storeExpectChanges();
    rearm();
    return VALKEYMODULE_OK;
}

/* ------------------------------------------------------------------ classes, publishing */

int apiGetNotifyKeyspaceEvents(void) { return (int)pubsubKeyEventClasses(); }

int apiGetKeyspaceNotificationFlagsAll(void) {
    return _VALKEYMODULE_NOTIFY_NEXT - 1; /* all that are known */
}

int apiNotifyKeyspaceEvent(ValkeyModuleCtx *ctx, int type, const char *event,
                           ValkeyModuleString *key) {
    struct ctx *c = ctx && event && key ? contextUse(ctx) : NULL;
    if (!c) return VALKEYMODULE_ERR;
    keyEvent e = {event, (uint32_t)type};
    bool before = events.at_once;
    events.at_once = true;
    ctxKeyEvent(c, moduleStringSlice(key), &e);
    events.at_once = before;
    return VALKEYMODULE_OK;
}

/* ------------------------------------------------------------------ jobs */

static void runJob(ValkeyModuleCtx *x, void *arg) {
    const job *j = arg;
    j->proc(x, j->data);
}

static void freeJob(job *j) {
    hotCheck(!listHas(&j->node));
    if (j->free_data) j->free_data(j->data);
    memFree(j);
}

/* In the order of their creation; those that they create run, too. */
static void atUnitEnd(void) {
    listNode *n;
    tellLate();
    while ((n = listFirst(&events.jobs))) {
        job *j = jobAt(n);
        listRemove(&events.jobs, n);
        contextRun(j->owner, j->db_id, runJob, j);
        freeJob(j);
        tellLate();
    }
}

int apiAddPostNotificationJob(ValkeyModuleCtx *ctx, ValkeyModulePostNotificationJobFunc callback,
                              void *pd, void (*free_pd)(void *)) {
    if (!ctx->module || !callback) return VALKEYMODULE_ERR;
    if (engineHot.loading || gateIsArmed(&replicaReadOnlyGate)) return VALKEYMODULE_ERR;
    job *j = memNew(job);
    j->owner = ctx->module;
    j->db_id = ctx->run ? ctx->run->who->db_id : 0;
    j->proc = callback;
    j->data = pd;
    j->free_data = free_pd;
    listAppend(allJobs(), &j->node);
    propagateAtEnd(atUnitEnd);
    return VALKEYMODULE_OK;
}

void keyEventsRemove(module *m) {
    listNode *next;
    for (listNode *n = listFirst(allJobs()); n; n = next) {
        next = listNext(&events.jobs, n);
        if (jobAt(n)->owner != m) continue;
        listRemove(&events.jobs, n);
        freeJob(jobAt(n));
    }
    for (listNode *n = events.late.count ? listFirst(&events.late) : NULL; n; n = next) {
        next = listNext(&events.late, n);
        lateEvent *e = LIST_OWNER(n, lateEvent, node);
        if (e->to->entry.owner != m) continue;
        listRemove(&events.late, n);
        strFree(&e->key);
        memFree(e);
    }
    if (ownedRemoveAll(&events.subscribers, m)) rearm();
}
