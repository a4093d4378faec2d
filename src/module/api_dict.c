/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of modules: dictionaries, which map keys of any bytes to pointers, ordered by key. An
 * iterator may be used after changes of the dictionary: it continues after the key that it has
 * returned last.
 *
 * Used by one thread at a time. */
#include "base/base.h"
#include "ds/ordered.h"
#include "module/context.h"
#include "module/dict.h"
#include "module/generated/api.h"

typedef struct dictEntry {
    void *value;
    size_t len;
    char key[];
} dictEntry;

struct ValkeyModuleDict {
    orderedIndex entries;
    uint64_t changes; /* cursors are valid while it stays the same */
};

struct ValkeyModuleDictIter {
    ValkeyModuleDict *dict;
    const dictEntry *at; /* the next to be returned first; NULL: see `last` */
    bool at_start;       /* nothing was returned since it was placed */
    orderedCursor cursor;
    uint64_t changes;
    str last; /* the key that was returned last, and where to go on from */
    bool has_last;
};

static uint64_t rankOf(const void *entry) {
    (void)entry; /* the keys alone decide about the order */
    return 0;
}

static slice textOf(const void *entry) {
    const dictEntry *e = entry;
    return sliceMake(e->key, e->len);
}

static const orderedType entry_type = {.rank_of = rankOf, .text_of = textOf};

static void freeCollected(ValkeyModuleCtx *x, void *what) {
    (void)x; /* it is being cleared */
    apiFreeDict(NULL, what);
}

void dictsStart(void) { contextSetFree(GARBAGE_DICT, freeCollected); }

/* ------------------------------------------------------------------ finding */

/* The number of entries before a key, or before what follows it. */
static uint64_t countBefore(const ValkeyModuleDict *d, slice key, bool after) {
    orderedPoint point = {.by = ORDERED_BY_TEXT, .after = after, .text = key};
    return orderedCountBefore(&d->entries, &entry_type, &point);
}

/* The entry at `index`, or NULL. */
static dictEntry *entryAt(const ValkeyModuleDict *d, uint64_t index, orderedCursor *cursor) {
    return index < d->entries.count ? orderedSeek(&d->entries, index, cursor) : NULL;
}

static dictEntry *find(const ValkeyModuleDict *d, slice key) {
    orderedCursor cursor;
    dictEntry *e = entryAt(d, countBefore(d, key, false), &cursor);
    return e && sliceEqual(textOf(e), key) ? e : NULL;
}

/* ------------------------------------------------------------------ dictionaries */

ValkeyModuleDict *apiCreateDict(ValkeyModuleCtx *ctx) {
    ValkeyModuleDict *d = memNew(ValkeyModuleDict);
    contextCollect(ctx, GARBAGE_DICT, d);
    return d;
}

void apiFreeDict(ValkeyModuleCtx *ctx, ValkeyModuleDict *d) {
    if (!d) return;
    (void)contextForget(ctx, GARBAGE_DICT, d); /* it need not be there */
    orderedCursor cursor;
    dictEntry *e = entryAt(d, 0, &cursor);
    while (e) {
        dictEntry *next = orderedNext(&cursor);
        memFree(e);
        e = next;
    }
    hotCheck(!e);
    orderedFree(&d->entries);
    memFree(d);
}

uint64_t apiDictSize(ValkeyModuleDict *d) { return d->entries.count; }

size_t apiMallocSizeDict(ValkeyModuleDict *dict) {
    return memSizeOf(dict) + (size_t)dict->entries.bytes;
}

static void insert(ValkeyModuleDict *d, slice key, void *value) {
    hotCheck(!find(d, key));
    dictEntry *e = memAlloc(sizeof(*e) + key.len);
    *e = (dictEntry){.value = value, .len = key.len};
    memcpy(e->key, key.ptr, key.len);
    orderedInsert(&d->entries, &entry_type, e);
    d->changes++;
}

static slice keyOf(const void *key, size_t len) { return sliceMake(len ? key : "", len); }

int apiDictSetC(ValkeyModuleDict *d, void *key, size_t keylen, void *ptr) {
    if (find(d, keyOf(key, keylen))) return VALKEYMODULE_ERR;
    insert(d, keyOf(key, keylen), ptr);
    return VALKEYMODULE_OK;
}

int apiDictReplaceC(ValkeyModuleDict *d, void *key, size_t keylen, void *ptr) {
    dictEntry *e = find(d, keyOf(key, keylen));
    if (!e) return apiDictSetC(d, key, keylen, ptr);
    e->value = ptr;
    return VALKEYMODULE_ERR; /* as in Valkey: OK is for new keys */
}

