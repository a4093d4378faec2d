/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Dictionaries of compressed values (dictionary.h).
 *
 * Invariants: all.by_id[d->id] == d; `users` is never less than the number of values that use the
 * dictionary: what another thread frees is subtracted afterwards. So a dictionary without users can
 * be freed; only dictionariesSweep() does, and not during a hold. A class is removed with its last
 * dictionary. */
#include "store/dictionary.h"

#include "base/base.h"
#include "base/hash.h"
#include "base/number.h"
#include "store/key_prefix.h"

/* Classes by hash of database and prefix, open addressing. */
enum { INDEX = 4 * DICTIONARY_CLASSES_MAX, IDLE_MS = 10 * 60 * 1000 };
/* When so many bytes have been compressed, all recent ones count half. */
enum { RECENT_BYTES = 1 << 20 };

typedef struct valueClass {
    int db_id;
    uint8_t prefix_len;
    char prefix[KEY_PREFIX_MAX];
    valueDictionary *current;
    unsigned dictionaries; /* 0: this place is free */
} valueClass;

struct valueDictionary {
    valueCodec *codec;
    uint64_t users;
    uint64_t nodes; /* of the users, those that any thread may free; atomic */
    uint32_t id;
    uint8_t class;         /* index */
    int64_t idle_since_ms; /* 0: it has users, or was not seen without */
    uint64_t tried, stored, plain_bytes, packed_bytes;
    uint64_t recent_plain, recent_packed;
};

static struct {
    valueDictionary *by_id[DICTIONARY_ID_MAX + 1];
    valueClass classes[DICTIONARY_CLASSES_MAX];
    uint8_t index[INDEX]; /* index of the class + 1, 0: none */
    unsigned count, holds;
    uint64_t generation;
} all;

/* ------------------------------------------------------------------ classes */

static unsigned placeOf(int db_id, slice prefix) {
    return (hashUnkeyed(prefix.ptr, prefix.len) + (unsigned)db_id * 31) % INDEX;
}

static slice prefixOf(const valueClass *c) { return sliceMake(c->prefix, c->prefix_len); }

static valueClass *findClass(int db_id, slice prefix) {
    unsigned at = placeOf(db_id, prefix);
    for (unsigned i; (i = all.index[at]); at = (at + 1) % INDEX) {
        valueClass *c = &all.classes[i - 1];
        if (c->db_id == db_id && sliceEqual(prefixOf(c), prefix)) return c;
    }
    return NULL;
}

static void indexClasses(void) {
    memset(all.index, 0, sizeof(all.index));
    for (unsigned i = 0; i < DICTIONARY_CLASSES_MAX; i++) {
        if (!all.classes[i].dictionaries) continue;
        unsigned at = placeOf(all.classes[i].db_id, prefixOf(&all.classes[i]));
        while (all.index[at]) at = (at + 1) % INDEX;
        all.index[at] = (uint8_t)(i + 1);
    }
}

/* A place for a class that has no dictionary so far; NULL: all are in use. */
static valueClass *newClass(int db_id, slice prefix) {
    hotCheck(prefix.len <= KEY_PREFIX_MAX);
    for (int i = 0; i < DICTIONARY_CLASSES_MAX; i++) {
        valueClass *c = &all.classes[i];
        if (c->dictionaries) continue;
        *c = (valueClass){.db_id = db_id, .prefix_len = (uint8_t)prefix.len};
        if (prefix.len) memcpy(c->prefix, prefix.ptr, prefix.len);
        return c;
    }
    return NULL;
}

const valueDictionary *dictionaryOfKey(int db_id, slice key) {
    hotCheck(threadIsMain());
    if (!all.count) return NULL;
    slice prefix = keyPrefix(key);
    const valueClass *c = findClass(db_id, prefix);
    if (!c && prefix.len) c = findClass(db_id, SLICE(""));
    return c ? c->current : NULL;
}

void dictionariesSwap(int db_id, int other) {
    hotCheck(threadIsMain());
    for (int i = 0; i < DICTIONARY_CLASSES_MAX; i++) {
        int *id = &all.classes[i].db_id;
        *id = *id == db_id ? other : *id == other ? db_id : *id;
    }
    indexClasses();
}

/* ------------------------------------------------------------------ adding and freeing */

