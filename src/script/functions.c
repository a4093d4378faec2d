/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Libraries (functions.h). New ones are staged: loaded and checked while the old ones are in place,
 * then exchanged, so a failure leaves everything as it was. Invariant: every function of a library
 * in `all` is in the table. */
#include "script/functions.h"

#include "base/base.h"
#include "base/hash.h"
#include "engine/keyspace.h"
#include "engine/libraries.h"
#include "script/engines.h"
#include "script/header.h"
#include "script/run.h"
#include "script/script_priv.h"

enum { BUCKETS_FIRST = 16 };

static struct {
    bool ready;
    list all;
    function **buckets;
    size_t bucket_count, function_count, bytes;
} functions;

static list *all(void) {
    if (!functions.ready) listInit(&functions.all);
    functions.ready = true;
    return &functions.all;
}

list *librariesAll(void) { return all(); }
size_t functionCount(void) { return functions.function_count; }
size_t functionMemory(void) {
    return functions.bytes + functions.bucket_count * sizeof(function *);
}

static void *vmOf(const scriptEngine *e) { return scriptEngineVm(e, SCRIPT_USE_FUNCTIONS, true); }

/* ------------------------------------------------------------------ the table of functions */

static function **bucketOf(slice name) {
    return &functions.buckets[hashBytesFold(name.ptr, name.len) & (functions.bucket_count - 1)];
}

const function *functionFind(slice name) {
    hotCheck(threadIsMain());
    if (!functions.bucket_count) return NULL;
    const function *f = *bucketOf(name);
    while (f && !sliceEqualFold(strSlice(&f->name), name)) f = f->next;
    return f;
}

static void insert(function *f) {
    hotCheck(functions.bucket_count > 0);
    function **bucket = bucketOf(strSlice(&f->name));
    f->next = *bucket;
    *bucket = f;
}

static void reserve(size_t more) {
    size_t want = functions.function_count + more;
    if (want <= functions.bucket_count) return;
    functions.bucket_count = sizePowerOfTwo(want < BUCKETS_FIRST ? BUCKETS_FIRST : want);
    memFree(functions.buckets);
    functions.buckets = memNewArray(function *, functions.bucket_count);
    for (listNode *n = all()->head.next; n != &all()->head; n = n->next) {
        library *l = LIST_OWNER(n, library, node);
        for (int i = 0; i < l->function_count; i++) insert(&l->functions[i]);
    }
    hotCheck(functions.bucket_count >= functions.function_count + more);
}

/* ------------------------------------------------------------------ libraries */

library *libraryFind(slice name) {
    hotCheck(threadIsMain());
    for (listNode *n = all()->head.next; n != &all()->head; n = n->next) {
        library *l = LIST_OWNER(n, library, node);
        if (sliceEqual(strSlice(&l->name), name)) return l;
    }
    return NULL;
}

static size_t libraryBytes(const library *l) {
    size_t bytes = sizeof(*l) + l->code.cap + l->name.cap;
    for (int i = 0; i < l->function_count; i++)
        bytes += sizeof(function) + l->functions[i].name.cap + l->functions[i].description.cap;
    return bytes;
}

/* Frees a library that is in no list. `drops`: its functions are dropped from the interpreter. */
static void freeLibrary(library *l, bool drops) {
    for (int i = 0; i < l->function_count; i++) {
        function *f = &l->functions[i];
        if (drops) l->engine->drop(vmOf(l->engine), f->handle);
        strFree(&f->name);
        strFree(&f->description);
    }
    memFree(l->functions);
    strFree(&l->name);
    strFree(&l->code);
    memFree(l);
}

static void place(library *l) {
    hotCheck(l->function_count > 0);
    reserve((size_t)l->function_count);
    listAppend(all(), &l->node);
    for (int i = 0; i < l->function_count; i++) insert(&l->functions[i]);
    functions.function_count += (size_t)l->function_count;
    functions.bytes += libraryBytes(l);
    librariesChanged(strSlice(&l->name));
}

void libraryDelete(library *l) {
    hotCheck(threadIsMain());
    hotCheck(functions.function_count >= (size_t)l->function_count);
    for (int i = 0; i < l->function_count; i++) {
        function **at = bucketOf(strSlice(&l->functions[i].name));
        while (*at != &l->functions[i]) at = &(*at)->next;
        *at = l->functions[i].next;
    }
    functions.function_count -= (size_t)l->function_count;
    functions.bytes -= libraryBytes(l);
    listRemove(all(), &l->node);
    librariesChanged(strSlice(&l->name));
    freeLibrary(l, true);
}

/* What a flush frees: libraries, and the interpreters with their functions. */
typedef struct functionsGarbage {
    takenVms *vms;
    list libraries;
} functionsGarbage;

