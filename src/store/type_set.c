/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sets (type_set.h).
 *
 * The pointer of an object with a table is the table's handle itself. An entry of the table is the
 * address of a block of [length] [text], lengths being those of objects, or of the text alone if
 * the store knows its size (elementAllocExact()), or an integer of 44 bits in place of the address
 * and the word's mark (hashtableType.entry_mark). Integers that do not fit are text. If members
 * have TTLs, the pointer is that of a timedSet, with a bit that no handle has. Main thread only,
 * but for freeing. */
#include "store/type_set.h"

#include "base/base.h"
#include "base/fiber.h"
#include "base/hash.h"
#include "base/random.h"
#include "ds/hashtable_inline.h"
#include "ds/intset.h"
#include "store/element.h"
#include "store/member_priv.h"
#include "store/random_elements.h"
#include "store/saving_value.h"

/* ------------------------------------------------------------------ entries of a table */

/* The mark of the word, which no address of an element has, and a bit so that the rest is not 0: a
 * free word. */
#define ENTRY_INT ((uint64_t)HASHTABLE_MARK | UINT64_C(1) << 47)
enum { INT_BITS = 44, INT_SHIFT = 3 };
#define INT_MASK ((UINT64_C(1) << INT_BITS) - 1)

static inline bool isIntEntry(const void *entry) { return (uintptr_t)entry & HASHTABLE_MARK; }

static inline bool fitsEntry(int64_t number) {
    return number >= -(INT64_C(1) << (INT_BITS - 1)) && number < INT64_C(1) << (INT_BITS - 1);
}

static inline void *intEntry(int64_t number) {
    return (void *)(uintptr_t)(ENTRY_INT | ((uint64_t)number & INT_MASK) << INT_SHIFT);
}

static inline int64_t entryInt(const void *entry) {
    return (int64_t)((uint64_t)(uintptr_t)entry << (64 - INT_BITS - INT_SHIFT)) >> (64 - INT_BITS);
}

static inline slice entryText(const void *entry) {
    hotCheck(!isIntEntry(entry));
    const char *at = entry;
    size_t len = elementExactSize(entry);
    if (!len) len = objectReadLength(&at);
    return sliceMake(at, len);
}

static void *newText(const char *text, size_t len) {
    enum { ALIGNMENT = 8 }; /* the mark is that of integers */
    char *entry = len > 0 && len % ALIGNMENT == 0 ? elementAllocExact(len) : NULL;
    char *at = entry;
    if (!entry) {
        entry = elementAlloc(objectLengthBytes(len) + len);
        at = objectWriteLength(entry, len);
    }
    bytesCopy(at, text, len);
    return entry;
}

static inline listpackItem entryItem(const void *entry) {
    if (isIntEntry(entry)) return listpackItemInt(entryInt(entry));
    slice text = entryText(entry);
    /* May be an integer too large for a table word. */
    if (unlikely(text.len >= INT_BITS / 4 && text.ptr[0] <= '9')) return listpackItemOf(text);
    return (listpackItem){.ptr = text.ptr, .len = text.len};
}

static inline uint64_t hashInt(int64_t number) { return hashBytes(&number, sizeof(number)); }

static uint64_t hashOfEntry(const void *entry) {
    if (isIntEntry(entry)) return hashInt(entryInt(entry));
    slice text = entryText(entry);
    return hashBytes(text.ptr, text.len);
}

/* Passed as the length of a key that is an entry itself. */
#define KEY_IS_ENTRY SIZE_MAX

static inline bool entryMatches(const void *entry, const void *key, size_t len) {
    if (len == KEY_IS_ENTRY) return entry == key;
    if (isIntEntry(entry)) return false;
    slice own = entryText(entry);
    return own.len == len && memcmp(own.ptr, key, len) == 0;
}

static const hashtableType members_type = {
    .hash_of = hashOfEntry, .match = entryMatches, .entry_mark = HASHTABLE_MARK};

/* A member in the form in which the table looks it up. */
typedef struct tableKey {
    const void *key;
    size_t len;
    uint64_t hash;
    char digits[NUMBER_TEXT_MAX];
} tableKey;