/* The smallest number that is free, as small ones take less memory in each value; 0: none is. */
static uint32_t takeId(void) {
    for (uint32_t id = 1; id <= DICTIONARY_ID_MAX; id++) {
        if (!all.by_id[id]) return id;
    }
    return 0;
}

status dictionaryAddCodec(int db_id, slice prefix, valueCodec *codec, uint32_t *id, reason *why) {
    hotCheck(threadIsMain());
    valueClass *c = NULL;
    uint32_t number = takeId();
    status st = OK;
    if (prefix.len > KEY_PREFIX_MAX) {
        st = reasonSet(why, ERR_RANGE, "a prefix has at most %d bytes", KEY_PREFIX_MAX);
    } else if (!number) {
        st = reasonSet(why, ERR_LIMIT, "there are %d dictionaries already", DICTIONARY_ID_MAX);
    } else if (!(c = findClass(db_id, prefix)) && !(c = newClass(db_id, prefix))) {
        st = reasonSet(why, ERR_LIMIT, "there are %d classes already", DICTIONARY_CLASSES_MAX);
    }
    if (st != OK) {
        valueCodecFree(codec);
        return st;
    }
    valueDictionary *d = memNew(valueDictionary);
    *d = (valueDictionary){.codec = codec, .id = number, .class = (uint8_t)(c - all.classes)};
    c->current = d;
    if (c->dictionaries++ == 0) indexClasses();
    all.count++;
    all.generation++;
    /* Another thread that expands values may read the table. */
    __atomic_store_n(&all.by_id[number], d, __ATOMIC_RELEASE);
    *id = number;
    return OK;
}

status dictionaryAdd(int db_id, slice prefix, slice bytes, uint32_t *id, reason *why) {
    valueCodec *codec = NULL;
    status st = valueCodecNew(bytes, &codec, why);
    return st == OK ? dictionaryAddCodec(db_id, prefix, codec, id, why) : st;
}

const valueDictionary *dictionaryOfClass(int db_id, slice prefix) {
    hotCheck(threadIsMain());
    const valueClass *c = findClass(db_id, prefix);
    return c ? c->current : NULL;
}

bool dictionaryHasRoom(int db_id, slice prefix) {
    hotCheck(threadIsMain());
    if (all.count == DICTIONARY_ID_MAX) return false;
    if (findClass(db_id, prefix)) return true;
    for (int i = 0; i < DICTIONARY_CLASSES_MAX; i++) {
        if (!all.classes[i].dictionaries) return true;
    }
    return false;
}

void dictionaryRetire(int db_id, slice prefix) {
    hotCheck(threadIsMain());
    valueClass *c = findClass(db_id, prefix);
    if (c) c->current = NULL;
}

static uint64_t usersOf(const valueDictionary *d) {
    return d->users + __atomic_load_n(&d->nodes, __ATOMIC_ACQUIRE);
}

static void freeDictionary(valueDictionary *d) {
    check(usersOf(d) == 0);
    valueClass *c = &all.classes[d->class];
    if (c->current == d) c->current = NULL;
    check(c->dictionaries > 0);
    if (--c->dictionaries == 0) indexClasses();
    all.count--;
    __atomic_store_n(&all.by_id[d->id], NULL, __ATOMIC_RELEASE);
    valueCodecFree(d->codec);
    memFree(d);
}

void dictionariesSweep(int64_t now_ms) {
    hotCheck(threadIsMain());
    if (likely(all.count == 0) || all.holds) return;
    for (uint32_t id = 1; id <= DICTIONARY_ID_MAX; id++) {
        valueDictionary *d = all.by_id[id];
        if (!d) continue;
        if (usersOf(d)) {
            d->idle_since_ms = 0;
        } else if (all.classes[d->class].current != d) {
            freeDictionary(d);
        } else if (!d->idle_since_ms) {
            d->idle_since_ms = now_ms;
        } else if (now_ms - d->idle_since_ms >= IDLE_MS) {
            freeDictionary(d);
        }
    }
}

void dictionariesFree(void) {
    hotCheck(threadIsMain());
    check(all.holds == 0);
    for (uint32_t id = 1; id <= DICTIONARY_ID_MAX; id++) {
        if (all.by_id[id]) freeDictionary(all.by_id[id]);
    }
    valueCodecFreeContexts();
    memset(&all, 0, sizeof(all));
}

