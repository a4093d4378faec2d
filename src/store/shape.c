/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shapes (shape.h, shape_priv.h).
 *
 * Invariants: shapesById[s->id] == s for every shape, and it is in the bucket of its chain; two
 * shapes differ in their names or their order; `users` is the sum of the counts of all keyspaces,
 * and never less than the number of hashes that have the shape: what another thread frees is
 * subtracted afterwards. So a shape without users can be freed. Only shapesSweep() does, thus names
 * stay valid during a command.
 *
 * The chain is a keyed hash, because clients choose names. It is computed from that of the names
 * before, so a hash that grows by one field finds its next shape in O(1).
 *
 * The signature is a fast hash of three names. It tells that a hash has names that nobody had
 * before, so that names which are all different cost little; if clients choose names with equal
 * signatures, their chains are computed, too. */
#include "store/shape_priv.h"

#include "base/base.h"
#include "base/hash.h"
#include "base/number.h"
#include "ds/listpack.h"

enum {
    CANDIDATES = 4096, /* sequences of names that are counted, a power of two */
    SEEN_BITS = 12,    /* 2^12 signatures of names that had no shape are known */
    HAS_SHAPE_BITS = 16,
    RECENT_BITS = 8, /* 2^8 shapes are tried before the names are hashed */
    RECENT = 1 << RECENT_BITS,
    SWEEP_MS = 10000,
    /* A shape is freed after so many sweeps without users, if there is much room and if there is
     * not: programs that set fields one by one use shapes of the first fields again and again. */
    IDLE_SWEEPS = 60,
    IDLE_SWEEPS_CROWDED = 2,
    /* A call of shapesSweep() looks at so many shapes, and frees so many, at most. */
    SWEEP_LOOKS = 8192,
    SWEEP_REMOVALS = 256,
    DROPS_STEP = 256,
};

struct shapeCounts {
    uint64_t *users; /* by number of the shape */
    size_t cap;
    unsigned held; /* shapeCountsHold() */
    bool dropped;  /* its keyspace has others, or is gone */
};

/* Names that some hashes had; not kept. */
typedef struct candidate {
    uint32_t tag, count;
} candidate;

shapeLimits shapeLimitsNow;
shape **shapesById;

static struct {
    size_t cap;      /* of shapesById */
    size_t id_after; /* all numbers in use are below */
    size_t count;
    shape **buckets; /* by chain */
    size_t bucket_count;
    shapeCounts *counts; /* of the keyspace in use; NULL: nothing was counted */
    int64_t swept_ms;    /* begin of the last sweep */
    size_t sweep_next;   /* the number that the sweep continues with, 0 if none is under way */
    bool sweep_crowded;  /* there was little room when it began */
    uint64_t made, refused;
    shape *recent[RECENT];
    candidate candidates[CANDIDATES];
    uint16_t seen[1 << SEEN_BITS]; /* by signature: another part of it, of the last hash */
    uint64_t has_shape[(1 << HAS_SHAPE_BITS) / 64]; /* by signature: a bit, also of past shapes */
} shapes;

/* ------------------------------------------------------------------ limits */

void shapeSetLimits(const shapeLimits *limits) {
    hotCheck(threadIsMain());
    check(limits->shapes <= SHAPES_MAX);
    check(limits->fields <= SHAPE_FIELDS_MAX);
    check(limits->names_bytes <= SHAPE_NAMES_MAX);
    shapeLimitsNow = *limits;
}

/* ------------------------------------------------------------------ names */

/* The chain of names that end with this one. */
static uint64_t chainAfter(uint64_t chain, slice name) {
    enum { TURN = 23 };
    uint64_t hash = hashBytes(name.ptr, name.len);
    return ((chain << TURN | chain >> (64 - TURN)) + 1) * UINT64_C(0x9e3779b97f4a7c15) + hash;
}

/* A hash of three of `count` names. Schemas with optional fields often have the same first and last
 * one. All bits of the result are used. */
static uint64_t signatureOf(slice first, slice middle, slice last, size_t count) {
    uint64_t x = (uint64_t)hashUnkeyed(first.ptr, first.len) << 32 |
                 (uint64_t)hashUnkeyed(middle.ptr, middle.len) << 16 |
                 (uint64_t)hashUnkeyed(last.ptr, last.len);
    x = (x + (uint64_t)count * UINT64_C(0xd6e8feb86659fd93)) * UINT64_C(0x9e3779b97f4a7c15);
    return x ^ x >> 32;
}