static inline void makeKey(tableKey *k, const listpackItem *member) {
    if (!member->ptr && likely(fitsEntry(member->number))) {
        k->key = intEntry(member->number);
        k->len = KEY_IS_ENTRY;
        k->hash = hashInt(member->number);
        return;
    }
    slice text = listpackText(member, k->digits);
    k->key = text.ptr;
    k->len = text.len;
    k->hash = elementNameHash(text);
}

static void *newEntry(const tableKey *k) {
    if (k->len == KEY_IS_ENTRY) return (void *)(uintptr_t)k->key;
    return newText(k->key, k->len);
}

static void freeEntry(void *entry, valueFreer *by) {
    if (!isIntEntry(entry)) elementFree(entry, by);
}

/* A set whose members have TTLs. */
typedef struct timedSet {
    hashtable table; /* visible members */
    memberTimes *times;
} timedSet;

#define TIMED_BIT ((uintptr_t)2)

static inline bool isTimed(const void *value) { return (uintptr_t)value & TIMED_BIT; }

static inline timedSet *timedOf(const void *value) {
    return (timedSet *)((uintptr_t)value - TIMED_BIT);
}

static inline hashtable tableOfValue(const void *value) {
    if (unlikely(isTimed(value))) return timedOf(value)->table;
    return (hashtable){(void *)(uintptr_t)value};
}

static memberTimes *timesOfValue(const void *value) {
    return isTimed(value) ? timedOf(value)->times : NULL;
}

static inline hashtable tableOf(const robj *o) { return tableOfValue(objectPointer(o)); }

/* The table's body may have moved. */
static inline void putTable(robj *o, const hashtable *t) {
    if (unlikely(isTimed(objectPointer(o)))) {
        timedOf(objectPointer(o))->table = *t;
    } else {
        putValue(o, t->body);
    }
}

/* ------------------------------------------------------------------ creation */

static robj *newPacked(slice key, valueForm form) {
    hotCheck(form == FORM_PACKED || form == FORM_PACKED_INTS);
    uint8_t empty[INTSET_HEADER];
    size_t size = INTSET_HEADER;
    if (form == FORM_PACKED) {
        size = LISTPACK_EMPTY_SIZE;
        listpackInit(empty);
    } else {
        intsetInit(empty);
    }
    return objectNewPacked(key, TYPE_SET, form, sliceMake(empty, size), OBJECT_NO_EXPIRE, 0);
}

static robj *newTable(slice key, size_t count) {
    hashtable t = {NULL};
    hashtableReserve(&t, &members_type, count);
    return objectNewPointer(key, TYPE_SET, t.body, OBJECT_NO_EXPIRE, 0);
}

robj *setNew(slice key, const listpackItem *first, size_t count, const setLimits *limits) {
    if (!first->ptr && count <= limits->ints) return newPacked(key, FORM_PACKED_INTS);
    if (count <= limits->packed.entries) return newPacked(key, FORM_PACKED);
    return newTable(key, count);
}

robj *setNewLarge(slice key, size_t count) { return newTable(key, count); }

robj *setNewLike(slice key, const robj *like) {
    return objectIsPacked(like) ? newPacked(key, objectForm(like)) : newTable(key, 0);
}

size_t setLength(const robj *o) {
    hotCheck(objectType(o) == TYPE_SET);
    if (objectForm(o) == FORM_PACKED) return listpackCount(objectPacked(o));
    if (objectForm(o) == FORM_PACKED_INTS) return intsetCount(objectPacked(o));
    hashtable t = tableOf(o);
    return hashtableCount(&t);
}

/* ------------------------------------------------------------------ queries */

static bool packedHas(const robj *o, const listpackItem *member) {
    hotCheck(objectType(o) == TYPE_SET);
    hotCheck(objectIsPacked(o));
    if (objectForm(o) == FORM_PACKED) return listpackFind(objectPacked(o), NULL, member, 0) != NULL;
    return !member->ptr && intsetFind(objectPacked(o), member->number, NULL);
}

