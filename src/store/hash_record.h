/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Records: packed hashes whose field names are in a shape (FORM_SHAPED). In place of a listpack the
 * object has
 *
 *   [number of the shape: 2] [value]...
 *
 * one value for each field, in the order of the shape, as a listpack stores it but without the
 * length after it. A record has at least one field and holds a reference to its shape. It has
 * no expiry times of fields. Functions that change a record return the resulting object, as in
 * type_hash.h. Main thread only, except recordShapeId() and where said. */
#ifndef STORE_HASH_RECORD_H
#define STORE_HASH_RECORD_H

#include <stdbool.h>

#include "store/object.h"
#include "store/shape_priv.h"
#include "store/type_hash.h"

/* In larger hashes the names are a small part of the memory, so these are not records. */
enum { RECORD_SIZE_MAX = 1 << 16, RECORD_HEAD = sizeof(uint16_t) };

static inline unsigned recordShapeId(const robj *o) {
    hotCheck(objectIsShaped(o));
    return loadU16(objectPacked(o));
}
static inline const shape *recordShape(const robj *o) { return shapeById(recordShapeId(o)); }
/* The number of the shape of which this object, compressed or not, is a user; 0: none. ANY_THREAD
 * that owns it. */
unsigned recordShapeNumber(const robj *o);
/* The first value. */
static inline const uint8_t *recordValues(const robj *o) { return objectPacked(o) + RECORD_HEAD; }

/* A new record of `count` words, alternating field and value; NULL if they have no shape or exceed
 * the limits. */
robj *recordOfPairs(slice key, const slice *words, size_t count, const packLimits *limits) MUST_USE;
/* The same of a listpack; see hashNewShaped(). */
robj *recordOfListpack(slice key, const uint8_t *lp) MUST_USE;

/* A listpack whose names have changed becomes a record if they are those of a shape that was found
 * lately. Costs steps over half of the entries if not. */
robj *recordAgain(robj *o) MUST_USE;

/* All values, borrowed. */
slice recordValueBytes(const robj *o);
bool recordGet(const robj *o, slice field, char *digits, slice *value);
/* Sets a field. False: there is no such record, and nothing was done. `value` must not point into
 * the object. */
bool recordSetField(robj **o, slice field, slice value, const packLimits *limits,
                    bool *created) MUST_USE;
/* Adds those of `count` words, alternating field and value, whose fields the record does not have,
 * if they are several and a shape has all of them. Returns their number. 0: nothing was added, but
 * the hash may be a listpack now. */
size_t recordAddPairs(robj **o, const slice *words, size_t count, const packLimits *limits);
/* Removes a field, false if it is missing. The hash may be a listpack, and empty, then. */
bool recordDeleteField(robj **o, slice field);
/* The same hash as a listpack in the object. */
robj *recordToPacked(robj *o) MUST_USE;
/* The listpack of the hash; valid until the next call. */
slice recordListpack(const robj *o);
/* Visits `count` random pairs, distinct ones if `unique`; see hashRandom(). */
void recordRandom(const robj *o, size_t count, bool unique, hashVisitProc *visit, void *arg);
/* Frees the buffer of these functions. */
void recordFreeBuffer(void);

#endif
