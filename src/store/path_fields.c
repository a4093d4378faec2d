/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fields of one path of a path hash (path_fields.h).
 *
 * Invariant: what follows the rest of the path is a whole listpack, or an object without key whose
 * value is the table of a hash; no function of the store frees or replaces that object. Main
 * thread, except pathFieldsFree(). */
#include "store/path_fields.h"

#include "base/base.h"
#include "ds/listpack.h"
#include "store/element.h"
#include "store/object.h"
#include "store/slab.h"

enum { WITH_TABLE = 255 };

/* ------------------------------------------------------------------ the block */

bool pathFieldsAreTable(const pathFields *f) { return *(const uint8_t *)f == WITH_TABLE; }

slice pathFieldsRest(const pathFields *f) {
    const char *at = (const char *)f + pathFieldsAreTable(f);
    size_t len = objectReadLength(&at);
    return sliceMake(at, len);
}

/* The address after the rest of the path: where the content begins. */
static char *contentOf(const pathFields *f) {
    slice rest = pathFieldsRest(f);
    return (char *)(uintptr_t)(rest.ptr + rest.len);
}

static uint8_t *listpackOf(const pathFields *f) {
    hotCheck(!pathFieldsAreTable(f));
    return (uint8_t *)contentOf(f);
}

static robj *tableOf(const pathFields *f) {
    hotCheck(pathFieldsAreTable(f));
    return (robj *)contentOf(f);
}

static size_t contentSize(const pathFields *f) {
    return pathFieldsAreTable(f) ? OBJECT_SHELL_SIZE : listpackSize(listpackOf(f));
}

static size_t headSize(slice rest, bool is_table) {
    return is_table + objectLengthBytes(rest.len) + rest.len;
}

static size_t sizeOf(const pathFields *f) {
    return headSize(pathFieldsRest(f), pathFieldsAreTable(f)) + contentSize(f);
}

/* A block with `room` bytes of content, which the caller writes to *content. */
static pathFields *allocate(slice rest, bool is_table, size_t room, char **content) {
    hotCheck(room > 0);
    char *block = elementAlloc(headSize(rest, is_table) + room);
    char *at = block;
    if (is_table) *(uint8_t *)at++ = WITH_TABLE;
    at = objectWriteLength(at, rest.len);
    bytesCopy(at, rest.ptr, rest.len);
    *content = at + rest.len;
    return (pathFields *)block;
}

pathFields *pathFieldsNew(slice rest) {
    char *content;
    pathFields *f = allocate(rest, false, LISTPACK_EMPTY_SIZE, &content);
    listpackInit((uint8_t *)content);
    return f;
}

/* The same content, with the references in it, in a new block. */
static pathFields *withRest(const pathFields *f, slice rest) {
    char *content;
    size_t size = contentSize(f);
    pathFields *copy = allocate(rest, pathFieldsAreTable(f), size, &content);
    memcpy(content, contentOf(f), size);
    return copy;
}

pathFields *pathFieldsMove(pathFields *f, slice rest) {
    hotCheck(f != NULL);
    pathFields *moved = withRest(f, rest);
    elementFree(f, NULL);
    return moved;
}

pathFields *pathFieldsCopy(const pathFields *f, slice rest) {
    pathFields *copy = withRest(f, rest);
    if (!pathFieldsAreTable(f)) return copy;
    void *value = hashOps.copy_value(NULL, NULL, objectPointer(tableOf(f)));
    objectSetPointer(tableOf(copy), value);
    return copy;
}

void pathFieldsFree(pathFields *f, valueFreer *by) {
    valueFreer here = {0};
    if (pathFieldsAreTable(f)) hashOps.free_value(objectPointer(tableOf(f)), by ? by : &here);
    if (!by || !elementGoesWithStore(f, by)) elementFree(f, by);
}

/* ------------------------------------------------------------------ reading */

size_t pathFieldsCount(const pathFields *f) {
    return pathFieldsAreTable(f) ? hashLength(tableOf(f)) : listpackCount(listpackOf(f)) / 2;
}

size_t pathFieldsBlockBytes(const pathFields *f) { return slabClassSize(sizeOf(f)); }

size_t pathFieldsTableBytes(const pathFields *f, size_t samples) {
    hotCheck(pathFieldsAreTable(f));
    return hashOps.value_memory(NULL, objectPointer(tableOf(f)), samples);
}

static const uint8_t *findField(const uint8_t *lp, slice field) {
    listpackItem item = listpackItemOf(field);
    return listpackFind(lp, NULL, &item, 1);
}

bool pathFieldsGet(const pathFields *f, slice field, char *digits, slice *value) {
    if (pathFieldsAreTable(f)) return hashGet(tableOf(f), field, lookAtAll(), digits, value);
    const uint8_t *lp = listpackOf(f), *at = findField(lp, field);
    if (at) *value = listpackGetText(listpackNext(lp, at), digits);
    return at != NULL;
}

void pathFieldsIteratorInit(pathFieldsIterator *it, const pathFields *f) {
    it->is_table = pathFieldsAreTable(f);
    it->at = NULL;
    if (it->is_table) {
        hashIteratorInit(&it->table, tableOf(f), lookAtAll());
    } else {
        it->at = listpackFirst(listpackOf(f));
    }
}

