/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Path hashes (type_pathhash.h): a radix tree whose leaves are the fields of a path. Nodes and
 * leaves are allocated in the element slabs.
 *
 * Invariant: `fields` and `leaf_bytes` are the sums over all leaves; a leaf that is a table is
 * counted in `tables`. Main thread only, except freeing. */
#include "store/type_pathhash.h"

#include "base/base.h"
#include "store/element.h"
#include "store/saving_value.h"
#include "store/type.h"

/* Where a compaction in steps goes on. */
typedef struct compactPlace {
    str path;
    uint64_t inner; /* cursor in the table of this path, if not 0 */
} compactPlace;

struct pathHash {
    radixTree tree;
    uint64_t fields;
    size_t leaf_bytes; /* memory of the leaves, without tables */
    size_t tables, largest;
    compactPlace *compact; /* NULL: it is not being compacted */
};

static uint64_t maps; /* in the process; background threads free some */

bool pathHashesExist(void) { return __atomic_load_n(&maps, __ATOMIC_RELAXED) > 0; }

/* ------------------------------------------------------------------ leaves and nodes */

static pathHash *mapOf(radixTree *t) { return CONTAINER_OF(t, pathHash, tree); }

static slice restOf(const void *leaf) { return pathFieldsRest(leaf); }

static void *setRest(radixTree *t, void *leaf, slice rest) {
    pathHash *p = mapOf(t);
    p->leaf_bytes -= pathFieldsBlockBytes(leaf);
    pathFields *moved = pathFieldsMove(leaf, rest);
    p->leaf_bytes += pathFieldsBlockBytes(moved);
    return moved;
}

static void *allocNode(size_t size) { return elementAlloc(size); }

static void freeNode(void *node, void *by) {
    if (!by || !elementGoesWithStore(node, by)) elementFree(node, by);
}

static const radixType paths_type = {.rest = restOf,
                                     .set_rest = setRest,
                                     .alloc = allocNode,
                                     .free = freeNode,
                                     .taken = slabClassSize};

/* ------------------------------------------------------------------ lookups */

static pathHash *newMap(void) {
    __atomic_fetch_add(&maps, 1, __ATOMIC_RELAXED);
    return memNew(pathHash);
}

robj *pathHashObjectNew(slice key) {
    return objectNewPointer(key, TYPE_PATHHASH, newMap(), OBJECT_NO_EXPIRE, 0);
}

uint64_t pathHashCount(const pathHash *p) { return p->tree.count; }
uint64_t pathHashFields(const pathHash *p) { return p->fields; }
size_t pathHashLargest(const pathHash *p) { return p->largest; }

const pathFields *pathHashFind(const pathHash *p, slice path) {
    return radixFind(&p->tree, &paths_type, path, NULL);
}

const pathFields *pathHashLongest(const pathHash *p, slice text, size_t *len) {
    return radixLongest(&p->tree, &paths_type, text, len);
}

void pathHashPrefixes(const pathHash *p, slice text, radixVisitProc *visit, void *arg) {
    radixPrefixes(&p->tree, &paths_type, text, visit, arg);
}

void pathHashCursorInit(pathHashCursor *c, const pathHash *p) {
    radixCursorInit(&c->walk, &p->tree, &paths_type);
}

void pathHashCursorSeek(pathHashCursor *c, slice from, bool after) {
    radixCursorSeek(&c->walk, from, after);
}

bool pathHashNext(pathHashCursor *c, slice *path, const pathFields **fields) {
    void *leaf;
    bool more = radixCursorNext(&c->walk, path, &leaf);
    if (more) *fields = leaf;
    return more;
}

void pathHashCursorClear(pathHashCursor *c) { radixCursorClear(&c->walk); }

/* ------------------------------------------------------------------ changes */

/* Before and after a leaf is changed, added (`to` alone is called) or removed (`from` alone). */
static void countFrom(pathHash *p, const pathFields *f) {
    check(p->fields >= pathFieldsCount(f));
    p->fields -= pathFieldsCount(f);
    p->leaf_bytes -= pathFieldsBlockBytes(f);
    p->tables -= pathFieldsAreTable(f);
}

static void countTo(pathHash *p, const pathFields *f) {
    size_t count = pathFieldsCount(f);
    hotCheck(count > 0);
    p->fields += count;
    p->leaf_bytes += pathFieldsBlockBytes(f);
    p->tables += pathFieldsAreTable(f);
    if (pathFieldsAreTable(f)) p->largest = sizeMax(p->largest, count);
}

static pathFields *setWords(pathFields *f, const slice *words, size_t count,
                            const packLimits *limits) {
    hotCheck(count % 2 == 0);
    for (size_t i = 0; i < count; i += 2) {
        bool created;
        f = pathFieldsSet(f, words[i], words[i + 1], limits, &created);
    }
    return f;
}

