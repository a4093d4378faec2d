/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checks of the calls of modules. */
#define _GNU_SOURCE /* dladdr() */
#include "module/checks.h"

#include <dlfcn.h>
#include <string.h>

#include "base/base.h"
#include "module/key.h"
#include "module/thread_lock.h"

static _Thread_local checkedCall *innermost;

/* ------------------------------------------------------------------ the log */

static const char *const kind_names[HANDLE_KINDS + 1] = {
    [HANDLE_CONTEXT] = "context",
    [HANDLE_STRING] = "string",
    [HANDLE_KEY] = "key",
    [HANDLE_REPLY] = "reply",
    [HANDLE_DICT] = "dictionary",
    [HANDLE_DICT_ITERATOR] = "iterator of a dictionary",
    [HANDLE_SCAN_CURSOR] = "cursor",
    [HANDLE_USER] = "user",
    [HANDLE_SERVER_INFO] = "server info",
    [HANDLE_IO] = "input or output of a value",
    [HANDLE_DIGEST] = "digest",
    [HANDLE_FILTER_CONTEXT] = "context of a filter",
    [HANDLE_NONE] = "nothing",
};

static const char *fileName(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* `file.so+0x12ab (function)`. */
static void appendPlace(str *out, const void *address) {
    Dl_info info;
    if (!address || !dladdr(address, &info) || !info.dli_fname) {
        strAppendFormat(out, "an unknown place");
        return;
    }
    strAppendFormat(out, "%s+0x%zx", fileName(info.dli_fname),
                    (size_t)((const char *)address - (const char *)info.dli_fbase));
    if (info.dli_sname) strAppendFormat(out, " (%s)", info.dli_sname);
}

/* The module whose shared object has this address; NULL: it is being loaded, or is none. */
static const module *moduleAt(const void *address) {
    Dl_info info;
    if (!address || !dladdr(address, &info) || !info.dli_fname) return NULL;
    for (const module *m = registryFirst(); m; m = registryNext(m)) {
        if (m->library && !strcmp(m->path, info.dli_fname)) return m;
    }
    return NULL;
}

static void report(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void report(const char *format, ...) {
    hotCheck(innermost); /* checkedCall ends with the function */
    str text = STR_EMPTY;
    va_list args;
    va_start(args, format);
    strAppendFormatV(&text, format, args);
    va_end(args);
    strAppendFormat(&text, ", called at ");
    appendPlace(&text, innermost->caller);
    const module *m = threadLockIsMine() ? moduleAt(innermost->caller) : NULL;
    logWarning("API misuse detected in %s%s: ValkeyModule_%s: %s", m ? "module " : "a module",
               m ? m->name : "", innermost->function, strText(&text));
    strFree(&text);
}

/* ------------------------------------------------------------------ calls */

bool checksEnter(checkedCall *call) {
    hotCheck(call->function);
    call->outer = innermost;
    innermost = call;
    if (call->any_thread || threadLockIsMine()) return true;
    report("this thread has not locked the server");
    return false;
}

void checksLeave(checkedCall *call) {
    hotCheck(innermost == call);
    innermost = call->outer;
}

void checksCurrentCall(const char **function, const void **caller) {
    *function = innermost ? innermost->function : NULL;
    *caller = innermost ? innermost->caller : NULL;
}

bool checkHandle(handleKind kind, const void *handle, bool may_be_null) {
    if (!handle) {
        if (!may_be_null) report("the %s is NULL", kind_names[kind]);
        return may_be_null;
    }
    handleKind found = handleKindOf(handle);
    if (found == kind) return true;
    if (found == HANDLE_NONE) {
        report("the %s was freed, or never was one", kind_names[kind]);
    } else {
        report("a %s is given where a %s is expected", kind_names[found], kind_names[kind]);
    }
    return false;
}

bool checkGiven(const char *name, bool is_given) {
    if (!is_given) report("the argument '%s' is NULL", name);
    return is_given;
}

bool checkStrings(ValkeyModuleString **strings, long count) {
    if (count > 0 && !strings) {
        report("the array of strings is NULL");
        return false;
    }
    for (long i = 0; i < count; i++) {
        if (!checkHandle(HANDLE_STRING, strings[i], false)) return false;
    }
    return true;
}

/* ------------------------------------------------------------------ what was not freed */

enum { LEFTOVER_PLACES = 64 }; /* more are told as one sum */

typedef struct leftovers {
    const ValkeyModuleCtx *context; /* only keys of this one; NULL: all of `m` */
    const module *m;
    handleRecord places[LEFTOVER_PLACES];
    size_t counts[LEFTOVER_PLACES];
    int place_count;
    size_t others;
} leftovers;

static bool isLeft(const leftovers *l, const handleRecord *h) {
    if (h->is_lent || h->is_told || !h->maker) return false;
    if (!l->context) return moduleAt(h->caller) == l->m;
    return h->kind == HANDLE_KEY && ((const ValkeyModuleKey *)h->address)->owner == l->context;
}

static void collect(handleRecord *h, void *arg) {
    leftovers *l = arg;
    if (!isLeft(l, h)) return;
    h->is_told = true;
    for (int i = 0; i < l->place_count; i++) {
        if (l->places[i].caller != h->caller || l->places[i].kind != h->kind) continue;
        l->counts[i]++;
        return;
    }
    if (l->place_count == LEFTOVER_PLACES) {
        l->others++;
        return;
    }
    l->places[l->place_count] = *h;
    l->counts[l->place_count++] = 1;
}

static void tell(const leftovers *l, const char *name, const char *when) {
    hotCheck(l->place_count <= LEFTOVER_PLACES);
    for (int i = 0; i < l->place_count; i++) {
        str place = STR_EMPTY;
        appendPlace(&place, l->places[i].caller);
        logWarning("API misuse detected in module %s: %s, %zu of kind %s made by ValkeyModule_%s "
                   "at %s not freed",
                   name, when, l->counts[i], kind_names[l->places[i].kind], l->places[i].maker,
                   strText(&place));
        strFree(&place);
    }
    if (l->others) logWarning("%s: %zu more are not freed", name, l->others);
}

void checksContextEnds(const ValkeyModuleCtx *x) {
    if (!handleCount(HANDLE_KEY)) return;
    leftovers l = {.context = x};
    handlesEach(collect, &l);
    tell(&l, x->module ? x->module->name : "that has not called Init()", "a call ended");
}

void checksUnload(const module *m) {
    hotCheck(m->library);
    leftovers l = {.m = m};
    handlesEach(collect, &l);
    tell(&l, m->name, "it is unloaded");
}
