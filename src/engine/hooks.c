/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hook arrays: filled once from the list of features, then read-only. For what can be armed at run time (sinks,
 * observers) there are compact arrays of the armed ones, with counters in engineHot, so that unused hooks cost
 * nothing. Main thread only. */
#include "engine/hooks.h"

#include "base/base.h"
#include "engine/ctx.h"
#include "engine/gate_priv.h"
#include "engine/hooks_priv.h"
#include "engine/hot.h"
#include "engine/server_event_priv.h"
#include "engine/session_priv.h"
#include "engine/session_slot.h"
#include "store/store.h"

/* A compact array of pointers that grows. */
typedef struct pointers {
    const void **items;
    uint32_t count, cap;
} pointers;

static struct {
    pointers features;
    pointers sinks, observers, command_observers; /* the armed ones */
    bool tells_loaded;                            /* a key observer wants eventLoaded */
    /* All stage jobs in their order; those of stage s start at stage_begin[s]. */
    void (**stage_jobs)(void);
    int stage_begin[STAGE_COUNT + 1];
    int stages_running;   /* nested calls of stagesRun() */
    bool stages_changed;  /* to be gathered again when none of them runs */
    uint32_t info_hidden; /* bits of infoOrder */
} hooks;

static void pointersAdd(pointers *p, const void *item) {
    if (p->count == p->cap) {
        p->cap = p->cap ? 2 * p->cap : 8;
        p->items = memRealloc(p->items, p->cap * sizeof(*p->items));
    }
    p->items[p->count++] = item;
}

/* Adds `item`, unless it is there, or removes it; returns the new count, which engineHot keeps in a byte. */
static uint8_t arm(pointers *p, const void *item, bool on) {
    uint32_t at = 0;
    while (at < p->count && p->items[at] != item) at++;
    if (on && at == p->count) {
        pointersAdd(p, item);
    } else if (!on && at < p->count) {
        memmove(p->items + at, p->items + at + 1, (p->count - at - 1) * sizeof(*p->items));
        p->items[--p->count] = NULL;
    }
    check(p->count <= UINT8_MAX);
    return (uint8_t)p->count;
}

static void gatherStages(void) {
    int most = 0;
    for (int i = 0; i < hooksFeatureCount(); i++) {
        const stageJob *job = hooksFeature(i)->stages;
        while (job && job->run) job++, most++;
    }
    hooks.stage_jobs = memRealloc(hooks.stage_jobs, (size_t)(most + 1) * sizeof(*hooks.stage_jobs));
    int count = 0;
    for (int at = 0; at < STAGE_COUNT; at++) {
        hooks.stage_begin[at] = count;
        for (int i = 0; i < hooksFeatureCount(); i++) {
            const stageJob *job = hooksFeature(i)->stages;
            for (; job && job->run; job++) {
                if ((int)job->at == at) hooks.stage_jobs[count++] = job->run;
            }
        }
    }
    hooks.stage_begin[STAGE_COUNT] = count;
    hooks.stages_changed = false;
}

void hooksInstall(const feature *const *features, int count, const gate *const *gate_order,
                  int gate_count) {
    for (int i = 0; i < count; i++) pointersAdd(&hooks.features, features[i]);
    gatherStages();
    gateInstall(gate_order, gate_count);
}

void hooksAddFeature(const feature *f) {
    check(!f->gates); /* their order is fixed at start */
    pointersAdd(&hooks.features, f);
    hooks.stages_changed = true;
}

static void noJob(void) {}

void hooksRemoveFeature(const feature *f) {
    (void)arm(&hooks.features, f, false); /* how many are left is known */
    /* Its jobs run no more, not even in the stages of this turn. */
    for (const stageJob *job = f->stages; job && job->run; job++) {
        for (int i = 0; i < hooks.stage_begin[STAGE_COUNT]; i++) {
            if (hooks.stage_jobs[i] == job->run) hooks.stage_jobs[i] = noJob;
        }
    }
    hooks.stages_changed = true;
}

void hooksUninstall(void) {
    memFree(hooks.features.items);
    memFree(hooks.sinks.items);
    memFree(hooks.observers.items);
    memFree(hooks.command_observers.items);
    memFree(hooks.stage_jobs);
    memset(&hooks, 0, sizeof(hooks));
    gateUninstall();
    serverEventUninstall();
    engineHot.sinks = engineHot.observers = engineHot.command_observers = 0;
}

