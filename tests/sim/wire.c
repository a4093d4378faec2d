/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire.h"

#include "base/base.h"
#include "base/random.h"

static struct {
    wire *first;
    uint64_t last_id;
} wires;

static void freeWire(wire *w) {
    for (int side = 0; side < 2; side++) strFree(&w->sent[side]);
    strFree(&w->input);
    memFree(w);
}

void wiresReset(void) {
    while (wires.first) {
        wire *next = wires.first->next;
        freeWire(wires.first);
        wires.first = next;
    }
    wires.last_id = 0;
}

wire *wireFirst(void) { return wires.first; }

wire *wireOpen(simServer *replica, simServer *primary) {
    wire *w = memCalloc(1, sizeof(*w));
    w->id = ++wires.last_id;
    w->ends[WIRE_REPLICA] = replica;
    w->ends[WIRE_PRIMARY] = primary;
    wire **at = &wires.first;
    while (*at) at = &(*at)->next;
    *at = w;
    return w;
}

void wireSend(wire *w, wireSide side, slice bytes) {
    int to = !side;
    if (w->cut || !w->ends[to]) return;
    strAppendSlice(&w->sent[to], bytes);
}

void wireClose(wire *w, wireSide side) {
    w->ends[side] = NULL;
    strFree(&w->sent[side]);
}

str wireReceive(wire *w, wireSide side, int64_t now_ms) {
    str got = STR_EMPTY;
    str *from = &w->sent[side];
    if (!from->len || now_ms < w->stalled_until_ms[side]) return got;
    size_t n = randomUniform(3) ? from->len : 1 + randomUniform(from->len);
    strAppend(&got, from->ptr, n);
    memmove(from->ptr, from->ptr + n, from->len - n);
    strCut(from, from->len - n);
    return got;
}

bool wireIsEnded(const wire *w, wireSide side) {
    return (w->cut || !w->ends[!side]) && !w->sent[side].len;
}

void wiresSweep(void) {
    for (wire **at = &wires.first; *at;) {
        wire *w = *at;
        if (w->ends[0] || w->ends[1]) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        freeWire(w);
    }
}