void pathHashSet(pathHash *p, slice path, const slice *words, size_t count,
                 const packLimits *limits) {
    hotCheck(count >= 2);
    radixPlace at;
    pathFields *f = radixFind(&p->tree, &paths_type, path, &at);
    if (f) {
        beforePath(p, path, f);
        countFrom(p, f);
    } else {
        slice rest;
        at = radixAdd(&p->tree, &paths_type, path, &rest);
        f = pathFieldsNew(rest);
        pathAdded(p, path);
    }
    f = setWords(f, words, count, limits);
    countTo(p, f);
    radixPut(at, f);
}

bool pathHashDelete(pathHash *p, slice path) {
    if (unlikely(storeNow.saving_values)) {
        const pathFields *present = pathHashFind(p, path);
        if (present) beforePath(p, path, present);
    }
    pathFields *f = radixRemove(&p->tree, &paths_type, path);
    if (!f) return false;
    countFrom(p, f);
    pathFieldsFree(f, NULL);
    return true;
}

uint64_t pathHashDeleteFields(pathHash *p, slice path, const slice *fields, size_t count) {
    hotCheck(count > 0);
    radixPlace at;
    pathFields *f = radixFind(&p->tree, &paths_type, path, &at);
    if (!f) return 0;
    beforePath(p, path, f);
    countFrom(p, f);
    uint64_t deleted = 0;
    size_t left = pathFieldsCount(f);
    for (size_t i = 0; i < count && left > 0; i++) {
        bool found = pathFieldsDelete(&f, fields[i]);
        deleted += found;
        left -= found;
    }
    radixPut(at, f);
    if (left) {
        countTo(p, f);
        return deleted;
    }
    check(radixRemove(&p->tree, &paths_type, path) == f);
    pathFieldsFree(f, NULL);
    return deleted;
}

/* Finds the next paths with a prefix, up to `max`; returns their number. */
static size_t findWithPrefix(const pathHash *p, slice prefix, str *paths, size_t max) {
    pathHashCursor c;
    slice path;
    const pathFields *f;
    size_t found = 0;
    pathHashCursorInit(&c, p);
    pathHashCursorSeek(&c, prefix, false);
    while (found < max && pathHashNext(&c, &path, &f) && sliceHasPrefix(path, prefix)) {
        strAppend(paths, &path.len, sizeof(path.len));
        strAppendSlice(paths, path);
        found++;
    }
    pathHashCursorClear(&c);
    return found;
}

uint64_t pathHashDeletePrefix(pathHash *p, slice prefix) {
    enum { AT_ONCE = 256 };
    uint64_t deleted = 0;
    str paths = STR_EMPTY;
    for (size_t found = AT_ONCE; found == AT_ONCE; deleted += found) {
        strClear(&paths);
        found = findWithPrefix(p, prefix, &paths, AT_ONCE);
        for (size_t at = 0; at < paths.len;) {
            size_t len;
            memcpy(&len, paths.ptr + at, sizeof(len));
            at += sizeof(len);
            check(pathHashDelete(p, sliceMake(paths.ptr + at, len)));
            at += len;
        }
    }
    strFree(&paths);
    return deleted;
}

const char *pathHashVerify(const pathHash *p) {
    pathHash sums = {.fields = 0};
    pathHashCursor c;
    slice path;
    const pathFields *f;
    const char *wrong = radixVerify(&p->tree, &paths_type);
    pathHashCursorInit(&c, p);
    while (!wrong && pathHashNext(&c, &path, &f)) {
        if (pathFieldsCount(f) == 0) wrong = "a path without fields";
        if (pathHashFind(p, path) != f) wrong = "a path that is not found";
        if (!wrong) countTo(&sums, f);
    }
    pathHashCursorClear(&c);
    if (!wrong && sums.fields != p->fields) wrong = "the number of fields";
    if (!wrong && sums.leaf_bytes != p->leaf_bytes) wrong = "the memory of leaves";
    if (!wrong && sums.tables != p->tables) wrong = "the number of tables";
    return wrong;
}

/* ------------------------------------------------------------------ operations of the type */

static const char *encodingOf(const robj *o) {
    hotCheck(objectType(o) == TYPE_PATHHASH);
    (void)o; /* there is only one */
    return "pathhash";
}

static size_t lengthOf(const robj *o) { return pathHashCount(pathHashOf(o)); }

static void digestFields(const pathFields *f, digest *to) {
    pathFieldsIterator it;
    hashPair pair;
    pathFieldsIteratorInit(&it, f);
    while (pathFieldsNext(&it, &pair)) {
        digest own = {{0}};
        digestMix(&own, pair.field);
        digestMix(&own, pair.value);
        digestAddDigest(to, &own);
    }
    pathFieldsIteratorClear(&it);
}