bool setHas(const robj *o, const listpackItem *member) {
    hotCheck(objectType(o) == TYPE_SET);
    if (objectIsPacked(o)) return packedHas(o, member);
    tableKey k;
    makeKey(&k, member);
    hashtable t = tableOf(o);
    return hashtableInlineFind(&t, &members_type, k.hash, entryMatches, k.key, k.len) != NULL;
}

enum { MANY = 32 };

uint32_t setHasMany(const robj *o, const listpackItem *members, unsigned count) {
    hotCheck(objectType(o) == TYPE_SET);
    check(count <= MANY);
    uint32_t found = 0;
    if (objectIsPacked(o)) {
        for (unsigned i = 0; i < count; i++) found |= (uint32_t)packedHas(o, &members[i]) << i;
        return found;
    }
    tableKey keys[MANY];
    hashtable t = tableOf(o);
    tableProbe probes[MANY];
    if (!t.body) return 0;
    for (unsigned i = 0; i < count; i++) {
        makeKey(&keys[i], &members[i]);
        probes[i] = tableProbeAt(&t, keys[i].hash);
        prefetchRead(probes[i].home);
    }
    uint64_t *candidates[MANY];
    for (unsigned i = 0; i < count; i++) {
        candidates[i] = tableProbeCandidate(&probes[i]);
        /* Not for an integer: it is no address, and to translate it would take long. */
        if (candidates[i] && keys[i].len != KEY_IS_ENTRY) prefetchRead(wordEntry(*candidates[i]));
    }
    for (unsigned i = 0; i < count; i++) {
        const tableKey *k = &keys[i];
        bool has = tableProbeConfirm(&probes[i], candidates[i], &members_type, entryMatches, k->key,
                                     k->len) != NULL;
        found |= (uint32_t)has << i;
    }
    return found;
}

/* ------------------------------------------------------------------ changes */

/* Converts a packed set to a table with space for `count` members. */
static robj *toTable(robj *o, size_t count) {
    hotCheck(objectIsPacked(o));
    hotCheck(objectType(o) == TYPE_SET);
    hashtable t = {NULL};
    hashtableReserve(&t, &members_type, count);
    setIterator it;
    listpackItem member;
    setIteratorInit(&it, o);
    while (setNext(&it, &member)) {
        tableKey k;
        makeKey(&k, &member);
        hashtableInsert(&t, &members_type, k.hash, newEntry(&k), 0);
    }
    setIteratorClear(&it);
    return objectUnpack(o, t.body);
}

/* Converts an intset to a listpack. */
static robj *toListpack(robj *o) {
    hotCheck(objectType(o) == TYPE_SET);
    hotCheck(objectForm(o) == FORM_PACKED_INTS);
    packBuffer buffer = packBufferHeap(listpackNew());
    setIterator it;
    listpackItem member;
    setIteratorInit(&it, o);
    while (setNext(&it, &member)) listpackAppend(&buffer, &member, 1);
    setIteratorClear(&it);
    robj *changed =
        objectSetPacked(o, FORM_PACKED, sliceMake(buffer.bytes, listpackSize(buffer.bytes)));
    memFree(buffer.bytes);
    return changed;
}

robj *setPrepare(robj *o, size_t count, const setLimits *limits) {
    hotCheck(objectType(o) == TYPE_SET);
    if (!objectIsPacked(o)) return o;
    size_t most = objectForm(o) == FORM_PACKED ? limits->packed.entries : limits->ints;
    return likely(count <= most) ? o : toTable(o, setLength(o) + count);
}

static robj *addToTable(robj *o, const listpackItem *member, bool *added) {
    hotCheck(objectType(o) == TYPE_SET);
    hotCheck(objectForm(o) == FORM_POINTER);
    tableKey k;
    makeKey(&k, member);
    hashtable t = tableOf(o);
    hashtablePosition position;
    *added = !hashtableInlineFindPosition(&t, &members_type, k.hash, entryMatches, k.key, k.len,
                                          &position);
    if (!*added) return o;
    void *entry = newEntry(&k);
    hashtableInsertAt(&t, &members_type, &position, entry, 0);
    elementAdded(objectPointer(o), entry);
    putTable(o, &t);
    return o;
}

