/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random elements of collections with uniform probability. Within a fiber (base/fiber.h) the loops
 * may be suspended, and end early if nobody wants the result. Main thread only. */
#ifndef STORE_RANDOM_ELEMENTS_H
#define STORE_RANDOM_ELEMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "ds/hashtable.h"
#include "ds/listpack.h"

/* Receives a chosen element; returns false to stop. */
typedef bool randomElementProc(void *arg, const void *element);

/* Chooses `count` groups of `width` entries and passes the address of the first one; `unique`:
 * distinct ones, as many as there are. */
void randomFromListpack(const uint8_t *lp, unsigned width, size_t count, bool unique,
                        listpackGroupProc *pick, void *arg);
/* Like randomFromListpack(), for the entries of a table. */
void randomFromTable(const hashtable *t, const hashtableType *type, size_t count, bool unique,
                     randomElementProc *pick, void *arg);
/* Memory of all elements of a table, estimated from `samples` elements; 0: all. */
size_t sampledMemory(const hashtable *t, const hashtableType *type, size_t samples,
                     size_t (*memory)(const void *element));

#endif
