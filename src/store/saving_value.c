/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Large values in parts (saving_value.h).
 *
 * Invariants: a value of `by_value` is the present address of an open value, or of one that is
 * kept; an element of the start is passed on once: from `waiting`, or directly, if it was touched,
 * else by the walk. `touched` has all elements that were changed, removed or added beyond the cut;
 * after the cut has passed them they are of no use. A touched element costs some 100 ns and its
 * name, its value too until the value's turn comes. Nodes of lists and streams are passed on in
 * order; those that change before are copied. */
#include "store/saving_value.h"

#include <string.h>

#include "base/base.h"
#include "base/hash.h"
#include "ds/hashtable_walk.h"
#include "ds/list.h"
#include "ds/quicklist.h"
#include "ds/stream.h"
#include "store/compressed.h"
#include "store/member_priv.h"
#include "store/type_pathhash.h"

enum {
    SLICE_BYTES = 64 * 1024, /* aimed at, if elements are large */
    SAMPLES = 5,             /* elements from which their size is estimated */
    BUCKET_ELEMENTS = 7,
    REST_ITEMS = 64,        /* of a stream, in a slice after its nodes */
    TOUCHED_LATER_MIN = 64, /* freed in the background from this number on */
};

/* An element that was changed, removed or added beyond the cut. */
typedef struct touchedElement {
    struct touchedElement *next; /* waiting to be passed on, as it was at the start */
    uint64_t hash;
    size_t name_len, value_len;
    int64_t time_ms;
    double score;
    pathFields *fields; /* of a path: a copy */
    char bytes[];       /* name, value */
} touchedElement;

typedef struct openValue {
    listNode node; /* in `waiting` or `kept` */
    robj *head;    /* a copy of the object, without its value */
    const typeOps *ops;
    void *value; /* NULL: it has no elements any more */
    int db_id;
    bool is_kept, has_begun;
    hashtableCut cut;
    uint64_t count, passed_on; /* elements of the start */
    bool is_timed;
    uint64_t slice_max; /* elements */
    size_t kept_bytes;
    quicklistFrozen *frozen; /* of a list, or ... */
    streamFrozen *stream;    /* of a stream, in place of what follows */
    bool is_paths;           /* a path hash: */
    bool has_cut, is_walked; /* up to `path_cut`; to the end */
    str path_cut;
    hashtable touched;
    touchedElement *first, **last; /* waiting */
    size_t bytes;
} openValue;

static struct {
    const storeSaver *to;
    list waiting, kept;
    openValue *now; /* being passed on; in neither list */
    hashtable by_value;
    size_t bytes, kept_bytes;
    uint64_t count, added;
} values;

/* ------------------------------------------------------------------ tables */

static uint64_t hashOfOpen(const void *entry) {
    return hashAddress(((const openValue *)entry)->value);
}

static bool openHasValue(const void *entry, const void *value, size_t len) {
    (void)len; /* an address */
    return ((const openValue *)entry)->value == value;
}

static const hashtableType open_type = {.hash_of = hashOfOpen, .match = openHasValue};

static uint64_t hashOfTouched(const void *entry) { return ((const touchedElement *)entry)->hash; }

static bool touchedHasName(const void *entry, const void *name, size_t len) {
    const touchedElement *t = entry;
    return t->name_len == len && memcmp(t->bytes, name, len) == 0;
}

static const hashtableType touched_type = {.hash_of = hashOfTouched, .match = touchedHasName};

static openValue *findOpen(const void *value) {
    if (!value) return NULL;
    return hashtableFind(&values.by_value, &open_type, hashAddress(value), value, 0);
}

/* ------------------------------------------------------------------ beginning */

void savingValuesBegin(const storeSaver *to) {
    check(!values.now);
    check(hashtableCount(&values.by_value) == 0);
    values.to = to;
    values.added = 0;
    listInit(&values.waiting);
    listInit(&values.kept);
}

static hashtable tableOf(const openValue *v) { return v->ops->elements->table_of(v->value); }

/* The expiry times of its elements, if they are not in them; NULL: they are, or there are none. */
static const memberTimes *timesOf(const openValue *v) {
    return v->ops->elements->times_of ? v->ops->elements->times_of(v->value) : NULL;
}

static void readElement(const openValue *v, const void *entry, valueElement *e) {
    e->fields = NULL;
    v->ops->elements->read(entry, e);
    if (v->ops->elements->times_of) e->time_ms = memberTimesGet(timesOf(v), e->name);
}