static size_t itemTextLen(const listpackItem *member) {
    char digits[NUMBER_TEXT_MAX];
    return listpackText(member, digits).len;
}

static robj *addToListpack(robj *o, const listpackItem *member, const setLimits *limits,
                           bool *added) {
    hotCheck(objectType(o) == TYPE_SET);
    hotCheck(objectForm(o) == FORM_PACKED);
    const uint8_t *lp = objectPacked(o);
    *added = !listpackFind(lp, NULL, member, 0);
    if (!*added) return o;
    size_t count = listpackCount(lp), len = itemTextLen(member);
    if (count < limits->packed.entries && len <= limits->packed.bytes && listpackCanGrow(lp, len)) {
        objectBuffer r;
        objectBufferInit(&r, o);
        listpackAppend(&r.buffer, member, 1);
        return r.o;
    }
    return addToTable(toTable(o, count + 1), member, added);
}

/* True if the integers of an intset and this text fit in a listpack. */
static bool fitsListpack(const uint8_t *set, const listpackItem *member, const setLimits *limits) {
    size_t count = intsetCount(set), len = member->len;
    if (count >= limits->packed.entries) return false;
    if (count > 0) {
        listpackItem ends[2] = {listpackItemInt(intsetGet(set, 0)),
                                listpackItemInt(intsetGet(set, count - 1))};
        len = sizeMax(len, sizeMax(itemTextLen(&ends[0]), itemTextLen(&ends[1])));
    }
    return len <= limits->packed.bytes;
}

static robj *addToIntset(robj *o, const listpackItem *member, const setLimits *limits,
                         bool *added) {
    hotCheck(objectType(o) == TYPE_SET);
    hotCheck(objectForm(o) == FORM_PACKED_INTS);
    size_t count = intsetCount(objectPacked(o));
    if (member->ptr) {
        if (fitsListpack(objectPacked(o), member, limits))
            return addToListpack(toListpack(o), member, limits, added);
        return addToTable(toTable(o, count + 1), member, added);
    }
    objectBuffer r;
    objectBufferInit(&r, o);
    *added = intsetAdd(&r.buffer, member->number);
    return *added && count + 1 > limits->ints ? toTable(r.o, count + 1) : r.o;
}

robj *setAdd(robj *o, const listpackItem *member, const setLimits *limits, bool *added) {
    hotCheck(objectType(o) == TYPE_SET);
    switch (objectForm(o)) {
    case FORM_PACKED: return addToListpack(o, member, limits, added);
    case FORM_PACKED_INTS: return addToIntset(o, member, limits, added);
    default: return addToTable(o, member, added);
    }
}

/* Makes a set without TTLs a plain table again. */
static void settleTimed(robj *o) {
    hotCheck(isTimed(objectPointer(o)));
    timedSet *s = timedOf(objectPointer(o));
    if (memberTimesCount(s->times)) return;
    memberTimesFree(s->times);
    putValue(o, s->table.body);
    memFree(s);
}

/* Forgets the TTL of a member that was removed; the caller settles the set. */
static NO_INLINE void forgetTime(robj *o, const listpackItem *member) {
    hotCheck(isTimed(objectPointer(o)));
    char digits[NUMBER_TEXT_MAX];
    memberTimesForget(timedOf(objectPointer(o))->times, listpackText(member, digits));
}

static bool removePacked(robj **o, const listpackItem *member) {
    hotCheck(objectIsPacked(*o));
    objectBuffer r;
    objectBufferInit(&r, *o);
    bool removed;
    if (objectForm(*o) == FORM_PACKED) {
        const uint8_t *at = listpackFind(r.buffer.bytes, NULL, member, 0);
        removed = at != NULL;
        if (at) (void)listpackDelete(&r.buffer, at, 1); /* the next entry is not needed */
    } else {
        removed = !member->ptr && intsetRemove(&r.buffer, member->number);
    }
    *o = r.o;
    return removed;
}

