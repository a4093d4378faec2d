/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random elements of collections with uniform probability. Main thread only. */
#ifndef STORE_PICK_H
#define STORE_PICK_H

#include <stdbool.h>
#include <stddef.h>

#include "ds/hashtable.h"
#include "ds/listpack.h"

/* Receives a chosen element; returns false to stop. */
typedef bool pickProc(void *arg, const void *element);

/* Chooses `count` groups of `width` entries and passes the address of the first one; `unique`: distinct ones, as many
 * as there are. */
void pickFromListpack(const uint8_t *lp, unsigned width, size_t count, bool unique,
                      listpackGroupProc *pick, void *arg);
/* Like pickFromListpack(), for the entries of a table. */
void pickFromTable(const hashtable *t, const hashtableType *type, size_t count, bool unique,
                   pickProc *pick, void *arg);
/* Memory of all elements of a table, estimated from `samples` elements; 0: all. */
size_t pickedMemory(const hashtable *t, const hashtableType *type, size_t samples,
                    size_t (*memory)(const void *element));

#endif