void dictionariesHold(void) {
    hotCheck(threadIsMain());
    all.holds++;
}

void dictionariesUnhold(void) {
    check(all.holds > 0);
    all.holds--;
}

/* ------------------------------------------------------------------ values */

const valueDictionary *dictionaryById(uint32_t id) {
    if (id == 0 || id > DICTIONARY_ID_MAX) return NULL;
    return __atomic_load_n(&all.by_id[id], __ATOMIC_ACQUIRE);
}

uint32_t dictionaryId(const valueDictionary *d) { return d->id; }

const valueCodec *dictionaryCodec(const valueDictionary *d) { return d->codec; }

uint64_t dictionariesGeneration(void) { return all.generation; }

/* In builds with checks: what was compressed can be expanded. */
static void verify(const valueDictionary *d, slice plain, slice packed) {
#ifdef HOT_CHECKS
    char *back = memAlloc(plain.len + 1);
    check(dictionaryExpand(d->id, packed, back, plain.len));
    check(memcmp(back, plain.ptr, plain.len) == 0);
    memFree(back);
#else
    (void)d, (void)plain, (void)packed;
#endif
}

size_t dictionaryCompress(const valueDictionary *d, slice plain, char *out, size_t cap) {
    hotCheck(threadIsMain());
    valueDictionary *own = all.by_id[d->id];
    check(own == d);
    size_t packed = plain.len ? valueCodecCompress(d->codec, plain, out, cap) : 0;
    if (packed) verify(d, plain, sliceMake(out, packed));
    own->tried++;
    own->recent_plain += plain.len;
    own->recent_packed += packed ? packed : plain.len;
    if (own->recent_plain >= RECENT_BYTES) {
        own->recent_plain /= 2;
        own->recent_packed /= 2;
    }
    if (packed) {
        own->stored++;
        own->plain_bytes += plain.len;
        own->packed_bytes += packed;
    }
    return packed;
}

bool dictionaryExpand(uint32_t id, slice packed, char *out, size_t plain_len) {
    const valueDictionary *d = dictionaryById(id);
    return d && valueCodecExpand(d->codec, packed, out, plain_len);
}

/* ------------------------------------------------------------------ users */

void dictionaryUse(uint32_t id) {
    hotCheck(threadIsMain());
    hotCheck(dictionaryById(id) != NULL);
    all.by_id[id]->users++;
}

void dictionaryRelease(uint32_t id, uint64_t count) {
    hotCheck(threadIsMain());
    check(id <= DICTIONARY_ID_MAX);
    valueDictionary *d = all.by_id[id];
    check(d != NULL);
    check(d->users >= count);
    d->users -= count;
}

void dictionaryCountNodes(uint32_t id, bool more) {
    valueDictionary *d = __atomic_load_n(&all.by_id[id], __ATOMIC_ACQUIRE);
    check(d != NULL);
    uint64_t before = __atomic_fetch_add(&d->nodes, more ? 1 : -(uint64_t)1, __ATOMIC_ACQ_REL);
    check(more || before > 0);
}

/* ------------------------------------------------------------------ reports */

bool dictionaryRead(uint32_t id, dictionaryReport *out) {
    const valueDictionary *d = dictionaryById(id);
    if (!d) return false;
    const valueClass *c = &all.classes[d->class];
    *out = (dictionaryReport){.id = id,
                              .db_id = c->db_id,
                              .prefix = prefixOf(c),
                              .is_current = c->current == d,
                              .users = usersOf(d),
                              .memory = valueCodecMemory(d->codec) + memSizeOf(d),
                              .tried = d->tried,
                              .stored = d->stored,
                              .plain_bytes = d->plain_bytes,
                              .packed_bytes = d->packed_bytes,
                              .recent = 1};
    if (d->recent_plain) out->recent = (double)d->recent_packed / (double)d->recent_plain;
    return true;
}

size_t dictionariesMemory(void) {
    size_t bytes = valueCodecContextsMemory();
    dictionaryReport r;
    for (uint32_t id = 1; id <= DICTIONARY_ID_MAX && all.count; id++) {
        if (dictionaryRead(id, &r)) bytes += r.memory;
    }
    return bytes;
}
