/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lists of what modules have registered: listeners, subscribers, filters. While a list is walked,
 * callbacks of its entries may add and remove others: an entry that is removed then is freed after
 * the outermost walk. A zeroed list is empty. Main thread only. */
#ifndef MODULE_OWNED_H
#define MODULE_OWNED_H

#include <stdbool.h>

#include "ds/list.h"
#include "module/registry.h"

/* The first field of an entry, which is a block of memAlloc(). */
typedef struct ownedEntry {
    listNode node;
    module *owner; /* NULL: it was removed during a walk */
} ownedEntry;

typedef struct ownedList {
    list all;
    int walks; /* nested in each other */
    int live;  /* entries with an owner */
} ownedList;

/* Appends an entry, which belongs to the list from now on. */
void ownedAdd(ownedList *l, ownedEntry *e, module *owner);
/* Removes an entry that has an owner, and frees it now or after the walks. */
void ownedRemove(ownedList *l, ownedEntry *e);
/* Removes those of a module; returns their number. */
int ownedRemoveAll(ownedList *l, const module *m);

/* The first entry with an owner, and the one after `e`; NULL: there is none. */
void *ownedFirst(const ownedList *l);
void *ownedNext(const ownedList *l, const ownedEntry *e);
/* Around a loop of these two that calls modules. */
void ownedWalkBegin(ownedList *l);
void ownedWalkEnd(ownedList *l);

#endif
