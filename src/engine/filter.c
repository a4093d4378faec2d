/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Request filters (filter.h). Invariant: the arguments of a filteredRequest are those of the
 * request until the first change, which makes its own array of them; bytes are never moved. */
#include "engine/filter_priv.h"

#include "base/base.h"
#include "engine/armed_list.h"
#include "engine/execute.h"
#include "engine/hooks_priv.h"

struct filteredRequest {
    const ctx *of;
    request rewritten; /* its argv is the array of its own, NULL before the first change */
    const slice *argv;
    int argc, cap;
    char **owned; /* bytes of arguments */
    int owned_count;
};

static armedList filters;

void requestFilterArm(const requestFilter *f, bool on) {
    (void)armedListSet(&filters, f, on); /* their number is asked for when needed */
    hooksUpdateSpecial();
}

bool requestFiltersArmed(void) { return armedListCount(&filters) > 0; }

void requestFiltersClear(void) { armedListClear(&filters); }

/* ------------------------------------------------------------------ for filters */

const session *filteredSession(const filteredRequest *f) { return f->of->who; }

int filteredCount(const filteredRequest *f) { return f->argc; }

slice filteredArg(const filteredRequest *f, int i) {
    check(i >= 0);
    check(i < f->argc);
    return f->argv[i];
}

/* The array of its own, with room for one more argument. */
static slice *ownArgs(filteredRequest *f) {
    if (!f->rewritten.argv || f->argc == f->cap) {
        f->cap = f->argc + 8;
        slice *args = memNewArray(slice, (size_t)f->cap);
        memcpy(args, f->argv, (size_t)f->argc * sizeof(slice));
        memFree(f->rewritten.argv);
        f->rewritten.argv = args;
        f->argv = args;
    }
    return f->rewritten.argv;
}

static slice ownBytes(filteredRequest *f, slice arg) {
    size_t size = (size_t)(f->owned_count + 1) * sizeof(char *);
    f->owned = memRealloc(f->owned, size);
    char *bytes = memAlloc(arg.len + 1); /* not empty */
    if (arg.len) memcpy(bytes, arg.ptr, arg.len);
    f->owned[f->owned_count++] = bytes;
    return sliceMake(bytes, arg.len);
}

status filteredInsert(filteredRequest *f, int i, slice arg) {
    if (i < 0 || i > f->argc) return ERR_RANGE;
    slice *args = ownArgs(f);
    memmove(args + i + 1, args + i, (size_t)(f->argc - i) * sizeof(slice));
    args[i] = ownBytes(f, arg);
    f->argc++;
    return OK;
}

status filteredReplace(filteredRequest *f, int i, slice arg) {
    if (i < 0 || i >= f->argc) return ERR_RANGE;
    slice *args = ownArgs(f);
    args[i] = ownBytes(f, arg);
    return OK;
}

status filteredRemove(filteredRequest *f, int i) {
    if (i < 0 || i >= f->argc || f->argc == 1) return ERR_RANGE;
    slice *args = ownArgs(f);
    memmove(args + i, args + i + 1, (size_t)(f->argc - i - 1) * sizeof(slice));
    f->argc--;
    return OK;
}

void filteredFree(filteredRequest *f) {
    if (!f) return;
    for (int i = 0; i < f->owned_count; i++) memFree(f->owned[i]);
    memFree(f->owned);
    memFree(f->rewritten.argv);
    memFree(f);
}

/* ------------------------------------------------------------------ running them */

/* Calls the filters; NULL if nothing was changed. */
static filteredRequest *filter(const ctx *c) {
    filteredRequest f = {.of = c, .argv = c->argv, .argc = c->argc};
    const requestFilter *each;
    for (uint32_t at = armedListBegin(&filters); (each = armedListNext(&filters, &at));) {
        each->filter(&f);
    }
    if (!f.rewritten.argv) return NULL;
    filteredRequest *kept = memNew(filteredRequest);
    *kept = f;
    return kept;
}

filteredRequest *requestFilterRun(ctx *c) {
    if (likely(!requestFiltersArmed()) || c->origin == ORIGIN_AOF) return NULL;
    filteredRequest *f = filter(c);
    if (!f) return NULL;
    f->rewritten.argc = f->argc;
    f->rewritten.raw_end = c->request->raw_end;
    executeResolve(&f->rewritten);
    c->request = &f->rewritten;
    c->argv = f->rewritten.argv;
    c->argc = f->argc;
    c->cmd = f->rewritten.command;
    c->key_hash = f->rewritten.key_hash;
    return f;
}

filteredRequest *requestFilterInner(ctx *c) {
    if (likely(!requestFiltersArmed())) return NULL;
    filteredRequest *f = filter(c);
    if (!f) return NULL;
    c->argv = f->argv;
    c->argc = f->argc;
    return f;
}