static void freeGarbage(void *state) {
    functionsGarbage *g = state;
    while (!listIsEmpty(&g->libraries)) {
        library *l = LIST_OWNER(g->libraries.head.next, library, node);
        listRemove(&g->libraries, &l->node);
        freeLibrary(l, false);
    }
    takenVmsFree(g->vms);
    memFree(g);
}

void librariesFlush(bool later) {
    hotCheck(threadIsMain());
    functionsGarbage *g = memNew(functionsGarbage);
    listInit(&g->libraries);
    g->vms = scriptEnginesTake(SCRIPT_USE_FUNCTIONS);
    while (!listIsEmpty(all())) {
        listNode *n = all()->head.next;
        listRemove(all(), n);
        listAppend(&g->libraries, n);
        librariesChanged(strSlice(&LIST_OWNER(n, library, node)->name));
    }
    memFree(functions.buckets);
    functions.buckets = NULL;
    functions.bucket_count = functions.function_count = functions.bytes = 0;
    if (later && takenVmsCloseAnywhere(g->vms)) {
        keyspaceFreeLater(freeGarbage, g);
    } else {
        freeGarbage(g);
    }
    scriptEnginesReset(SCRIPT_USE_FUNCTIONS, later);
}

void librariesRemoveOf(const scriptEngine *engine) {
    for (listNode *n = all()->head.next, *next; n != &all()->head; n = next) {
        next = n->next;
        library *l = LIST_OWNER(n, library, node);
        if (l->engine == engine) libraryDelete(l);
    }
}

static void clearForLoad(void) { librariesFlush(false); }

/* ------------------------------------------------------------------ loading */

static status takeFunction(void *arg, const scriptFunctionInfo *info, str *error) {
    (void)error; /* names are checked after the code has run */
    library *l = arg;
    l->functions =
        memRealloc(l->functions, (size_t)(l->function_count + 1) * sizeof(*l->functions));
    function *f = &l->functions[l->function_count++];
    *f = (function){
        .name = strNew(info->name), .flags = info->flags, .handle = info->handle, .of = l};
    if (info->description.ptr) f->description = strNew(info->description);
    return OK;
}

/* Checks the names of a library's functions among themselves. */
static bool namesAreValid(const library *l, str *error) {
    if (!l->function_count) {
        strAppendText(error, "ERR No functions registered");
        return false;
    }
    for (int i = 0; i < l->function_count; i++) {
        slice name = strSlice(&l->functions[i].name);
        if (!scriptNameIsValid(name)) {
            strAppendText(error, "ERR Function names can only contain letters, numbers, or "
                                 "underscores(_) and must be at least one character long");
            return false;
        }
        for (int k = 0; k < i; k++) {
            if (!sliceEqualFold(strSlice(&l->functions[k].name), name)) continue;
            strAppendText(error, "ERR Function already exists in the library");
            return false;
        }
    }
    return true;
}

/* Loads code into a library that is not in place yet; NULL with the reply in `error`. */
static library *stage(slice code, int64_t limit_ms, str *error) {
    libraryHeader header;
    if (!libraryHeaderParse(code, &header, error)) return NULL;
    library *l = memNew(library);
    l->name = header.name;
    l->engine = header.engine;
    l->code = strNew(code);
    bool ok = l->engine->load(vmOf(l->engine), header.code, takeFunction, l, limit_ms, error);
    if (ok && namesAreValid(l, error)) return l;
    freeLibrary(l, true);
    return NULL;
}

/* True if no function of `l` is one of a library that stays. */
static bool namesAreFree(const library *l, str *error) {
    for (int i = 0; i < l->function_count; i++) {
        const function *other = functionFind(strSlice(&l->functions[i].name));
        if (!other || other->of->replaced) continue;
        strAppendFormat(error, "ERR Function %s already exists", strText(&l->functions[i].name));
        return false;
    }
    return true;
}

static bool nameExists(slice code, str *error) {
    libraryHeader header;
    if (!libraryHeaderParse(code, &header, error)) return true;
    bool exists = libraryFind(strSlice(&header.name)) != NULL;
    if (exists) strAppendFormat(error, "ERR Library '%s' already exists", strText(&header.name));
    strFree(&header.name);
    return exists;
}

const library *libraryLoad(slice code, bool replace, int64_t limit_ms, str *error) {
    hotCheck(threadIsMain());
    if (!replace && nameExists(code, error)) return NULL;
    library *l = stage(code, limit_ms, error);
    if (!l) return NULL;
    for (int i = 0; i < l->function_count; i++) l->functions[i].of = l;
    library *old = libraryFind(strSlice(&l->name));
    if (old) old->replaced = true;
    if (!namesAreFree(l, error)) {
        if (old) old->replaced = false;
        freeLibrary(l, true);
        return NULL;
    }
    if (old) libraryDelete(old);
    place(l);
    return l;
}

