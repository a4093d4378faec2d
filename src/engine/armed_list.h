/* SPDX-License-Identifier: BSD-3-Clause
 *
 * armedList: what is armed at run time (sinks, observers, filters), in the order of arming. While
 * members are called, any of them may be disarmed, itself included, and others armed: those are
 * called in this round, too. Private to engine/. Main thread only. */
#ifndef ENGINE_ARMED_LIST_H
#define ENGINE_ARMED_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"

/* Zeroed memory is an empty list. */
typedef struct armedList {
    const void **items; /* NULL where one was disarmed during a round */
    uint32_t count, cap;
    uint32_t holes;
    uint32_t rounds; /* nested ones that run */
} armedList;

/* Adds `item` unless it is there, or removes it; returns how many are armed, at most UINT8_MAX. */
uint8_t armedListSet(armedList *l, const void *item, bool on);
void armedListRemoveAll(armedList *l);
void armedListClear(armedList *l);
void armedListCloseHoles(armedList *l);
static inline uint32_t armedListCount(const armedList *l) { return l->count - l->holes; }

/* A round: calls of each member in order. */
static inline uint32_t armedListBegin(armedList *l) {
    l->rounds++;
    return 0;
}
/* The next member; NULL at the end, which ends the round. */
static inline const void *armedListNext(armedList *l, uint32_t *at) {
    while (*at < l->count) {
        const void *item = l->items[(*at)++];
        if (likely(item != NULL)) return item;
    }
    if (!--l->rounds && unlikely(l->holes)) armedListCloseHoles(l);
    return NULL;
}

#endif