static uint64_t elementsOfSlice(const openValue *v) {
    size_t bytes = v->ops->value_memory(NULL, v->value, SAMPLES) / (v->count + 1) + 1;
    return sizeMax(1, SLICE_BYTES / bytes);
}

static void openTable(openValue *v) {
    hashtable t = tableOf(v);
    v->count = hashtableCount(&t);
    v->is_timed = hashtableVolatileCount(&t) > 0 || timesOf(v);
    v->last = &v->first;
    hashtableCutBegin(&v->cut, &t);
}

void savingValueOpen(int db_id, const robj *o) {
    hotCheck(db_id < storeDbCount());
    openValue *v = memNew(openValue);
    membersShowAll(storeDb(db_id), (robj *)(uintptr_t)o);
    v->ops = typeOf(o);
    v->value = objectPointer(o);
    v->db_id = db_id;
    v->head = (robj *)memDup(o, objectSize(o));
    objectSetPointer(v->head, NULL);
    switch (objectType(o)) {
    case TYPE_LIST:
        v->frozen = quicklistFreeze(v->value);
        v->count = quicklistFrozenNodes(v->frozen);
        break;
    case TYPE_STREAM:
        v->stream = streamFreeze(v->value);
        v->count = streamFrozenNodes(v->stream);
        break;
    case TYPE_PATHHASH:
        v->is_paths = true;
        v->count = pathHashCount(v->value);
        v->last = &v->first;
        break;
    default: openTable(v);
    }
    values.count++;
    v->slice_max = elementsOfSlice(v);
    check(!findOpen(v->value));
    if (v->value) hashtableInsert(&values.by_value, &open_type, hashOfOpen(v), v, 0);
    listAppend(&values.waiting, &v->node);
    storeNow.saving_values = true;
}

/* ------------------------------------------------------------------ end */

static void forgetAddress(openValue *v) {
    if (v->value) check(hashtableDeleteEntry(&values.by_value, &open_type, hashOfOpen(v), v));
}

static void freeEntry(void *context, void *entry, unsigned flags) {
    (void)context, (void)flags; /* all entries */
    memFree(entry);
}

/* Any thread. */
static void freeTouchedTable(void *arg) {
    hashtable *table = arg;
    hashtableFree(table, freeEntry, NULL);
    memFree(table);
}

static void freeTouched(openValue *v) {
    if (hashtableCount(&v->touched) < TOUCHED_LATER_MIN || !storeNow.free_later) {
        hashtableFree(&v->touched, freeEntry, NULL);
        return;
    }
    hashtable *table = memAlloc(sizeof(*table));
    *table = v->touched;
    storeNow.free_later(freeTouchedTable, table);
}

/* Frees the copy of a path's fields, which is in the elements of the main keyspace. */
static void freeFields(touchedElement *t) {
    if (!t->fields) return;
    keyspace *before = keyspaceUse(&storeNow.main);
    pathFieldsFree(t->fields, NULL);
    (void)keyspaceUse(before); /* it was the main one */
    t->fields = NULL;
}

/* It is in no list. */
static void freeOpen(openValue *v) {
    forgetAddress(v);
    quicklistThaw(v->frozen);
    streamThaw(v->stream, v->value);
    values.count--;
    values.kept_bytes -= v->kept_bytes;
    for (touchedElement *t = v->first; t; t = t->next) freeFields(t);
    strFree(&v->path_cut);
    if (v->is_kept && v->value) freeKeptValue(v->ops, v->value);
    values.bytes -= v->bytes;
    freeTouched(v);
    memFree(v->head);
    memFree(v);
    if (hashtableCount(&values.by_value) == 0) hashtableFree(&values.by_value, NULL, NULL);
}

static openValue *takeFirst(list *l) {
    listNode *n = listFirst(l);
    if (!n) return NULL;
    listRemove(l, n);
    return LIST_OWNER(n, openValue, node);
}

void savingValuesDrop(void) {
    storeNow.saving_values = false;
    if (!values.to) return; /* never begun */
    if (values.now) freeOpen(values.now);
    values.now = NULL;
    for (openValue *v; (v = takeFirst(&values.kept));) freeOpen(v);
    for (openValue *v; (v = takeFirst(&values.waiting));) freeOpen(v);
}

