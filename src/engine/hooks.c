/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The hook arrays: filled once from the list of features, then read-only. For what can be armed at
 * run time (sinks, observers) there are compact arrays of the armed ones, with counters in
 * engineHot, so that unused hooks cost nothing. Main thread only. */
#include "engine/hooks.h"

#include "base/base.h"
#include "engine/armed_list.h"
#include "engine/ctx.h"
#include "engine/filter_priv.h"
#include "engine/gate_priv.h"
#include "engine/hooks_priv.h"
#include "engine/hot.h"
#include "engine/server_event_priv.h"
#include "engine/session_priv.h"
#include "engine/session_slot.h"
#include "store/store.h"

static struct {
    armedList features;
    armedList sinks, observers, command_observers; /* with counts in engineHot */
    bool tells_loaded;                             /* a key observer wants eventLoaded */
    /* All stage jobs in their order; those of stage s start at stage_begin[s]. */
    void (**stage_jobs)(void);
    int stage_begin[STAGE_COUNT + 1];
    int stages_running;   /* nested calls of stagesRun() */
    bool stages_changed;  /* true: gather the stages again when none of them runs */
    uint32_t info_hidden; /* bits of infoOrder */
    /* The sections of INFO in their order; NULL: they are gathered when they are needed. */
    const infoSection **sections;
    int section_count;
} hooks;

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

static void forgetSections(void) {
    memFree(hooks.sections);
    hooks.sections = NULL;
}

void hooksInstall(const feature *const *features, int count, const gate *const *gate_order,
                  int gate_count) {
    for (int i = 0; i < count; i++) (void)armedListSet(&hooks.features, features[i], true);
    gatherStages();
    forgetSections();
    gateInstall(gate_order, gate_count);
}

void hooksAddFeature(const feature *f) {
    check(!f->gates);                             /* their order is fixed at start */
    (void)armedListSet(&hooks.features, f, true); /* their number is known */
    hooks.stages_changed = true;
    forgetSections();
}

static void noJob(void) {}

void hooksRemoveFeature(const feature *f) {
    (void)armedListSet(&hooks.features, f, false); /* how many remain is known */
    /* Its jobs run no more, not even in the stages of this turn. */
    for (const stageJob *job = f->stages; job && job->run; job++) {
        for (int i = 0; i < hooks.stage_begin[STAGE_COUNT]; i++) {
            if (hooks.stage_jobs[i] == job->run) hooks.stage_jobs[i] = noJob;
        }
    }
    hooks.stages_changed = true;
    forgetSections();
}

