/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Client tracking: the trackers of sessions, what they remember, and the events that invalidate it.
 *
 * Invariants: a session that tracks in default mode has the command observer armed, so that only
 * its own commands leave the fast path; the key observer is armed while the table has keys or a
 * session tracks in broadcast mode. A tracker that redirects is in the list of its target, whose
 * end sets `target` to NULL. */
#include "pubsub/tracking.h"

#include "base/base.h"
#include "base/hash.h"
#include "engine/ctx.h"
#include "engine/hot.h"
#include "engine/keyspace.h"
#include "engine/session_slot.h"
#include "pubsub/cmd_tracking.h"
#include "pubsub/pubsub_priv.h"
#include "store/store.h"

static struct {
    hashtable by_number;
    list all;
    uint32_t last_number;
    uint64_t on;           /* trackers that are switched on */
    uint64_t broadcasting; /* of these, in broadcast mode */
    uint64_t links;        /* of these, links */
    uint64_t changes;      /* trackingChanges() */
} trackers;

/* ------------------------------------------------------------------ trackers */

static uint64_t hashOfTracker(const void *entry) {
    const tracker *t = entry;
    return hashBytes(&t->number, sizeof(t->number));
}

static bool trackerMatches(const void *entry, const void *number, size_t len) {
    (void)len; /* both are numbers */
    return ((const tracker *)entry)->number == *(const uint32_t *)number;
}

static const hashtableType trackers_type = {.hash_of = hashOfTracker, .match = trackerMatches};

tracker *trackerByNumber(uint32_t number) {
    hotCheck(number > 0);
    return hashtableFind(&trackers.by_number, &trackers_type, hashBytes(&number, sizeof(number)),
                         &number, sizeof(number));
}

list *trackersAll(void) {
    if (!trackers.all.head.next) listInit(&trackers.all);
    return &trackers.all;
}

static void freeNothing(session *s, void *state) {
    (void)s, (void)state; /* on_session has freed it */
}

static size_t trackerMemory(const void *state) {
    const tracker *t = state;
    return sizeof(*t) + t->prefix_count * sizeof(*t->prefixes);
}

static const sessionSlot tracker_slot = {"tracking", freeNothing, trackerMemory};
/* The trackers that redirect to a session: a list. */
static const sessionSlot target_slot = {"tracking target", freeNothing, NULL};

static int trackerSlot(void) {
    static int index = -1;
    if (index < 0) index = sessionSlotRegister(&tracker_slot);
    return index;
}

static int targetSlot(void) {
    static int index = -1;
    if (index < 0) index = sessionSlotRegister(&target_slot);
    return index;
}

tracker *trackerOf(const session *s) { return sessionSlotGet(s, trackerSlot()); }

tracker *trackerFor(session *s) {
    tracker *t = trackerOf(s);
    if (t) return t;
    t = memNew(tracker);
    t->who = s;
    do { t->number = ++trackers.last_number; } while (!t->number || trackerByNumber(t->number));
    hashtableInsert(&trackers.by_number, &trackers_type, hashOfTracker(t), t, 0);
    listAppend(trackersAll(), &t->all);
    sessionSlotSet(s, trackerSlot(), t);
    return t;
}

/* ------------------------------------------------------------------ redirection */

static void leaveTarget(tracker *t) {
    if (!t->target) return;
    list *of = sessionSlotGet(t->target, targetSlot());
    listRemove(of, &t->of_target);
    if (listIsEmpty(of)) {
        sessionSlotSet(t->target, targetSlot(), NULL);
        memFree(of);
    }
    t->target = NULL;
}

static void setTarget(tracker *t, session *target) {
    leaveTarget(t);
    t->redirect = target ? target->id : 0;
    if (!target) return;
    list *of = sessionSlotGet(target, targetSlot());
    if (!of) {
        of = memNew(list);
        listInit(of);
        sessionSlotSet(target, targetSlot(), of);
    }
    listAppend(of, &t->of_target);
    t->target = target;
}

