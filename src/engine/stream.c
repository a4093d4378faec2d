/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Invariant: `applied` is at a border between requests outside of MULTI, before a request that runs
 * as a job; `held` has the bytes from there up to `seen` that are no longer in the session's
 * buffer. */
#include "engine/stream_priv.h"

#include "base/base.h"
#include "engine/hot.h"
#include "engine/session_slot.h"

typedef struct streamState {
    const streamOwner *owner;
    uint64_t applied, seen;
    uint64_t transaction; /* where the open transaction begins; only in MULTI */
    str held;
    /* The current run; `requests` is NULL between runs. */
    const char *buf;
    const request *requests;
    size_t at; /* where the next request begins in the buffer */
    int db_id; /* selected at `applied`; -1: its owner was told */
} streamState;

static int running; /* streams with `requests` */

bool streamIsRunning(void) { return running > 0; }

static void freeState(session *s, void *state) {
    (void)s; /* it ends */
    if (((streamState *)state)->requests) running--;
    strFree(&((streamState *)state)->held);
    memFree(state);
}

static const sessionSlot stream_slot = {.name = "stream", .free = freeState};

static int slotIndex(void) {
    static int index = -1;
    if (index < 0) index = sessionSlotRegister(&stream_slot);
    return index;
}

static streamState *stateOf(const session *s) { return sessionSlotGet(s, slotIndex()); }

static streamState *addState(session *s, const streamOwner *owner) {
    streamState *state = memNew(streamState);
    *state = (streamState){.owner = owner};
    sessionSlotSet(s, slotIndex(), state);
    return state;
}

void streamOpen(session *s, ctxOrigin origin, const streamOwner *owner) {
    check(origin == ORIGIN_PRIMARY || origin == ORIGIN_IMPORT);
    check(!stateOf(s));
    (void)addState(s, owner); /* it is in the slot */
    /* Another node has logged in to hand over a slot: the rights of its user count. */
    if (origin == ORIGIN_PRIMARY) sessionSetAuthenticated(s, NULL, true);
    sessionSetOrigin(s, origin);
    outbufSetNullSink(&s->out, true);
}

/* Replies are dropped, so there is never an incomplete one in the output. */
void streamSend(session *s, slice bytes) {
    check(outbufIsNull(&s->out));
    outbufSetNullSink(&s->out, false);
    outbufAppend(&s->out, bytes.ptr, bytes.len);
    outbufSetNullSink(&s->out, true);
    sessionWantWrite(s);
}

void streamBegin(session *s, const char *buf, size_t from, const request *requests) {
    hotCheck(threadIsMain());
    streamState *state = stateOf(s);
    if (!state) state = addState(s, NULL); /* counted, and told to nobody */
    if (!state->held.len) state->db_id = s->db_id;
    state->buf = buf;
    state->at = from;
    if (!state->requests) running++;
    state->requests = requests;
}

/* ------------------------------------------------------------------ the bytes */

/* The next bytes after `seen`, all of them applied or none. */
static void take(session *s, slice bytes, bool is_applied) {
    streamState *state = stateOf(s);
    if (bytes.len == 0) return;
    state->seen += bytes.len;
    if (!state->owner || !state->owner->applied) return;
    if (!is_applied) {
        strAppendSlice(&state->held, bytes);
        return;
    }
    slice spans[2] = {strSlice(&state->held), bytes};
    int first = state->held.len ? 0 : 1;
    int db_id = state->db_id;
    state->db_id = -1;
    state->owner->applied(s, db_id, spans + first, 2 - first);
    if (state->held.len) strFree(&state->held);
}

/* The same for bytes that may be on both sides of the border. */
static void takeAround(session *s, slice bytes, uint64_t border) {
    const streamState *state = stateOf(s);
    size_t before = state->seen < border ? sizeMin(bytes.len, (size_t)(border - state->seen)) : 0;
    take(s, sliceMake(bytes.ptr, before), true);
    take(s, sliceMake(bytes.ptr + before, bytes.len - before), false);
}