void *apiDictGetC(ValkeyModuleDict *d, void *key, size_t keylen, int *nokey) {
    const dictEntry *e = find(d, keyOf(key, keylen));
    if (nokey) *nokey = e == NULL;
    return e ? e->value : NULL;
}

int apiDictDelC(ValkeyModuleDict *d, void *key, size_t keylen, void *oldval) {
    dictEntry *e = find(d, keyOf(key, keylen));
    if (!e) return VALKEYMODULE_ERR;
    if (oldval) memcpy(oldval, &e->value, sizeof(e->value));
    orderedDelete(&d->entries, &entry_type, e);
    d->changes++;
    memFree(e);
    return VALKEYMODULE_OK;
}

/* The bytes of a string as the functions above take them. */
static void *bytesOf(ValkeyModuleString *s, size_t *len) {
    slice bytes = moduleStringSlice(s);
    *len = bytes.len;
    return (void *)bytes.ptr;
}

int apiDictSet(ValkeyModuleDict *d, ValkeyModuleString *key, void *ptr) {
    size_t len;
    void *bytes = bytesOf(key, &len);
    return apiDictSetC(d, bytes, len, ptr);
}

int apiDictReplace(ValkeyModuleDict *d, ValkeyModuleString *key, void *ptr) {
    size_t len;
    void *bytes = bytesOf(key, &len);
    return apiDictReplaceC(d, bytes, len, ptr);
}

void *apiDictGet(ValkeyModuleDict *d, ValkeyModuleString *key, int *nokey) {
    size_t len;
    void *bytes = bytesOf(key, &len);
    return apiDictGetC(d, bytes, len, nokey);
}

int apiDictDel(ValkeyModuleDict *d, ValkeyModuleString *key, void *oldval) {
    size_t len;
    void *bytes = bytesOf(key, &len);
    return apiDictDelC(d, bytes, len, oldval);
}

/* ------------------------------------------------------------------ iterators */

/* The words that place an iterator, or compare a key. */
typedef enum dictSeek {
    SEEK_FIRST,
    SEEK_LAST,
    SEEK_GT,
    SEEK_GE,
    SEEK_LT,
    SEEK_LE,
    SEEK_EQ,
    SEEK_BAD
} dictSeek;

static dictSeek seekOf(const char *op) {
    static const struct {
        const char *word;
        dictSeek seek;
    } words[] = {{"^", SEEK_FIRST}, {"$", SEEK_LAST}, {">", SEEK_GT}, {">=", SEEK_GE},
                 {"<", SEEK_LT},    {"<=", SEEK_LE},  {"==", SEEK_EQ}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (!strcmp(op, words[i].word)) return words[i].seek;
    }
    return SEEK_BAD;
}

/* The entry that a seek means, or NULL. */
static dictEntry *seekEntry(const ValkeyModuleDict *d, dictSeek seek, slice key,
                            orderedCursor *cursor) {
    uint64_t before;
    switch (seek) {
    case SEEK_FIRST: return entryAt(d, 0, cursor);
    case SEEK_LAST: return d->entries.count ? entryAt(d, d->entries.count - 1, cursor) : NULL;
    case SEEK_GT: return entryAt(d, countBefore(d, key, true), cursor);
    case SEEK_GE: return entryAt(d, countBefore(d, key, false), cursor);
    case SEEK_LT:
        before = countBefore(d, key, false);
        return before ? entryAt(d, before - 1, cursor) : NULL;
    case SEEK_LE:
        before = countBefore(d, key, true);
        return before ? entryAt(d, before - 1, cursor) : NULL;
    case SEEK_EQ: {
        dictEntry *e = entryAt(d, countBefore(d, key, false), cursor);
        return e && sliceEqual(textOf(e), key) ? e : NULL;
    }
    case SEEK_BAD: break;
    }
    return NULL;
}

/* Places it so that the next step, in either direction, returns the entry. */
static void place(ValkeyModuleDictIter *di, dictSeek seek, slice key) {
    hotCheck(di->dict);
    di->at = seekEntry(di->dict, seek, key, &di->cursor);
    di->changes = di->dict->changes;
    di->at_start = true;
    di->has_last = di->at != NULL;
    strClear(&di->last);
    if (di->at) strAppendSlice(&di->last, textOf(di->at));
}