/* A session ends: those that redirect to it lose their target. */
static void targetEnded(session *s) {
    list *of;
    while ((of = sessionSlotGet(s, targetSlot())))
        leaveTarget(LIST_OWNER(listFirst(of), tracker, of_target));
}

/* --------------------------------------------------------------- commands of a tracking session */

bool trackerRemembers(const tracker *t) {
    hotCheck(t->number > 0);
    if (!trackerUsesTable(t)) return false;
    if (t->flags & (TRACK_OPTIN | TRACK_LINK)) return t->flags & TRACK_CACHING;
    if (t->flags & TRACK_OPTOUT) return !(t->flags & TRACK_CACHING);
    return true;
}

static void rememberKeys(const tracker *t, const ctx *c) {
    enum { KEYS_MAX = 32 };
    keyPosition few[KEYS_MAX];
    int count;
    keyPosition *places = commandAllKeys(c->cmd, c->argv, c->argc, few, KEYS_MAX, &count);
    for (int i = 0; i < count; i++) {
        slice key = c->argv[places[i].arg_index];
        bool hashed = places[i].arg_index == 1 && c->cmd->first_key == 1;
        uint64_t hash = hashed ? c->key_hash : storeHash(key);
        tableRemember(t, key, hash, dbPeek(c->db, key, hash) != NULL);
    }
    if (places != few) memFree(places);
    if (tableEvict((uint64_t)(count > 100 ? count : 100))) pubsubWorkLater();
}

/* CLIENT, and GATEWAY of links. */
static bool isAboutConnection(const command *cmd) {
    const char *name = cmd->parent ? cmd->parent->spec->name : "";
    return !strcmp(name, "client") || !strcmp(name, "gateway");
}

void trackerEndCaching(tracker *t, const ctx *c) {
    if (c->outer || c->who->flags & SESSION_IN_MULTI || isAboutConnection(c->cmd)) return;
    t->flags &= ~(uint32_t)TRACK_CACHING;
    if (t->flags & TRACK_LINK) t->flags &= ~(uint32_t)TRACK_NOLOOP;
}

static void afterCommand(ctx *c, int64_t duration_ns) {
    (void)duration_ns;
    tracker *t = trackerOf(ctxClient(c));
    if (!t) return;
    bool reads = c->cmd->flags & CMD_READONLY && !(c->cmd->spec->categories & 1u << CAT_SCRIPTING);
    if (reads && trackerRemembers(t)) rememberKeys(t, c);
    if (t->flags & (TRACK_CACHING | TRACK_LINK)) trackerEndCaching(t, c);
}

static void refusedCommand(ctx *c, size_t pending) {
    (void)pending; /* the error does not matter */
    tracker *t = trackerOf(c->who);
    if (t) trackerEndCaching(t, c);
}

static const commandObserver command_observer = {
    .name = "tracking", .after = afterCommand, .refused = refusedCommand};

/* ------------------------------------------------------------------ changes */

void trackingNoteChange(void) { trackers.changes++; }

uint64_t trackingChanges(void) { return trackers.changes; }

/* The client that makes the change: also with what a module calls for it. */
static const tracker *changer(void) {
    if (!engineHot.current || keyspaceRemovesAlone()) return NULL;
    return trackerOf(ctxClient(engineHot.current));
}

static void keyChanged(db *d, slice key, const keyEvent *event) {
    (void)event;
    const tracker *by = changer();
    trackingNoteChange();
    if (tableKeys()) {
        const ctx *c = engineHot.current;
        bool hashed = c && c->cmd && c->cmd->first_key == 1 && c->argc > 1 &&
                      c->argv[1].ptr == key.ptr && c->argv[1].len == key.len;
        tableChanged(key, hashed ? c->key_hash : storeHash(key), by);
    }
    if (trackers.broadcasting) broadcastChanged(dbId(d), key, by);
}

static const keyObserver key_observer = {.name = "tracking", .changed = keyChanged};

void trackingUpdateArmed(void) {
    keyObserverArm(&key_observer, tableKeys() > 0 || trackers.broadcasting > 0);
}

bool trackingBroadcasts(void) { return trackers.broadcasting > trackers.links; }