static uint64_t signatureOfNames(const slice *names, size_t count, unsigned stride) {
    return signatureOf(names[0], names[count / 2 * stride], names[(count - 1) * stride], count);
}

static uint64_t signatureOfShape(const shape *s) {
    return signatureOf(shapeName(s, 0), shapeName(s, s->count / 2u), shapeName(s, s->count - 1u),
                       s->count);
}

static uint64_t chainOf(const slice *names, size_t count, unsigned stride) {
    uint64_t chain = 0;
    for (size_t i = 0; i < count; i++) chain = chainAfter(chain, names[i * stride]);
    return chain;
}

/* True if the shape begins with these names. */
static bool beginsWith(const shape *s, const slice *names, size_t count, unsigned stride) {
    hotCheck(count <= s->count);
    for (size_t i = 0; i < count; i++) {
        slice own = shapeName(s, (unsigned)i);
        slice name = names[i * stride];
        if (own.len != name.len || !shapeNameEquals(own.ptr, name)) return false;
    }
    return true;
}

/* True if `s` has the names of `first` and `name`. */
static bool extends(const shape *s, const shape *first, slice name) {
    if (s->count != first->count + 1) return false;
    slice last = shapeName(s, first->count);
    if (last.len != name.len || !shapeNameEquals(last.ptr, name)) return false;
    size_t starts = ((size_t)first->count + 1) * sizeof(*s->start);
    return memcmp(s->start, first->start, starts) == 0 &&
           memcmp(s->text, first->text, first->start[first->count]) == 0;
}

/* A shape, perhaps one that was freed, has this signature. */
static bool mayHaveShape(uint64_t signature) {
    size_t bit = signature >> (64 - HAS_SHAPE_BITS);
    return shapes.has_shape[bit / 64] >> (bit % 64) & 1;
}

static uint16_t *seenOf(uint64_t signature) {
    return &shapes.seen[signature & ((1 << SEEN_BITS) - 1)];
}

static uint16_t seenPart(uint64_t signature) { return (uint16_t)(signature >> SEEN_BITS); }

/* A hash whose names had no shape had this signature lately, and was not counted. */
static bool wasSeen(uint64_t signature) { return *seenOf(signature) == seenPart(signature); }

/* ------------------------------------------------------------------ the table */

static shape **bucketOf(uint64_t chain) {
    return &shapes.buckets[chain >> 32 & (shapes.bucket_count - 1)];
}

static void growTable(void) {
    enum { BUCKETS_MIN = 64 };
    size_t count = sizeMax(BUCKETS_MIN, 2 * shapes.bucket_count);
    memFree(shapes.buckets);
    shapes.buckets = memNewArray(shape *, count);
    shapes.bucket_count = count;
    for (size_t id = 1; id < shapes.id_after; id++) {
        shape *s = shapesById[id];
        if (!s) continue;
        shape **bucket = bucketOf(s->chain);
        s->next = *bucket;
        *bucket = s;
    }
}

/* A number that is free. */
static size_t takeId(void) {
    hotCheck(shapes.count < SHAPES_MAX);
    size_t id = 1;
    if (shapes.count + 1 == sizeMax(1, shapes.id_after)) {
        id = sizeMax(1, shapes.id_after); /* all below are in use */
    } else {
        while (shapesById[id]) id++;
    }
    if (id >= shapes.cap) {
        size_t cap = sizeMin(sizeMax(64, 2 * shapes.cap), SHAPES_MAX + 1);
        shapesById = memRealloc(shapesById, cap * sizeof(shape *));
        memset(shapesById + shapes.cap, 0, (cap - shapes.cap) * sizeof(shape *));
        shapes.cap = cap;
    }
    shapes.id_after = sizeMax(shapes.id_after, id + 1);
    return id;
}

static void addShape(shape *s) {
    s->id = (uint16_t)takeId();
    shapesById[s->id] = s;
    shapes.count++;
    shapes.made++;
    uint64_t signature = signatureOfShape(s);
    size_t bit = signature >> (64 - HAS_SHAPE_BITS);
    shapes.has_shape[bit / 64] |= UINT64_C(1) << (bit % 64);
    *seenOf(signature) = (uint16_t)~seenPart(signature); /* all of its hashes have been counted */
    if (shapes.count > shapes.bucket_count) {
        growTable();
        return;
    }
    shape **bucket = bucketOf(s->chain);
    s->next = *bucket;
    *bucket = s;
}

