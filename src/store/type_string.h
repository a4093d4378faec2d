/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Strings as values of keyspace objects: reading them as text, numbers and bits, and changing them.
 *
 * A change may turn the object into another one: the functions take the object that dbFind() returned and
 * hand back what it has become (the old one is gone), which the caller gives to dbPlace() at once. Key,
 * expire time and LRU stay. Main thread only. */
#ifndef STORE_TYPE_STRING_H
#define STORE_TYPE_STRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"
#include "store/object.h"

/* Bytes of the value; digits for an integer. */
size_t stringLen(const robj *o);
/* The value as an integer; false when its text is none in canonical form. */
bool stringToInt(const robj *o, int64_t *out);
/* The bit at `offset`, the highest of the first byte being 0; false behind the end. */
bool stringBit(const robj *o, uint64_t offset);

/* The value becomes an integer. Nothing is allocated when it fits the object's size class. */
robj *stringSetInt(robj *o, int64_t value) MUST_USE;
/* The value becomes this text, and no integer even if it reads like one. */
robj *stringSetText(robj *o, slice text) MUST_USE;

/* Makes the value raw, at least `len` bytes long (zeros are added) and writable: *bytes is where it stands,
 * until the next change of the keyspace. Grown values get spare room, a block that others hold is copied
 * first. ERR_NO_MEMORY: nothing changed. Amortised O(bytes added). */
status stringStretch(robj **o, size_t len, char **bytes) MUST_USE;
/* A value that stringStretch() has just made writable becomes `len` bytes long, no more than it has. */
void stringCut(robj **o, size_t len);
/* The value becomes these bytes; the reference moves to the object. */
robj *stringSetTake(robj *o, blob *take) MUST_USE;
/* As stringStretch(), for a key that does not exist: makes its object, `len` zeros. */
status stringNewRaw(slice key, size_t len, robj **out, char **bytes) MUST_USE;

#endif
