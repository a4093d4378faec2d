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
#include "engine/session_priv.h"
#include "engine/session_slot.h"

enum { FEATURES_MAX = 32, ARMED_MAX = 8, STAGE_JOBS_MAX = 64 };

static struct {
    const feature *features[FEATURES_MAX];
    int count;
    const sink *sinks[ARMED_MAX];
    const keyObserver *observers[ARMED_MAX];
    const commandObserver *command_observers[ARMED_MAX];
    /* All stage jobs in their order; those of stage s start at stage_begin[s]. */
    void (*stage_jobs[STAGE_JOBS_MAX])(void);
    int stage_begin[STAGE_COUNT + 1];
} hooks;

static void gatherStages(void) {
    int count = 0;
    for (int at = 0; at < STAGE_COUNT; at++) {
        hooks.stage_begin[at] = count;
        for (int i = 0; i < hooks.count; i++) {
            const stageJob *job = hooks.features[i]->stages;
            for (; job && job->run; job++) {
                if ((int)job->at != at) continue;
                check(count < STAGE_JOBS_MAX);
                hooks.stage_jobs[count++] = job->run;
            }
        }
    }
    hooks.stage_begin[STAGE_COUNT] = count;
}

void hooksInstall(const feature *const *features, int count, const gate *const *gate_order,
                  int gate_count) {
    check(count <= FEATURES_MAX);
    for (int i = 0; i < count; i++) hooks.features[i] = features[i];
    hooks.count = count;
    gatherStages();
    gateInstall(gate_order, gate_count);
}

void hooksUninstall(void) {
    memset(&hooks, 0, sizeof(hooks));
    gateUninstall();
    engineHot.sinks = engineHot.command_observers = 0;
    engineHot.observers = 0;
}

int hooksFeatureCount(void) { return hooks.count; }

const feature *hooksFeature(int index) {
    check(index >= 0);
    check(index < hooks.count);
    return hooks.features[index];
}

/* Adds `item` to a compact array of pointers, or removes it; returns the new count. */
static uint32_t armIn(const void **array, uint32_t count, const void *item, bool on) {
    uint32_t at = 0;
    while (at < count && array[at] != item) at++;
    if (on && at == count) {
        check(count < ARMED_MAX);
        array[count] = item;
        return count + 1;
    }
    if (!on && at < count) {
        memmove(array + at, array + at + 1, (count - at - 1) * sizeof(*array));
        array[count - 1] = NULL;
        return count - 1;
    }
    return count;
}

void sinkArm(const sink *s, bool on) {
    engineHot.sinks = armIn((const void **)hooks.sinks, engineHot.sinks, s, on);
}

void hooksSinks(const propagated *p) {
    for (uint32_t i = 0; i < engineHot.sinks; i++) {
        const sink *s = hooks.sinks[i];
        if (!s->targets || s->targets & p->targets) s->take(p);
    }
}

void keyObserverArm(const keyObserver *o, bool on) {
    engineHot.observers =
        (uint8_t)armIn((const void **)hooks.observers, engineHot.observers, o, on);
}

void hooksKeyChanged(db *d, slice key, const char *event) {
    for (uint32_t i = 0; i < engineHot.observers;) {
        const keyObserver *o = hooks.observers[i];
        o->changed(d, key, event);
        /* If it has disarmed itself, the next one is at the same index. */
        if (hooks.observers[i] == o) i++;
    }
}

void hooksKeyEvent(db *d, slice key, const char *event) {
    for (uint32_t i = 0; i < engineHot.observers; i++) {
        const keyObserver *o = hooks.observers[i];
        if (o->event) o->event(d, key, event);
    }
}

void commandObserverArm(const commandObserver *s, bool on) {
    engineHot.command_observers =
        armIn((const void **)hooks.command_observers, engineHot.command_observers, s, on);
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
        if (hooks.command_observers[i]->before) hooks.command_observers[i]->before(c);
    }
    const sessionObservers *own = c->who->observed ? sessionSlotGet(c->who, observersSlot()) : NULL;
    for (uint32_t i = 0; own && i < own->count; i++) {
        if (own->list[i]->before) own->list[i]->before(c);
    }
}

void hooksAfterCommand(ctx *c, int64_t duration_ns) {
    for (uint32_t i = 0; i < engineHot.command_observers; i++) {
        if (hooks.command_observers[i]->after) hooks.command_observers[i]->after(c, duration_ns);
    }
    const sessionObservers *own = c->who->observed ? sessionSlotGet(c->who, observersSlot()) : NULL;
    for (uint32_t i = 0; own && i < own->count; i++) {
        if (own->list[i]->after) own->list[i]->after(c, duration_ns);
    }
}

void hooksDbEvent(const dbEvent *e) {
    for (int i = 0; i < hooks.count; i++) {
        if (hooks.features[i]->on_db) hooks.features[i]->on_db(e);
    }
}

void hooksSessionEvent(session *s, sessionEvent e) {
    for (int i = 0; i < hooks.count; i++) {
        if (hooks.features[i]->on_session) hooks.features[i]->on_session(s, e);
    }
}

void hooksChildEvent(childEvent e, int kind, int exit_code, int signal) {
    for (int i = 0; i < hooks.count; i++) {
        if (hooks.features[i]->on_child) hooks.features[i]->on_child(e, kind, exit_code, signal);
    }
}

size_t hooksPressure(void) {
    size_t released = 0;
    for (int i = 0; i < hooks.count; i++) {
        if (hooks.features[i]->on_pressure) released += hooks.features[i]->on_pressure();
    }
    return released;
}

authVerdict hooksAuthenticate(ctx *c, slice name, slice password, user **who) {
    for (int i = 0; i < hooks.count; i++) {
        if (!hooks.features[i]->on_auth) continue;
        authVerdict verdict = hooks.features[i]->on_auth(c, name, password, who);
        if (verdict != AUTH_NOT_MINE) return verdict;
    }
    return AUTH_DENIED;
}

status hooksShutdown(uint32_t flags, reason *why) {
    for (int i = hooks.count - 1; i >= 0; i--) {
        if (!hooks.features[i]->on_shutdown) continue;
        status st = hooks.features[i]->on_shutdown(flags, why);
        if (st != OK) return st;
    }
    return OK;
}

void stagesRun(stage from, stage to) {
    for (int i = hooks.stage_begin[from]; i < hooks.stage_begin[to + 1]; i++) hooks.stage_jobs[i]();
}

void hooksEachInfoSection(void (*proc)(const infoSection *section, void *arg), void *arg) {
    for (int order = 0; order < INFO_ORDER_MAX; order++) {
        for (int i = 0; i < hooks.count; i++) {
            const infoSection *section = hooks.features[i]->info;
            for (; section && section->print; section++) {
                if (section->order == (infoOrder)order) proc(section, arg);
            }
        }
    }
}