static void removeShape(shape *s) {
    hotCheck(s->users == 0);
    shape **link = bucketOf(s->chain);
    while (*link != s) link = &(*link)->next;
    *link = s->next;
    for (size_t i = 0; i < RECENT; i++) {
        if (shapes.recent[i] == s) shapes.recent[i] = NULL;
    }
    shapesById[s->id] = NULL;
    shapes.count--;
    memFree(s);
}

/* ------------------------------------------------------------------ making */

/* Counts one more hash with names of this chain, before which `uncounted` others had these names;
 * true if there are enough now. Frequent ones displace others that share their place. */
static bool countCandidate(uint64_t chain, uint32_t uncounted) {
    candidate *c = &shapes.candidates[chain & (CANDIDATES - 1)];
    uint32_t tag = (uint32_t)(chain >> 32);
    if (c->count == 0) *c = (candidate){.tag = tag, .count = uncounted};
    if (c->tag != tag) {
        c->count--;
        return false;
    }
    if (++c->count < SHAPE_HASHES_MIN) return false;
    c->count = 0;
    return true;
}

/* Estimate of the bytes that each hash with this shape saves: the names, the last byte of each
 * value, and the header of a listpack without the number of the shape. */
static uint64_t userSaves(const shape *s) {
    return LISTPACK_EMPTY_SIZE - sizeof(uint16_t) + s->count + s->entries_size;
}

/* Enters the names into the index; false if two are equal. */
static bool fillIndex(shape *s, uint8_t *index) {
    for (unsigned i = 0; i < s->count; i++) {
        slice name = shapeName(s, i);
        if (shapeFind(s, name) >= 0) return false;
        unsigned at = hashUnkeyed(name.ptr, name.len) & s->mask;
        while (index[at]) at = (at + 1) & s->mask;
        index[at] = (uint8_t)(i + 1);
    }
    return true;
}

/* A new shape with these names; NULL if they are not distinct. */
static shape *makeShape(const slice *names, size_t count, unsigned stride, uint64_t chain) {
    hotCheck(count >= 1);
    hotCheck(count <= SHAPE_FIELDS_MAX);
    size_t text_bytes = 0, entries_size = 0, slots = sizePowerOfTwo(2 * count), starts = count + 1;
    for (size_t i = 0; i < count; i++) {
        listpackItem item = listpackItemOf(names[i * stride]);
        entries_size += listpackItemSize(&item);
        text_bytes += names[i * stride].len;
    }
    check(text_bytes <= SHAPE_NAMES_MAX);
    shape *s =
        memCalloc(1, sizeof(*s) + starts * sizeof(uint16_t) + slots + text_bytes + entries_size);
    uint16_t *start = (uint16_t *)(s + 1);
    uint8_t *index = (uint8_t *)(start + starts);
    char *text = (char *)(index + slots);
    uint8_t *entry = index + slots + text_bytes;
    *s = (shape){.chain = chain,
                 .entries_size = (uint32_t)entries_size,
                 .mask = (uint16_t)(slots - 1),
                 .count = (uint8_t)count,
                 .index = index,
                 .text = text,
                 .entries = entry,
                 .start = start};
    for (size_t i = 0; i < count; i++) {
        slice name = names[i * stride];
        if (name.len) memcpy(text + start[i], name.ptr, name.len);
        start[i + 1] = (uint16_t)(start[i] + name.len);
        listpackItem item = listpackItemOf(name);
        uint8_t *end = listpackWriteBody(entry, &item);
        entry = listpackWriteBack(end, (size_t)(end - entry));
    }
    if (fillIndex(s, index)) return s;
    memFree(s);
    return NULL;
}

static bool withinLimits(const slice *names, size_t count, unsigned stride) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += names[i * stride].len;
    return bytes <= shapeLimitsNow.names_bytes;
}

/* Counts a hash whose names have no shape; the shape if it is made now. */
static NO_INLINE shape *considerNames(const slice *names, size_t count, unsigned stride,
                                      uint64_t chain, uint32_t uncounted) {
    if (!withinLimits(names, count, stride) || !countCandidate(chain, uncounted)) return NULL;
    if (shapes.count >= shapeLimitsNow.shapes) {
        shapes.refused++;
        return NULL;
    }
    shape *s = makeShape(names, count, stride, chain);
    if (s) addShape(s);
    return s;
}

/* ------------------------------------------------------------------ finding */

static shape *findShape(const slice *names, size_t count, unsigned stride, uint64_t chain) {
    if (shapes.count == 0) return NULL;
    for (shape *s = *bucketOf(chain); s; s = s->next) {
        if (s->chain == chain && s->count == count && beginsWith(s, names, count, stride)) return s;
    }
    return NULL;
}

