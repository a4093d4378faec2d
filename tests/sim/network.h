/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A simulated network: hosts with clocks, and connections of two byte streams between them. It
 * knows nothing of who uses it, so replication, the cluster bus and Sentinel share it. All
 * randomness is from base/random, so a seed repeats a run exactly.
 *
 * As with TCP, bytes of a connection arrive in order and once, or not at all: a lost packet is a
 * stall. Connections overtake each other. A connection can be stalled, or cut after any byte; each
 * end notices the cut when it has received what was sent before. A path between two hosts can be
 * blocked in either direction: then nothing arrives, not even the end of a connection, until it is
 * opened again. */
#ifndef TESTS_SIM_NETWORK_H
#define TESTS_SIM_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/str.h"

enum { NETWORK_HOSTS_MAX = 96 };

/* The time by which the network runs. */
extern int64_t sim_now_ms;

/* ---- hosts ---- */

/* A network of `hosts` hosts, none of which is up, without connections and faults. Bytes take
 * between the two delays. */
void networkReset(int hosts, int64_t delay_min_ms, int64_t delay_max_ms);
/* A host that is not up refuses connections. Who uses it closes its ends of connections. */
void networkSetUp(int host, bool up);
bool networkIsUp(int host);
/* A paused host does nothing and notices nothing; its connections stay. */
void networkPause(int host, int64_t until_ms);
bool networkIsPaused(int host);
/* The clock of a host: sets it ahead of the time by that much, and lets it gain so many parts in a
 * million from now on. */
void networkSetClock(int host, int64_t ahead_ms, int64_t drift_ppm);
int64_t networkClock(int host);

/* ---- paths ---- */

void networkBlock(int from, int to, bool blocked);
bool networkIsBlocked(int from, int to);
/* Separates the hosts whose bit is set from the others, in both directions. */
void networkPartition(uint32_t hosts);
/* Ends blocks, stalls and pauses. */
void networkHeal(void);

/* ---- connections ---- */

typedef enum wireSide { WIRE_CONNECTOR, WIRE_ACCEPTOR } wireSide;

typedef struct wireArrival {
    size_t end; /* bytes up to here */
    int64_t at_ms;
} wireArrival;

typedef struct wire {
    struct wire *next;
    uint64_t id;
    int hosts[2];   /* by wireSide */
    void *ends[2];  /* who has that end; NULL: it is closed */
    void *state[2]; /* what that end keeps about the connection; it frees it before it closes */
    str sent[2];    /* on the way to that side */
    wireArrival *arrivals[2];
    int arrival_count[2];
    int64_t stalled_until_ms[2]; /* nothing arrives there */
    int64_t opens_ms;
    int kind; /* of who uses it; 0 at first */
    bool established;
    bool cut;    /* nothing more can be sent */
    bool silent; /* nothing more arrives */
} wire;

wire *wireFirst(void);
/* A random one, NULL: there is none. */
wire *wireAny(void);
/* Connects. NULL: the host refuses. The connection is established later if the path takes time. */
wire *wireOpen(int from, void *connector, int to, void *acceptor);
/* Whether both ends know the connection. The acceptor must not use it before. */
bool wireIsEstablished(wire *w);
/* `side` sends to the other one. */
void wireSend(wire *w, wireSide side, slice bytes);
/* This end is closed: it receives nothing more; the other end notices after the bytes that were
 * sent. */
void wireClose(wire *w, wireSide side);
/* Takes some bytes that have arrived at `side`, perhaps none; the caller frees them. */
str wireReceive(wire *w, wireSide side);
/* True if the other end has closed and all bytes have arrived. */
bool wireIsEnded(const wire *w, wireSide side);
/* Nothing more is sent; of what is on the way a part may be lost. */
void wireCut(wire *w);
/* Nothing arrives at either side any more, and neither notices: something between the hosts has
 * forgotten the connection. Healing does not end that. */
void wireSilence(wire *w);
/* Ends that for all connections. */
void wiresHeal(void);
/* Nothing arrives at one of the sides for up to `most_ms`. */
void wireStall(wire *w, int64_t most_ms);
/* Frees connections whose ends are both closed. */
void wiresSweep(void);

#endif
