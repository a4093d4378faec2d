/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The registry of session slots. Invariant: the meaning of an index never changes. */
#include "engine/session_slot.h"

#include "base/base.h"
#include "engine/session_priv.h"

static struct {
    const sessionSlot **list;
    int count;
} registry;

int sessionSlotRegister(const sessionSlot *slot) {
    for (int i = 0; i < registry.count; i++) {
        if (registry.list[i] == slot) return i;
    }
    registry.list =
        memRealloc(registry.list, (size_t)(registry.count + 1) * sizeof(*registry.list));
    registry.list[registry.count] = slot;
    return registry.count++;
}

void sessionSlotSet(session *s, int index, void *state) {
    hotCheck(threadIsMain());
    check(index >= 0);
    check(index < registry.count);
    int had = s->slots ? s->slots->count : 0;
    if (index >= had) {
        if (!state) return;
        size_t size = sizeof(sessionSlots) + (size_t)registry.count * sizeof(void *);
        s->slots = memRealloc(s->slots, size);
        memset(s->slots->at + had, 0, (size_t)(registry.count - had) * sizeof(void *));
        s->slots->count = registry.count;
    }
    s->slots->at[index] = state;
}

void sessionSlotsClear(session *s) {
    hotCheck(threadIsMain());
    for (int i = 0; s->slots && i < s->slots->count; i++) {
        void *state = s->slots->at[i];
        s->slots->at[i] = NULL;
        if (state && registry.list[i]->free) registry.list[i]->free(s, state);
    }
    memFree(s->slots);
    s->slots = NULL;
}

size_t sessionSlotMemory(const session *s) {
    hotCheck(!s->slots || s->slots->count <= registry.count);
    if (!s->slots) return 0;
    size_t bytes = memSizeOf(s->slots);
    for (int i = 0; i < s->slots->count; i++) {
        const sessionSlot *slot = registry.list[i];
        if (s->slots->at[i] && slot->memory) bytes += slot->memory(s->slots->at[i]);
    }
    return bytes;
}
