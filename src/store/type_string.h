/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Strings as values of keyspace objects: reading them as text, numbers and bits, and modifying
 * them.
 *
 * A change may replace the object: functions take the object returned by dbFind() and return the
 * resulting one (the old one is invalid), which the caller must pass to dbPlace() immediately. Key,
 * expiry time and LRU are kept. Main thread only. */
#ifndef STORE_TYPE_STRING_H
#define STORE_TYPE_STRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"
#include "store/object.h"

/* Length of the value in bytes; of its digits for an integer. */
size_t stringLen(const robj *o);
/* The value as an integer; false if its text is not one in canonical form. */
bool stringToInt(const robj *o, int64_t *out);
/* The bit at `offset`, counted from the most significant bit of the first byte; false beyond the
 * end. */
bool stringBit(const robj *o, uint64_t offset);

/* Sets the value to an integer. Allocates nothing if it fits the object's size class. */
robj *stringSetInt(robj *o, int64_t value) MUST_USE;
/* Sets the value to this text, stored as text even if it is an integer. */
robj *stringSetText(robj *o, slice text) MUST_USE;

/* Makes the value raw, writable and at least `len` bytes long (zeros are appended): *bytes is its
 * address until the next change of the keyspace. Growing reserves spare capacity; a shared blob is
 * copied first. ERR_NO_MEMORY: nothing changed. Amortised O(bytes added). */
status stringStretch(robj **o, size_t len, char **bytes) MUST_USE;
/* Truncates a value that stringStretch() has just made writable to `len` bytes. */
void stringCut(robj **o, size_t len);
/* Sets the value to these bytes; the reference moves to the object. */
robj *stringSetTake(robj *o, blob *take) MUST_USE;
/* Like stringStretch() for a missing key: creates its object with `len` zeros. */
status stringNewRaw(slice key, size_t len, robj **out, char **bytes) MUST_USE;

#endif