uint64_t savingValuesOpen(void) { return values.count; }
size_t savingValuesKeptBytes(void) { return values.kept_bytes; }
size_t savingValuesBytes(void) {
    return values.bytes + streamFrozenBytes() + quicklistFrozenBytes();
}
uint64_t savingValuesAdded(void) { return values.added; }

/* ------------------------------------------------------------------ passing on */

static void passOn(openValue *v, const valueElement *e) {
    values.to->element(values.to->arg, e);
    v->passed_on++;
}

static bool isTouched(const openValue *v, uint64_t hash, slice name) {
    return v->touched.body && hashtableFind(&v->touched, &touched_type, hash, name.ptr, name.len);
}

static bool visitElement(void *context, void *entry, unsigned flags) {
    (void)flags; /* in the entry, if they belong to it */
    openValue *v = context;
    valueElement e;
    compressedMark mark = compressedSetMark(); /* its value may be compressed */
    readElement(v, entry, &e);
    bool passed = v->touched.body && isTouched(v, v->ops->elements->type->hash_of(entry), e.name);
    if (!passed) passOn(v, &e);
    compressedFreeSince(mark);
    return true;
}

static void passOnWaiting(openValue *v, uint64_t count) {
    for (; v->first && count > 0; count--) {
        touchedElement *t = v->first;
        v->first = t->next;
        if (!v->first) v->last = &v->first;
        valueElement e = {.name = sliceMake(t->bytes, t->name_len),
                          .value = sliceMake(t->bytes + t->name_len, t->value_len),
                          .time_ms = t->time_ms,
                          .score = t->score,
                          .fields = t->fields};
        passOn(v, &e);
        freeFields(t);
    }
}

static bool passOnNodes(openValue *v, uint64_t count) {
    quicklistNodeView node;
    for (; count > 0; count--) {
        if (!quicklistFrozenNext(v->frozen, &node)) return false;
        values.to->node(values.to->arg, &node);
        v->passed_on++;
    }
    return true;
}

static bool passOnStream(openValue *v, uint64_t count) {
    streamId key;
    const streamNode *node;
    for (; count > 0; count--) {
        if (!streamFrozenNext(v->stream, v->value, &key, &node))
            return values.to->stream_rest(values.to->arg, streamFrozenRest(v->stream), REST_ITEMS);
        values.to->stream_node(values.to->arg, key, node);
        v->passed_on++;
    }
    return true;
}

static bool passOnPaths(openValue *v, uint64_t count) {
    pathHashCursor c;
    slice path;
    const pathFields *fields;
    pathHashCursorInit(&c, v->value);
    if (v->has_cut) pathHashCursorSeek(&c, strSlice(&v->path_cut), true);
    for (; count > 0 && !v->is_walked; count--) {
        v->is_walked = !pathHashNext(&c, &path, &fields);
        if (v->is_walked) break;
        v->has_cut = true;
        strClear(&v->path_cut);
        strAppendSlice(&v->path_cut, path);
        if (isTouched(v, hashBytes(path.ptr, path.len), path)) continue;
        passOn(v, &(valueElement){.name = path, .fields = fields});
    }
    pathHashCursorClear(&c);
    return !v->is_walked;
}

/* One slice; false at the end. */
static bool passOnSome(openValue *v, uint64_t buckets) {
    uint64_t elements = sizeMin(buckets * BUCKET_ELEMENTS, v->slice_max);
    if (v->frozen) return passOnNodes(v, elements);
    if (v->stream) return passOnStream(v, elements);
    if (v->first) {
        passOnWaiting(v, elements);
        return true;
    }
    if (v->is_paths) return passOnPaths(v, elements);
    hashtable t = tableOf(v);
    buckets = sizeMax(elements / BUCKET_ELEMENTS, 1);
    return hashtableWalk(&t, v->ops->elements->type, &v->cut, buckets, visitElement, v);
}

static void beginNext(void) {
    openValue *v = takeFirst(&values.kept);
    if (!v) v = takeFirst(&values.waiting);
    values.now = v;
    if (!v) return;
    v->has_begun = true;
    savedValue head = {
        .db_id = v->db_id, .head = v->head, .count = v->count, .is_timed = v->is_timed};
    if (v->stream) head.rest = streamFrozenRest(v->stream);
    values.to->begin(values.to->arg, &head);
}

static void endNow(void) {
    openValue *v = values.now;
    check(v->passed_on == v->count);
    values.now = NULL;
    values.to->end(values.to->arg);
    freeOpen(v);
}

