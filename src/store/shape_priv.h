/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shapes for the code that stores hashes (shape.h): finding, making and counting them.
 *
 * A shape is made when enough hashes (SHAPE_HASHES_MIN) with the same names have been seen; until
 * then only a hash of the names is counted, in a table of fixed size, so names that nobody shares
 * take no memory. A shape is freed some time after its last user. Its number is valid as long as
 * it has users. Main thread only, except where said otherwise. */
#ifndef STORE_SHAPE_PRIV_H
#define STORE_SHAPE_PRIV_H

#include <stdbool.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "store/shape.h"

/* Hashes with the same names that are needed for a shape. */
#ifdef HOSTILE_BUILD
enum { SHAPE_HASHES_MIN = 2 };
#else
enum { SHAPE_HASHES_MIN = 16 };
#endif

struct shape {
    uint64_t users;         /* in all keyspaces */
    uint64_t chain;         /* hash of the names in their order */
    shape *next;            /* in its bucket of the table by `chain` */
    uint32_t entries_size;  /* bytes of `entries` */
    uint16_t id;            /* from 1 on */
    uint16_t successor;     /* of the shape that was last found by adding a field; 0: none */
    uint16_t mask;          /* size of `index`, a power of two, less 1 */
    uint8_t count;          /* of fields */
    uint8_t idle;           /* sweeps in which it had no users */
    const uint8_t *index;   /* open addressing by hashUnkeyed(): position + 1, 0: none */
    const char *text;       /* the names, one after the other */
    const uint8_t *entries; /* the names as entries of a listpack, one after the other */
    const uint16_t *start;  /* offsets of the names in `text`, and the end of the last one */
};

extern shapeLimits shapeLimitsNow;
/* By number. */
extern shape **shapesById;

static inline const shape *shapeById(unsigned id) {
    hotCheck(shapesById[id] != NULL);
    return shapesById[id];
}

/* NULL if there is none with this number. */
const shape *shapeOfId(unsigned id);

ALWAYS_INLINE slice shapeName(const shape *s, unsigned position) {
    hotCheck(position < s->count);
    return sliceMake(s->text + s->start[position], s->start[position + 1] - s->start[position]);
}

ALWAYS_INLINE bool shapeNameEquals(const char *own, slice name) {
    if (likely(bytesAreWords(name.len))) return bytesEqualWords(own, name.ptr, name.len);
    if (name.len > 4) return memcmp(own, name.ptr, name.len) == 0;
    return name.len == 0 || (own[0] == name.ptr[0] && own[name.len / 2] == name.ptr[name.len / 2] &&
                             own[name.len - 1] == name.ptr[name.len - 1]);
}

/* The position of a field, -1 if the shape does not have it. */
ALWAYS_INLINE int shapeFind(const shape *s, slice name) {
    unsigned at = hashUnkeyed(name.ptr, name.len) & s->mask;
    for (unsigned i; (i = s->index[at]); at = (at + 1) & s->mask) {
        const uint16_t *start = s->start + i - 1;
        size_t len = (size_t)(start[1] - start[0]);
        if (len == name.len && likely(shapeNameEquals(s->text + start[0], name))) return (int)i - 1;
    }
    return -1;
}

/* The shape with these names, `names[0]`, `names[stride]` and so on, in this order. NULL if there
 * is none: then this counts as one more hash that has them, and may make the shape. */
const shape *shapeFor(const slice *names, size_t count, unsigned stride);
/* A shape that was found or made lately, with so many names of which these are the first, the
 * middle (`count` / 2) and the last one; NULL if there is none. Counts nothing. O(1). */
const shape *shapeGuess(slice first, slice middle, slice last, size_t count);
/* The same as shapeFor() for the names of `s` and another one. */
const shape *shapeAfter(const shape *s, slice name);

/* One more, or one less, hash of the keyspace in use has the shape. */
void shapeRetain(const shape *s);
void shapeRelease(const shape *s);
/* Memory of the shape, divided by its users. */
size_t shapeShare(const shape *s);

/* Frees shapes that nobody has used for some time; called at every tick. */
void shapesSweep(int64_t now_ms);
/* Frees all shapes; no hash may have one. */
void shapesFree(void);

/* ---- users of each keyspace ---- */

/* How many hashes of a keyspace have each shape: so objects can be freed with their memory,
 * without being visited. */
typedef struct shapeCounts shapeCounts;
/* Makes these the counts of the keyspace in use; NULL: new ones. Returns the previous ones, NULL if
 * nothing was counted. */
shapeCounts *shapeCountsUse(shapeCounts *counts);
/* The keyspace has no hashes any more: they were freed with its memory. NULL is allowed. */
void shapeCountsDrop(shapeCounts *counts);
/* Users of one shape in the counts in use. */
uint64_t shapeCountNow(const shape *s);

/* Hashes that another thread frees: numbers of users by shape. All zero at first. */
typedef struct shapeDrops {
    uint64_t *counts;
    size_t cap;
} shapeDrops;
/* Notes one. ANY_THREAD that owns it. */
void shapeDropsAdd(shapeDrops *drops, unsigned id);
/* The counts in use, which shall be kept until shapeDropsSettle(); NULL if there are none. */
shapeCounts *shapeCountsHold(void);
/* Subtracts what was freed from counts of shapeCountsHold(), and frees `drops`. */
void shapeDropsSettle(shapeDrops *drops, shapeCounts *held);

#endif
