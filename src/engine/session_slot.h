/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Session slots: state that a subsystem keeps for a session (subscriptions, tracking, a replica's
 * state, a module's data), so that `session` has no field per subsystem. A subsystem registers once
 * and gets an index; a session without such state has no array. Reading takes two loads. Main
 * thread only. */
#ifndef ENGINE_SESSION_SLOT_H
#define ENGINE_SESSION_SLOT_H

#include <stddef.h>

#include "engine/session.h"

/* A const struct with static lifetime. */
typedef struct sessionSlot {
    const char *name;
    /* Frees the contents of the slot when the session ends, after on_session(). */
    void (*free)(session *s, void *state);
    /* Memory of the contents in bytes; NULL: not counted. */
    size_t (*memory)(const void *state);
} sessionSlot;

/* Returns the index for the functions below; always the same for the same slot. May be called at
 * any time. */
int sessionSlotRegister(const sessionSlot *slot);

typedef struct sessionSlots {
    int count;
    void *at[];
} sessionSlots;

/* NULL if nothing was set. */
static inline void *sessionSlotGet(const session *s, int index) {
    const sessionSlots *slots = s->slots;
    return slots && index < slots->count ? slots->at[index] : NULL;
}
/* Replaces the contents of the slot, which the caller has freed. The slot owns `state`; NULL:
 * empty. */
void sessionSlotSet(session *s, int index, void *state);
/* Memory of all slots of the session in bytes. */
size_t sessionSlotMemory(const session *s);

#endif
