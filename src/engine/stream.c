/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Invariant: `applied` is at a border between requests outside of MULTI; `pending` is what came since. */
#include "base/base.h"
#include "engine/session_slot.h"
#include "engine/stream_priv.h"

typedef struct streamState {
    uint64_t applied, pending;
    size_t at; /* where the next request begins in the buffer */
} streamState;

static void freeState(session *s, void *state) {
    (void)s; /* it ends */
    memFree(state);
}

static const sessionSlot stream_slot = {.name = "stream", .free = freeState};

static int slotIndex(void) {
    static int index = -1;
    if (index < 0) index = sessionSlotRegister(&stream_slot);
    return index;
}

void streamBegin(session *s, size_t parsed_from) {
    streamState *state = sessionSlotGet(s, slotIndex());
    if (!state) {
        state = memNew(streamState);
        sessionSlotSet(s, slotIndex(), state);
    }
    state->at = parsed_from;
}

void streamSkip(session *s, size_t to) {
    streamState *state = sessionSlotGet(s, slotIndex());
    if (!state) return;
    state->pending += to - state->at;
    state->at = to;
}

uint64_t streamApplied(const session *s) {
    const streamState *state = sessionSlotGet(s, slotIndex());
    return state ? state->applied : 0;
}

void streamRequestDone(session *s, const request *r) {
    streamState *state = sessionSlotGet(s, slotIndex());
    if (!state) return;
    state->pending += r->raw_end - state->at;
    state->at = r->raw_end;
    for (int i = 0; i < r->large_count; i++) state->pending += r->large[i].bytes->len;
    if (s->flags & SESSION_IN_MULTI) return;
    state->applied += state->pending;
    state->pending = 0;
}
