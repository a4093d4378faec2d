/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Slots: what a subsystem keeps for each session (subscriptions, tracking, a replica's state, a module's data), so that
 * `session` has no field per subsystem. A subsystem registers once and gets an index; a session that nobody keeps
 * anything for owns no array. Reading is two loads. Main thread only. */
#ifndef ENGINE_SESSION_SLOT_H
#define ENGINE_SESSION_SLOT_H

#include <stddef.h>

#include "engine/session.h"

/* A const struct with static lifetime. */
typedef struct sessionSlot {
    const char *name;
    /* Frees what the slot holds: when the session ends, after hook 6. */
    void (*free)(session *s, void *state);
    /* Bytes of memory that it takes; NULL: not counted. */
    size_t (*memory)(const void *state);
} sessionSlot;

/* Returns the index for the functions below; the same one for the same slot. At any time. */
int sessionSlotRegister(const sessionSlot *slot);

typedef struct sessionSlots {
    int count;
    void *at[];
} sessionSlots;

/* NULL when nothing was set. */
static inline void *sessionSlotGet(const session *s, int index) {
    const sessionSlots *slots = s->slots;
    return slots && index < slots->count ? slots->at[index] : NULL;
}
/* Replaces what the slot holds, which the caller has freed. `state` belongs to the slot; NULL: nothing. */
void sessionSlotSet(session *s, int index, void *state);
/* Bytes of memory all slots of the session take. */
size_t sessionSlotMemory(const session *s);

#endif