bool savingValuesStep(uint64_t buckets) {
    if (!storeNow.saving_values) return false;
    if (!values.now) beginNext();
    openValue *v = values.now;
    if (!v) {
        storeNow.saving_values = false;
        return false;
    }
    if (!passOnSome(v, buckets)) endNow();
    return true;
}

/* ------------------------------------------------------------------ changes */

/* Records an element beyond the cut; false if it was recorded before. `e` is as at the start; NULL:
 * it was not there. */
static bool touch(openValue *v, uint64_t hash, slice name, const valueElement *e) {
    hashtablePosition at;
    if (hashtableFindPosition(&v->touched, &touched_type, hash, name.ptr, name.len, &at))
        return false;
    bool waits = e && !v->has_begun;
    size_t value_len = waits ? e->value.len : 0;
    size_t size = sizeof(touchedElement) + name.len + value_len;
    touchedElement *t = memAlloc(size);
    *t = (touchedElement){.hash = hash, .name_len = name.len, .value_len = value_len};
    memcpy(t->bytes, name.ptr, name.len);
    if (waits) {
        if (value_len) memcpy(t->bytes + name.len, e->value.ptr, value_len);
        t->time_ms = e->time_ms;
        t->score = e->score;
        if (e->fields) {
            t->fields = pathFieldsCopy(e->fields, SLICE(""));
            size += pathFieldsBlockBytes(t->fields);
        }
        *v->last = t;
        v->last = &t->next;
    }
    hashtableInsertAt(&v->touched, &touched_type, &at, t, 0);
    v->bytes += size;
    values.bytes += size;
    return true;
}

/* Reads an element that its open value has not written yet; NULL if there is none such. */
static openValue *findUnwritten(const void *value, const void *element, uint64_t *hash,
                                valueElement *e) {
    openValue *v = findOpen(value);
    if (!v) return NULL;
    *hash = v->ops->elements->type->hash_of(element);
    if (hashtableCutPassed(&v->cut, *hash)) return NULL;
    readElement(v, element, e);
    return v;
}

void savingElementBefore(const void *value, const void *element) {
    uint64_t hash;
    valueElement e;
    compressedMark mark = compressedSetMark();
    openValue *v = findUnwritten(value, element, &hash, &e);
    if (v && touch(v, hash, e.name, &e) && v->has_begun) passOn(v, &e);
    compressedFreeSince(mark);
}

void savingElementAdded(const void *value, const void *element) {
    uint64_t hash;
    valueElement e;
    compressedMark mark = compressedSetMark();
    openValue *v = findUnwritten(value, element, &hash, &e);
    if (v && touch(v, hash, e.name, NULL)) values.added++;
    compressedFreeSince(mark);
}

/* The open value of a path that it has not written yet; NULL if there is none such. */
static openValue *findUnwrittenPath(const void *value, slice path) {
    openValue *v = findOpen(value);
    if (!v || v->is_walked) return NULL;
    hotCheck(v->is_paths);
    bool passed = v->has_cut && sliceCompare(path, strSlice(&v->path_cut)) <= 0;
    return passed ? NULL : v;
}

void savingPathBefore(const void *value, slice path, const struct pathFields *fields) {
    openValue *v = findUnwrittenPath(value, path);
    valueElement e = {.name = path, .fields = fields};
    if (v && touch(v, hashBytes(path.ptr, path.len), path, &e) && v->has_begun) passOn(v, &e);
}

void savingPathAdded(const void *value, slice path) {
    openValue *v = findUnwrittenPath(value, path);
    if (v && touch(v, hashBytes(path.ptr, path.len), path, NULL)) values.added++;
}

void savingValueMoved(const void *from, void *to) {
    openValue *v = findOpen(from);
    if (!v) return;
    forgetAddress(v);
    v->value = to;
    if (to) hashtableInsert(&values.by_value, &open_type, hashOfOpen(v), v, 0);
}

bool savingValueIsOpen(const void *value) { return findOpen(value) != NULL; }

bool savingValueKeep(const void *value) {
    openValue *v = findOpen(value);
    if (!v) return false;
    v->is_kept = true;
    v->kept_bytes = v->ops->value_memory(NULL, value, SAMPLES);
    values.kept_bytes += v->kept_bytes;
    if (v != values.now) {
        listRemove(&values.waiting, &v->node);
        listAppend(&values.kept, &v->node);
    }
    return true;
}
