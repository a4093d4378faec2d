/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The engines of scripts that exist. There are few, so they are searched one by one. */
#include "script/engines.h"

#include "base/base.h"
#include "script/cache.h"
#include "script/functions.h"
#include "script/script_priv.h"

enum { USES = 2, LUA_ABI_VERSION = 4 };

typedef struct engineEntry {
    const scriptEngine *engine;
    char *module;
    int abi_version;
    void *vm[USES]; /* by scriptUse */
    struct engineEntry *next;
} engineEntry;

static engineEntry *engines;

static engineEntry *entryOf(const scriptEngine *e) {
    engineEntry *at = engines;
    while (at && at->engine != e) at = at->next;
    return at;
}

const scriptEngine *scriptEngineFind(slice name) {
    for (const engineEntry *at = engines; at; at = at->next) {
        if (sliceIs(name, at->engine->name)) return at->engine;
    }
    return NULL;
}

status scriptEngineAdd(const scriptEngine *e, const char *module, int abi_version) {
    if (scriptEngineFind(sliceOf(e->name))) return ERR_EXISTS;
    engineEntry *added = memNew(engineEntry);
    added->engine = e;
    added->module = memDup(module, strlen(module));
    added->abi_version = abi_version;
    engineEntry **end = &engines;
    while (*end) end = &(*end)->next;
    *end = added;
    return OK;
}

void scriptEngineRemove(const scriptEngine *e) {
    hotCheck(threadIsMain());
    librariesRemoveOf(e);
    scriptCacheRemoveOf(e);
    engineEntry **at = &engines;
    while (*at && (*at)->engine != e) at = &(*at)->next;
    engineEntry *gone = *at;
    check(gone);
    *at = gone->next;
    for (int use = 0; use < USES; use++) {
        if (gone->vm[use]) e->close(gone->vm[use]);
    }
    memFree(gone->module);
    memFree(gone);
}

void scriptEnginesStart(void) {
    status st = scriptEngineAdd(&luaEngine, "lua", LUA_ABI_VERSION);
    check(st == OK);
}

void scriptEnginesEach(void (*proc)(const scriptEngineRow *row, void *arg), void *arg) {
    for (const engineEntry *at = engines; at; at = at->next) {
        const scriptEngineRow row = {at->engine, at->module, at->abi_version};
        proc(&row, arg);
    }
}

int scriptEngineCount(void) {
    int count = 0;
    for (const engineEntry *at = engines; at; at = at->next) count++;
    return count;
}

/* ------------------------------------------------------------------ interpreters */

void *scriptEngineVm(const scriptEngine *e, scriptUse use, bool open) {
    hotCheck(threadIsMain());
    engineEntry *of = entryOf(e);
    check(of);
    if (!of->vm[use] && open) of->vm[use] = e->open(e, use);
    return of->vm[use];
}

size_t scriptEnginesMemory(scriptUse use) {
    size_t bytes = 0;
    for (const engineEntry *at = engines; at; at = at->next) {
        bytes += at->engine->memory(at->engine, use, at->vm[use]);
    }
    return bytes;
}

scriptMemory scriptEngineMemory(const scriptEngine *e) {
    const engineEntry *of = entryOf(e);
    check(of);
    if (e->memory_of_all) return e->memory_of_all(e);
    scriptMemory m = {0, 0};
    for (int use = 0; use < USES; use++) m.used += e->memory(e, (scriptUse)use, of->vm[use]);
    return m;
}

bool scriptEnginesCollect(int64_t budget_us) {
    bool more = false;
    for (const engineEntry *at = engines; at; at = at->next) {
        for (int use = 0; use < USES; use++) {
            if (at->vm[use] && at->engine->collect(at->vm[use], budget_us)) more = true;
        }
    }
    return more;
}

struct takenVms {
    int count;
    struct {
        const scriptEngine *engine;
        void *vm;
    } vms[];
};

takenVms *scriptEnginesTake(scriptUse use) {
    takenVms *t = memCalloc(1, sizeof(*t) + (size_t)scriptEngineCount() * sizeof(t->vms[0]));
    for (engineEntry *at = engines; at; at = at->next) {
        if (!at->vm[use]) continue;
        t->vms[t->count].engine = at->engine;
        t->vms[t->count++].vm = at->vm[use];
        at->vm[use] = NULL;
    }
    hotCheck(t->count <= scriptEngineCount());
    return t;
}

bool takenVmsCloseAnywhere(const takenVms *t) {
    for (int i = 0; i < t->count; i++) {
        if (!t->vms[i].engine->closes_anywhere(t->vms[i].vm)) return false;
    }
    return true;
}

void takenVmsFree(takenVms *t) {
    hotCheck(t);
    for (int i = 0; i < t->count; i++) t->vms[i].engine->close(t->vms[i].vm);
    memFree(t);
}

void scriptEnginesReset(scriptUse use, bool later) {
    hotCheck(threadIsMain());
    for (const engineEntry *at = engines; at; at = at->next) {
        if (at->engine->reset) at->engine->reset(at->engine, use, later);
    }
}
