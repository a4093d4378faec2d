/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Simulated connections: two byte streams with delays. A connection can be stalled, or cut after
 * any byte; each end learns of the cut when it has received what was sent before, or not at all
 * until its timeout. */
#ifndef TESTS_SIM_WIRE_H
#define TESTS_SIM_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/str.h"

typedef struct simServer simServer;
struct replPeer;

typedef enum wireSide { WIRE_REPLICA, WIRE_PRIMARY } wireSide;

typedef struct wire {
    struct wire *next;
    uint64_t id;
    simServer *ends[2];          /* by wireSide; NULL: this end is closed */
    str sent[2];                 /* on the way to that side */
    int64_t stalled_until_ms[2]; /* nothing arrives there */
    bool accepted;               /* the primary's side knows it */
    bool cut;                    /* nothing more can be sent */
    struct replPeer *peer;       /* the primary's view of the replica, or NULL */
    str input;                   /* of the primary's side: an incomplete command */
    bool close_when_sent, closing;
} wire;

void wiresReset(void);
wire *wireFirst(void);
/* The replica's side connects. */
wire *wireOpen(simServer *replica, simServer *primary);
/* `side` sends to the other one. */
void wireSend(wire *w, wireSide side, slice bytes);
/* This end is closed: it receives nothing more; the other end learns it after the bytes that were
 * sent. */
void wireClose(wire *w, wireSide side);
/* Takes some bytes that have arrived at `side`, perhaps none; the caller frees them. */
str wireReceive(wire *w, wireSide side, int64_t now_ms);
/* True if the other end has closed and all bytes have arrived. */
bool wireIsEnded(const wire *w, wireSide side);
/* Frees connections whose ends are both closed. */
void wiresSweep(void);

#endif