static void digestPaths(const robj *o, int db_id, storeLook look, digest *to) {
    (void)db_id, (void)look; /* the same everywhere; fields have no expiry times */
    pathHashCursor c;
    slice path;
    const pathFields *f;
    pathHashCursorInit(&c, pathHashOf(o));
    while (pathHashNext(&c, &path, &f)) {
        digest own = {{0}}, fields = {{0}};
        digestFields(f, &fields);
        digestMix(&own, path);
        digestMix(&own, sliceMake(fields.byte, sizeof(fields.byte)));
        digestAddDigest(to, &own);
    }
    pathHashCursorClear(&c);
}

static void endCompaction(pathHash *p) {
    if (!p->compact) return;
    strFree(&p->compact->path);
    memFree(p->compact);
    p->compact = NULL;
}

static void freeLeaf(void *leaf, void *by) { pathFieldsFree(leaf, by); }

static void freeMap(void *value, valueFreer *by) {
    pathHash *p = value;
    endCompaction(p);
    radixFree(&p->tree, &paths_type, freeLeaf, by);
    check(__atomic_fetch_sub(&maps, 1, __ATOMIC_RELAXED) > 0);
    memFree(p);
}

static void *copyMap(const valuePlace *from, const valuePlace *to, void *value) {
    (void)from, (void)to; /* not needed */
    pathHash *copy = newMap();
    pathHashCursor c;
    slice path, rest;
    const pathFields *f;
    pathHashCursorInit(&c, value);
    while (pathHashNext(&c, &path, &f)) {
        radixPlace at = radixAdd(&copy->tree, &paths_type, path, &rest);
        pathFields *own = pathFieldsCopy(f, rest);
        countTo(copy, own);
        radixPut(at, own);
    }
    pathHashCursorClear(&c);
    return copy;
}

static size_t freeEffort(const valuePlace *at, const void *value) {
    (void)at; /* not needed */
    return ((const pathHash *)value)->fields;
}

/* Memory of the tables: of all, or scaled up from up to `samples` of them, for which not many paths
 * are visited. */
static size_t tablesMemory(const pathHash *p, size_t samples) {
    enum { VISITED = 64 /* paths for a table */, TABLE_BYTES = 1024 /* if none is found */ };
    size_t bytes = 0, seen = 0, visited = 0;
    pathHashCursor c;
    slice path;
    const pathFields *f;
    pathHashCursorInit(&c, p);
    while (seen < p->tables && pathHashNext(&c, &path, &f)) {
        if (samples && (seen == samples || visited++ == samples * VISITED)) break;
        if (!pathFieldsAreTable(f)) continue;
        bytes += pathFieldsTableBytes(f, samples);
        seen++;
    }
    pathHashCursorClear(&c);
    if (seen == p->tables) return bytes;
    return seen ? (size_t)((double)bytes / (double)seen * (double)p->tables)
                : p->tables * TABLE_BYTES;
}

static size_t memoryOf(const valuePlace *at, const void *value, size_t samples) {
    (void)at; /* not needed */
    const pathHash *p = value;
    size_t bytes = memSizeOf(p) + p->tree.node_bytes + p->leaf_bytes;
    return p->tables ? bytes + tablesMemory(p, samples) : bytes;
}

static void *moveNode(void *node, void *arg) {
    hotCheck(node != NULL);
    return slabOwns(slabElements(), node) ? elementMove(node, arg) : elementMoveBlock(node, arg);
}

/* Moves leaves from the place on; false at the end. */
static bool compactSome(pathHash *p, compactPlace *place, bool first, compaction *by) {
    radixCursor c;
    slice path;
    void *leaf;
    bool more = true;
    radixCursorInitMoving(&c, &p->tree, &paths_type, moveNode, by);
    if (!first) radixCursorSeek(&c, strSlice(&place->path), place->inner == 0);
    do {
        elementSeen(by);
        more = radixCursorNext(&c, &path, &leaf);
        if (!more) break;
        if (place->inner && !sliceEqual(path, strSlice(&place->path))) place->inner = 0;
        pathFields *f = pathFieldsCompact(leaf, &place->inner, by);
        radixPut(radixCursorPlace(&c), f);
        strClear(&place->path);
        strAppendSlice(&place->path, path);
    } while (by->fields && !place->inner);
    radixCursorClear(&c);
    return more;
}

static uint64_t compactMap(void **value, uint64_t cursor, compaction *by) {
    void *moved = cursor == 0 ? elementMoveBlock(*value, by) : NULL;
    if (moved) *value = moved;
    pathHash *p = *value;
    bool first = cursor == 0 || !p->compact;
    if (cursor == 0) endCompaction(p);
    if (!p->compact) p->compact = memNew(compactPlace);
    if (compactSome(p, p->compact, first, by)) return 1;
    endCompaction(p);
    return 0;
}

const typeOps pathHashOps = {
    .encoding = encodingOf,
    .length = lengthOf,
    .digest = digestPaths,
    .free_value = freeMap,
    .copy_value = copyMap,
    .free_effort = freeEffort,
    .value_memory = memoryOf,
    .compact_value = compactMap,
    .has_elements = true,
};