static bool removeFromTable(robj *o, const listpackItem *member) {
    hotCheck(!objectIsPacked(o));
    tableKey k;
    makeKey(&k, member);
    hashtable t = tableOf(o);
    void *entry = hashtableDelete(&t, &members_type, k.hash, k.key, k.len);
    if (!entry) return false;
    beforeElement(objectPointer(o), entry);
    freeEntry(entry, NULL);
    putTable(o, &t);
    return true;
}

bool setRemove(robj **o, const listpackItem *member) {
    hotCheck(objectType(*o) == TYPE_SET);
    if (objectIsPacked(*o)) return removePacked(o, member);
    if (!removeFromTable(*o, member)) return false;
    if (unlikely(isTimed(objectPointer(*o)))) {
        forgetTime(*o, member);
        settleTimed(*o);
    }
    return true;
}

robj *setTryIntset(robj *o, const setLimits *limits) {
    hotCheck(objectType(o) == TYPE_SET);
    if (objectForm(o) == FORM_PACKED_INTS || setLength(o) > limits->ints) return o;
    uint8_t *empty = memAlloc(INTSET_HEADER);
    intsetInit(empty);
    packBuffer buffer = packBufferHeap(empty);
    setIterator it;
    listpackItem member;
    bool only = true;
    setIteratorInit(&it, o);
    while (only && setNext(&it, &member)) {
        only = !member.ptr;
        if (only) (void)intsetAdd(&buffer, member.number); /* it is new */
    }
    setIteratorClear(&it);
    if (only) {
        robj *settled = objectNewPacked(objectKey(o), TYPE_SET, FORM_PACKED_INTS,
                                        sliceMake(buffer.bytes, intsetSize(buffer.bytes)),
                                        objectExpire(o), objectAccess(o));
        objectFree(o);
        o = settled;
    }
    memFree(buffer.bytes);
    return o;
}

/* ------------------------------------------------------------------ iteration */

void setIteratorInit(setIterator *it, const robj *o) {
    hotCheck(objectType(o) == TYPE_SET);
    it->o = o;
    it->index = 0;
    if (objectForm(o) == FORM_PACKED) it->at = listpackFirst(objectPacked(o));
    if (objectIsPacked(o)) return;
    it->table = tableOf(o);
    it->unordered = false;
    hashtableIteratorInit(&it->walk, &it->table, &members_type);
}

void setIteratorInitUnordered(setIterator *it, const robj *o) {
    hotCheck(objectType(o) == TYPE_SET);
    setIteratorInit(it, o);
    it->unordered = true;
    it->position = 0;
}

bool setNext(setIterator *it, listpackItem *out) {
    if (objectForm(it->o) == FORM_PACKED) {
        if (!it->at) return false;
        it->at = listpackRead(it->at, out);
        return true;
    }
    if (objectForm(it->o) == FORM_PACKED_INTS) {
        const uint8_t *set = objectPacked(it->o);
        if (it->index == intsetCount(set)) return false;
        *out = listpackItemInt(intsetGet(set, it->index++));
        return true;
    }
    const void *entry = hashtableIteratorNext(&it->walk, NULL);
    if (entry) *out = entryItem(entry);
    return entry != NULL;
}

unsigned setNextMany(setIterator *it, listpackItem *out, unsigned max) {
    check(max <= MANY);
    unsigned n = 0;
    if (objectIsPacked(it->o)) {
        while (n < max && setNext(it, &out[n])) n++;
        return n;
    }
    void *entries[MANY];
    if (it->unordered) {
        n = (unsigned)hashtableNextEntries(&it->table, &members_type, &it->position, entries, max);
    } else {
        while (n < max && (entries[n] = hashtableIteratorNext(&it->walk, NULL))) n++;
    }
    for (unsigned i = 0; i < n; i++) {
        if (!isIntEntry(entries[i])) prefetchRead(entries[i]);
    }
    for (unsigned i = 0; i < n; i++) out[i] = entryItem(entries[i]);
    return n;
}

void setIteratorClear(setIterator *it) {
    if (!objectIsPacked(it->o)) hashtableIteratorClear(&it->walk);
}

typedef struct visitor {
    setVisitProc *visit;
    void *arg;
} visitor;

static void visitEntry(void *context, void *entry, unsigned flags) {
    const visitor *v = context;
    listpackItem member = entryItem(elementVisited(entry, flags));
    v->visit(v->arg, &member);
}