static uint64_t largeBytes(const request *r) {
    uint64_t sum = 0;
    for (int i = 0; i < r->large_count; i++) sum += r->large[i].bytes->len;
    return sum;
}

/* Number of the bytes before request `index` of the run, or before the one after the last. */
static uint64_t positionOf(const streamState *state, int index) {
    if (index == 0) return state->seen;
    uint64_t position = state->seen + (state->requests[index - 1].raw_end - state->at);
    for (int i = 0; i < index; i++) position += largeBytes(&state->requests[i]);
    return position;
}

void streamEnd(session *s, int ran) {
    hotCheck(threadIsMain());
    streamState *state = stateOf(s);
    if (!state || !state->requests) return;
    const request *requests = state->requests;
    if (ran) {
        int applied = s->flags & SESSION_BLOCKED ? ran - 1 : ran;
        uint64_t border =
            s->flags & SESSION_IN_MULTI ? state->transaction : positionOf(state, applied);
        for (int i = 0; i < ran; i++) {
            const request *r = &requests[i];
            for (int k = 0; k < r->large_count; k++) {
                size_t gap = (size_t)(r->raw.ptr - state->buf) + r->large[k].gap_at;
                takeAround(s, sliceMake(state->buf + state->at, gap - state->at), border);
                takeAround(s, sliceMake(r->large[k].bytes->bytes, r->large[k].bytes->len), border);
                state->at = gap;
            }
        }
        size_t end = requests[ran - 1].raw_end;
        takeAround(s, sliceMake(state->buf + state->at, end - state->at), border);
        state->at = end;
        state->applied = border;
    }
    state->requests = NULL;
    running--;
    check(running >= 0);
}

void streamWaited(session *s) {
    hotCheck(!(s->flags & SESSION_IN_MULTI));
    streamState *state = stateOf(s);
    if (!state) return;
    /* It ended in its first slice, or was the last command before others that were woken: the bytes
     * of the run are not counted yet, and streamEnd() finds the session not blocked. */
    if (state->requests) return;
    state->applied = state->seen;
    if (!state->held.len) return;
    str held = state->held;
    slice bytes = strSlice(&held);
    int db_id = state->db_id;
    state->held = STR_EMPTY;
    state->db_id = -1;
    state->owner->applied(s, db_id, &bytes, 1);
    strFree(&held);
}

void streamSkip(session *s, size_t to) {
    hotCheck(threadIsMain());
    streamState *state = stateOf(s);
    if (!state || !state->buf) return;
    take(s, sliceMake(state->buf + state->at, to - state->at), false);
    state->buf = NULL;
}

/* ------------------------------------------------------------------ positions */

uint64_t streamApplied(const session *s) {
    const streamState *state = stateOf(s);
    return state ? state->applied : 0;
}

uint64_t streamReceived(const session *s) {
    const streamState *state = stateOf(s);
    return state ? state->seen : 0;
}

uint64_t streamBefore(const session *s) {
    const streamState *state = stateOf(s);
    const ctx *c = engineHot.current;
    while (c && c->outer) c = c->outer;
    if (!state || !state->requests || !c || c->who != s || !c->request) return streamApplied(s);
    return positionOf(state, (int)(c->request - state->requests));
}

void streamOpenTransaction(session *s) {
    streamState *state = stateOf(s);
    if (state) state->transaction = streamBefore(s);
}

/* ------------------------------------------------------------------ failures */

void streamCommandFailed(ctx *c, slice error) {
    const streamState *state = stateOf(c->who);
    if (state && state->owner && state->owner->failed) state->owner->failed(c, error);
}

void streamBreak(session *s, slice error) {
    const streamState *state = stateOf(s);
    if (state && state->owner && state->owner->broken) state->owner->broken(s, error);
}