/* Where a shape with names of this signature is remembered. */
static shape **recentOf(uint64_t signature) {
    return &shapes.recent[signature >> (64 - RECENT_BITS)];
}

const shape *shapeGuess(slice first, slice middle, slice last, size_t count) {
    const shape *s = *recentOf(signatureOf(first, middle, last, count));
    if (likely(!s) || s->count != count || shapeLimitsNow.shapes == 0) return NULL;
    bool same = sliceEqual(shapeName(s, 0), first) && sliceEqual(shapeName(s, s->count - 1u), last);
    return same ? s : NULL;
}

const shape *shapeFor(const slice *names, size_t count, unsigned stride) {
    hotCheck(threadIsMain());
    if (count == 0 || count > shapeLimitsNow.fields || shapeLimitsNow.shapes == 0) return NULL;
    uint64_t signature = signatureOfNames(names, count, stride);
    shape **recent = recentOf(signature);
    shape *s = *recent;
    if (s && s->count == count && beginsWith(s, names, count, stride)) return s;
    bool seen = wasSeen(signature);
    if (!seen && !mayHaveShape(signature)) {
        *seenOf(signature) = seenPart(signature);
        return NULL;
    }
    uint64_t chain = chainOf(names, count, stride);
    s = findShape(names, count, stride, chain);
    if (!s) s = considerNames(names, count, stride, chain, seen ? 1 : 0);
    if (s) *recent = s;
    return s;
}

const shape *shapeAfter(const shape *s, slice name) {
    hotCheck(threadIsMain());
    if (shapeLimitsNow.shapes == 0 || s->count >= shapeLimitsNow.fields) return NULL;
    const shape *next = s->successor ? shapesById[s->successor] : NULL;
    if (likely(next != NULL) && extends(next, s, name)) return next;
    slice names[SHAPE_FIELDS_MAX];
    for (unsigned i = 0; i < s->count; i++) names[i] = shapeName(s, i);
    names[s->count] = name;
    uint64_t chain = chainAfter(s->chain, name);
    shape *found = findShape(names, (size_t)s->count + 1, 1, chain);
    if (!found) found = considerNames(names, (size_t)s->count + 1, 1, chain, 0);
    if (!found) return NULL;
    shapesById[s->id]->successor = found->id;
    *recentOf(signatureOfShape(found)) = found;
    return found;
}

/* ------------------------------------------------------------------ users */

const shape *shapeOfId(unsigned id) { return id < shapes.cap ? shapesById[id] : NULL; }

static void reserveCounts(shapeCounts *c, size_t id) {
    if (id < c->cap) return;
    size_t cap = sizeMax(shapes.cap, id + 1);
    c->users = memRealloc(c->users, cap * sizeof(*c->users));
    memset(c->users + c->cap, 0, (cap - c->cap) * sizeof(*c->users));
    c->cap = cap;
}

static NO_INLINE void beginCounts(size_t id) {
    if (!shapes.counts) shapes.counts = memNew(shapeCounts);
    reserveCounts(shapes.counts, id);
}

void shapeRetain(const shape *s) {
    hotCheck(threadIsMain());
    hotCheck(shapesById[s->id] == s);
    shape *own = shapesById[s->id];
    if (unlikely(!shapes.counts) || unlikely(own->id >= shapes.counts->cap)) beginCounts(own->id);
    own->users++;
    own->idle = 0;
    shapes.counts->users[own->id]++;
}

static void release(shapeCounts *c, unsigned id, uint64_t count) {
    check(id < c->cap);
    check(c->users[id] >= count);
    shape *s = shapesById[id];
    check(s->users >= count);
    s->users -= count;
    c->users[id] -= count;
}

void shapeRelease(const shape *s) {
    hotCheck(threadIsMain());
    check(shapes.counts != NULL);
    release(shapes.counts, s->id, 1);
}

uint64_t shapeCountNow(const shape *s) {
    return shapes.counts && s->id < shapes.counts->cap ? shapes.counts->users[s->id] : 0;
}

shapeCounts *shapeCountsUse(shapeCounts *counts) {
    hotCheck(threadIsMain());
    shapeCounts *before = shapes.counts;
    shapes.counts = counts;
    return before;
}

static void freeCounts(shapeCounts *c) {
    memFree(c->users);
    memFree(c);
}