uint64_t setScan(const robj *o, uint64_t cursor, setVisitProc *visit, void *arg) {
    hotCheck(objectType(o) == TYPE_SET);
    if (!objectIsPacked(o)) {
        hashtable t = tableOf(o);
        visitor v = {visit, arg};
        cursor &= (UINT64_C(1) << HASHTABLE_CURSOR_BITS) - 1;
        return hashtableScan(&t, &members_type, cursor, visitEntry, &v);
    }
    setIterator it;
    listpackItem member;
    setIteratorInit(&it, o);
    while (setNext(&it, &member)) visit(arg, &member);
    setIteratorClear(&it);
    return 0;
}

static bool visitPacked(void *context, const uint8_t *at) {
    const visitor *v = context;
    listpackItem member = listpackGet(at);
    v->visit(v->arg, &member);
    return true;
}

static bool visitRandomEntry(void *context, const void *entry) {
    const visitor *v = context;
    listpackItem member = entryItem(entry);
    v->visit(v->arg, &member);
    return true;
}

static void randomInts(const uint8_t *set, size_t count, bool unique, setVisitProc *visit,
                       void *arg) {
    size_t left = intsetCount(set);
    if (!unique) {
        for (; count > 0 && left > 0; count--) {
            listpackItem member = listpackItemInt(intsetGet(set, (size_t)randomUniform(left)));
            visit(arg, &member);
            if (fiberPoint(1)) break;
        }
        return;
    }
    count = sizeMin(count, left);
    for (size_t i = 0; count > 0; i++, left--) {
        if (randomUniform(left) >= count) continue;
        listpackItem member = listpackItemInt(intsetGet(set, i));
        visit(arg, &member);
        count--;
    }
}

void setRandom(const robj *o, size_t count, bool unique, setVisitProc *visit, void *arg) {
    hotCheck(objectType(o) == TYPE_SET);
    visitor v = {visit, arg};
    if (objectForm(o) == FORM_PACKED) {
        randomFromListpack(objectPacked(o), 1, count, unique, visitPacked, &v);
    } else if (objectForm(o) == FORM_PACKED_INTS) {
        randomInts(objectPacked(o), count, unique, visit, arg);
    } else {
        hashtable t = tableOf(o);
        randomFromTable(&t, &members_type, count, unique, visitRandomEntry, &v);
    }
}

/* ------------------------------------------------------------------ popping */

typedef struct places {
    const uint8_t **at;
    size_t count;
} places;

static bool collectPlace(void *arg, const uint8_t *at) {
    places *p = arg;
    p->at[p->count++] = at;
    return true;
}

static void popFromListpack(objectBuffer *r, size_t count, setVisitProc *visit, void *arg) {
    const uint8_t *few[16];
    places p = {.at = few};
    if (count > COUNT_OF(few)) p.at = memNewArray(const uint8_t *, count);
    if (count == 1) {
        (void)collectPlace(&p, listpackRandom(r->buffer.bytes, 1)); /* always returns true */
    } else {
        listpackRandomUnique(r->buffer.bytes, 1, count, collectPlace, &p);
    }
    for (size_t i = 0; i < p.count; i++) {
        listpackItem member = listpackGet(p.at[i]);
        visit(arg, &member);
    }
    listpackDeleteMany(&r->buffer, p.at, p.count, 1);
    if (p.at != few) memFree(p.at);
}

static void popFromInts(objectBuffer *r, size_t count, setVisitProc *visit, void *arg) {
    for (; count > 0; count--) {
        size_t at = (size_t)randomUniform(intsetCount(r->buffer.bytes));
        listpackItem member = listpackItemInt(intsetGet(r->buffer.bytes, at));
        visit(arg, &member);
        intsetRemoveAt(&r->buffer, at);
    }
}