void hooksUninstall(void) {
    armedListClear(&hooks.features);
    armedListClear(&hooks.sinks);
    armedListClear(&hooks.observers);
    armedListClear(&hooks.command_observers);
    requestFiltersClear();
    memFree(hooks.stage_jobs);
    forgetSections();
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

void sinkArm(const sink *s, bool on) { engineHot.sinks = armedListSet(&hooks.sinks, s, on); }

void hooksSinks(const propagated *p) {
    const sink *s;
    for (uint32_t at = armedListBegin(&hooks.sinks); (s = armedListNext(&hooks.sinks, &at));) {
        if (!s->targets || s->targets & p->targets) s->take(p);
    }
}

void keyObserverArm(const keyObserver *o, bool on) {
    armedList *all = &hooks.observers;
    engineHot.observers = armedListSet(all, o, on);
    uint32_t notes = 0;
    bool removals = false;
    const keyObserver *armed;
    for (uint32_t at = armedListBegin(all); (armed = armedListNext(all, &at));) {
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
    armedList *all = &hooks.observers;
    const keyObserver *o;
    for (uint32_t at = armedListBegin(all); (o = armedListNext(all, &at));) {
        o->changed(d, key, event);
    }
}

void hooksKeyEvent(db *d, slice key, const keyEvent *event) {
    armedList *all = &hooks.observers;
    const keyObserver *o;
    for (uint32_t at = armedListBegin(all); (o = armedListNext(all, &at));) {
        if (o->event) o->event(d, key, event);
    }
}

void hooksKeyRemoving(db *d, const robj *value, storeRemoval why) {
    armedList *all = &hooks.observers;
    const keyObserver *o;
    for (uint32_t at = armedListBegin(all); (o = armedListNext(all, &at));) {
        if (o->removing) o->removing(d, value, why);
    }
}

void hooksUpdateSpecial(void) {
    if (engineHot.command_observers || requestFiltersArmed()) {
        engineHot.armed |= GATE_BIT_SPECIAL;
    } else {
        engineHot.armed &= ~GATE_BIT_SPECIAL;
    }
}

void commandObserverArm(const commandObserver *s, bool on) {
    engineHot.command_observers = armedListSet(&hooks.command_observers, s, on);
    hooksUpdateSpecial();
}

/* Command observers armed for one session are an armedList in a slot of it. */
static void freeObservers(session *s, void *state) {
    (void)s; /* the session ends */
    armedListClear(state);
    memFree(state);
}

static const sessionSlot observers_slot = {.name = "command_observers", .free = freeObservers};

static int observersSlot(void) {
    static int index = -1;
    if (index < 0) index = sessionSlotRegister(&observers_slot);
    return index;
}

void commandObserverArmSession(session *s, const commandObserver *w, bool on) {
    armedList *own = sessionSlotGet(s, observersSlot());
    if (!own && !on) return;
    if (!own) {
        own = memCalloc(1, sizeof(*own));
        sessionSlotSet(s, observersSlot(), own);
    }
    s->observed = armedListSet(own, w, on) > 0;
    sessionUpdateSpecial(s);
}

void hooksForgetSession(session *s) {
    armedList *own = sessionSlotGet(s, observersSlot());
    if (own) armedListRemoveAll(own);
    s->observed = false;
}

/* The observers of the client alone; NULL if there are none. */
static armedList *ownObservers(const ctx *c) {
    return c->who->observed ? sessionSlotGet(ctxClient(c), observersSlot()) : NULL;
}

static void callBefore(armedList *l, ctx *c) {
    const commandObserver *o;
    for (uint32_t at = armedListBegin(l); (o = armedListNext(l, &at));) {
        if (o->before) o->before(c);
    }
}

static void callAfter(armedList *l, ctx *c, int64_t duration_ns) {
    const commandObserver *o;
    for (uint32_t at = armedListBegin(l); (o = armedListNext(l, &at));) {
        if (o->after) o->after(c, duration_ns);
    }
}

void hooksBeforeCommand(ctx *c) {
    callBefore(&hooks.command_observers, c);
    armedList *own = ownObservers(c);
    if (own) callBefore(own, c);
}

void hooksAfterCommand(ctx *c, int64_t duration_ns) {
    callAfter(&hooks.command_observers, c, duration_ns);
    armedList *own = ownObservers(c);
    if (own) callAfter(own, c, duration_ns);
}

static void callWorked(armedList *l, ctx *c, int64_t duration_ns) {
    const commandObserver *o;
    for (uint32_t at = armedListBegin(l); (o = armedListNext(l, &at));) {
        if (o->worked) o->worked(c, duration_ns);
    }
}

void hooksCommandWorked(ctx *c, int64_t duration_ns) {
    hotCheck(duration_ns >= 0);
    callWorked(&hooks.command_observers, c, duration_ns);
    armedList *own = ownObservers(c);
    if (own) callWorked(own, c, duration_ns);
}

static void callRefused(armedList *l, ctx *c, size_t pending) {
    const commandObserver *o;
    for (uint32_t at = armedListBegin(l); (o = armedListNext(l, &at));) {
        if (o->refused) o->refused(c, pending);
    }
}

void hooksRefusedCommand(ctx *c, size_t pending) {
    callRefused(&hooks.command_observers, c, pending);
    armedList *own = ownObservers(c);
    if (own) callRefused(own, c, pending);
}

void hooksDbEvent(const dbEvent *e) {
    hotCheck(threadIsMain());
    for (int i = 0; i < hooksFeatureCount(); i++) {
        if (hooksFeature(i)->on_db) hooksFeature(i)->on_db(e);
    }
    serverEventOnDb(e);
}

void hooksCommandsChanged(void) {
    for (int i = 0; i < hooksFeatureCount(); i++) {
        if (hooksFeature(i)->on_commands) hooksFeature(i)->on_commands();
    }
}

void hooksSessionEvent(session *s, sessionEvent e) {
    for (int i = 0; i < hooksFeatureCount(); i++) {
        if (hooksFeature(i)->on_session) hooksFeature(i)->on_session(s, e);
    }
}

void hooksChildEvent(childEvent e, int kind, int exit_code, int signal) {
    hotCheck(threadIsMain());
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
    hotCheck(threadIsMain());
    for (int i = hooksFeatureCount() - 1; i >= 0; i--) {
        if (!hooksFeature(i)->on_shutdown) continue;
        status st = hooksFeature(i)->on_shutdown(flags, why);
        if (st != OK) return st;
    }
    return OK;
}

void stagesRun(stage from, stage to) {
    hotCheck(threadIsMain());
    if (unlikely(hooks.stages_changed) && !hooks.stages_running) gatherStages();
    hooks.stages_running++;
    for (int i = hooks.stage_begin[from]; i < hooks.stage_begin[to + 1]; i++) hooks.stage_jobs[i]();
    hooks.stages_running--;
}

void hooksLimitInfo(uint32_t orders) { hooks.info_hidden = ~orders; }

static infoMoreProc *info_more; /* NULL: none */

void hooksSetInfoMore(infoMoreProc *proc) { info_more = proc; }

void hooksInfoMore(str *out, const slice *names, int count, bool all, bool crashed) {
    hotCheck(count >= 0);
    if (info_more) info_more(out, names, count, all, crashed);
}

static void gatherSections(void) {
    hotCheck(threadIsMain());
    hotCheck(!hooks.sections);
    int most = 0, count = 0;
    for (int i = 0; i < hooksFeatureCount(); i++) {
        const infoSection *section = hooksFeature(i)->info;
        while (section && section->print) section++, most++;
    }
    hooks.sections = memNewArray(const infoSection *, (size_t)(most + 1));
    for (int order = 0; order < INFO_ORDER_MAX; order++) {
        for (int i = 0; i < hooksFeatureCount(); i++) {
            const infoSection *section = hooksFeature(i)->info;
            for (; section && section->print; section++) {
                if (section->order == (infoOrder)order) hooks.sections[count++] = section;
            }
        }
    }
    check(count == most);
    hooks.section_count = count;
}

void hooksEachInfoSection(void (*proc)(const infoSection *section, void *arg), void *arg) {
    if (!hooks.sections) gatherSections();
    for (int i = 0; i < hooks.section_count; i++) {
        const infoSection *section = hooks.sections[i];
        if (!(hooks.info_hidden & 1u << section->order)) proc(section, arg);
    }
}