bool pathFieldsNext(pathFieldsIterator *it, hashPair *out) {
    if (it->is_table) return hashNext(&it->table, out);
    if (!it->at) return false;
    listpackItem field, value;
    const uint8_t *second = listpackRead(it->at, &field);
    check(second != NULL);
    it->at = listpackRead(second, &value);
    *out = (hashPair){listpackText(&field, it->digits[0]), listpackText(&value, it->digits[1])};
    return true;
}

void pathFieldsIteratorClear(pathFieldsIterator *it) {
    if (it->is_table) hashIteratorClear(&it->table);
}

/* ------------------------------------------------------------------ changes */

/* For changing the listpack in a block. */
typedef struct fieldsBuffer {
    packBuffer buffer;
    pathFields *block;
    size_t size; /* of the block */
} fieldsBuffer;

static uint8_t *resizeInBlock(packBuffer *buffer, size_t size) {
    fieldsBuffer *b = CONTAINER_OF(buffer, fieldsBuffer, buffer);
    slice rest = pathFieldsRest(b->block);
    size_t head = headSize(rest, false), kept = sizeMin(b->size, head + size);
    if (likely(slabSameClass(b->size, head + size)) && elementMayStay()) return buffer->bytes;
    char *moved = elementAlloc(head + size);
    memcpy(moved, b->block, kept);
    elementFree(b->block, NULL);
    b->block = (pathFields *)moved;
    b->size = head + size;
    return buffer->bytes = (uint8_t *)moved + head;
}

static fieldsBuffer bufferOf(pathFields *f) {
    return (fieldsBuffer){
        .buffer = {.bytes = listpackOf(f), .resize = resizeInBlock}, .block = f, .size = sizeOf(f)};
}

/* The fields as a table, with room for one more. */
static pathFields *toTable(pathFields *f) {
    hotCheck(!pathFieldsAreTable(f));
    const packLimits none = {0, 0};
    char *content;
    pathFields *changed = allocate(pathFieldsRest(f), true, OBJECT_SHELL_SIZE, &content);
    hashtable t = {NULL};
    hashtableReserve(&t, hashOps.elements->type, pathFieldsCount(f) + 1);
    objectInitShell(content, TYPE_HASH, t.body);
    pathFieldsIterator it;
    hashPair pair;
    pathFieldsIteratorInit(&it, f);
    while (pathFieldsNext(&it, &pair)) {
        bool created;
        robj *o = hashSet((robj *)content, pair.field, pair.value, &none, &created);
        check(o == (robj *)content);
        check(created);
    }
    pathFieldsIteratorClear(&it);
    elementFree(f, NULL);
    return changed;
}

static void setInTable(pathFields *f, slice field, slice value, const packLimits *limits,
                       bool *created) {
    robj *o = tableOf(f);
    check(hashSet(o, field, value, limits, created) == o);
}

pathFields *pathFieldsSet(pathFields *f, slice field, slice value, const packLimits *limits,
                          bool *created) {
    if (pathFieldsAreTable(f)) {
        setInTable(f, field, value, limits, created);
        return f;
    }
    uint8_t *lp = listpackOf(f);
    const uint8_t *at = findField(lp, field);
    size_t most = sizeMax(field.len, value.len);
    bool full = !at && listpackCount(lp) / 2 >= limits->entries;
    *created = !at;
    if (full || most > limits->bytes || !listpackCanGrow(lp, 2 * most + 2 * NUMBER_TEXT_MAX)) {
        f = toTable(f);
        setInTable(f, field, value, limits, created);
        return f;
    }
    fieldsBuffer b = bufferOf(f);
    listpackItem items[2] = {listpackItemOf(field), listpackItemOf(value)};
    if (at) {
        (void)listpackReplace(&b.buffer, listpackNext(lp, at), &items[1]); /* nobody asks where */
    } else {
        listpackAppend(&b.buffer, items, 2);
    }
    return b.block;
}

bool pathFieldsDelete(pathFields **f, slice field) {
    if (pathFieldsAreTable(*f)) {
        robj *o = tableOf(*f);
        bool deleted = hashDelete(&o, field, lookAtAll());
        check(o == tableOf(*f));
        return deleted;
    }
    const uint8_t *at = findField(listpackOf(*f), field);
    if (!at) return false;
    fieldsBuffer b = bufferOf(*f);
    (void)listpackDelete(&b.buffer, at, 2); /* the next entry is not needed */
    *f = b.block;
    return true;
}

pathFields *pathFieldsCompact(pathFields *f, uint64_t *cursor, compaction *by) {
    hotCheck(by != NULL);
    if (*cursor == 0) {
        bool in_slab = slabOwns(slabElements(), f);
        pathFields *moved = in_slab ? elementMove(f, by) : elementMoveBlock(f, by);
        if (moved) f = moved;
    }
    if (!pathFieldsAreTable(f)) {
        *cursor = 0;
        return f;
    }
    void *value = objectPointer(tableOf(f));
    *cursor = hashOps.compact_value(&value, *cursor, by);
    objectSetPointer(tableOf(f), value);
    return f;
}