static void popFromTable(robj *o, size_t count, setVisitProc *visit, void *arg) {
    hotCheck(objectType(o) == TYPE_SET);
    hashtable t = tableOf(o);
    bool timed = isTimed(objectPointer(o));
    for (; count > 0; count--) {
        void *entry = hashtablePop(&t, &members_type);
        listpackItem member = entryItem(entry);
        visit(arg, &member);
        beforeElement(objectPointer(o), entry);
        if (timed) forgetTime(o, &member);
        freeEntry(entry, NULL);
    }
    putTable(o, &t);
    if (timed) settleTimed(o);
}

void setPop(robj **o, size_t count, setVisitProc *visit, void *arg) {
    count = sizeMin(count, setLength(*o));
    if (count == 0) return;
    if (!objectIsPacked(*o)) {
        popFromTable(*o, count, visit, arg);
        return;
    }
    objectBuffer r;
    objectBufferInit(&r, *o);
    if (objectForm(*o) == FORM_PACKED) {
        popFromListpack(&r, count, visit, arg);
    } else {
        popFromInts(&r, count, visit, arg);
    }
    *o = r.o;
}

/* ------------------------------------------------------------------ members with TTLs */

static memberTimes *timesOf(const robj *o) {
    return objectIsPacked(o) ? NULL : timesOfValue(objectPointer(o));
}

static bool hasMember(const robj *o, slice member) {
    listpackItem item = listpackItemOf(member);
    return setHas(o, &item);
}

static robj *setMemberTime(robj *o, slice member, int64_t time_ms) {
    hotCheck(objectType(o) == TYPE_SET);
    hotCheck(hasMember(o, member));
    listpackItem item = listpackItemOf(member);
    if (objectIsPacked(o)) o = toTable(o, setLength(o));
    if (!isTimed(objectPointer(o))) {
        timedSet *s = memNew(timedSet);
        s->table = tableOf(o);
        s->times = memberTimesNew(false);
        putValue(o, (void *)((uintptr_t)s + TIMED_BIT));
    }
    if (storeNow.saving_values) {
        tableKey k;
        makeKey(&k, &item);
        hashtable t = tableOf(o);
        savingElementBefore(objectPointer(o),
                            hashtableFind(&t, &members_type, k.hash, k.key, k.len));
    }
    memberTimes *times = timedOf(objectPointer(o))->times;
    if (time_ms == MEMBER_NO_TIME) {
        memberTimesForget(times, member);
    } else {
        memberTimesSet(times, member, time_ms);
    }
    settleTimed(o);
    return o;
}

static double hideMember(robj *o, slice member) {
    hotCheck(isTimed(objectPointer(o)));
    listpackItem item = listpackItemOf(member);
    check(removeFromTable(o, &item));
    return 0; /* it has no score */
}

static void showMember(robj *o, slice member, double score) {
    (void)score; /* it has none */
    hotCheck(isTimed(objectPointer(o)));
    listpackItem item = listpackItemOf(member);
    bool added;
    (void)addToTable(o, &item, &added); /* it stays the same object */
    check(added);
}

const memberOps setMemberOps = {.times_of = timesOf,
                                .has = hasMember,
                                .set_time = setMemberTime,
                                .hide = hideMember,
                                .show = showMember,
                                .settle = settleTimed};

/* ------------------------------------------------------------------ type operations */

static const char *encodingOf(const robj *o) {
    hotCheck(objectType(o) == TYPE_SET);
    switch (objectForm(o)) {
    case FORM_PACKED: return "listpack";
    case FORM_PACKED_INTS: return "intset";
    default: return "hashtable";
    }
}

static void digestSet(const robj *o, int db_id, storeLook look, digest *to) {
    (void)db_id; /* the same everywhere */
    setIterator it;
    listpackItem member;
    char digits[NUMBER_TEXT_MAX];
    const memberTimes *times = timesOf(o);
    setIteratorInit(&it, o);
    while (setNext(&it, &member)) {
        slice text = listpackText(&member, digits);
        if (!times || !memberIsPast(look, memberTimesGet(times, text))) digestAdd(to, text);
    }
    setIteratorClear(&it);
    for (uint64_t i = 0; i < memberTimesHidden(times); i++) {
        timedMember hidden = memberTimesAt(times, i);
        if (!memberIsPast(look, hidden.time_ms)) digestAdd(to, hidden.member);
    }
}

