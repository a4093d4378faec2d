/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Listeners of server events (server_event.h). Invariant: `wanted` has the kinds of all listeners;
 * a listener that has ended keeps its place, without kinds, until no event is being passed on. */
#include "engine/server_event_priv.h"

#include "base/base.h"
#include "engine/child.h"

typedef struct listener {
    serverEventProc *proc;
    uint32_t kinds;
} listener;

static struct {
    listener *list;
    int count, cap;
    uint32_t wanted;
    int depth;       /* nested calls of serverEventSignal() */
    bool forked;     /* the child is a process: not a job of this one, which has no event */
    bool persisting; /* it saves the dataset, and its begin was signalled */
} events;

_Static_assert(SERVER_EVENT_KINDS <= 32, "kinds are bits of a word");

static listener *find(serverEventProc *proc) {
    for (int i = 0; i < events.count; i++) {
        if (events.list[i].proc == proc) return &events.list[i];
    }
    return NULL;
}

static listener *add(serverEventProc *proc) {
    hotCheck(events.count <= events.cap);
    if (events.count == events.cap) {
        events.cap = events.cap ? 2 * events.cap : 4;
        events.list = memRealloc(events.list, (size_t)events.cap * sizeof(*events.list));
    }
    listener *l = &events.list[events.count++];
    *l = (listener){.proc = proc};
    return l;
}

static void removeEnded(void) {
    int kept = 0;
    for (int i = 0; i < events.count; i++) {
        if (events.list[i].kinds) events.list[kept++] = events.list[i];
    }
    events.count = kept;
}

void serverEventsListen(serverEventProc *proc, uint32_t kinds) {
    hotCheck(threadIsMain());
    check(proc != NULL);
    check(kinds < 1u << SERVER_EVENT_KINDS);
    listener *l = find(proc);
    if (!l && !kinds) return;
    if (!l) l = add(proc);
    l->kinds = kinds;
    events.wanted = 0;
    for (int i = 0; i < events.count; i++) events.wanted |= events.list[i].kinds;
    if (!events.depth) removeEnded();
}

bool serverEventIsWanted(serverEventKind kind) { return events.wanted & 1u << kind; }

void serverEventSignal(const serverEvent *e) {
    hotCheck(threadIsMain());
    check(e->kind < SERVER_EVENT_KINDS);
    if (likely(!serverEventIsWanted(e->kind))) return;
    events.depth++;
    int count = events.count; /* what is registered meanwhile gets the next one */
    for (int i = 0; i < count; i++) {
        if (events.list[i].kinds & 1u << e->kind) events.list[i].proc(e);
    }
    if (!--events.depth) removeEnded();
}

void serverEventSaving(serverEventPhase phase, bool is_aof, bool in_foreground) {
    hotCheck(threadIsMain());
    serverEventSignal(
        &(serverEvent){.kind = SERVER_PERSISTENCE,
                       .phase = phase,
                       .persistence = {.is_aof = is_aof, .in_foreground = in_foreground}});
}

void serverEventUninstall(void) {
    memFree(events.list);
    memset(&events, 0, sizeof(events));
}

/* ------------------------------------------------------------------ from other hooks */

void serverEventOnDb(const dbEvent *e) {
    hotCheck(threadIsMain());
    if (e->swapped) return; /* SERVER_LOADING_BESIDE tells of it */
    if (e->kind == DB_FLUSHING || e->kind == DB_FLUSHED) {
        serverEventPhase phase = e->kind == DB_FLUSHING ? EVENT_BEGINS : EVENT_ENDED;
        serverEventSignal(&(serverEvent){
            .kind = SERVER_FLUSH, .phase = phase, .flush = {.db_id = e->db_id, .later = e->later}});
    } else if (e->kind == DB_SWAPPED) {
        serverEventSignal(&(serverEvent){.kind = SERVER_SWAP,
                                         .swap = {.first = e->db_id, .second = e->other_id}});
    }
}

static void signalChild(serverEventPhase phase, int kind) {
    serverEventSignal(
        &(serverEvent){.kind = SERVER_CHILD, .phase = phase, .child = {.kind = kind}});
}

void serverEventOnChild(childEvent e, int kind, int exit_code) {
    hotCheck(threadIsMain());
    if (e == CHILD_IN_PARENT) {
        events.forked = !childIsHere();
        events.persisting = kind == CHILD_RDB_SAVE || kind == CHILD_AOF_REWRITE;
        if (events.forked) signalChild(EVENT_BEGINS, kind);
        if (events.persisting) serverEventSaving(EVENT_BEGINS, kind == CHILD_AOF_REWRITE, false);
    } else if (e == CHILD_ENDED) {
        bool forked = events.forked, persisting = events.persisting;
        events.forked = events.persisting = false;
        if (persisting)
            serverEventSaving(exit_code ? EVENT_FAILED : EVENT_ENDED, kind == CHILD_AOF_REWRITE,
                              false);
        if (forked) signalChild(EVENT_ENDED, kind);
    }
}
