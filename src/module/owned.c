/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lists of what modules have registered (owned.h): walks during which entries may be removed. */
#include "module/owned.h"

#include "base/base.h"

static ownedEntry *entryAt(listNode *n) { return n ? LIST_OWNER(n, ownedEntry, node) : NULL; }

static void *skipRemoved(const ownedList *l, listNode *n) {
    while (n && !entryAt(n)->owner) n = listNext(&l->all, n);
    return entryAt(n);
}

void *ownedFirst(const ownedList *l) { return l->live ? skipRemoved(l, listFirst(&l->all)) : NULL; }

void *ownedNext(const ownedList *l, const ownedEntry *e) {
    hotCheck(listHas(&e->node));
    return skipRemoved(l, listNext(&l->all, &e->node));
}

void ownedAdd(ownedList *l, ownedEntry *e, module *owner) {
    check(owner);
    if (!l->all.head.next) listInit(&l->all);
    e->owner = owner;
    listAppend(&l->all, &e->node);
    l->live++;
}

static void freeRemoved(ownedList *l) {
    hotCheck(l->live >= 0);
    hotCheck(!l->walks);
    listNode *next;
    for (listNode *n = listFirst(&l->all); n; n = next) {
        next = listNext(&l->all, n);
        if (entryAt(n)->owner) continue;
        listRemove(&l->all, n);
        memFree(entryAt(n));
    }
    check(l->all.count == (size_t)l->live);
}

void ownedRemove(ownedList *l, ownedEntry *e) {
    check(e->owner);
    hotCheck(l->live > 0);
    e->owner = NULL;
    l->live--;
    if (!l->walks) freeRemoved(l);
}

int ownedRemoveAll(ownedList *l, const module *m) {
    check(m);
    int before = l->live;
    ownedEntry *next;
    for (ownedEntry *e = ownedFirst(l); e; e = next) {
        next = ownedNext(l, e);
        if (e->owner == m) ownedRemove(l, e);
    }
    return before - l->live;
}

void ownedWalkBegin(ownedList *l) {
    hotCheck(l->walks >= 0);
    l->walks++;
}

void ownedWalkEnd(ownedList *l) {
    hotCheck(l->walks > 0);
    if (!--l->walks && l->all.head.next && l->all.count != (size_t)l->live) freeRemoved(l);
}