static void readEntry(const void *entry, valueElement *out) {
    out->value = SLICE("");
    if (isIntEntry(entry)) {
        listpackItem number = listpackItemInt(entryInt(entry));
        out->name = listpackText(&number, out->digits);
    } else {
        out->name = entryText(entry);
    }
}

static uint64_t hashOfMember(slice member, bool *is_text) {
    listpackItem item = listpackItemOf(member);
    tableKey key;
    makeKey(&key, &item);
    *is_text = key.len != KEY_IS_ENTRY;
    return key.hash;
}

static const valueElements members = {.table_of = tableOfValue,
                                      .type = &members_type,
                                      .read = readEntry,
                                      .hash_of = hashOfMember,
                                      .times_of = timesOfValue};

static void freeVisited(void *context, void *entry, unsigned flags) {
    valueFreer *by = context;
    entry = elementVisited(entry, flags);
    if (!elementGoesWithStore(entry, by)) freeEntry(entry, by);
    (void)fiberPoint(1); /* all are freed */
}

static void freeLarge(void *value, valueFreer *by) {
    hashtable t = tableOfValue(value);
    hashtableFree(&t, freeVisited, by);
    if (!isTimed(value)) return;
    memberTimesFree(timedOf(value)->times);
    memFree(timedOf(value));
}

static void *copyTable(const valuePlace *place, const valuePlace *to_place, void *value) {
    (void)place, (void)to_place; /* not needed */
    hashtable from = tableOfValue(value), to = {NULL};
    hashtableReserve(&to, &members_type, hashtableCount(&from));
    hashtableIterator it;
    hashtableIteratorInit(&it, &from, &members_type);
    void *entry;
    while ((entry = hashtableIteratorNext(&it, NULL))) {
        void *copy = entry;
        if (!isIntEntry(entry)) {
            slice text = entryText(entry);
            copy = newText(text.ptr, text.len);
        }
        hashtableInsert(&to, &members_type, hashOfEntry(entry), copy, 0);
        if (fiberPoint(1)) break;
    }
    hashtableIteratorClear(&it);
    if (!isTimed(value)) return to.body;
    timedSet *copy = memNew(timedSet);
    copy->table = to;
    copy->times = memberTimesCopy(timedOf(value)->times);
    return (void *)((uintptr_t)copy + TIMED_BIT);
}

static size_t tableEffort(const valuePlace *at, const void *value) {
    (void)at; /* not needed */
    hashtable t = tableOfValue(value);
    return hashtableCount(&t) + memberTimesCount(timesOfValue(value));
}

static size_t entryMemory(const void *entry) {
    if (isIntEntry(entry)) return 0;
    size_t exact = elementExactSize(entry), len = entryText(entry).len;
    return exact ? exact : slabClassSize(objectLengthBytes(len) + len);
}

static size_t tableMemory(const valuePlace *at, const void *value, size_t samples) {
    (void)at; /* not needed */
    hashtable t = tableOfValue(value);
    size_t bytes = hashtableBytes(&t) + sampledMemory(&t, &members_type, samples, entryMemory);
    if (!isTimed(value)) return bytes;
    return bytes + memSizeOf(timedOf(value)) + memberTimesBytes(timedOf(value)->times);
}

static void *moveEntry(void *entry, compaction *by) {
    return isIntEntry(entry) ? NULL : elementMove(entry, by);
}

static uint64_t compactTable(void **value, uint64_t cursor, compaction *by) {
    if (isTimed(*value)) value = &timedOf(*value)->table.body;
    return elementsCompact(value, &members_type, moveEntry, cursor, by);
}

static void statsOf(const void *value, hashtableStats *out) {
    hashtable t = tableOfValue(value);
    hashtableStatsRead(&t, &members_type, out);
}

const typeOps setOps = {
    .encoding = encodingOf,
    .length = setLength,
    .digest = digestSet,
    .free_value = freeLarge,
    .copy_value = copyTable,
    .free_effort = tableEffort,
    .value_memory = tableMemory,
    .compact_value = compactTable,
    .has_elements = true,
    .elements = &members,
    .table_stats = statsOf,
};