int hooksFeatureCount(void) { return (int)hooks.features.count; }

const feature *hooksFeature(int index) {
    check(index >= 0);
    check(index < hooksFeatureCount());
    return hooks.features.items[index];
}

void sinkArm(const sink *s, bool on) { engineHot.sinks = arm(&hooks.sinks, s, on); }

void hooksSinks(const propagated *p) {
    for (uint32_t i = 0; i < engineHot.sinks; i++) {
        const sink *s = hooks.sinks.items[i];
        if (!s->targets || s->targets & p->targets) s->take(p);
    }
}

void keyObserverArm(const keyObserver *o, bool on) {
    uint32_t count = arm(&hooks.observers, o, on);
    engineHot.observers = count;
    uint32_t notes = 0;
    bool removals = false;
    for (uint32_t i = 0; i < count; i++) {
        const keyObserver *armed = hooks.observers.items[i];
        if (armed->notes) notes |= armed->notes();
        removals |= armed->removing != NULL;
    }
    storeSetNotes(notes & NOTIFY_NEW, notes & NOTIFY_KEY_MISS);
    storeTellRemovals(removals);
    hooks.tells_loaded = notes & NOTIFY_LOADED;
}

void keyObserversTellLoaded(db *d, slice key) {
    if (unlikely(hooks.tells_loaded)) hooksKeyEvent(d, key, &eventLoaded);
}

void hooksKeyChanged(db *d, slice key, const keyEvent *event) {
    for (uint32_t i = 0; i < engineHot.observers;) {
        const keyObserver *o = hooks.observers.items[i];
        o->changed(d, key, event);
        /* If it has disarmed itself, the next one is at the same index. */
        if (hooks.observers.items[i] == o) i++;
    }
}

void hooksKeyEvent(db *d, slice key, const keyEvent *event) {
    for (uint32_t i = 0; i < engineHot.observers; i++) {
        const keyObserver *o = hooks.observers.items[i];
        if (o->event) o->event(d, key, event);
    }
}

void hooksKeyRemoving(db *d, const robj *o, storeRemoval why) {
    for (uint32_t i = 0; i < engineHot.observers; i++) {
        const keyObserver *observer = hooks.observers.items[i];
        if (observer->removing) observer->removing(d, o, why);
    }
}

void commandObserverArm(const commandObserver *s, bool on) {
    engineHot.command_observers = arm(&hooks.command_observers, s, on);
    if (engineHot.command_observers) {
        engineHot.armed |= GATE_BIT_SPECIAL;
    } else {
        engineHot.armed &= ~GATE_BIT_SPECIAL;
    }
}

/* Command observers armed for one session. */
typedef struct sessionObservers {
    uint32_t count, cap;
    const commandObserver *list[];
} sessionObservers;

static void freeObservers(session *s, void *state) {
    (void)s; /* the session ends */
    memFree(state);
}

static const sessionSlot observers_slot = {.name = "command_observers", .free = freeObservers};

static int observersSlot(void) {
    static int index = -1;
    if (index < 0) index = sessionSlotRegister(&observers_slot);
    return index;
}

void commandObserverArmSession(session *s, const commandObserver *w, bool on) {
    sessionObservers *command_observers = sessionSlotGet(s, observersSlot());
    if (!command_observers && !on) return;
    if (!command_observers || command_observers->count == command_observers->cap) {
        uint32_t count = command_observers ? command_observers->count : 0, cap = count + 4;
        command_observers =
            memRealloc(command_observers,
                       sizeof(*command_observers) + cap * sizeof(command_observers->list[0]));
        command_observers->count = count;
        command_observers->cap = cap;
        sessionSlotSet(s, observersSlot(), command_observers);
    }
    uint32_t at = 0;
    while (at < command_observers->count && command_observers->list[at] != w) at++;
    if (on) {
        command_observers->list[at] = w;
        if (at == command_observers->count) command_observers->count++;
    } else if (at < command_observers->count) {
        command_observers->list[at] = command_observers->list[--command_observers->count];
    }
    s->observed = command_observers->count > 0;
    sessionUpdateSpecial(s);
}

