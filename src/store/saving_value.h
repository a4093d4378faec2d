/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Large values of a snapshot without a fork, in parts: values whose elements are in a table
 * (typeOps.elements), path hashes, lists and streams.
 *
 * A value is opened before its first change or removal, or when the walk over the keyspace meets
 * it, in O(1). From then on the key counts as passed on, and the elements follow in slices: by a
 * walk with a cut of its own, over the value as it is then. An element beyond this cut is put aside
 * before its first change, once; new ones are recorded, so that the walk skips them. A list or
 * stream is passed on by nodes, as they were (ds/quicklist.h, ds/stream.h). A value that is removed
 * while it is open is kept until its end. Values are passed on one after the other, removed ones
 * first; the walk over the keyspace waits for them. Private to the store; main thread only. */
#ifndef STORE_SAVING_VALUE_H
#define STORE_SAVING_VALUE_H

#include "store/db_priv.h"
#include "store/saving.h"

/* The following values are for this saver. None may be open. */
void savingValuesBegin(const storeSaver *to);
/* Opens the value of `o`, a table of elements, paths, a quicklist or a stream, as it is now. O(1);
 * O(nodes) for a list, O(pending entries) for a stream. */
void savingValueOpen(int db_id, const robj *o);
/* Passes on the elements of at most `buckets` buckets; returns false if no value is open. */
bool savingValuesStep(uint64_t buckets);
/* Passes on nothing more, and frees what was kept. */
void savingValuesDrop(void);
/* Values that are open; memory of those that were removed from the keyspace. */
uint64_t savingValuesOpen(void);
size_t savingValuesKeptBytes(void);
/* Memory of what was put aside. */
size_t savingValuesBytes(void);
/* New elements beyond the cuts so far. */
uint64_t savingValuesAdded(void);

/* ---- while storeNow.saving_values is set ---- */

/* Before an element of this value is changed, and before or after it is removed, but before it is
 * freed. */
void savingElementBefore(const void *value, const void *element);
/* After an element was inserted. */
void savingElementAdded(const void *value, const void *element);
/* The same for a path of a path hash: before its fields are changed or removed; when it is new. */
void savingPathBefore(const void *value, slice path, const struct pathFields *fields);
void savingPathAdded(const void *value, slice path);
/* The value has another address; NULL: it has no elements any more. */
void savingValueMoved(const void *from, void *to);
bool savingValueIsOpen(const void *value);
/* The value is removed. True: it was taken over, and is not to be freed. */
bool savingValueKeep(const void *value);

ALWAYS_INLINE void beforeElement(const void *value, const void *element) {
    if (unlikely(storeNow.saving_values)) savingElementBefore(value, element);
}

ALWAYS_INLINE void beforePath(const void *value, slice path, const struct pathFields *fields) {
    if (unlikely(storeNow.saving_values)) savingPathBefore(value, path, fields);
}

ALWAYS_INLINE void pathAdded(const void *value, slice path) {
    if (unlikely(storeNow.saving_values)) savingPathAdded(value, path);
}

ALWAYS_INLINE void elementAdded(const void *value, const void *element) {
    if (unlikely(storeNow.saving_values)) savingElementAdded(value, element);
}

/* Stores the address of a value, which may be another one than before. */
ALWAYS_INLINE void putValue(robj *o, void *value) {
    if (likely(objectPointer(o) == value)) return;
    if (unlikely(storeNow.saving_values)) savingValueMoved(objectPointer(o), value);
    objectSetPointer(o, value);
}

#endif