void trackingInvalidateAll(void) {
    for (listNode *n = listFirst(trackersAll()); n; n = listNext(&trackers.all, n)) {
        tracker *t = LIST_OWNER(n, tracker, all);
        if (t->flags & TRACK_ON) invalidate(t, NULL, -1);
    }
    tableForgetAll();
    trackingNoteChange();
    trackingUpdateArmed();
}

void trackingOnDb(const dbEvent *e) {
    if (!trackers.all.count) return;
    if (e->kind == DB_SWAPPED && e->db_id == e->other_id) return;
    if (e->kind == DB_FLUSHED || e->kind == DB_SWAPPED || e->kind == DB_LOAD_ENDED)
        trackingInvalidateAll();
}

void trackingSlotsChanged(bool (*is_served)(int slot)) { tableDropSlots(is_served); }

void trackingBeforeSleep(void) { broadcastSend(); }

bool trackingWork(void) {
    bool more = tableWork();
    if (tableEvict(1000)) more = true;
    return more;
}

void trackingClear(void) {
    tableForgetAll();
    while (tableWork()) continue;
    broadcastFree();
}

/* ------------------------------------------------------------------ switching on and off */

static bool isBroadcastLink(uint32_t flags) { return flags & TRACK_BCAST && flags & TRACK_LINK; }

void trackingOff(tracker *t) {
    hotCheck(threadIsMain());
    if (t->flags & TRACK_BCAST) trackers.broadcasting--;
    if (isBroadcastLink(t->flags)) trackers.links--;
    if (t->flags & TRACK_ON) trackers.on--;
    prefixesRemove(t);
    t->flags = 0;
    setTarget(t, NULL);
    commandObserverArmSession(t->who, &command_observer, false);
    trackingUpdateArmed();
}

void trackingOn(tracker *t, uint32_t flags, session *target) {
    hotCheck(threadIsMain());
    if (flags & TRACK_BCAST && !(t->flags & TRACK_BCAST)) trackers.broadcasting++;
    if (isBroadcastLink(flags) && !isBroadcastLink(t->flags)) trackers.links++;
    if (!(t->flags & TRACK_ON)) trackers.on++;
    t->flags = TRACK_ON | flags;
    setTarget(t, target);
    commandObserverArmSession(t->who, &command_observer, trackerUsesTable(t));
    trackingUpdateArmed();
}

static void trackerFree(tracker *t) {
    trackingOff(t);
    sessionSlotSet(t->who, trackerSlot(), NULL);
    listRemove(&trackers.all, &t->all);
    check(hashtableDeleteEntry(&trackers.by_number, &trackers_type, hashOfTracker(t), t));
    memFree(t);
}

/* The session that receives the invalidations does not see this end: without a message it would go
 * on using what it has cached, and hear nothing of changes. */
static void tellTarget(tracker *t) {
    if (t->flags & TRACK_ON && t->target && t->target != t->who) invalidate(t, NULL, -1);
}

void trackingOnSession(session *s, sessionEvent e) {
    hotCheck(threadIsMain());
    if (e == SESSION_ENDING) targetEnded(s);
    tracker *t = trackerOf(s);
    if (!t) return;
    if (e == SESSION_ENDING || e == SESSION_WAS_RESET) tellTarget(t);
    if (e == SESSION_ENDING) {
        trackerFree(t);
    } else if (e == SESSION_WAS_RESET) {
        trackingOff(t);
    }
}

void trackingReport(const session *s, sessionReport *out) {
    hotCheck(threadIsMain());
    const tracker *t = trackerOf(s);
    if (!t || !(t->flags & TRACK_ON)) return;
    out->tracking = true;
    out->tracking_broken = t->flags & TRACK_BROKEN;
    out->tracking_broadcast = t->flags & TRACK_BCAST;
    out->redirect = (int64_t)t->redirect;
}

uint64_t trackingCount(void) { return trackers.on; }

void trackingPrintStats(str *out) {
    strAppendField(out, "tracking_total_keys", tableKeys());
    strAppendField(out, "tracking_total_items", tableItems());
    strAppendField(out, "tracking_total_prefixes", prefixesCount());
}