void shapeCountsDrop(shapeCounts *counts) {
    hotCheck(threadIsMain());
    if (!counts) return;
    check(!counts->dropped);
    for (size_t id = 1; id < counts->cap; id++) {
        if (counts->users[id]) release(counts, (unsigned)id, counts->users[id]);
    }
    counts->dropped = true;
    if (counts->held == 0) freeCounts(counts);
}

void shapeDropsAdd(shapeDrops *drops, unsigned id) {
    if (id >= drops->cap) {
        size_t cap = sizeRoundUp((size_t)id + 1, DROPS_STEP);
        drops->counts = memRealloc(drops->counts, cap * sizeof(*drops->counts));
        memset(drops->counts + drops->cap, 0, (cap - drops->cap) * sizeof(*drops->counts));
        drops->cap = cap;
    }
    drops->counts[id]++;
}

shapeCounts *shapeCountsHold(void) {
    hotCheck(threadIsMain());
    if (shapes.counts) shapes.counts->held++;
    return shapes.counts;
}

void shapeDropsSettle(shapeDrops *drops, shapeCounts *held) {
    hotCheck(threadIsMain());
    if (held) {
        for (size_t id = 1; id < drops->cap && !held->dropped; id++) {
            if (drops->counts[id]) release(held, (unsigned)id, drops->counts[id]);
        }
        check(held->held > 0);
        if (--held->held == 0 && held->dropped) freeCounts(held);
    } else {
        check(drops->cap == 0);
    }
    memFree(drops->counts);
    *drops = (shapeDrops){NULL, 0};
}

/* ------------------------------------------------------------------ freeing */

void shapesSweep(int64_t now_ms) {
    hotCheck(threadIsMain());
    if (likely(shapes.sweep_next == 0)) {
        if (likely(shapes.count == 0) || now_ms - shapes.swept_ms < SWEEP_MS) return;
        shapes.swept_ms = now_ms;
        shapes.sweep_next = 1;
        shapes.sweep_crowded = shapes.count > shapeLimitsNow.shapes / 2;
    }
    size_t id = shapes.sweep_next;
    size_t looked = 0, removed = 0;
    for (; id < shapes.id_after && looked < SWEEP_LOOKS && removed < SWEEP_REMOVALS; id++) {
        shape *s = shapesById[id];
        looked++;
        if (!s || s->users) continue;
        if (++s->idle < (shapes.sweep_crowded ? IDLE_SWEEPS_CROWDED : IDLE_SWEEPS)) continue;
        removeShape(s);
        removed++;
    }
    shapes.sweep_next = id < shapes.id_after ? id : 0;
}

void shapesFree(void) {
    hotCheck(threadIsMain());
    for (size_t id = 1; id < shapes.id_after; id++) {
        if (shapesById[id]) removeShape(shapesById[id]);
    }
    if (shapes.counts) freeCounts(shapes.counts);
    memFree(shapes.buckets);
    memFree(shapesById);
    shapesById = NULL;
    memset(&shapes, 0, sizeof(shapes));
}

/* ------------------------------------------------------------------ reports */

unsigned shapeFieldCount(const shape *s) { return s->count; }
slice shapeFieldName(const shape *s, unsigned position) { return shapeName(s, position); }
uint64_t shapeUsers(const shape *s) { return s->users; }

uint64_t shapeSaved(const shape *s) {
    uint64_t saved = s->users * userSaves(s), own = memSizeOf(s);
    return saved > own ? saved - own : 0;
}

size_t shapeShare(const shape *s) {
    hotCheck(s->users > 0);
    return memSizeOf(s) / s->users;
}

void shapesGetReport(shapesReport *out) {
    *out = (shapesReport){.shapes = shapes.count, .made = shapes.made, .refused = shapes.refused};
    uint64_t saved = 0;
    for (size_t id = 1; id < shapes.id_after; id++) {
        const shape *s = shapesById[id];
        if (!s) continue;
        out->hashes += s->users;
        out->bytes += memSizeOf(s);
        saved += s->users * userSaves(s);
    }
    out->saved = saved > out->bytes ? saved - out->bytes : 0;
}

size_t shapesLargest(const shape **out, size_t cap) {
    size_t count = 0;
    for (size_t id = 1; id < shapes.id_after; id++) {
        const shape *s = shapesById[id];
        if (!s || shapeSaved(s) == 0) continue;
        size_t at = count < cap ? count++ : cap;
        for (; at > 0 && shapeSaved(out[at - 1]) < shapeSaved(s); at--) {
            if (at < cap) out[at] = out[at - 1];
        }
        if (at < cap) out[at] = s;
    }
    return count;
}