ValkeyModuleDictIter *apiDictIteratorStartC(ValkeyModuleDict *d, const char *op, void *key,
                                            size_t keylen) {
    ValkeyModuleDictIter *di = memNew(ValkeyModuleDictIter);
    di->dict = d;
    place(di, seekOf(op), keyOf(key, keylen));
    return di;
}

ValkeyModuleDictIter *apiDictIteratorStart(ValkeyModuleDict *d, const char *op,
                                           ValkeyModuleString *key) {
    size_t len;
    void *bytes = bytesOf(key, &len);
    return apiDictIteratorStartC(d, op, bytes, len);
}

void apiDictIteratorStop(ValkeyModuleDictIter *di) {
    if (!di) return;
    strFree(&di->last);
    memFree(di);
}

/* 1, not VALKEYMODULE_OK, for success: so it is in Valkey. */
int apiDictIteratorReseekC(ValkeyModuleDictIter *di, const char *op, void *key, size_t keylen) {
    dictSeek seek = seekOf(op);
    place(di, seek, keyOf(key, keylen));
    return seek != SEEK_BAD;
}

int apiDictIteratorReseek(ValkeyModuleDictIter *di, const char *op, ValkeyModuleString *key) {
    size_t len;
    void *bytes = bytesOf(key, &len);
    return apiDictIteratorReseekC(di, op, bytes, len);
}

/* The entry after or before the one that was returned last. */
static const dictEntry *step(ValkeyModuleDictIter *di, bool forward) {
    if (!di->has_last) return NULL;
    bool same = di->changes == di->dict->changes;
    hotCheck(di->changes <= di->dict->changes);
    slice last = strSlice(&di->last);
    const dictEntry *e;
    if (di->at_start) {
        e = same ? di->at : seekEntry(di->dict, forward ? SEEK_GE : SEEK_LE, last, &di->cursor);
    } else if (same) {
        e = forward ? orderedNext(&di->cursor) : orderedPrev(&di->cursor);
    } else {
        e = seekEntry(di->dict, forward ? SEEK_GT : SEEK_LT, last, &di->cursor);
    }
    di->changes = di->dict->changes;
    di->at_start = false;
    di->has_last = e != NULL;
    if (!e) return NULL;
    strClear(&di->last);
    strAppendSlice(&di->last, textOf(e));
    return e;
}

static void *stepKey(ValkeyModuleDictIter *di, bool forward, size_t *keylen, void **dataptr) {
    const dictEntry *e = step(di, forward);
    if (!e) return NULL;
    if (keylen) *keylen = e->len;
    if (dataptr) *dataptr = e->value;
    return (void *)strText(&di->last);
}

void *apiDictNextC(ValkeyModuleDictIter *di, size_t *keylen, void **dataptr) {
    return stepKey(di, true, keylen, dataptr);
}

void *apiDictPrevC(ValkeyModuleDictIter *di, size_t *keylen, void **dataptr) {
    return stepKey(di, false, keylen, dataptr);
}

ValkeyModuleString *apiDictNext(ValkeyModuleCtx *ctx, ValkeyModuleDictIter *di, void **dataptr) {
    size_t len;
    const char *key = stepKey(di, true, &len, dataptr);
    return key ? apiCreateString(ctx, key, len) : NULL;
}

ValkeyModuleString *apiDictPrev(ValkeyModuleCtx *ctx, ValkeyModuleDictIter *di, void **dataptr) {
    size_t len;
    const char *key = stepKey(di, false, &len, dataptr);
    return key ? apiCreateString(ctx, key, len) : NULL;
}

int apiDictCompareC(ValkeyModuleDictIter *di, const char *op, void *key, size_t keylen) {
    if (!di->has_last) return VALKEYMODULE_ERR;
    int order = orderedCompareText(strSlice(&di->last), keyOf(key, keylen));
    bool holds = false;
    switch (seekOf(op)) {
    case SEEK_GT: holds = order > 0; break;
    case SEEK_GE: holds = order >= 0; break;
    case SEEK_LT: holds = order < 0; break;
    case SEEK_LE: holds = order <= 0; break;
    case SEEK_EQ: holds = order == 0; break;
    default: break;
    }
    return holds ? VALKEYMODULE_OK : VALKEYMODULE_ERR;
}

int apiDictCompare(ValkeyModuleDictIter *di, const char *op, ValkeyModuleString *key) {
    size_t len;
    void *bytes = bytesOf(key, &len);
    return apiDictCompareC(di, op, bytes, len);
}