void hooksForgetSession(session *s) {
    sessionObservers *command_observers = sessionSlotGet(s, observersSlot());
    if (command_observers) command_observers->count = 0;
    s->observed = false;
}

void hooksBeforeCommand(ctx *c) {
    for (uint32_t i = 0; i < engineHot.command_observers; i++) {
        if (((const commandObserver *)hooks.command_observers.items[i])->before)
            ((const commandObserver *)hooks.command_observers.items[i])->before(c);
    }
    const sessionObservers *own = c->who->observed ? sessionSlotGet(c->who, observersSlot()) : NULL;
    for (uint32_t i = 0; own && i < own->count; i++) {
        if (own->list[i]->before) own->list[i]->before(c);
    }
}

void hooksAfterCommand(ctx *c, int64_t duration_ns) {
    for (uint32_t i = 0; i < engineHot.command_observers; i++) {
        if (((const commandObserver *)hooks.command_observers.items[i])->after)
            ((const commandObserver *)hooks.command_observers.items[i])->after(c, duration_ns);
    }
    const sessionObservers *own = c->who->observed ? sessionSlotGet(c->who, observersSlot()) : NULL;
    for (uint32_t i = 0; own && i < own->count; i++) {
        if (own->list[i]->after) own->list[i]->after(c, duration_ns);
    }
}

void hooksRefusedCommand(ctx *c) {
    const sessionObservers *own = c->who->observed ? sessionSlotGet(c->who, observersSlot()) : NULL;
    for (uint32_t i = 0; own && i < own->count; i++) {
        if (own->list[i]->refused) own->list[i]->refused(c);
    }
}

void hooksDbEvent(const dbEvent *e) {
    for (int i = 0; i < hooksFeatureCount(); i++) {
        if (hooksFeature(i)->on_db) hooksFeature(i)->on_db(e);
    }
    serverEventOnDb(e);
}

void hooksSessionEvent(session *s, sessionEvent e) {
    for (int i = 0; i < hooksFeatureCount(); i++) {
        if (hooksFeature(i)->on_session) hooksFeature(i)->on_session(s, e);
    }
}

void hooksChildEvent(childEvent e, int kind, int exit_code, int signal) {
    for (int i = 0; i < hooksFeatureCount(); i++) {
        if (hooksFeature(i)->on_child) hooksFeature(i)->on_child(e, kind, exit_code, signal);
    }
    serverEventOnChild(e, kind, exit_code);
}

size_t hooksPressure(void) {
    size_t released = 0;
    for (int i = 0; i < hooksFeatureCount(); i++) {
        if (hooksFeature(i)->on_pressure) released += hooksFeature(i)->on_pressure();
    }
    return released;
}

authVerdict hooksAuthenticate(ctx *c, slice name, slice password, user **who) {
    for (int i = 0; i < hooksFeatureCount(); i++) {
        if (!hooksFeature(i)->on_auth) continue;
        authVerdict verdict = hooksFeature(i)->on_auth(c, name, password, who);
        if (verdict != AUTH_NOT_MINE) return verdict;
    }
    return AUTH_DENIED;
}

status hooksShutdown(uint32_t flags, reason *why) {
    for (int i = hooksFeatureCount() - 1; i >= 0; i--) {
        if (!hooksFeature(i)->on_shutdown) continue;
        status st = hooksFeature(i)->on_shutdown(flags, why);
        if (st != OK) return st;
    }
    return OK;
}

void stagesRun(stage from, stage to) {
    if (unlikely(hooks.stages_changed) && !hooks.stages_running) gatherStages();
    hooks.stages_running++;
    for (int i = hooks.stage_begin[from]; i < hooks.stage_begin[to + 1]; i++) hooks.stage_jobs[i]();
    hooks.stages_running--;
}

void hooksLimitInfo(uint32_t orders) { hooks.info_hidden = ~orders; }

void hooksEachInfoSection(void (*proc)(const infoSection *section, void *arg), void *arg) {
    for (int order = 0; order < INFO_ORDER_MAX; order++) {
        if (hooks.info_hidden & 1u << order) continue;
        for (int i = 0; i < hooksFeatureCount(); i++) {
            const infoSection *section = hooksFeature(i)->info;
            for (; section && section->print; section++) {
                if (section->order == (infoOrder)order) proc(section, arg);
            }
        }
    }
}