/* ------------------------------------------------------------------ restoring several */

/* Checks a staged library against those staged before it. */
static bool stagedApart(library **staged, int count, str *error) {
    hotCheck(count >= 0);
    const library *l = staged[count];
    for (int i = 0; i < count; i++) {
        if (sliceEqual(strSlice(&staged[i]->name), strSlice(&l->name))) {
            strAppendFormat(error, "ERR Library %s already exists", strText(&l->name));
            return false;
        }
        for (int k = 0; k < staged[i]->function_count; k++) {
            for (int n = 0; n < l->function_count; n++) {
                slice name = strSlice(&l->functions[n].name);
                if (!sliceEqualFold(strSlice(&staged[i]->functions[k].name), name)) continue;
                strAppendFormat(error, "ERR Function %s already exists",
                                strText(&l->functions[n].name));
                return false;
            }
        }
    }
    return true;
}

/* Marks what the policy replaces. */
static void markReplaced(library **staged, int count, restorePolicy policy) {
    for (listNode *n = all()->head.next; n != &all()->head; n = n->next) {
        library *l = LIST_OWNER(n, library, node);
        l->replaced = policy == RESTORE_FLUSH;
        for (int i = 0; i < count && policy == RESTORE_REPLACE; i++) {
            if (sliceEqual(strSlice(&staged[i]->name), strSlice(&l->name))) l->replaced = true;
        }
    }
}

static bool stagedFit(library **staged, int count, str *error) {
    for (int i = 0; i < count; i++) {
        const library *old = libraryFind(strSlice(&staged[i]->name));
        if (old && !old->replaced) {
            strAppendFormat(error, "ERR Library %s already exists", strText(&old->name));
            return false;
        }
        if (!namesAreFree(staged[i], error)) return false;
    }
    return true;
}

static void deleteReplaced(void) {
    for (listNode *n = all()->head.next, *next; n != &all()->head; n = next) {
        next = n->next;
        library *l = LIST_OWNER(n, library, node);
        if (l->replaced) libraryDelete(l);
    }
}

bool librariesRestore(const slice *codes, int count, restorePolicy policy, int64_t limit_ms,
                      int64_t total_ms, str *error) {
    hotCheck(threadIsMain());
    hotCheck(count >= 0);
    library **staged = memNewArray(library *, (size_t)count + 1);
    int done = 0;
    bool ok = true;
    int64_t until_ms = clockMonoUs() / 1000 + total_ms;
    while (ok && done < count) {
        int64_t left_ms = until_ms - clockMonoUs() / 1000;
        if (left_ms < limit_ms) limit_ms = left_ms > 0 ? left_ms : 0;
        staged[done] = stage(codes[done], limit_ms, error);
        ok = staged[done] != NULL;
        if (ok) ok = stagedApart(staged, done++, error);
    }
    if (ok) {
        markReplaced(staged, count, policy);
        ok = stagedFit(staged, count, error);
    }
    if (ok) deleteReplaced();
    for (int i = 0; i < done; i++) {
        if (ok) {
            place(staged[i]);
        } else {
            freeLibrary(staged[i], true);
        }
    }
    for (listNode *n = all()->head.next; n != &all()->head; n = n->next)
        LIST_OWNER(n, library, node)->replaced = false;
    memFree(staged);
    return ok;
}

/* ------------------------------------------------------------------ files */

static void eachLibrary(libraryVisitProc *visit, void *arg) {
    for (listNode *n = all()->head.next; n != &all()->head; n = n->next)
        visit(arg, strSlice(&LIST_OWNER(n, library, node)->code));
}

static status loadFromFile(slice code, bool replace, reason *why) {
    str error = STR_EMPTY;
    status st = OK;
    if (!libraryLoad(code, replace, INT32_MAX, &error))
        st = reasonSet(why, ERR_SYNTAX, "Failed creating the library: %s", strText(&error));
    strFree(&error);
    return st;
}

static void eachName(libraryVisitProc *visit, void *arg) {
    for (listNode *n = listFirst(all()); n; n = listNext(all(), n))
        visit(arg, strSlice(&LIST_OWNER(n, library, node)->name));
}

static slice codeOf(slice name) {
    const library *l = libraryFind(name);
    return l ? strSlice(&l->code) : (slice){NULL, 0};
}

static bool removeNamed(slice name) {
    library *l = libraryFind(name);
    if (l) libraryDelete(l);
    return l != NULL;
}

static const libraryKeeper keeper = {.each = eachLibrary,
                                     .load = loadFromFile,
                                     .clear = clearForLoad,
                                     .each_name = eachName,
                                     .code = codeOf,
                                     .remove = removeNamed};

status functionsInit(reason *why) {
    hotCheck(threadIsMain());
    (void)why; /* it cannot fail */
    librariesSetKeeper(&keeper);
    return OK;
}
