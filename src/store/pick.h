/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random elements of collections, every choice with the same chance. Main thread only. */
#ifndef STORE_PICK_H
#define STORE_PICK_H

#include <stdbool.h>
#include <stddef.h>

#include "ds/hashtable.h"
#include "ds/listpack.h"

/* Gets an element that was chosen; false: no more are wanted. */
typedef bool pickProc(void *arg, const void *element);

/* Chooses `count` groups of `width` entries, by the place of the first; `unique`: different ones, as many as
 * there are. */
void pickFromListpack(const uint8_t *lp, unsigned width, size_t count, bool unique,
                      listpackGroupProc *pick, void *arg);
/* The same with the entries of a table. */
void pickFromTable(const hashtable *t, const hashtableType *type, size_t count, bool unique,
                   pickProc *pick, void *arg);
/* Bytes all elements of a table take, by those of some; 0 samples: of all. */
size_t pickedMemory(const hashtable *t, const hashtableType *type, size_t samples,
                    size_t (*memory)(const void *element));

#endif
