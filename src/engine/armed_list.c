/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lists of what is armed (armed_list.h). Invariant: there are holes only while a round runs. */
#include "engine/armed_list.h"

#include "base/base.h"

uint8_t armedListSet(armedList *l, const void *item, bool on) {
    check(item != NULL);
    uint32_t at = 0;
    while (at < l->count && l->items[at] != item) at++;
    if (on && at == l->count) {
        if (l->count == l->cap) {
            l->cap = l->cap ? 2 * l->cap : 4;
            l->items = memRealloc(l->items, l->cap * sizeof(*l->items));
        }
        l->items[l->count++] = item;
    } else if (!on && at < l->count) {
        l->items[at] = NULL;
        l->holes++;
        if (!l->rounds) armedListCloseHoles(l);
    }
    check(armedListCount(l) <= UINT8_MAX);
    return (uint8_t)armedListCount(l);
}

void armedListCloseHoles(armedList *l) {
    check(!l->rounds);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < l->count; i++) {
        if (l->items[i]) l->items[kept++] = l->items[i];
    }
    check(kept == l->count - l->holes);
    l->count = kept;
    l->holes = 0;
}

void armedListRemoveAll(armedList *l) {
    for (uint32_t i = 0; i < l->count; i++) l->items[i] = NULL;
    l->holes = l->count;
    if (!l->rounds) armedListCloseHoles(l);
}

void armedListClear(armedList *l) {
    memFree(l->items);
    *l = (armedList){0};
}
