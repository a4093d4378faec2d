/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Work in parts (later.h). Invariant: the stage is registered while the list is not empty, and
 * until the next turn after that. */
#include "engine/later.h"

#include "base/base.h"
#include "base/clock.h"
#include "ds/list.h"
#include "engine/hooks.h"
#include "engine/hot.h"
#include "engine/lifecycle.h"

typedef struct work {
    listNode node;
    laterProc *step;
    void *arg;
} work;

static struct {
    list all;
    bool has_stage;
} later;

static void workSome(void);
static const stageJob stages[] = {{STAGE_EXPIRE, workSome}, {0, NULL}};
static const feature working = {.name = "work in parts", .stages = stages};

static void workSome(void) {
    enum { TURN_US = 500 };
    if (engineHot.current) return; /* a nested turn: the command below has the time */
    if (listIsEmpty(&later.all)) {
        later.has_stage = false;
        hooksRemoveFeature(&working);
        return;
    }
    int64_t end_us = clockMonoUs() + TURN_US;
    listNode *first;
    size_t left = later.all.count; /* that have not been called, or have more to do */
    while (left > 0 && (first = listFirst(&later.all))) {
        work *w = LIST_OWNER(first, work, node);
        laterRest rest = w->step(w->arg);
        left -= rest != LATER_MORE;
        if (rest != LATER_MORE) listRemove(&later.all, first);
        if (rest == LATER_NEXT_TURN) listAppend(&later.all, first);
        if (rest == LATER_NOTHING) memFree(w);
        if (clockMonoUs() >= end_us) break;
    }
    engineStayAwake();
}

void laterRun(laterProc *step, void *arg) {
    hotCheck(step);
    if (!later.all.head.next) listInit(&later.all);
    work *w = memNew(work);
    *w = (work){.step = step, .arg = arg};
    listAppend(&later.all, &w->node);
    if (!later.has_stage) hooksAddFeature(&working);
    later.has_stage = true;
    engineStayAwake();
}
